"""The column types with their odd values, and constants near those values, in plain Python.

A value is held in the smallest plain form: numbers, text and bytes as they are, times as integers
of their unit since 1970. `exact` brings a value to a scale on which comparing is exact.
"""

import math
import struct
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import pyarrow as pa

DAY_NS = 86_400 * 10**9
_EPOCH = date(1970, 1, 1).toordinal()
_YEAR_1_NS = (1 - _EPOCH) * DAY_NS
_YEAR_9999_NS = (date.max.toordinal() + 1 - _EPOCH) * DAY_NS - 1
_TOP = "\U0010ffff"
_I32, _I64 = 1 << 31, 1 << 63
_FLOAT_MAX = 3.4028234663852886e38

_WHOLE = [-100, -10, -2, -1, 0, 1, 2, 9, 10, 11, 99, 100]
_REAL = [-math.inf, -1e9, -1.5, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 100.0, math.inf, math.nan]
_TEXT = [
    *("", "a", "ab", "abc", "abd", "b", "A", "it's", "a%b", "a_b", "\\", "é", "\n", "\0", "a\0"),
    *("\ud7ff", "\ue000", "\uffff", _TOP, _TOP * 16, _TOP * 17, _TOP * 64, _TOP * 70, "a" + _TOP),
    *("a" * 16, "a" * 17, "a" * 64, "a" * 65, "a" * 64 + "b", "a" * 63 + "\ud7ff", "a" * 70),
    *("a" * 15 + _TOP * 2, "a" * 63 + _TOP * 4, "a" * 63 + "\ud7ff" * 2, "p" * 70 + "1"),
]
_BYTES = [
    *(b"", b"\0", b"\0\0", b"a", b"ab", b"\x7f", b"\x80", b"\xff", b"\xff\xff", b"\xff\0"),
    *(b"\xff" * 16, b"\xff" * 17, b"\xff" * 64, b"\xff" * 65, b"\xff" * 70, b"a" * 64, b"a" * 65),
    *(b"a" * 15 + b"\xff" * 3, b"a" * 63 + b"\xff" * 9),
]
_DATES = [-719_162, -25_567, -366, -365, -32, -31, -2, -1, 0, 1, 30, 31, 364, 365, 20_454]
_CLOCK = [0, 1, 59_999_999, 3_599_999_999, 3_600_000_000, 43_200_000_000, 86_399_999_999]


