"""Values in storage form, read back from JSON exactly.

JSON has no bytes or decimals: those become text, and the column's type tells how to read them.
Infinities and NaN become null, which means "unknown" wherever a bound is expected.
"""

import base64
import binascii
import math
from decimal import Decimal, InvalidOperation
from typing import Any

from lakebed.format.types import BYTES, FLOATS, Kind, Primitive


def storage_value(value: Any, kind: Primitive) -> Any:
    """Bring a value to the storage form of a type; what does not fit becomes None, unknown.

    Takes both the JSON form and the storage form itself.
    """
    if value is None or (isinstance(value, bool) != (kind.kind is Kind.BOOLEAN)):
        return None
    try:
        if kind.kind in FLOATS:
            return _number(value)
        if kind.kind in BYTES:
            return _bytes(value, kind)
        if kind.kind is Kind.DECIMAL:
            return _decimal(value, kind)
    except (ValueError, binascii.Error, InvalidOperation, OverflowError):
        return None
    if kind.kind in (Kind.STRING, Kind.BOOLEAN):
        return _text(value)
    return _integer(value, kind)


def _text(value: Any) -> str | bool | None:
    if not isinstance(value, str):
        return value if isinstance(value, bool) else None
    return value if value.isascii() or value.encode(errors="ignore").decode() == value else None


def _number(value: Any) -> float | None:
    number = float(value) if isinstance(value, int | float) else math.nan
    return None if math.isnan(number) else number


def _bytes(value: Any, kind: Primitive) -> bytes | None:
    if isinstance(value, str):
        value = base64.b64decode(value, validate=True)
    if not isinstance(value, bytes):
        return None
    return value if kind.kind is not Kind.FIXED or len(value) == kind.length else None


def _decimal(value: Any, kind: Primitive) -> Decimal | None:
    if not isinstance(value, str | Decimal | int):
        return None
    number = Decimal(value)
    if not number.is_finite() or (number and number.adjusted() >= kind.precision - kind.scale):
        return None
    exponent = number.as_tuple().exponent
    return number if isinstance(exponent, int) and -exponent <= kind.scale else None


def _integer(value: Any, kind: Primitive) -> int | None:
    bits = 31 if kind.kind in (Kind.INT, Kind.DATE) else 63
    return value if isinstance(value, int) and -(1 << bits) <= value < 1 << bits else None
