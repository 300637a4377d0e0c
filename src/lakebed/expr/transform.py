"""Partition transforms over whole columns: from a column's values to partition values.

    identity  the value          day    days since 1970, a date     bucket    hash modulo width
    year      years since 1970   hour   hours since 1970            truncate  the value cut down
    month     months since 1970-01

All but bucket keep the order of values, and all round down, also before 1970. Where the result
would leave its type (the lowest integers truncated, hours of the far future) it stops at the
type's end, which keeps the order too. NULL stays NULL.
"""

import re
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.expr.arrow import primitive_arrow_type
from lakebed.expr.bound import StorageValue
from lakebed.expr.convert import decimal_of, discrete_range, unscaled_of
from lakebed.expr.murmur import hash_bytes, hash_longs
from lakebed.expr.value_text import day_text, value_text
from lakebed.format.partition import PartitionField, TransformName, check_transform, result_type
from lakebed.format.types import INTEGERS, NANOSECONDS, TIMESTAMPS, Kind, Primitive

YEAR_EPOCH = 1970
INT_MIN, INT_MAX = -(1 << 31), (1 << 31) - 1
_NULL_TEXT = "__null__"


def apply_transform(field: PartitionField, values: Any, source: Primitive) -> Any:
    """Turn values of the source column into partition values of `result_type`.

    Raises:
        RequestError: the transform is not defined for the type, as after a widening to double.
    """
    check_transform(field.transform, source, field.width)
    target = primitive_arrow_type(source)
    if values.type != target:
        values = values.cast(target)
    if field.transform is TransformName.IDENTITY:
        return values
    if field.transform is TransformName.BUCKET:
        return _buckets(values, source, field.width)
    if field.transform is TransformName.TRUNCATE:
        return _truncated(values, source, field.width)
    units = _calendar(_integers(values), source, field.transform)
    whole = np.clip(units, INT_MIN, INT_MAX).astype(np.int32)
    return _array(whole, values).view(primitive_arrow_type(result_type(field, source)))


def partition_text(field: PartitionField, value: StorageValue | None, source: Primitive) -> str:
    """Write a partition value for people, as in a directory's name: `2026-01` for a month."""
    if value is None:
        return _NULL_TEXT
    match field.transform, value:
        case TransformName.YEAR, int():
            return str(YEAR_EPOCH + value)
        case TransformName.MONTH, int():
            return f"{YEAR_EPOCH + value // 12}-{value % 12 + 1:02d}"
        case TransformName.HOUR, int():
            return f"{day_text(value // 24)}-{value % 24:02d}"
    if isinstance(value, str):
        # One more underscore keeps the text apart from what stands for NULL.
        return f"_{value}" if re.fullmatch(f"_*{_NULL_TEXT}", value) else value
    return value_text(value, result_type(field, source))


def units_per_day(source: Primitive) -> int:
    """How many of a column's smallest steps are in a day."""
    if source.kind is Kind.DATE:
        return 1
    return 86_400 * (10**9 if source.kind in NANOSECONDS else 10**6)


def _integers(values: Any) -> Any:
    """The values of a date, time or integer column as int64; 0 where there is none."""
    if pa.types.is_temporal(values.type):
        values = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    if values.null_count:
        values = pc.fill_null(values, 0)
    return values.to_numpy(zero_copy_only=False).astype(np.int64)


def _array(numbers: Any, like: Any) -> Any:
    """An Arrow array that is null where the other is."""
    mask = like.is_null().to_numpy(zero_copy_only=False) if like.null_count else None
    return pa.array(numbers, mask=mask)


def _calendar(units: Any, source: Primitive, transform: TransformName) -> Any:
    per_day = units_per_day(source)
    if transform is TransformName.HOUR:
        return np.floor_divide(units, per_day // 24)
    days = np.floor_divide(units, per_day)
    if transform is TransformName.DAY:
        return days
    unit = "M8[M]" if transform is TransformName.MONTH else "M8[Y]"
    return days.view("M8[D]").astype(unit).view(np.int64)


# -------------------------------------------------------------------------------------- bucket


def _buckets(values: Any, source: Primitive, width: int) -> Any:
    if source.kind in INTEGERS | TIMESTAMPS | {Kind.DATE, Kind.TIME}:
        numbers = _integers(values)
        if source.kind in NANOSECONDS:
            numbers = np.floor_divide(numbers, 1000)  # Iceberg hashes microseconds
        return _array(_in_bucket(hash_longs(numbers), width), values)
    encoded = values.dictionary_encode()
    distinct = encoded.dictionary
    if source.kind is Kind.DECIMAL:
        pieces = [_twos_complement(unscaled_of(v, source.scale)) for v in distinct.to_pylist()]
        distinct = pa.array(pieces, pa.binary())
    distinct = distinct.cast(pa.large_binary())
    offsets = np.frombuffer(distinct.buffers()[1] or b"", np.int64)
    offsets = offsets[distinct.offset : distinct.offset + len(distinct) + 1]
    data = np.frombuffer(distinct.buffers()[2] or b"", np.uint8)
    hashed = hash_bytes(data, offsets[:-1], np.diff(offsets))
    return pa.array(_in_bucket(hashed, width), pa.int32()).take(encoded.indices)


def _in_bucket(hashed: Any, width: int) -> Any:
    return ((hashed & np.uint32(INT_MAX)) % np.uint32(width)).astype(np.int32)


def _twos_complement(number: int) -> bytes:
    """The fewest bytes that hold the number with its sign, highest first."""
    bits = (number if number >= 0 else ~number).bit_length()
    return number.to_bytes(bits // 8 + 1, "big", signed=True)


# ------------------------------------------------------------------------------------ truncate


def _truncated(values: Any, source: Primitive, width: int) -> Any:
    if source.kind is Kind.STRING:
        return pc.utf8_slice_codeunits(values, 0, width)
    if source.kind is Kind.BINARY:
        return pc.binary_slice(values, 0, width)
    if source.kind is Kind.DECIMAL:
        encoded = values.dictionary_encode()
        found = [_truncated_decimal(v, source, width) for v in encoded.dictionary.to_pylist()]
        return pa.array(found, values.type).take(encoded.indices)
    numbers = _integers(values)
    rest = np.mod(numbers, width)
    low, _ = discrete_range(source)
    floor = np.where(numbers < low + rest, low, numbers - rest)
    return _array(floor.astype(np.int32 if source.kind is Kind.INT else np.int64), values)


def _truncated_decimal(value: Decimal, source: Primitive, width: int) -> Decimal:
    unscaled = unscaled_of(value, source.scale)
    low, _ = discrete_range(source)
    return decimal_of(max(unscaled - unscaled % width, low), source.scale)
