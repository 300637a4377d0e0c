"""Predicates on Arrow data: the mask of rows that match.

`filter_mask` is the meaning of a predicate; `bind` says it in words.
"""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.expr.bound import (
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
)
from lakebed.expr.nodes import Op
from lakebed.expr.tree import fold
from lakebed.format.types import FLOATS, Kind, Primitive

_TYPES = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.INT: pa.int32(),
    Kind.LONG: pa.int64(),
    Kind.FLOAT: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.DATE: pa.date32(),
    Kind.TIME: pa.time64("us"),
    Kind.TIMESTAMP: pa.timestamp("us"),
    Kind.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
    Kind.TIMESTAMP_NS: pa.timestamp("ns"),
    Kind.TIMESTAMPTZ_NS: pa.timestamp("ns", "UTC"),
    Kind.STRING: pa.string(),
    Kind.BINARY: pa.binary(),
}
COMPARISONS: Mapping[Op, Any] = {
    Op.EQ: pc.equal,
    Op.NE: pc.not_equal,
    Op.LT: pc.less,
    Op.LE: pc.less_equal,
    Op.GT: pc.greater,
    Op.GE: pc.greater_equal,
}


def primitive_arrow_type(kind: Primitive) -> Any:
    """The Arrow type that holds the values of a column."""
    if kind.kind is Kind.DECIMAL:
        return pa.decimal128(kind.precision, kind.scale)
    if kind.kind is Kind.FIXED:
        return pa.binary(kind.length)
    return _TYPES[kind.kind]


def typed_scalar(value: StorageValue, kind: Primitive) -> Any:
    """A storage value as an Arrow scalar of the column's type."""
    return pa.scalar(value, primitive_arrow_type(kind))


# ---------------------------------------------------------------------------------------- rows


def filter_mask(bound: Bound, batch: Any, names: Mapping[int, str]) -> Any:
    """Tell for each row of a batch or table whether the predicate is TRUE; without nulls.

    `names` gives the names that the columns have in the batch, by field id.
    """
    if isinstance(batch, pa.Table):
        masks = [filter_mask(bound, part, names) for part in batch.to_batches()]
        return pa.concat_arrays(masks) if masks else pa.array([], pa.bool_())

    def visit(node: Bound, inner: list[Any]) -> Any:
        match node:
            case BoundAnd():
                return _joined(pc.and_kleene, inner)
            case BoundOr():
                return _joined(pc.or_kleene, inner)
            case BoundNot():
                return pc.invert(inner[0])
            case BoundConstant(value=value):
                return pa.repeat(pa.scalar(value, pa.bool_()), batch.num_rows)
        return _leaf_mask(node, batch.column(names[_field_id(node)]))

    return pc.fill_null(fold(bound, visit), False)  # noqa: FBT003


def _joined(function: Any, masks: list[Any]) -> Any:
    result = masks[0]
    for mask in masks[1:]:
        result = function(result, mask)
    return result


def _field_id(leaf: Bound) -> int:
    found: int = leaf.field_id  # type: ignore[attr-defined]
    return found


def _leaf_mask(leaf: Bound, column: Any) -> Any:
    """TRUE, FALSE or NULL for each value of the column."""
    if isinstance(leaf, BoundIsNull):
        return pc.is_null(column)
    kind: Primitive = leaf.kind  # type: ignore[attr-defined]
    target = primitive_arrow_type(kind)
    if column.type != target:
        column = column.cast(target)
    match leaf:
        case BoundCompare(op=op, value=value):
            return COMPARISONS[op](column, typed_scalar(value, kind))
        case BoundIn(values=values):
            return in_mask(column, values, kind)
        case BoundLike(pattern=pattern):
            return like_mask(column, pattern)
        case BoundIsNan():
            return pc.is_nan(column)
        case BoundNonNull(truth=truth):
            return _where_valid(column, pa.scalar(truth))
    raise AssertionError(f"{type(leaf).__name__} is not a leaf")


def in_mask(column: Any, values: tuple[StorageValue, ...], kind: Primitive) -> Any:
    """Which values are among these; NULL where there is no value."""
    listed = pa.array(values, primitive_arrow_type(kind))
    if kind.kind in FLOATS:
        # Arrow looks values up by their bits; adding zero makes one zero of the two.
        zero = typed_scalar(0.0, kind)
        column, listed = pc.add(column, zero), pc.add(listed, zero)
    return _where_valid(column, pc.is_in(column, value_set=listed))


def _where_valid(column: Any, mask: Any) -> Any:
    return pc.if_else(pc.is_valid(column), mask, pa.scalar(None, pa.bool_()))


def like_mask(column: Any, pattern: tuple[str, ...]) -> Any:
    """Which texts match a LIKE pattern in the form of `like_parts`; NULL where there is none."""
    match pattern:
        case (text, "%") if text.startswith("="):
            return pc.starts_with(column, text[1:])
        case ("%", text) if text.startswith("="):
            return pc.ends_with(column, text[1:])
        case ("%", text, "%") if text.startswith("="):
            return pc.match_substring(column, text[1:])
    expression = "".join(_regex(part) for part in pattern)
    return pc.match_substring_regex(column, rf"(?s)\A(?:{expression})\z")


def _regex(part: str) -> str:
    if part == "%":
        return ".*"
    if part == "_":
        return "."
    # RE2 has no function to quote with on this side; a code stands for itself and nothing else.
    return "".join(c if c.isalnum() or ord(c) > 0x7F else f"\\x{{{ord(c):x}}}" for c in part[1:])
