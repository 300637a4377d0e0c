"""Why a file was dropped, in one short sentence for people."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lakebed.expr.bound import (
    Bound,
    BoundCompare,
    BoundIn,
    BoundIsNan,
    BoundIsNull,
    BoundLike,
    BoundNonNull,
    StorageValue,
)
from lakebed.expr.facts import Facts
from lakebed.expr.leaves import may_leaf
from lakebed.expr.value_text import value_text
from lakebed.format.types import Kind, Primitive

_VALUES_SHOWN_MAX = 3
_TEXT_SHOWN_MAX = 40


def leaf_reason(leaf: Bound, facts: Facts, names: Mapping[int, str], *, negated: bool) -> str:
    """Say why a leaf is TRUE for no row of the first group, given that it is not."""
    field_id: int = leaf.field_id  # type: ignore[attr-defined]
    name = names.get(field_id, f"#{field_id}")
    wanted = leaf_text(leaf, name, negated=negated)
    if facts.all_null[0] and not (isinstance(leaf, BoundIsNull) and not negated):
        return f"{name}: every value is null, outside {wanted}"
    if isinstance(leaf, BoundIsNull):
        return f"{name}: no value is null, outside {wanted}"
    if isinstance(leaf, BoundIsNan):
        return f"{name}: {'every' if negated else 'no'} value is NaN, outside {wanted}"
    if isinstance(leaf, BoundNonNull):
        return f"{name}: no value of the column's type can match"
    if facts.only_nan[0]:
        return f"{name}: every value is NaN, outside {wanted}"
    kind: Primitive = leaf.kind  # type: ignore[attr-defined]
    if may_leaf(leaf, replace(facts, buckets=()), negated=negated)[0]:
        return f"{name}: its bucket is not that of {wanted}"
    lower, upper = (_bound_text(bound[0].as_py(), kind) for bound in (facts.lower, facts.upper))
    return f"{name}: {lower}..{upper} is outside {wanted}"


def leaf_text(leaf: Bound, name: str, *, negated: bool) -> str:
    """A leaf as a user would write it, cut short."""
    text = _plain_text(leaf, name)
    return f"NOT {text}" if negated else text


def _plain_text(leaf: Bound, name: str) -> str:
    match leaf:
        case BoundCompare(op=op, value=value, kind=kind):
            return f"{name} {op.value} {_short(value, kind)}"
        case BoundIn(values=values, kind=kind):
            shown = [_short(value, kind) for value in values[:_VALUES_SHOWN_MAX]]
            more = ["…"] if len(values) > _VALUES_SHOWN_MAX else []
            return f"{name} IN ({', '.join([*shown, *more])})"
        case BoundLike(pattern=pattern):
            text = "".join(part.removeprefix("=") for part in pattern)
            return f"{name} LIKE {_cut(text)}"
        case BoundIsNull():
            return f"{name} IS NULL"
        case BoundIsNan():
            return f"{name} IS NAN"
    return f"{name} HAS VALUE"


def _bound_text(value: Any, kind: Primitive) -> str:
    if value is None:
        return ""
    return _short(bool(value) if kind.kind is Kind.BOOLEAN else value, kind)


def _short(value: StorageValue, kind: Primitive) -> str:
    return _cut(value_text(value, kind))


def _cut(text: str) -> str:
    printable = "".join(c if c.isprintable() else "?" for c in text[: _TEXT_SHOWN_MAX + 1])
    return printable if len(text) <= _TEXT_SHOWN_MAX else f"{printable[:_TEXT_SHOWN_MAX]}…"
