"""Statistics of row groups as a Parquet footer tells them: for adopting files, and for pruning."""

import struct
from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from lakebed.expr.prune import PartitionEvidence
from lakebed.files.column_stats import sound_bounds
from lakebed.files.manifest import typed_array
from lakebed.files.parquet_layout import (
    BOOLEAN,
    BYTE_ARRAY,
    DOUBLE,
    FIXED_LENGTH,
    FLOAT,
    INT32,
    INT64,
    Chunk,
    Layout,
    Leaf,
)
from lakebed.format.datafile import ColumnStats
from lakebed.format.types import BYTES, DECIMAL_PRECISION_MAX, Kind, Primitive
from lakebed.format.values import storage_value

_NUMBERS = {INT32: "<i", INT64: "<q", FLOAT: "<f", DOUBLE: "<d"}
_EXACT = Context(prec=2 * DECIMAL_PRECISION_MAX)


def layout_stats(layout: Layout, name: str, kind: Primitive) -> ColumnStats:
    """The statistics of one column over all row groups; NaN are never counted in a footer."""
    return _merged(group_stats(layout, name, kind), [g.row_count for g in layout.groups], kind)


def group_stats(layout: Layout, name: str, kind: Primitive) -> list[ColumnStats]:
    """The statistics of one column for each row group, its bounds as they are in the footer."""
    place = next((i for i, leaf in enumerate(layout.leaves) if leaf.name == name), None)
    if place is None:
        return [ColumnStats()] * len(layout.groups)
    leaf = layout.leaves[place]
    return [
        _chunk_stats(group.chunks[place], leaf, kind, is_ordered=layout.is_ordered)
        for group in layout.groups
    ]


def _chunk_stats(chunk: Chunk, leaf: Leaf, kind: Primitive, *, is_ordered: bool) -> ColumnStats:
    if leaf.kind in (BYTE_ARRAY, FIXED_LENGTH) and (chunk.is_old or not is_ordered):
        return ColumnStats(chunk.null_count)
    lower, upper = (_storage(raw, leaf, kind) for raw in (chunk.lower, chunk.upper))
    if lower is None or upper is None or lower > upper:
        return ColumnStats(chunk.null_count)  # The writer did not know the order of its values.
    return ColumnStats(chunk.null_count, None, lower, upper)


def _storage(raw: bytes | None, leaf: Leaf, kind: Primitive) -> Any:
    """Parquet's physical value in storage form; None if it makes no sense."""
    if raw is None:
        return None
    value: Any = raw
    if leaf.kind in _NUMBERS:
        (value,) = struct.unpack(_NUMBERS[leaf.kind], raw)
    elif leaf.kind == BOOLEAN:
        value = raw != b"\0"
    if kind.kind is Kind.DECIMAL:
        if isinstance(value, bytes):
            value = int.from_bytes(value, "big", signed=True)
        value = Decimal(value).scaleb(-kind.scale, _EXACT) if isinstance(value, int) else None
    elif kind.kind is Kind.STRING and isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            return None
    elif isinstance(value, bytes) != (kind.kind in BYTES):
        return None
    return storage_value(value, kind)


def _merged(groups: list[ColumnStats], row_counts: list[int], kind: Primitive) -> ColumnStats:
    nulls = [stats.null_count for stats in groups]
    null_count = None if None in nulls else sum(n for n in nulls if n is not None)
    # A row group without a value has no bounds and does not widen the range.
    valued = [s for s, rows in zip(groups, row_counts, strict=True) if s.null_count != rows]
    if not valued or any(stats.lower is None for stats in valued):
        return ColumnStats(null_count)
    lower, upper = min(s.lower for s in valued), max(s.upper for s in valued)
    return ColumnStats(null_count, None, *sound_bounds(lower, upper, kind))


class GroupEvidence:
    """Evidence about each row group of one file."""

    def __init__(self, layout: Layout, columns: Sequence[tuple[int, str, Primitive]]) -> None:
        """`columns` are by field id: the name in the file, and the type of today."""
        self._kinds = {field_id: kind for field_id, _, kind in columns}
        self._stats = {
            field_id: group_stats(layout, name, kind) for field_id, name, kind in columns
        }
        self.length = len(layout.groups)
        self.row_count = np.array([group.row_count for group in layout.groups], dtype=np.int64)

    def lower(self, field_id: int) -> Any:
        """Lower bounds at the column's newest type."""
        return self._bounds(field_id, 0)

    def upper(self, field_id: int) -> Any:
        """Upper bounds at the column's newest type."""
        return self._bounds(field_id, 1)

    def null_count(self, field_id: int) -> Any:
        """Counts of nulls."""
        stats = self._stats.get(field_id)
        return None if stats is None else pa.array([s.null_count for s in stats], pa.int64())

    def nan_count(self, field_id: int) -> Any:  # noqa: ARG002 - a footer does not tell
        """Unknown."""
        return None

    def missing(self, field_id: int) -> Any:  # noqa: ARG002 - such a file is not asked about
        """Unknown."""
        return None

    def partitions(self, field_id: int) -> Sequence[PartitionEvidence]:  # noqa: ARG002
        """None: all row groups of a file are in one partition."""
        return ()

    def _bounds(self, field_id: int, end: int) -> Any:
        stats = self._stats.get(field_id)
        if stats is None:
            return None
        kind = self._kinds[field_id]
        pairs = [sound_bounds(s.lower, s.upper, kind) for s in stats]
        return typed_array([pair[end] for pair in pairs], kind)
