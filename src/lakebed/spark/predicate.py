"""A predicate of ours as a Spark column: true for the same rows, and where it can be, pushed down.

Spark hands simple comparisons on to its Parquet reader, which leaves out row groups by their
statistics and dictionaries. So each form must be right twice: for Spark, to which NaN equals
itself and exceeds every number, and for Parquet, which leaves NaN out of its bounds and holds
-0.0 for less than 0.0. (Spark itself loses rows there: `x = 0.0` misses -0.0 in a row group of
its own, `NOT x < 5` misses NaN.) What cannot be right for both is written so that Spark keeps it.

    floats   x > v     x > v AND NOT isnan(x)          else Spark takes NaN
             x != v    x != v OR isnan(x)              else Parquet drops NaN; so for NOT x < v
             x = 0     x >= -0.0 AND x <= 0.0          else Parquet drops the other zero
    dates    before 1900, after 9999: compared as numbers; Spark's constants go through an old
             calendar on their way to Parquet
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

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

if TYPE_CHECKING:
    from pyspark.sql import Column

_ESCAPE = "\\"  # Spark's own in LIKE
_US_PER_DAY = 86_400_000_000
_DAY_1900, _DAY_9999 = -25_567, 2_932_896
_UPWARDS = (Op.GT, Op.GE)


def spark_predicate(bound: Bound, column: "Callable[[int], Column]") -> "Column":
    """The predicate over columns of a frame, which `column` gives by field id.

    The columns have the types of `lakebed.spark.schema.stored_type`: nanoseconds and times of day
    are numbers.
    """
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own habit

    def visit(node: Bound, inner: "list[Column]") -> "Column":
        match node:
            case BoundAnd():
                return _joined(inner, lambda a, b: a & b)
            case BoundOr():
                return _joined(inner, lambda a, b: a | b)
            case BoundNot(child=child):
                return _opposite(child, inner[0], column)
            case BoundConstant(value=value):
                return F.lit(value).cast("boolean")
        return _leaf(node, column(_field_id(node)))

    return fold(bound, visit)


def _joined(parts: "Sequence[Column]", join: "Callable[[Column, Column], Column]") -> "Column":
    """Join in pairs: Spark walks its trees by recursion, so they had better be flat."""
    while len(parts) > 1:
        pairs = [join(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = [*pairs, parts[-1]] if len(parts) % 2 else pairs
    return parts[0]


def _field_id(leaf: Bound) -> int:
    found: int = leaf.field_id  # type: ignore[attr-defined]
    return found


def _opposite(leaf: Bound, positive: "Column", column: "Callable[[int], Column]") -> "Column":
    """NOT of a leaf; Spark turns `NOT x < v` into `x >= v`, which Parquet would prune by."""
    from pyspark.sql import functions as F  # noqa: N812

    if isinstance(leaf, BoundCompare) and leaf.kind.kind in FLOATS:
        return ~positive | F.isnan(column(leaf.field_id))
    return ~positive


def _leaf(leaf: Bound, column: "Column") -> "Column":
    from pyspark.sql import functions as F  # noqa: N812

    match leaf:
        case BoundIsNull():
            return column.isNull()
        case BoundIsNan():
            return F.when(column.isNotNull(), F.isnan(column))
        case BoundNonNull(truth=truth):
            return F.when(column.isNotNull(), F.lit(truth))
        case BoundLike(pattern=pattern):
            return _like(pattern, column)
        case BoundCompare(kind=kind, op=op, value=value):
            if kind.kind in FLOATS:
                return _compare_float(column, kind, op, cast("float", value))
            column, constants = _alike(column, kind, [value])
            return _compared(column, op, constants[0])
        case BoundIn(kind=kind, values=values):
            if kind.kind in FLOATS:
                # A longer list becomes a set that tells the zeros apart, so there is but one.
                zero = _constant(0.0, kind)
                one_zero = F.when(column == zero, zero).otherwise(column)
                return one_zero.isin([_constant(cast("float", v) + 0.0, kind) for v in values])
            column, constants = _alike(column, kind, values)
            return column.isin(constants)
    raise AssertionError(f"{type(leaf).__name__} is not a leaf")


def _compared(column: "Column", op: Op, constant: "Column") -> "Column":
    match op:
        case Op.EQ:
            return column == constant
        case Op.NE:
            return column != constant
        case Op.LT:
            return column < constant
        case Op.LE:
            return column <= constant
        case Op.GT:
            return column > constant
        case Op.GE:
            return column >= constant


def _compare_float(column: "Column", kind: Primitive, op: Op, value: float) -> "Column":
    from pyspark.sql import functions as F  # noqa: N812

    if op is Op.EQ and value == 0:
        return (column >= _constant(-0.0, kind)) & (column <= _constant(0.0, kind))
    if value == 0:
        value = -0.0 if op is Op.GE else 0.0
    found = _compared(column, op, _constant(value, kind))
    if op in _UPWARDS:
        return found & ~F.isnan(column)
    return found | F.isnan(column) if op is Op.NE else found


def _alike(
    column: "Column", kind: Primitive, values: Sequence[StorageValue]
) -> "tuple[Column, list[Column]]":
    """A column and constants to compare it with, of one type."""
    from pyspark.sql import functions as F  # noqa: N812

    if kind.kind is Kind.DATE and not all(_is_safe(cast("int", v)) for v in values):
        return F.unix_date(column), [F.lit(v) for v in values]
    if kind.kind is Kind.TIMESTAMPTZ and not all(
        _is_safe(cast("int", v) // _US_PER_DAY) for v in values
    ):
        return F.unix_micros(column), [F.lit(v).cast("bigint") for v in values]
    return column, [_constant(value, kind) for value in values]


def _is_safe(day: int) -> bool:
    return _DAY_1900 <= day <= _DAY_9999


def _constant(value: StorageValue, kind: Primitive) -> "Column":
    """A storage value as a constant of exactly the column's type in Spark."""
    from pyspark.sql import functions as F  # noqa: N812

    match kind.kind:
        case Kind.INT:
            return F.lit(value).cast("int")
        case Kind.FLOAT:
            return F.lit(value).cast("float")
        case Kind.DECIMAL:
            text = format(cast("Decimal", value), "f")
            return F.lit(text).cast(f"decimal({kind.precision},{kind.scale})")
        case Kind.DATE:
            return F.date_from_unix_date(F.lit(value))
        case Kind.TIMESTAMPTZ:
            return F.timestamp_micros(F.lit(value).cast("bigint"))
        case Kind.TIMESTAMP:
            return _wall_clock(cast("int", value))
        case Kind.BOOLEAN | Kind.DOUBLE | Kind.STRING:
            return F.lit(value)
        case Kind.BINARY | Kind.FIXED:
            return F.lit(bytearray(cast("bytes", value)))
    return F.lit(value).cast("bigint")


def _wall_clock(value: int) -> "Column":
    """A time without zone: 1970 and an interval, for what else there is asks for a zone."""
    from pyspark.sql import functions as F  # noqa: N812

    days, rest = divmod(value, _US_PER_DAY)
    zero = F.lit(0)
    seconds = F.lit(f"{rest // 1_000_000}.{rest % 1_000_000:06d}").cast("decimal(18,6)")
    interval = F.make_dt_interval(F.lit(days), zero, zero, seconds)
    return F.lit("1970-01-01 00:00:00").cast("timestamp_ntz") + interval


def _like(pattern: tuple[str, ...], column: "Column") -> "Column":
    match pattern:
        case (text, "%") if text.startswith("="):
            return column.startswith(text[1:])
        case ("%", text) if text.startswith("="):
            return column.endswith(text[1:])
        case ("%", text, "%") if text.startswith("="):
            return column.contains(text[1:])
    return column.like("".join(_escaped(part) for part in pattern))


def _escaped(part: str) -> str:
    if part in ("%", "_"):
        return part
    special: dict[str, Any] = {each: _ESCAPE + each for each in ("%", "_", _ESCAPE)}
    return part[1:].translate(str.maketrans(special))


__all__ = ["spark_predicate"]
