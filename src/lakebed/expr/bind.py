"""Fitting a predicate to a schema: names become field ids, constants become exact storage values.

What a predicate means:

- Logic is SQL's: TRUE, FALSE and NULL. A row is kept when the predicate is TRUE for it; NULL is
  not TRUE, nor is NOT NULL. A comparison with NULL is NULL; `x IN (1, NULL)` is TRUE or NULL.
- Constants are exact. Nothing is rounded to fit an integer, decimal, date or time column: a
  constant between two values, or outside of all, is compared as what it is. For floating point
  columns a decimal constant becomes the nearest double, an integer stays exact, and a `float`
  column is compared as the double it equals: `x = 0.1` never holds for it.
- Floating point is IEEE: NaN compares false under = < <= > >= and IN, true under !=, also with
  another NaN; `x IS NAN` finds it. -0.0 equals 0.0.
- Text compares by code point, which is the order of its UTF-8 bytes, and case matters. In LIKE
  `%` stands for any text and `_` for any one character, newlines included; there is no escape
  character unless ESCAPE names one.
- A time without a zone is UTC when compared with an instant (timestamptz). A time with a zone is
  refused by columns that have none. A date is its midnight. Integers are not times.
- Column names are matched exactly. Nested columns take IS NULL only.
"""

from difflib import get_close_matches

from lakebed.errors import PredicateError
from lakebed.expr.bound import (
    UNKNOWN,
    Bound,
    BoundAnd,
    BoundCompare,
    BoundConstant,
    BoundIn,
    BoundIsNan,
    BoundIsNull,
    BoundLike,
    BoundNonNull,
    BoundNot,
    BoundOr,
    StorageValue,
    all_of,
    any_of,
    negated_leaf,
)
from lakebed.expr.convert import compare
from lakebed.expr.like import like_parts
from lakebed.expr.nodes import And, Compare, Constant, In, IsNan, IsNull, Like, Node, Not, Op, Or
from lakebed.expr.tree import fold
from lakebed.format.schema import Schema
from lakebed.format.types import FLOATS, Field, Kind, Primitive

__all__ = [
    "Bound",
    "BoundAnd",
    "BoundCompare",
    "BoundConstant",
    "BoundIn",
    "BoundIsNan",
    "BoundIsNull",
    "BoundLike",
    "BoundNonNull",
    "BoundNot",
    "BoundOr",
    "StorageValue",
    "all_of",
    "any_of",
    "bind",
]

LIKE_PATTERN_LENGTH_MAX = 4096  # beyond it the regular expression would grow too large
_COLUMNS_SHOWN_MAX = 20

_Pair = tuple[Bound, Bound]  # a predicate and its opposite, so that NOT is a swap


def bind(node: Node, schema: Schema) -> Bound:
    """Fit a predicate to a schema, or raise PredicateError that names what does not fit."""

    def visit(node: Node, inner: list[_Pair]) -> _Pair:
        match node:
            case And():
                return all_of(a for a, _ in inner), any_of(b for _, b in inner)
            case Or():
                return any_of(a for a, _ in inner), all_of(b for _, b in inner)
            case Not():
                return inner[0][1], inner[0][0]
            case Constant(value=value):
                return BoundConstant(value), negated_leaf(BoundConstant(value))
        return _leaf(node, schema)

    return fold(node, visit)[0]


def _leaf(node: Node, schema: Schema) -> _Pair:
    match node:
        case IsNull(column=column):
            field = _field(column, schema)
            return _both(BoundIsNull(field.id, field.type))
        case Compare(column=column, op=op, value=value):
            field, kind = _plain_field(column, schema)
            return _both(UNKNOWN if value is None else compare(field, kind, op, value))
        case In():
            return _in(node, schema)
        case Like():
            return _both(_like(node, schema))
        case IsNan(column=column):
            field, kind = _plain_field(column, schema)
            if kind.kind not in FLOATS:
                raise PredicateError(
                    f"the column {column!r} of type {kind} is never NaN",
                    hint="IS NAN is for float and double; for missing values use IS NULL",
                    column=column,
                )
            return _both(BoundIsNan(field.id, kind))
    raise AssertionError(f"{type(node).__name__} is not a leaf")


def _both(leaf: Bound) -> _Pair:
    return leaf, negated_leaf(leaf)


def _in(node: In, schema: Schema) -> _Pair:
    field, kind = _plain_field(node.column, schema)
    found: set[StorageValue] = set()
    for value in node.values:
        if value is not None:
            equal = compare(field, kind, Op.EQ, value)
            if isinstance(equal, BoundCompare):  # else no value of the type equals it
                found.add(equal.value)
    leaf, opposite = _both(_listed(field, kind, found))
    if None in node.values:
        return any_of((leaf, UNKNOWN)), all_of((opposite, UNKNOWN))
    return leaf, opposite


def _listed(field: Field, kind: Primitive, values: set[StorageValue]) -> Bound:
    if not values or (kind.kind is Kind.BOOLEAN and len(values) == 2):
        return BoundNonNull(field.id, kind, bool(values))
    if len(values) == 1:
        return BoundCompare(field.id, kind, Op.EQ, values.pop())
    return BoundIn(field.id, kind, tuple(sorted(values)))


def _like(node: Like, schema: Schema) -> Bound:
    field, kind = _plain_field(node.column, schema)
    if kind.kind is not Kind.STRING:
        raise PredicateError(
            f"LIKE is for text; the column {node.column!r} is of type {kind}", column=node.column
        )
    if len(node.pattern) > LIKE_PATTERN_LENGTH_MAX:
        raise PredicateError(
            f"a LIKE pattern has {len(node.pattern)} characters",
            hint=f"Use at most {LIKE_PATTERN_LENGTH_MAX}",
        )
    pattern = like_parts(node.pattern, node.escape)
    if not pattern:
        return BoundCompare(field.id, kind, Op.EQ, "")
    if len(pattern) == 1 and pattern[0].startswith("="):
        return BoundCompare(field.id, kind, Op.EQ, pattern[0][1:])
    if set(pattern) == {"%"}:
        return BoundNonNull(field.id, kind, truth=True)
    return BoundLike(field.id, kind, pattern)


def _field(name: str, schema: Schema) -> Field:
    found = schema.by_name.get(name)
    if found is not None:
        return found
    columns = list(schema.by_name)
    close = [c for c in columns if c.casefold() == name.casefold()]
    close = close or get_close_matches(name, columns, n=1)
    if close:
        hint = f"Did you mean {close[0]!r}?"
    else:
        more = ", …" if len(columns) > _COLUMNS_SHOWN_MAX else ""
        hint = f"The columns are: {', '.join(columns[:_COLUMNS_SHOWN_MAX])}{more}"
    raise PredicateError(f"there is no column {name!r}", hint=hint, column=name)


def _plain_field(name: str, schema: Schema) -> tuple[Field, Primitive]:
    field = _field(name, schema)
    if isinstance(field.type, Primitive):
        return field, field.type
    raise PredicateError(
        f"the nested column {name!r} cannot be compared",
        hint="Nested columns take IS NULL and IS NOT NULL only",
        column=name,
    )
