"""What manifests and snapshots know about rows, in the form that predicates are pruned by."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.expr.arrow import primitive_arrow_type
from lakebed.expr.prune import PartitionEvidence
from lakebed.files.manifest import partition_types, typed_array
from lakebed.files.summary import column_ranges, partition_ranges
from lakebed.format.datafile import ColumnStats
from lakebed.format.metadata import TableMetadata
from lakebed.format.partition import PartitionSpec
from lakebed.format.snapshot import ManifestRef, PartitionRange
from lakebed.format.types import Primitive
from lakebed.format.values import storage_value


class FileEvidence:
    """Evidence about each file of one manifest table."""

    def __init__(self, table: Any, spec: PartitionSpec, metadata: TableMetadata) -> None:
        self._table = table
        self._spec = spec
        self._metadata = metadata
        self._names = set(table.column_names)
        self.length: int = table.num_rows
        self.row_count = table.column("row_count").to_numpy()

    def lower(self, field_id: int) -> Any:
        """Lower bounds at the column's newest type."""
        return self._bound(f"lower_{field_id}", field_id)

    def upper(self, field_id: int) -> Any:
        """Upper bounds at the column's newest type."""
        return self._bound(f"upper_{field_id}", field_id)

    def null_count(self, field_id: int) -> Any:
        """Counts of nulls."""
        return self._column(f"null_{field_id}")

    def nan_count(self, field_id: int) -> Any:
        """Counts of NaN."""
        return self._column(f"nan_{field_id}")

    def missing(self, field_id: int) -> Any:
        """Files written with a schema that did not have the column yet."""
        without = [s.id for s in self._metadata.schemas if field_id not in s.by_id]
        if not without:
            return None
        schema_ids = self._table.column("schema_id").to_numpy()
        return np.isin(schema_ids, np.array(without))

    def partitions(self, field_id: int) -> Sequence[PartitionEvidence]:
        """The partition values made from the column."""
        found = []
        types = dict(partition_types(self._spec, self._metadata))
        for field in self._spec.fields:
            source = self._metadata.field_type(field.source_id)
            if field.source_id != field_id or source is None:
                continue
            values = self._column(f"part_{field.id}").cast(primitive_arrow_type(types[field.id]))
            is_null = values.is_null().to_numpy(zero_copy_only=False)
            found.append(
                PartitionEvidence(
                    field.transform, field.width, source, values, values, is_null, is_null
                )
            )
        return found

    def _column(self, name: str) -> Any:
        if name not in self._names:
            return None
        return self._table.column(name).combine_chunks()

    def _bound(self, name: str, field_id: int) -> Any:
        column, kind = self._column(name), self._metadata.field_type(field_id)
        if column is None or kind is None:
            return None
        target = primitive_arrow_type(kind)
        return column if column.type == target else column.cast(target)


class ManifestEvidence:
    """Evidence about each of several manifests of one spec, from the snapshot alone."""

    def __init__(
        self,
        refs: Sequence[ManifestRef],
        tables: Sequence[Any | None],
        spec: PartitionSpec,
        metadata: TableMetadata,
    ) -> None:
        """`tables` holds the live rows of inline manifests, whose summary is made on the spot."""
        self._spec = spec
        self._metadata = metadata
        self._stats: list[dict[int, ColumnStats]] = []
        self._ranges: list[tuple[PartitionRange, ...]] = []
        for ref, table in zip(refs, tables, strict=True):
            self._stats.append(ref.stats if table is None else column_ranges(table))
            self._ranges.append(
                ref.partitions if table is None else partition_ranges(table, spec, metadata)
            )
        self.length = len(refs)
        self.row_count = np.array([ref.row_count for ref in refs], dtype=np.int64)

    def lower(self, field_id: int) -> Any:
        """Lower bounds at the column's newest type."""
        return self._bounds(field_id, [s.lower for s in self._of(field_id)])

    def upper(self, field_id: int) -> Any:
        """Upper bounds at the column's newest type."""
        return self._bounds(field_id, [s.upper for s in self._of(field_id)])

    def null_count(self, field_id: int) -> Any:
        """Counts of nulls."""
        return pa.array([s.null_count for s in self._of(field_id)], pa.int64())

    def nan_count(self, field_id: int) -> Any:
        """Counts of NaN."""
        return pa.array([s.nan_count for s in self._of(field_id)], pa.int64())

    def missing(self, field_id: int) -> Any:  # noqa: ARG002 - a summary does not tell
        """Unknown: the files of one manifest can differ in their schemas."""
        return None

    def partitions(self, field_id: int) -> Sequence[PartitionEvidence]:
        """The ranges of the partition values made from the column."""
        found = []
        types = partition_types(self._spec, self._metadata)
        for place, field in enumerate(self._spec.fields):
            source = self._metadata.field_type(field.source_id)
            if field.source_id != field_id or source is None:
                continue
            ranges = [r[place] if place < len(r) else _UNKNOWN for r in self._ranges]
            kind = types[place][1]
            lower = typed_array([storage_value(r.lower, kind) for r in ranges], kind)
            upper = typed_array([storage_value(r.upper, kind) for r in ranges], kind)
            has_null = np.array([r.has_null for r in ranges], dtype=bool)
            no_value = np.array([r is not _UNKNOWN and r.lower is None for r in ranges], dtype=bool)
            found.append(
                PartitionEvidence(
                    field.transform,
                    field.width,
                    source,
                    lower,
                    upper,
                    has_null,
                    has_null & no_value,
                )
            )
        return found

    def _of(self, field_id: int) -> list[ColumnStats]:
        none = ColumnStats()
        return [stats.get(field_id, none) for stats in self._stats]

    def _bounds(self, field_id: int, values: list[Any]) -> Any:
        kind: Primitive | None = self._metadata.field_type(field_id)
        if kind is None:
            return None
        return typed_array([storage_value(value, kind) for value in values], kind)


_UNKNOWN = PartitionRange(has_null=True)


def live_mask(table: Any) -> Any:
    """Which rows of a manifest table readers see."""
    return pc.equal(table.column("removed_version"), 0).to_numpy()
