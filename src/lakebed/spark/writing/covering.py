"""A predicate that holds for every row of some partitions, and for few others.

It finds the files to replace, and tells a commit what it depends on. Buckets cannot be said in a
predicate, so they do not narrow it down; nor do values that no constant can name.
"""

from collections.abc import Iterable, Iterator
from datetime import date
from decimal import Decimal
from typing import Any

from lakebed.errors import PredicateError
from lakebed.expr.literals import EPOCH_ORDINAL, Moment
from lakebed.expr.nodes import And, Constant, Node, Or, col
from lakebed.expr.transform import YEAR_EPOCH
from lakebed.format.partition import PartitionField, PartitionSpec, TransformName
from lakebed.format.schema import Schema
from lakebed.format.types import INSTANTS, INTEGERS, NANOSECONDS, Kind, Primitive

_VALUE_COUNT_MAX = 64  # beyond it only the lowest and the highest value count
_NS_PER_DAY, _NS_PER_HOUR = 86_400_000_000_000, 3_600_000_000_000
_MONTHS_PER_YEAR = 12

_EVERYTHING = Constant(value=True)


def covering(partitions: Iterable[tuple[Any, ...]], schema: Schema, spec: PartitionSpec) -> Node:
    """A predicate that is true for each row of these partitions."""
    rows = list(partitions)
    if not rows:
        return Constant(value=False)
    found = []
    for place, field in enumerate(spec.fields):
        source = schema.by_id.get(field.source_id)
        if source is None:
            continue
        assert isinstance(source.type, Primitive), "nested columns cannot partition a table"
        try:
            found.append(_any_of(field, source.name, source.type, {row[place] for row in rows}))
        except PredicateError:
            continue  # a value outside of what predicates can name: no narrowing
    narrowing = [node for node in found if node != _EVERYTHING]
    if not narrowing:
        return _EVERYTHING
    return narrowing[0] if len(narrowing) == 1 else And(tuple(narrowing))


def _any_of(field: PartitionField, name: str, source: Primitive, values: set[Any]) -> Node:
    """True where the field has one of the values."""
    if field.transform is TransformName.BUCKET:
        return _EVERYTHING
    given = sorted(value for value in values if value is not None)
    nodes: list[Node] = [col(name).is_null()] if None in values else []
    if len(given) > _VALUE_COUNT_MAX:
        low, high = _range(field, source, given[0]), _range(field, source, given[-1])
        nodes.append(_EVERYTHING if low is None or high is None else _between(name, low, high))
    else:
        nodes.extend(_each(field, name, source, given))
    if _EVERYTHING in nodes:
        return _EVERYTHING
    return nodes[0] if len(nodes) == 1 else Or(tuple(nodes))


def _each(field: PartitionField, name: str, source: Primitive, values: list[Any]) -> Iterator[Node]:
    for value in values:
        ends = _range(field, source, value)
        yield _EVERYTHING if ends is None else _between(name, ends, ends)


def _between(name: str, low: tuple[Any, Any], high: tuple[Any, Any]) -> Node:
    """From the start of one range to the end of another."""
    return (col(name) >= low[0]) & (col(name) <= high[1])


def _range(field: PartitionField, source: Primitive, value: Any) -> tuple[Any, Any] | None:
    """The first and the last constant whose partition value it can be; None if there is none."""
    match field.transform:
        case TransformName.IDENTITY:
            plain = _constant(source, value)
            return None if plain is None else (plain, plain)
        case TransformName.TRUNCATE:
            return _truncated_range(field.width, source, value)
        case TransformName.YEAR:
            return _months(source, value * _MONTHS_PER_YEAR, _MONTHS_PER_YEAR)
        case TransformName.MONTH:
            return _months(source, value, 1)
        case TransformName.DAY:
            return _span(source, value * _NS_PER_DAY, _NS_PER_DAY)
    return _span(source, value * _NS_PER_HOUR, _NS_PER_HOUR)


def _constant(source: Primitive, value: Any) -> Any:
    if source.kind is Kind.DATE:
        return date.fromordinal(value + EPOCH_ORDINAL) if _is_nameable(value) else None
    if source.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        return Moment(value * 1000, source.kind in INSTANTS)
    if source.kind in NANOSECONDS:
        return Moment(value, source.kind in INSTANTS)
    return None if source.kind is Kind.TIME else value


def _is_nameable(day: int) -> bool:
    return 1 <= day + EPOCH_ORDINAL <= date.max.toordinal()


def _truncated_range(width: int, source: Primitive, value: Any) -> tuple[Any, Any] | None:
    if source.kind in INTEGERS:
        return value, value + width - 1
    if source.kind is Kind.DECIMAL:
        return value, value + Decimal(width).scaleb(-source.scale)
    if source.kind is Kind.STRING and len(value) < width:
        return value, value  # shorter than the width: it was not cut
    return None


def _month_start(month: int) -> int:
    """Days from 1970 to the first of a month that is counted from 1970-01."""
    year, rest = divmod(month, _MONTHS_PER_YEAR)
    year += YEAR_EPOCH
    if not 1 <= year <= date.max.year:
        raise PredicateError("a year that no constant can name")
    return date(year, rest + 1, 1).toordinal() - EPOCH_ORDINAL


def _months(source: Primitive, first: int, count: int) -> tuple[Any, Any]:
    """The range of some months."""
    start = _month_start(first)
    last = (first + count - 1) // _MONTHS_PER_YEAR + YEAR_EPOCH == date.max.year
    end = date.max.toordinal() + 1 - EPOCH_ORDINAL if last else _month_start(first + count)
    return _span(source, start * _NS_PER_DAY, (end - start) * _NS_PER_DAY)


def _span(source: Primitive, start_ns: int, length_ns: int) -> tuple[Any, Any]:
    """The range of a length, at the precision of the column."""
    if source.kind is Kind.DATE:
        day, last = start_ns // _NS_PER_DAY, (start_ns + length_ns - 1) // _NS_PER_DAY
        if not (_is_nameable(day) and _is_nameable(last)):
            raise PredicateError("a date that no constant can name")
        return date.fromordinal(day + EPOCH_ORDINAL), date.fromordinal(last + EPOCH_ORDINAL)
    zoned = source.kind in INSTANTS
    return Moment(start_ns, zoned), Moment(start_ns + length_ns - 1, zoned)


__all__ = ["covering"]
