"""What users say in a merge: expressions over `t` and `s`, and which keys belong together."""

import re
from collections.abc import Iterable, Iterator
from functools import reduce
from typing import TYPE_CHECKING, Any

from lakebed.errors import PredicateError
from lakebed.expr.literals import NS_PER_DAY, Moment
from lakebed.expr.nodes import And, Constant, Node, col
from lakebed.format.schema import Schema
from lakebed.format.types import INTEGERS, Field, Kind, Primitive
from lakebed.spark.writing.merge_plan import MergePlan

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

_QUOTED = re.compile(r"('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`)")
_LONG_NAME = re.compile(r"(?<![\w.`])(target|source)(?=\s*\.)", re.IGNORECASE)
_NAME = r"(?:`(?:[^`]|``)+`|\w+)"
_PAIR = re.compile(rf"\s*(t|s)\s*\.\s*({_NAME})\s*=\s*(t|s)\s*\.\s*({_NAME})\s*", re.IGNORECASE)
_UNCLEAR = re.compile(r"['\"()!]|\b(?:or|not|case|in|is)\b", re.IGNORECASE)  # more than ANDs
_AND = re.compile(r"\band\b", re.IGNORECASE)


def spoken(value: object) -> "Column":
    """An expression of a user's: SQL text, a Spark column, or a plain value."""
    from pyspark.sql import Column
    from pyspark.sql import functions as F  # noqa: N812

    if isinstance(value, str):
        return F.expr(shortened(value))
    return value if isinstance(value, Column) else F.lit(value)


def shortened(text: str) -> str:
    """SQL in which the table is `t` and the source `s`, whatever the user called them."""
    parts = _QUOTED.split(text)
    parts[::2] = [_LONG_NAME.sub(lambda found: found[1][0].lower(), part) for part in parts[::2]]
    return "".join(parts)


def condition_of(merge: MergePlan) -> "Column":
    """Which rows belong together."""
    from pyspark.sql import functions as F  # noqa: N812

    if not merge.keys:
        return spoken(merge.condition)
    pairs = [F.col(f"t.{_ticked(key)}") == F.col(f"s.{_ticked(key)}") for key in merge.keys]
    return reduce(lambda a, b: a & b, pairs)


def key_range(merge: MergePlan, source: "DataFrame", schema: Schema) -> Node | None:
    """A predicate that is true for each row that can match; None if that is not known.

    It comes from the least and the greatest key of the source, for keys of types that Spark and
    we order alike.
    """
    from pyspark.sql import functions as F  # noqa: N812

    kinds = {field.name.casefold(): (field.name, field.dataType) for field in source.schema.fields}
    pairs = []
    for ours, theirs in key_pairs(merge):
        field = next((f for f in schema.fields if f.name.casefold() == ours.casefold()), None)
        found = kinds.get(theirs.casefold())
        if field is None or found is None or not _is_ordered_alike(field.type, found[1]):
            continue
        pairs.append((field.name, found[0]))
    if not pairs:
        return None
    ends = []
    for _, name in pairs:
        key = _counted(F.col(_ticked(name)), kinds[name.casefold()][1])
        ends += [F.min(key), F.max(key)]
    row = source.agg(*(end.alias(str(place)) for place, end in enumerate(ends))).collect()[0]
    try:
        nodes = [
            _between(schema.by_name[name], low, high)
            for (name, _), low, high in zip(pairs, row[::2], row[1::2], strict=True)
        ]
    except PredicateError:
        return None  # a time that no constant can name
    return nodes[0] if len(nodes) == 1 else And(tuple(nodes))


def _between(field: Field, low: Any, high: Any) -> Node:
    if low is None:
        return Constant(value=False)  # no key at all, and NULL matches nothing
    return (col(field.name) >= _constant(field, low)) & (col(field.name) <= _constant(field, high))


def _constant(field: Field, value: Any) -> Any:
    kind = field.type.kind if isinstance(field.type, Primitive) else None
    if kind is Kind.DATE:
        return Moment(value * NS_PER_DAY, zoned=False)
    return Moment(value * 1000, zoned=True) if kind is Kind.TIMESTAMPTZ else value


def key_pairs(merge: MergePlan) -> Iterator[tuple[str, str]]:
    """Columns of the table and of the source that must be equal for rows to match."""
    if merge.keys:
        yield from ((key, key) for key in merge.keys)
        return
    if not isinstance(merge.condition, str):
        return
    text = shortened(merge.condition)
    if not _UNCLEAR.search(re.sub(r"`[^`]*`", "", text)):
        yield from _equal(_AND.split(text))


def _equal(terms: Iterable[str]) -> Iterator[tuple[str, str]]:
    for term in terms:
        found = _PAIR.fullmatch(term)
        if found is None or found[1].lower() == found[3].lower():
            continue
        left, right = _unticked(found[2]), _unticked(found[4])
        yield (left, right) if found[1].lower() == "t" else (right, left)


def _is_ordered_alike(ours: Any, theirs: "DataType") -> bool:
    from pyspark.sql import types

    if not isinstance(ours, Primitive):
        return False
    if ours.kind in INTEGERS:
        return isinstance(theirs, types.IntegralType)
    if ours.kind is Kind.STRING:
        return isinstance(theirs, types.StringType) and theirs == types.StringType()
    if ours.kind is Kind.DECIMAL:
        return isinstance(theirs, types.DecimalType)
    same = {Kind.DATE: types.DateType, Kind.TIMESTAMPTZ: types.TimestampType}
    wanted = same.get(ours.kind)
    return wanted is not None and isinstance(theirs, wanted)


def _counted(key: "Column", kind: "DataType") -> "Column":
    """Dates and times as numbers: Python has fewer of them than Spark."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import DateType, TimestampType

    if isinstance(kind, DateType):
        return F.unix_date(key)
    return F.unix_micros(key) if isinstance(kind, TimestampType) else key


def _ticked(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _unticked(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


__all__ = ["condition_of", "key_pairs", "key_range", "shortened", "spoken"]
