"""Constants in the form of a column's type, and comparisons rewritten so that they stay exact.

A constant between two values of a discrete type, `x > 5.5` for integers, is compared as its
floor; one outside of the type's range gives the same answer for each value. Floating point
columns do the same with the neighbours of a constant that they cannot hold.
"""

import math
import operator
import struct
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from fractions import Fraction

from lakebed.errors import PredicateError
from lakebed.expr.bound import Bound, BoundCompare, BoundNonNull
from lakebed.expr.literals import (
    EPOCH_ORDINAL,
    NS_PER_DAY,
    Literal,
    Moment,
    TimeOfDay,
    literal_text,
    parse_moment,
    parse_time,
)
from lakebed.expr.nodes import Op
from lakebed.format.types import (
    BYTES,
    FLOATS,
    INSTANTS,
    INTEGERS,
    NANOSECONDS,
    TIMESTAMPS,
    Field,
    Kind,
    Primitive,
)

_BEYOND = 1 << 1000  # stands for infinity: outside of every discrete type
_SHOWN_LENGTH_MAX = 60
_COMPARISONS: Mapping[Op, Callable[[bool, bool], bool]] = {
    Op.EQ: operator.eq,
    Op.NE: operator.ne,
    Op.LT: operator.lt,
    Op.LE: operator.le,
    Op.GT: operator.gt,
    Op.GE: operator.ge,
}


def compare(field: Field, kind: Primitive, op: Op, value: Literal) -> Bound:
    """Compare a column with a constant that is not NULL."""
    if isinstance(value, float) and math.isnan(value):
        _check_number(field, kind, value)
        return BoundNonNull(field.id, kind, op is Op.NE)
    if kind.kind is Kind.BOOLEAN:
        return _compare_boolean(field, kind, op, value)
    if kind.kind in FLOATS:
        return _compare_float(field, kind, op, value)
    if kind.kind in BYTES:
        return _compare_bytes(field, kind, op, value)
    if kind.kind is Kind.STRING:
        if not isinstance(value, str):
            raise _misfit(field, kind, value, "Put text in single quotes")
        return BoundCompare(field.id, kind, op, value)
    return _compare_discrete(field, kind, op, value)


def _compare_boolean(field: Field, kind: Primitive, op: Op, value: Literal) -> Bound:
    if not isinstance(value, bool):
        raise _misfit(field, kind, value, "Compare it with TRUE or FALSE")
    holds = _COMPARISONS[op]
    matching = [candidate for candidate in (False, True) if holds(candidate, value)]
    if len(matching) == 1:
        return BoundCompare(field.id, kind, Op.EQ, matching[0])
    return BoundNonNull(field.id, kind, bool(matching))


def _compare_discrete(field: Field, kind: Primitive, op: Op, value: Literal) -> Bound:
    floor, exact = _discrete(field, kind, value)
    low, high = discrete_range(kind)
    if exact and low <= floor <= high:
        return BoundCompare(field.id, kind, op, _stored(kind, floor))
    if op in (Op.EQ, Op.NE):
        return BoundNonNull(field.id, kind, op is Op.NE)
    if floor < low or floor > high:
        return BoundNonNull(field.id, kind, (floor > high) is (op in (Op.LT, Op.LE)))
    between = Op.LE if op in (Op.LT, Op.LE) else Op.GT
    return BoundCompare(field.id, kind, between, _stored(kind, floor))


def discrete_range(kind: Primitive) -> tuple[int, int]:
    """The least and the greatest value of a discrete type; of a decimal, in its last digits."""
    match kind.kind:
        case Kind.DECIMAL:
            return 1 - 10**kind.precision, 10**kind.precision - 1
        case Kind.TIME:
            return 0, NS_PER_DAY // 1000 - 1
        case Kind.INT | Kind.DATE:
            return -(1 << 31), (1 << 31) - 1
    return -(1 << 63), (1 << 63) - 1


def decimal_of(unscaled: int, scale: int) -> Decimal:
    """A decimal from its digits, exactly: no context rounds it."""
    digits = tuple(map(int, str(abs(unscaled))))
    return Decimal((int(unscaled < 0), digits, -scale))


def unscaled_of(value: Decimal, scale: int) -> int:
    """The digits of a decimal that has at most `scale` of them behind its point."""
    scaled = Fraction(value) * 10**scale
    assert scaled.denominator == 1, "the type's scale holds the value"
    return scaled.numerator


def _stored(kind: Primitive, floor: int) -> int | Decimal:
    return decimal_of(floor, kind.scale) if kind.kind is Kind.DECIMAL else floor


def _discrete(field: Field, kind: Primitive, value: Literal) -> tuple[int, bool]:
    """The constant in the type's smallest steps: rounded down, and whether that was exact."""
    if kind.kind in INTEGERS or kind.kind is Kind.DECIMAL:
        number = _check_number(field, kind, value)
        if isinstance(number, float) and math.isinf(number):
            return (_BEYOND if number > 0 else -_BEYOND), False
        scaled = Fraction(number) * 10**kind.scale
        return math.floor(scaled), scaled.denominator == 1
    if kind.kind is Kind.DATE:
        ns, unit = _wall_clock(field, kind, value).ns, NS_PER_DAY
    elif kind.kind is Kind.TIME:
        ns, unit = _time_of_day(field, kind, value).ns, 1000
    else:
        assert kind.kind in TIMESTAMPS, "the other types are not discrete"
        moment = _timestamp(field, kind, value)
        ns, unit = moment.ns, 1 if kind.kind in NANOSECONDS else 1000
    return ns // unit, ns % unit == 0


