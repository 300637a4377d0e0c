"""Lengths of time as people write them: `500 ms`, `10 seconds`, `2 hours`."""

import re

from lakebed.errors import RequestError

_UNITS_MS = {
    "ms": 1,
    "millisecond": 1,
    "s": 1_000,
    "sec": 1_000,
    "second": 1_000,
    "m": 60_000,
    "min": 60_000,
    "minute": 60_000,
    "h": 3_600_000,
    "hour": 3_600_000,
    "d": 86_400_000,
    "day": 86_400_000,
}
_SPELT = (("day", 86_400_000), ("hour", 3_600_000), ("minute", 60_000), ("second", 1_000))
_DURATION = re.compile(r"\s*(\d{1,12})\s*([A-Za-z]+)\s*", re.ASCII)


def parse_duration(text: str) -> int:
    """Read a length of time as milliseconds."""
    match = _DURATION.fullmatch(text)
    unit_ms = _UNITS_MS.get(_singular(match[2].lower())) if match else None
    if match is None or unit_ms is None:
        raise RequestError(
            f"{text!r} is not a length of time",
            hint='Write a number and a unit, as in "10 seconds", "500 ms" or "2 hours"',
        )
    return int(match[1]) * unit_ms


def duration_text(duration_ms: int) -> str:
    """Write a length of time in its largest whole unit; `parse_duration` reads it back."""
    for name, unit_ms in _SPELT:
        if duration_ms and duration_ms % unit_ms == 0:
            count = duration_ms // unit_ms
            return f"{count} {name}" + ("" if count == 1 else "s")
    return f"{duration_ms} ms"


def _singular(unit: str) -> str:
    return unit if unit in _UNITS_MS else unit.removesuffix("s")
