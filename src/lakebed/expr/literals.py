"""The constants of a predicate: one plain form for each, and its SQL text.

Whatever a user compares a column with (numpy and pandas scalars, Arrow scalars, datetimes) becomes
one of a few plain values, so that a predicate prints as text and reads back as the same tree.
Times are held as nanoseconds, because `datetime` stops at microseconds.
"""

import math
import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from lakebed.errors import PredicateError

NS_PER_SECOND = 1_000_000_000
NS_PER_DAY = 86_400 * NS_PER_SECOND
EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
NUMBER_DIGIT_COUNT_MAX = 1_000

_TIMESTAMP = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?) ?([zZ]|UTC|[+-][\d:]+)?)?", re.ASCII
)
_TIME = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?", re.ASCII)
_OFFSET = re.compile(r"([+-])(\d\d)(?::?(\d\d)(?::?(\d\d))?)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Moment:
    """A date and time: nanoseconds since 1970, in UTC if `zoned`, else of a wall clock."""

    ns: int
    zoned: bool

    def __post_init__(self) -> None:
        if not 1 <= self.ns // NS_PER_DAY + EPOCH_ORDINAL <= date.max.toordinal():
            raise PredicateError("a time literal lies outside the years 1 to 9999, in UTC")

    def __str__(self) -> str:
        days, ns = divmod(self.ns, NS_PER_DAY)
        day = date.fromordinal(days + EPOCH_ORDINAL)
        return f"{day.isoformat()} {TimeOfDay(ns)}{'Z' if self.zoned else ''}"


@dataclass(frozen=True, slots=True)
class TimeOfDay:
    """Nanoseconds since midnight."""

    ns: int

    def __post_init__(self) -> None:
        if not 0 <= self.ns < NS_PER_DAY:
            raise PredicateError("a time of day lies between 00:00:00 and 23:59:59.999999999")

    def __str__(self) -> str:
        seconds, ns = divmod(self.ns, NS_PER_SECOND)
        fraction = f".{ns:09d}".rstrip("0") if ns else ""
        hours, seconds = divmod(seconds, 3600)
        return f"{hours:02d}:{seconds // 60:02d}:{seconds % 60:02d}{fraction}"


Literal = bool | int | float | Decimal | str | bytes | date | Moment | TimeOfDay | None


def literal(value: Any) -> Literal:
    """Turn what a user compares with into its one plain form."""
    value = _unwrapped(value)
    match value:
        case None | bool() | Moment() | TimeOfDay():
            return value
        case int():
            return _checked_int(value)
        case float():
            return math.nan if math.isnan(value) else float(value)
        case Decimal():
            return _checked_decimal(value)
        case str():
            return _checked_text(value)
        case bytes() | bytearray() | memoryview():
            return bytes(value)
        case datetime():
            return _moment(value)
        case date():
            return date(value.year, value.month, value.day)
        case time():
            return _time_of_day(value)
    raise PredicateError(
        f"a column cannot be compared with a value of type {type(value).__name__}",
        hint="Use a number, text, bytes, a boolean, a date, a time or None",
    )


def _unwrapped(value: Any) -> Any:
    """Take the plain value out of an Arrow or numpy scalar, without importing either."""
    if hasattr(value, "as_py"):
        return value.as_py()
    dtype = getattr(value, "dtype", None)
    if dtype is None or not hasattr(value, "item"):
        return value
    if dtype.kind == "M":  # datetime64: its text keeps nanoseconds, `item` does not
        return None if str(value) == "NaT" else parse_moment(str(value))
    return value.item()


def _checked_int(value: int) -> int:
    if abs(value) >= 10**NUMBER_DIGIT_COUNT_MAX:
        raise PredicateError(f"a number has more than {NUMBER_DIGIT_COUNT_MAX} digits")
    return int(value)


def _checked_decimal(value: Decimal) -> Literal:
    if value.is_snan():
        raise PredicateError("a signalling NaN cannot be compared")
    if not value.is_finite():
        return math.nan if value.is_nan() else float(value)
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "finite"
    if len(digits) + abs(exponent) > NUMBER_DIGIT_COUNT_MAX:
        raise PredicateError(f"a number has more than {NUMBER_DIGIT_COUNT_MAX} digits")
    if exponent > 0:
        return Decimal((sign, digits + (0,) * exponent, 0))
    return value


def _checked_text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise PredicateError("a text literal has a lone surrogate: it is not Unicode") from error
    return str(value)


def _moment(value: datetime) -> Literal:
    if value != value:  # pandas' NaT is a datetime that differs from itself
        return None
    days = value.toordinal() - EPOCH_ORDINAL
    seconds = value.hour * 3600 + value.minute * 60 + value.second
    us = (days * 86_400 + seconds) * 1_000_000 + value.microsecond
    offset = value.utcoffset()
    if offset is not None:
        us -= offset // timedelta(microseconds=1)
    return Moment(us * 1000 + int(getattr(value, "nanosecond", 0)), offset is not None)


def _time_of_day(value: time) -> TimeOfDay:
    if value.tzinfo is not None:
        raise PredicateError("a time of day with a zone cannot be compared", hint="Drop the zone")
    seconds = value.hour * 3600 + value.minute * 60 + value.second
    return TimeOfDay(seconds * NS_PER_SECOND + value.microsecond * 1000)


def parse_date(text: str) -> date:
    """Read `2026-01-31`."""
    try:
        if re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
            return date.fromisoformat(text)
    except ValueError as error:
        raise _unreadable(text, "a date", "2026-01-31") from error
    raise _unreadable(text, "a date", "2026-01-31")


def parse_time(text: str) -> TimeOfDay:
    """Read `05:06`, `05:06:07` or `05:06:07.123456789`."""
    match = _TIME.fullmatch(text)
    if match is None or int(match[1]) > 23 or int(match[2]) > 59 or int(match[3] or 0) > 59:
        raise _unreadable(text, "a time of day", "05:06:07.25")
    seconds = int(match[1]) * 3600 + int(match[2]) * 60 + int(match[3] or 0)
    return TimeOfDay(seconds * NS_PER_SECOND + int((match[4] or "").ljust(9, "0")))


def parse_moment(text: str) -> Moment:
    """Read an ISO date and time; a zone is `Z` or an offset, which may have seconds."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise _unreadable(text, "a timestamp", "2026-01-31 05:06:07.25Z")
    day = parse_date(match[1]).toordinal() - EPOCH_ORDINAL
    of_day = parse_time(match[2]).ns if match[2] else 0
    return Moment(day * NS_PER_DAY + of_day - _offset_ns(match[3]), match[3] is not None)


def _offset_ns(text: str | None) -> int:
    if text is None or text in ("Z", "z", "UTC"):
        return 0
    match = _OFFSET.fullmatch(text)
    if match is None or int(match[2]) > 23 or int(match[3] or 0) > 59 or int(match[4] or 0) > 59:
        raise _unreadable(text, "an offset from UTC", "+01:00")
    seconds = int(match[2]) * 3600 + int(match[3] or 0) * 60 + int(match[4] or 0)
    return (seconds if match[1] == "+" else -seconds) * NS_PER_SECOND


def _unreadable(text: str, what: str, example: str) -> PredicateError:
    shown = text if len(text) <= 40 else f"{text[:40]}…"
    return PredicateError(f"{shown!r} is not {what}", hint=f"Write it like {example}")


def literal_text(value: Literal) -> str:
    """SQL text that the parser reads back as the same value."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case float():
            return _float_text(value)
        case Decimal():
            text = format(value, "f")
            return text if "." in text else f"{text}.0"
        case str():
            return quoted_text(value)
        case bytes():
            return f"X'{value.hex()}'"
        case Moment():
            return f"TIMESTAMP '{value}'"
        case TimeOfDay():
            return f"TIME '{value}'"
    return f"DATE '{value.isoformat()}'"


def quoted_text(value: str) -> str:
    """A text constant of SQL."""
    return "'" + value.replace("'", "''") + "'"


def _float_text(value: float) -> str:
    text = repr(value)
    # The exponent says that this is a double; without it the parser reads an exact decimal.
    return text if "e" in text or not math.isfinite(value) else f"{text}e0"