def _moments(unit_ns: int) -> list[int]:
    """Instants at and around the borders of hours, days, months and years."""
    seconds = [0, -1, 1, 3_600, -3_600, 86_400, -86_400, 31_536_000, -31_536_000, 2_678_400]
    seconds += [1_767_225_600, 1_767_225_600 + 59 * 86_400, -2_208_988_800]
    found = [second * 10**9 // unit_ns for second in seconds]
    return sorted({near for each in found for near in (each - 1, each, each + 1)})


@dataclass(frozen=True)
class Kind:
    """A type: its name in the library, the one in Arrow, and values that are worth trying."""

    name: str
    arrow: Any
    values: tuple[Any, ...]
    family: str
    unit_ns: int = 0
    scale: int = 0
    zoned: bool = False


def _decimals(precision: int, scale: int) -> tuple[Decimal, ...]:
    most = 10**precision - 1
    units = [-most, 1 - most, -(10**scale), -11, -10, -1, 0, 1, 9, 10, 10**scale, most - 1, most]
    return tuple(Decimal(f"{unit}E-{scale}") for unit in units)


def _single(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


_ALL = (
    Kind("boolean", pa.bool_(), (False, True), "boolean"),
    Kind("int", pa.int32(), (-_I32, 1 - _I32, *_WHOLE, _I32 - 2, _I32 - 1), "number"),
    Kind(
        "long",
        pa.int64(),
        (-_I64, 1 - _I64, -(2**53) - 1, *_WHOLE, 2**53, 2**53 + 1, _I64 - 2, _I64 - 1),
        "number",
    ),
    Kind(
        "float",
        pa.float32(),
        (*_REAL, _single(0.1), _single(1e-45), -_single(1e-45), _FLOAT_MAX, -_FLOAT_MAX, 2.0**24),
        "real",
    ),
    Kind(
        "double",
        pa.float64(),
        (*_REAL, 0.1, 5e-324, -5e-324, 1.7976931348623157e308, 2.0**53, -(2.0**63), 2.0**63),
        "real",
    ),
    Kind("decimal(9,2)", pa.decimal128(9, 2), _decimals(9, 2), "number", scale=2),
    Kind("decimal(18,2)", pa.decimal128(18, 2), _decimals(18, 2), "number", scale=2),
    Kind("decimal(38,10)", pa.decimal128(38, 10), _decimals(38, 10), "number", scale=10),
    Kind("date", pa.date32(), (*_DATES, 2_932_896), "time", unit_ns=DAY_NS),
    Kind("time", pa.time64("us"), tuple(_CLOCK), "clock", unit_ns=1000),
    Kind("timestamp", pa.timestamp("us"), tuple(_moments(1000)), "time", unit_ns=1000),
    Kind(
        "timestamptz",
        pa.timestamp("us", "UTC"),
        (*_moments(1000), _YEAR_1_NS // 1000, _YEAR_9999_NS // 1000),
        "time",
        unit_ns=1000,
        zoned=True,
    ),
    Kind("timestamp_ns", pa.timestamp("ns"), tuple(_moments(1)), "time", unit_ns=1),
    Kind(
        "timestamptz_ns",
        pa.timestamp("ns", "UTC"),
        (-_I64, 1 - _I64, *_moments(1), _I64 - 1),
        "time",
        unit_ns=1,
        zoned=True,
    ),
    Kind("string", pa.string(), tuple(_TEXT), "text"),
    Kind("binary", pa.binary(), tuple(_BYTES), "bytes"),
    Kind(
        "fixed[3]",
        pa.binary(3),
        tuple(each.ljust(3, b"\xff") for each in (b"", b"\0", b"a", b"a\0", b"\xff\0", b"\0\0\0")),
        "bytes",
    ),
    Kind("fixed[70]", pa.binary(70), tuple(b[:70].ljust(70, b"\xff") for b in _BYTES), "bytes"),
)
KINDS = {kind.name: kind for kind in _ALL}
WIDENINGS = {
    "int": ("long", "double"),
    "float": ("double",),
    "decimal(9,2)": ("decimal(18,2)",),
}


def exact(value: Any, kind: Kind) -> Any:
    """A value on the scale of its constants: times in nanoseconds, finite numbers as fractions."""
    if kind.unit_ns:
        return value * kind.unit_ns
    return fraction(value) if kind.family in ("number", "real") else value


def fraction(value: Any) -> Any:
    """A number exactly; infinities and NaN stay."""
    return value if isinstance(value, float) and not math.isfinite(value) else Fraction(value)


# ----------------------------------------------------------------------------------- constants


@dataclass(frozen=True)
class Constant:
    """A constant as SQL, and what it is on the scale of `exact`; None is NULL."""

    sql: str
    value: Any


NULL = Constant("NULL", None)


def constant_near(value: Any, kind: Kind, chance: Random) -> Constant:
    """A constant at, next to, or far from a value; NULL now and then."""
    if chance.random() < 0.02:
        return NULL
    match kind.family:
        case "boolean":
            return Constant("TRUE" if value else "false", value)
        case "number":
            return _number_near(value, kind, chance)
        case "real":
            return _real_near(value, kind, chance)
        case "time" | "clock":
            return _time_near(value, kind, chance)
        case "text":
            text = chance.choice(_text_neighbours(value))
            return Constant("'" + text.replace("'", "''") + "'", text)
    data = chance.choice(_byte_neighbours(value))
    return Constant(f"X'{data.hex()}'", data)


def _number_near(value: Any, kind: Kind, chance: Random) -> Constant:
    step = Fraction(1, 10**kind.scale)
    base = Fraction(value)
    found = chance.choice(
        [base, base, base, base + step, base - step, base + step / 2, base - step / 4, -base]
    )
    if chance.random() < 0.04:
        special = chance.choice(["inf", "-inf", "nan", f"{10**40}", f"-{10**40}"])
        return Constant(special, fraction(float(special) if "n" in special else int(special)))
    return Constant(_decimal_text(found), found)


def _decimal_text(number: Fraction) -> str:
    """All digits of a number that has finitely many of them behind its point."""
    digits = 0
    while number.denominator != 1 and digits < 60:
        number, digits = number * 10, digits + 1
    assert number.denominator == 1, "the steps are tenths"
    text = str(abs(number.numerator)).rjust(digits + 1, "0")
    whole = f"{text[:-digits]}.{text[-digits:]}" if digits else text
    return f"-{whole}" if number < 0 else whole


def _real_near(value: float, kind: Kind, chance: Random) -> Constant:
    if chance.random() < 0.1:
        text = chance.choice(["0.1", "0.25", "-1.5", str(2**24 + 1), str(2**53 + 1), "0", "-0.0"])
        return Constant(text, fraction(float(text) if "." in text else int(text)))
    if math.isfinite(value):
        down, up = math.nextafter(value, -math.inf), math.nextafter(value, math.inf)
        value = chance.choice([value, value, value, down, up, -value])
    if not math.isfinite(value):
        return Constant(repr(value), value)
    text = repr(value)
    return Constant(text if "e" in text else f"{text}e0", fraction(value))


def _time_near(value: int, kind: Kind, chance: Random) -> Constant:
    ns = value * kind.unit_ns
    step = kind.unit_ns
    found = chance.choice([ns, ns, ns, ns + step, ns - step, ns + step // 2, ns - 1, ns + 1])
    if kind.family == "clock":
        found = min(max(found, 0), DAY_NS - 1)
        return Constant(f"TIME '{_clock_text(found)}'", found)
    if chance.random() < 0.15:
        found = found // DAY_NS * DAY_NS
        if _YEAR_1_NS <= found <= _YEAR_9999_NS:
            return Constant(f"DATE '{_day_text(found)}'", found)
    found = min(max(found, _YEAR_1_NS), _YEAR_9999_NS)
    offset_ns = chance.choice([0, 19_800, -3_600, -43_200]) * 10**9 if kind.zoned else 0
    shown = found + offset_ns
    if offset_ns and _YEAR_1_NS <= shown <= _YEAR_9999_NS:
        minutes = abs(offset_ns) // (60 * 10**9)
        zone = f"{'+' if offset_ns > 0 else '-'}{minutes // 60:02d}:{minutes % 60:02d}"
    else:
        shown, zone = found, chance.choice(["Z", ""]) if kind.zoned else ""
    text = f"{_day_text(shown)} {_clock_text(shown % DAY_NS)}{zone}"
    return Constant(f"{chance.choice(['', 'TIMESTAMP '])}'{text}'", found)


def _day_text(ns: int) -> str:
    return date.fromordinal(ns // DAY_NS + _EPOCH).isoformat()


def _clock_text(ns: int) -> str:
    seconds, rest = divmod(ns, 10**9)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{rest:09d}" if rest else text


def _text_neighbours(text: str) -> list[str]:
    near = [text, text, text, text + "\0", text + "a", text + _TOP, text[:-1], text[:16], text[:64]]
    if text and text[-1] not in ("\ud7ff", _TOP):
        near.append(text[:-1] + chr(ord(text[-1]) + 1))
    return [*near, text[:64] + "b", "zz"]


def _byte_neighbours(data: bytes) -> list[bytes]:
    near = [data, data, data, data + b"\0", data + b"\xff", data[:-1], data[:16], data[:64]]
    if data and data[-1] < 0xFF:
        near.append(data[:-1] + bytes([data[-1] + 1]))
    return near
