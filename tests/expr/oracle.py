"""What predicates and transforms mean, once more: row by row, in plain Python, no Arrow.

Written from the words of `lakebed.expr.bind` and Iceberg's specification, not from our code.
"""

import math
import operator
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from lakebed.expr.literals import Moment, TimeOfDay
from lakebed.expr.nodes import And, Compare, Constant, In, IsNan, IsNull, Like, Node, Not, Op, Or
from lakebed.format.partition import TransformName
from lakebed.format.types import Kind, Primitive

Row = dict[str, Any]  # storage values by column name
_OPS = {
    Op.EQ: operator.eq,
    Op.NE: operator.ne,
    Op.LT: operator.lt,
    Op.LE: operator.le,
    Op.GT: operator.gt,
    Op.GE: operator.ge,
}
_EPOCH = date(1970, 1, 1)
_DAY_NS = 86_400 * 10**9


def truth(node: Node, row: Row, kinds: dict[str, Primitive]) -> bool | None:
    """TRUE, FALSE or NULL for one row."""
    match node:
        case And(children=children):
            return _conjunction([truth(child, row, kinds) for child in children])
        case Or(children=children):
            return _negated(
                _conjunction([_negated(truth(child, row, kinds)) for child in children])
            )
        case Not(child=child):
            return _negated(truth(child, row, kinds))
        case Constant(value=value):
            return value
        case IsNull(column=column):
            return row[column] is None
        case IsNan(column=column):
            return None if row[column] is None else math.isnan(row[column])
        case Like(column=column, pattern=pattern, escape=escape):
            return None if row[column] is None else like(row[column], pattern, escape)
        case Compare(column=column, op=op, value=value):
            return compared(row[column], op, value, kinds[column])
        case In(column=column, values=values):
            found = [compared(row[column], Op.EQ, value, kinds[column]) for value in values]
            return True if True in found else None if None in found else False
    raise AssertionError(node)


def _conjunction(parts: list[bool | None]) -> bool | None:
    if False in parts:
        return False
    return None if None in parts else True


def _negated(value: bool | None) -> bool | None:
    return None if value is None else not value


def compared(value: Any, op: Op, constant: Any, kind: Primitive) -> bool | None:
    if value is None or constant is None:
        return None
    left, right = _exact(value, kind), _constant(constant, kind)
    if _is_nan(left) or _is_nan(right):
        return op is Op.NE
    return bool(_OPS[op](left, right))


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _exact(value: Any, kind: Primitive) -> Any:
    """A storage value on a scale where comparing is exact: times in nanoseconds."""
    match kind.kind:
        case Kind.DATE:
            return value * _DAY_NS
        case Kind.TIME | Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return value * 1000
    if isinstance(value, Decimal) or (isinstance(value, float) and math.isfinite(value)):
        return Fraction(value)
    return value


def _constant(constant: Any, kind: Primitive) -> Any:
    if isinstance(constant, str) and kind.kind is not Kind.STRING:
        return _text_ns(constant)
    match constant:
        case Moment() | TimeOfDay():
            return constant.ns
        case date():
            return (constant - _EPOCH).days * _DAY_NS
        case Decimal() if kind.kind in (Kind.FLOAT, Kind.DOUBLE):
            exact = Fraction(constant)
            return exact if exact.denominator == 1 else Fraction(float(constant))
        case Decimal():
            return Fraction(constant)
        case float() if math.isfinite(constant):
            return Fraction(constant)
    return constant


def _text_ns(text: str) -> int:
    """A time of day, or a date and time, in nanoseconds; Python's own parser stops at µs."""
    fraction = re.search(r"\.(\d+)", text)
    whole = text if fraction is None else text.replace(fraction[0], "")
    if re.match(r"\d\d:", whole):
        whole = f"1970-01-01T{whole}"
    moment = datetime.fromisoformat(whole)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    seconds = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(seconds=1)
    return seconds * 10**9 + (int(fraction[1].ljust(9, "0")) if fraction else 0)


def like(text: str, pattern: str, escape: str | None) -> bool:
    """Match by the set of places in the text that the pattern read so far can end at."""
    places = {0}
    characters = iter(pattern)
    for character in characters:
        if escape is not None and character == escape:
            literal = next(characters)
        elif character == "%":
            places = set(range(min(places), len(text) + 1)) if places else set()
            continue
        elif character == "_":
            places = {place + 1 for place in places if place < len(text)}
            continue
        else:
            literal = character
        places = {place + 1 for place in places if text[place : place + 1] == literal}
    return len(text) in places


# ---------------------------------------------------------------------------------- transforms


def transformed(value: Any, transform: TransformName, width: int, kind: Primitive) -> Any:
    """One partition value."""
    if value is None or transform is TransformName.IDENTITY:
        return value
    if transform is TransformName.BUCKET:
        return (murmur3(hashed_bytes(value, kind)) & 0x7FFFFFFF) % width
    if transform is TransformName.TRUNCATE:
        return _truncated(value, width, kind)
    ns = _exact(value, kind) if kind.kind is not Kind.DATE else value * _DAY_NS
    days, rest = divmod(ns, _DAY_NS)
    if transform is TransformName.DAY:
        return days
    if transform is TransformName.HOUR:
        return min(max(days * 24 + rest // (3600 * 10**9), -(1 << 31)), (1 << 31) - 1)
    year, month = _calendar(days)
    return year - 1970 if transform is TransformName.YEAR else (year - 1970) * 12 + month - 1


def _calendar(days: int) -> tuple[int, int]:
    """Year and month of a day; the calendar repeats every 400 years, which is 146,097 days."""
    eras, day = divmod(days, 146_097)
    found = date(2000, 1, 1) + timedelta(days=(day - 10_957) % 146_097)
    eras += (day - 10_957) // 146_097
    return found.year + 400 * eras, found.month


def _truncated(value: Any, width: int, kind: Primitive) -> Any:
    if isinstance(value, str | bytes):
        return value[:width]
    if kind.kind is Kind.DECIMAL:
        unscaled = int(Fraction(value) * 10**kind.scale)
        low = 1 - 10**kind.precision
        return Decimal(f"{max(unscaled // width * width, low)}E-{kind.scale}")
    low = -(1 << (31 if kind.kind is Kind.INT else 63))
    return max(value // width * width, low)


def hashed_bytes(value: Any, kind: Primitive) -> bytes:
    """The bytes that Iceberg hashes for a value."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    if isinstance(value, Decimal):
        unscaled = int(Fraction(value) * 10**kind.scale)
        length = next(n for n in range(1, 20) if -(1 << 8 * n - 1) <= unscaled < 1 << 8 * n - 1)
        return unscaled.to_bytes(length, "big", signed=True)
    if kind.kind in (Kind.TIMESTAMP_NS, Kind.TIMESTAMPTZ_NS):
        value //= 1000
    return int(value).to_bytes(8, "little", signed=True)


def murmur3(data: bytes) -> int:
    """Murmur3, x86, 32 bits, seed 0, as its author published it."""
    mask = 0xFFFFFFFF
    state = 0
    blocks = [data[at : at + 4] for at in range(0, len(data), 4)]
    for block in blocks:
        k = int.from_bytes(block, "little") * 0xCC9E2D51 & mask
        k = ((k << 15 | k >> 17) & mask) * 0x1B873593 & mask
        state ^= k
        if len(block) == 4:
            state = ((state << 13 | state >> 19) & mask) * 5 + 0xE6546B64 & mask
    state ^= len(data)
    state = (state ^ state >> 16) * 0x85EBCA6B & mask
    state = (state ^ state >> 13) * 0xC2B2AE35 & mask
    return state ^ state >> 16
