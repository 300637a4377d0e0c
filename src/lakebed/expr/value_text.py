"""Values in storage form as people write them: in directory names, and in explanations."""

from datetime import date

from lakebed.expr.bound import StorageValue
from lakebed.expr.literals import EPOCH_ORDINAL, NS_PER_DAY, TimeOfDay
from lakebed.format.types import BYTES, INSTANTS, NANOSECONDS, TIMESTAMPS, Kind, Primitive

_DAY_MIN, _DAY_MAX = 1 - EPOCH_ORDINAL, date.max.toordinal() - EPOCH_ORDINAL


def value_text(value: StorageValue, kind: Primitive) -> str:
    """Write a value: `2026-01-31`, `2026-01-31T05:06:07Z`, `00ff`, `1.50`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if kind.kind in BYTES:
        assert isinstance(value, bytes), "bytes are held as bytes"
        return value.hex()
    if not isinstance(value, int):
        return str(value)
    if kind.kind is Kind.DATE:
        return day_text(value)
    if kind.kind is Kind.TIME:
        return str(TimeOfDay(value * 1000))
    if kind.kind in TIMESTAMPS:
        days, ns = divmod(value if kind.kind in NANOSECONDS else value * 1000, NS_PER_DAY)
        return f"{day_text(days)}T{TimeOfDay(ns)}{'Z' if kind.kind in INSTANTS else ''}"
    return str(value)


def day_text(days: int) -> str:
    """A day since 1970 as a date; as a number with a mark where the calendar of Python ends."""
    if _DAY_MIN <= days <= _DAY_MAX:
        return date.fromordinal(days + EPOCH_ORDINAL).isoformat()
    return f"day{days:+d}"
