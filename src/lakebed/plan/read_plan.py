"""The outcome of planning: the files to read, and an account of why.

Files are kept as Arrow tables, one per opened manifest, and become `DataFile` values only when
somebody asks for them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.expr.bind import Bound
from lakebed.files.manifest import storage_list, to_entries
from lakebed.format.datafile import ColumnStats, DataFile
from lakebed.format.metadata import TableMetadata
from lakebed.format.partition import PartitionSpec
from lakebed.format.schema import Schema
from lakebed.format.snapshot import ManifestRef, Snapshot

_HAS_COLUMN = ColumnStats()  # of a file of which a reader needs to know no more


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The files of one manifest that may hold matching rows.

    `certain` is a numpy mask: True says that every row of the file matches.
    """

    ref: ManifestRef
    spec: PartitionSpec
    table: Any
    certain: Any


@dataclass(frozen=True, kw_only=True)
class Dropped:
    """What was left out, with the reason; a few of them, as examples.

    The reason is put into words when somebody asks: that takes longer than dropping.
    """

    path: str
    why: Callable[[], str] = field(repr=False)

    @cached_property
    def reason(self) -> str:
        """Why no row of it can match."""
        return self.why()


@dataclass(frozen=True, kw_only=True)
class ReadPlan:
    """The files that a read of one snapshot needs.

    `manifests_opened` counts manifest files that were fetched; the tail of a snapshot is inside
    it and costs nothing.
    """

    snapshot: Snapshot
    metadata: TableMetadata
    schema: Schema
    where: Bound | None
    where_text: str
    manifests_total: int
    manifests_opened: int
    parts: tuple[Part, ...]
    dropped: tuple[Dropped, ...] = field(default=(), repr=False)

    @cached_property
    def files(self) -> tuple[DataFile, ...]:
        """The files to read, in the order of the manifests, with all that is known of them."""
        return tuple(
            entry.file for part in self.parts for entry in to_entries(part.table, part.spec)
        )

    @cached_property
    def certain_files(self) -> tuple[DataFile, ...]:
        """The files of which every row matches."""
        return self._chosen(certain=True)

    @cached_property
    def edge_files(self) -> tuple[DataFile, ...]:
        """The files that have to be read to know which rows match."""
        return self._chosen(certain=False)

    @property
    def file_count(self) -> int:
        """How many files there are to read."""
        return sum(part.table.num_rows for part in self.parts)

    @property
    def row_count(self) -> int:
        """How many rows the files have: the most that can match."""
        return sum(pc.sum(part.table.column("row_count")).as_py() or 0 for part in self.parts)

    @property
    def size_bytes(self) -> int:
        """How large the files are."""
        return sum(pc.sum(part.table.column("size_bytes")).as_py() or 0 for part in self.parts)

    @property
    def certain_row_count(self) -> int:
        """How many rows match for certain, as metadata alone shows."""
        return sum(
            int(part.table.column("row_count").to_numpy()[part.certain].sum())
            for part in self.parts
        )

    def readable_files(self, row_limit: int | None = None) -> list[DataFile]:
        """The files to read with just what a reader needs; cheap also for very many.

        With `row_limit`, only the first ones: as many as hold so many matching rows for certain.
        """
        files = [file for part in self.parts for file in _light(part.table, part.spec)]
        if row_limit is None or not files:
            return files
        certain = np.concatenate([part.certain for part in self.parts])
        rows = np.array([file.row_count for file in files], dtype=np.int64)
        enough = np.searchsorted(np.cumsum(np.where(certain, rows, 0)), row_limit)
        return files[: int(enough) + 1]

    def explain(self, limit: int = 10) -> str:
        """Tell in words which files are read and why, at most `limit` of each kind by name."""
        return "\n".join(_explanation(self, limit))

    def _chosen(self, *, certain: bool) -> tuple[DataFile, ...]:
        found = []
        for part in self.parts:
            mask = part.certain if certain else ~part.certain
            if mask.any():
                found += [e.file for e in to_entries(part.table.filter(pa.array(mask)), part.spec)]
        return tuple(found)


def _light(table: Any, spec: PartitionSpec) -> list[DataFile]:
    columns = (
        storage_list(table.column(name))
        for name in ("path", "row_count", "size_bytes", "schema_id")
    )
    return [
        DataFile(
            path=path,
            row_count=rows,
            size_bytes=size,
            schema_id=schema,
            spec_id=spec.id,
            stats=inside,
        )
        for path, rows, size, schema, inside in zip(*columns, _inside(table), strict=True)
    ]


def _inside(table: Any) -> Iterator[dict[int, ColumnStats]]:
    """For each file the columns it is known to have: a reader that misses one must not go on.

    Mostly these are the same for all, and then one value is shared.
    """
    columns = {
        int(name.removeprefix("null_")): table.column(name)
        for name in table.column_names
        if name.startswith("null_")
    }
    shared = {i: _HAS_COLUMN for i, column in columns.items() if not column.null_count}
    partly = [
        (i, column.is_valid().to_pylist())
        for i, column in columns.items()
        if 0 < column.null_count < len(column)
    ]
    if not partly:
        return repeat(shared, table.num_rows)
    return (
        shared | {i: _HAS_COLUMN for i, is_known in partly if is_known[row]}
        for row in range(table.num_rows)
    )


def _explanation(plan: ReadPlan, limit: int) -> list[str]:
    snapshot = plan.snapshot
    total = snapshot.summary
    certain = sum(int(np.count_nonzero(part.certain)) for part in plan.parts)
    inline = sum(1 for ref in snapshot.manifest_list if ref.is_inline)
    lines = [
        f"{snapshot.table_name} version {snapshot.version}"
        + (f" where {plan.where_text}" if plan.where_text else ""),
        f"manifests  {plan.manifests_opened} of {plan.manifests_total} opened"
        + (", and the tail inside the snapshot" if inline else ""),
        f"files      {plan.file_count:,} of {total.total_files:,} kept"
        + (f", {certain:,} of them match as a whole" if plan.where_text else ""),
        f"rows       at most {plan.row_count:,} of {total.total_rows:,}",
    ]
    shown = plan.readable_files()[:limit]
    marks = [mark for part in plan.parts for mark in part.certain.tolist()][:limit]
    for file, is_certain in zip(shown, marks, strict=True):
        reason = "every row matches" if is_certain else "may match"
        lines.append(f"  + {file.path}  {file.row_count:,} rows: {reason}")
    if plan.file_count > limit:
        lines.append(f"  + … {plan.file_count - limit:,} more")
    lines += _dropped_lines(plan.dropped, total.total_files - plan.file_count, limit)
    return lines


def _dropped_lines(dropped: Sequence[Dropped], count: int, limit: int) -> list[str]:
    lines = [f"  - {each.path}  {each.reason}" for each in dropped[:limit]]
    if count and len(dropped) > limit:
        lines.append(f"  - … {count:,} files dropped in all")
    return lines