def _check_number(field: Field, kind: Primitive, value: Literal) -> int | float | Decimal:
    numeric = kind.kind in INTEGERS | FLOATS | {Kind.DECIMAL}
    if not numeric or isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        hint = "Write the number without quotes" if numeric else _expected(kind)
        raise _misfit(field, kind, value, hint)
    return value


def _wall_clock(field: Field, kind: Primitive, value: Literal) -> Moment:
    """A time without a zone: what a date, or a timestamp without zone, is compared with."""
    moment = _moment(field, kind, value)
    if moment.zoned:
        raise _misfit(field, kind, value, "The column has no zone: write the time without one")
    return moment


def _timestamp(field: Field, kind: Primitive, value: Literal) -> Moment:
    if kind.kind not in INSTANTS:
        return _wall_clock(field, kind, value)
    return _moment(field, kind, value)  # without a zone it is UTC


def _moment(field: Field, kind: Primitive, value: Literal) -> Moment:
    match value:
        case Moment():
            return value
        case date():
            return Moment((value.toordinal() - EPOCH_ORDINAL) * NS_PER_DAY, zoned=False)
        case str():
            try:
                return parse_moment(value)
            except PredicateError as error:
                raise _misfit(field, kind, value, error.hint) from error
    raise _misfit(field, kind, value, _expected(kind))


def _time_of_day(field: Field, kind: Primitive, value: Literal) -> TimeOfDay:
    if isinstance(value, str):
        try:
            return parse_time(value)
        except PredicateError as error:
            raise _misfit(field, kind, value, error.hint) from error
    if isinstance(value, TimeOfDay):
        return value
    raise _misfit(field, kind, value, _expected(kind))


def _compare_float(field: Field, kind: Primitive, op: Op, value: Literal) -> Bound:
    number = _check_number(field, kind, value)
    if isinstance(number, Decimal) and Fraction(number).denominator != 1:
        nearest = float(number)  # SQL: a decimal constant becomes the nearest double
        number = nearest if math.isfinite(nearest) else math.floor(Fraction(number))
    below, above = _neighbours(kind, int(number) if isinstance(number, Decimal) else number)
    if below == above:
        return BoundCompare(field.id, kind, op, below + 0.0)  # -0.0 becomes 0.0
    if op in (Op.EQ, Op.NE):
        return BoundNonNull(field.id, kind, op is Op.NE)
    if op in (Op.LT, Op.LE):
        return BoundCompare(field.id, kind, Op.LE, below)
    return BoundCompare(field.id, kind, Op.GE, above)


def _neighbours(kind: Primitive, number: int | float) -> tuple[float, float]:
    """The values of the type next to a number, or twice the number itself."""
    try:
        near = float(number)
        if kind.kind is Kind.FLOAT and math.isfinite(near):
            near = struct.unpack("<f", struct.pack("<f", near))[0]
    except OverflowError:
        near = math.inf if number > 0 else -math.inf
    if near == number:  # Python compares int and float exactly
        return near, near
    return (near, _step(kind, near, 1)) if near < number else (_step(kind, near, -1), near)


def _step(kind: Primitive, value: float, direction: int) -> float:
    """The next value of the type, upwards or downwards."""
    if kind.kind is Kind.DOUBLE:
        return math.nextafter(value, direction * math.inf)
    (bits,) = struct.unpack("<i", struct.pack("<f", value))
    if value == 0:
        bits = 1 if direction > 0 else 1 - (1 << 31)
    else:
        bits += direction if value > 0 else -direction
    return float(struct.unpack("<f", struct.pack("<i", bits))[0])


def _compare_bytes(field: Field, kind: Primitive, op: Op, value: Literal) -> Bound:
    if not isinstance(value, bytes):
        raise _misfit(field, kind, value, "Write bytes like X'00ff'")
    if kind.kind is Kind.BINARY or len(value) == kind.length:
        return BoundCompare(field.id, kind, op, value)
    if op in (Op.EQ, Op.NE):
        return BoundNonNull(field.id, kind, op is Op.NE)
    if len(value) > kind.length:
        between, value = Op.LE if op in (Op.LT, Op.LE) else Op.GT, value[: kind.length]
    else:
        between, value = Op.LT if op in (Op.LT, Op.LE) else Op.GE, value.ljust(kind.length, b"\0")
    return BoundCompare(field.id, kind, between, value)


def _expected(kind: Primitive) -> str:
    match kind.kind:
        case Kind.DATE:
            return "Write a date like '2026-01-31'"
        case Kind.TIME:
            return "Write a time like '05:06:07'"
        case Kind.STRING:
            return "Put text in single quotes"
        case Kind.BOOLEAN:
            return "Compare it with TRUE or FALSE"
        case Kind.BINARY | Kind.FIXED:
            return "Write bytes like X'00ff'"
    return "Write a timestamp like '2026-01-31 05:06:07Z', not a count of seconds"


def _misfit(field: Field, kind: Primitive, value: Literal, hint: str) -> PredicateError:
    text = literal_text(value)
    shown = text if len(text) <= _SHOWN_LENGTH_MAX else f"{text[:_SHOWN_LENGTH_MAX]}…"
    return PredicateError(
        f"the column {field.name!r} of type {kind} cannot be compared with {shown}",
        hint=hint,
        column=field.name,
    )
