"""Statistics of columns, from rows or from a Parquet footer: what planning knows of a file.

Bounds are outer bounds in storage form: nulls and NaN are outside of them, long text is cut so
that every value still lies between them, and a zero bound of a float covers both zeros.
"""

from collections.abc import Iterable, Mapping
from decimal import Context, Decimal
from math import isnan
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.format.datafile import ColumnStats
from lakebed.format.schema import Schema
from lakebed.format.types import DECIMAL_PRECISION_MAX, FLOATS, Field, Kind, Primitive
from lakebed.limits import BOUND_LENGTH_MAX, STATS_COLUMN_COUNT_MAX

_CODE_POINT_MAX = 0x10FFFF
_SURROGATE_FIRST, _SURROGATE_LAST = 0xD800, 0xDFFF
_BYTE_MAX = 0xFF
_EXACT = Context(prec=2 * DECIMAL_PRECISION_MAX)


def column_stats(table: Any, schema: Schema) -> dict[int, ColumnStats]:
    """Exact counts and sound bounds of the leading primitive columns, by field id."""
    return {
        field.id: stats_of(table.column(field.name), kind) for field, kind in stats_fields(schema)
    }


def stats_fields(schema: Schema) -> list[tuple[Field, Primitive]]:
    """The columns whose statistics are kept, and their types: the leading primitive ones."""
    found = [(field, field.type) for field in schema.fields if isinstance(field.type, Primitive)]
    return found[:STATS_COLUMN_COUNT_MAX]


def stats_of(column: Any, kind: Primitive) -> ColumnStats:
    """The statistics of one column."""
    nulls = column.null_count
    nans = nan_count(column) if kind.kind in FLOATS else None
    if len(column) == nulls + (nans or 0):
        return ColumnStats(nulls, nans)
    ends = pc.min_max(_comparable(column))
    return ColumnStats(nulls, nans, *sound_bounds(ends["min"].as_py(), ends["max"].as_py(), kind))


def nan_count(column: Any) -> int:
    """How many values of a float column are not numbers."""
    return int(pc.sum(pc.is_nan(column)).as_py() or 0)


def _comparable(column: Any) -> Any:
    """The column as something whose extremes Python holds exactly: times become integers."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if not pa.types.is_temporal(kind):
        return column
    width = pa.int32() if kind.bit_width == pa.int32().bit_width else pa.int64()
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([chunk.view(width) for chunk in column.chunks], width)
    return column.view(width)


def sound_bounds(lower: Any, upper: Any, kind: Primitive) -> tuple[Any, Any]:
    """Make outer bounds of exact extremes: cut long values, cover both zeros."""
    if kind.kind in FLOATS:
        return (-0.0 if lower == 0 else lower), (0.0 if upper == 0 else upper)
    return cut_bounds(lower, upper, kind, BOUND_LENGTH_MAX)


def footer_stats(
    footer: Any, fields: Iterable[tuple[Field, Primitive]], places: Mapping[str, int]
) -> dict[int, ColumnStats]:
    """The statistics that a Parquet footer holds; NaN are never counted there.

    `places` tells, by column name, which leaf column of the file a field is.
    """
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    return {
        field.id: _merged([group.column(places[field.name]) for group in groups], kind)
        for field, kind in fields
    }


def _merged(chunks: list[Any], kind: Primitive) -> ColumnStats:
    null_count: int | None = 0
    lowers: list[Any] = []
    uppers: list[Any] = []
    for chunk in chunks:
        found = chunk.statistics
        nulls = found.null_count if found is not None and found.has_null_count else None
        null_count = None if nulls is None or null_count is None else null_count + nulls
        if nulls is not None and nulls == chunk.num_values:
            continue  # no value, so no bounds
        has_bounds = found is not None and found.has_min_max
        lowers.append(_from_raw(found.min_raw, kind) if has_bounds else None)
        uppers.append(_from_raw(found.max_raw, kind) if has_bounds else None)
    if not lowers or any(bound is None for bound in (*lowers, *uppers)):
        return ColumnStats(null_count)
    lower, upper = min(lowers), max(uppers)
    if lower > upper:
        return ColumnStats(null_count)  # The writer did not know the order of its values.
    return ColumnStats(null_count, None, *sound_bounds(lower, upper, kind))


def _from_raw(raw: Any, kind: Primitive) -> Any:
    """Parquet's physical value in storage form; None if it makes no sense."""
    if kind.kind is Kind.DECIMAL:
        number = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else raw
        return Decimal(number).scaleb(-kind.scale, _EXACT)
    if kind.kind is Kind.STRING and isinstance(raw, bytes):
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return None
    return None if isinstance(raw, float) and isnan(raw) else raw


def cut_bounds(lower: Any, upper: Any, kind: Primitive, length: int) -> tuple[Any, Any]:
    """Outer bounds of at most `length` characters or bytes, where a type has longer values."""
    if kind.kind is Kind.FIXED and kind.length > length:
        return None, None  # A cut value would not be a value of the type.
    if kind.kind in (Kind.STRING, Kind.BINARY):
        return cut_lower(lower, length), cut_upper(upper, length)
    return lower, upper


def cut_lower(value: Any, length: int) -> Any:
    """A bound not above `value` of at most `length` characters or bytes; None stays None."""
    return None if value is None else value[:length]


def cut_upper(value: Any, length: int) -> Any:
    """A bound not below `value` of at most `length` characters or bytes; None if there is none.

    What is cut off is made good by raising the last character or byte that can be raised.
    """
    if value is None or len(value) <= length:
        return value
    if isinstance(value, bytes):
        kept = value[:length].rstrip(bytes([_BYTE_MAX]))
        return kept[:-1] + bytes([kept[-1] + 1]) if kept else None
    text = value[:length].rstrip(chr(_CODE_POINT_MAX))
    return text[:-1] + _next_character(text[-1]) if text else None


def _next_character(character: str) -> str:
    code = ord(character) + 1
    return chr(_SURROGATE_LAST + 1 if code == _SURROGATE_FIRST else code)
