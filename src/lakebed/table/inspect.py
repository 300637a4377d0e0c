"""A table's metadata as Arrow tables, for any tool that can query them."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.catalog.backend import CatalogBackend
from lakebed.commit.head import Head
from lakebed.commit.rebase import commits_since
from lakebed.errors import NotFoundError
from lakebed.expr.transform import partition_text
from lakebed.files.manifest import live, storage_list
from lakebed.files.metadata_files import MetadataFiles
from lakebed.format.snapshot import ManifestRef
from lakebed.table.log_rows import log_table
from lakebed.table.reachable import chain
from lakebed.table.retelling import retell

_MOMENT = pa.timestamp("ms", tz="UTC")


class Inspect:
    """Views of one version's metadata; each call reads it anew."""

    def __init__(self, head: Head, files: MetadataFiles, backend: CatalogBackend) -> None:
        self._head = head
        self._files = files
        self._backend = backend

    def snapshots(self) -> pa.Table:
        """One row per version, newest first."""
        rows = [
            {
                "version": s.version,
                "snapshot_id": s.snapshot_id,
                "parent_id": s.parent_id,
                "timestamp": s.timestamp_ms,
                "operation": s.operation.value,
                "commit_id": s.commit_id,
                "added_files": s.summary.added_files,
                "removed_files": s.summary.removed_files,
                "added_rows": s.summary.added_rows,
                "removed_rows": s.summary.removed_rows,
                "total_files": s.summary.total_files,
                "total_rows": s.summary.total_rows,
                "total_bytes": s.summary.total_bytes,
                "schema_id": s.schema_id,
                "spec_id": s.spec_id,
                "token_app": s.token.app if s.token else None,
                "token_version": s.token.version if s.token else None,
                "parameters": list(s.parameters.items()),
            }
            for s in commits_since(self._files, self._head.snapshot, -1)
        ]
        return pa.Table.from_pylist(rows, _SNAPSHOTS)

    def files(self) -> pa.Table:
        """One row per live data file."""
        found = [self._file_rows(ref) for ref in self._refs()]
        return pa.concat_tables([_FILES.empty_table(), *found])

    def manifests(self) -> pa.Table:
        """One row per manifest; the tail inside the snapshot is named PATH#N."""
        rows = [
            {
                "path": name,
                "inline": ref.is_inline,
                "spec_id": ref.spec_id,
                "written_version": ref.written_version,
                "file_count": ref.file_count,
                "row_count": ref.row_count,
                "data_size_bytes": ref.data_size_bytes,
                "deleted_count": ref.deleted_count,
                "size_bytes": ref.size_bytes,
                "partitions": self._ranges_text(ref),
            }
            for name, ref in self._named_refs()
        ]
        return pa.Table.from_pylist(rows, _MANIFESTS)

    def manifest(self, name: str) -> pa.Table:
        """The entries of one manifest, removed ones included, with all statistics."""
        for found, ref in self._named_refs():
            if found == name or found.rpartition("/")[2] == name:
                table = self._files.manifest(ref, self._head.metadata)
                return self._with_status(table)
        raise NotFoundError(
            f"version {self._head.pointer.version} has no manifest {name!r}",
            hint="inspect.manifests() lists them",
        )

    def partitions(self) -> pa.Table:
        """One row per partition, with how much it holds."""
        files = self.files()
        grouped = files.group_by(["spec_id", "partition"]).aggregate(
            [("row_count", "sum"), ("size_bytes", "sum"), ("path", "count")]
        )
        named = {"row_count_sum": "row_count", "size_bytes_sum": "size_bytes"}
        named["path_count"] = "file_count"
        renamed = grouped.rename_columns([named.get(n, n) for n in grouped.column_names])
        return renamed.select(
            ["spec_id", "partition", "file_count", "row_count", "size_bytes"]
        ).sort_by([("spec_id", "ascending"), ("partition", "ascending")])

    def log(self) -> pa.Table:
        """The action log: one row per action of each commit, oldest first."""
        pointer = self._head.pointer
        if self._backend.keeps_log:
            return log_table(pointer.table_id, list(self._backend.log(pointer)))
        newest_first = list(chain(self._files, pointer.snapshot_path, self._head.snapshot))
        moves = retell(self._files, pointer.location, reversed(newest_first))
        rows = [
            (move.new.version, place, action)
            for move in moves
            for place, action in enumerate(move.actions)
        ]
        return log_table(pointer.table_id, rows)

    def _refs(self) -> list[ManifestRef]:
        return [ref for ref in self._head.snapshot.manifest_list if ref.file_count]

    def _named_refs(self) -> list[tuple[str, ManifestRef]]:
        here = self._head.pointer.snapshot_path
        return [
            (ref.path or f"{here}#{place}", ref)
            for place, ref in enumerate(self._head.snapshot.manifest_list)
        ]

    def _with_status(self, table: pa.Table) -> pa.Table:
        version = self._head.pointer.version
        added = pc.equal(table.column("added_version"), version)
        is_live = pc.equal(table.column("removed_version"), 0)
        status = pc.if_else(is_live, pc.if_else(added, "added", "existing"), "deleted")
        return table.add_column(1, "status", status)

    def _file_rows(self, ref: ManifestRef) -> pa.Table:
        table = live(self._files.manifest(ref, self._head.metadata))
        arrays: list[Any] = [
            table.column(name).combine_chunks()
            for name in ("path", "row_count", "size_bytes", "schema_id")
        ]
        count = table.num_rows
        arrays += [
            pa.array([ref.spec_id] * count, pa.int32()),
            pa.array(self._partition_texts(table, ref), pa.string()),
            table.column("added_version").combine_chunks(),
        ]
        return pa.Table.from_arrays(arrays, schema=_FILES)

    def _ranges_text(self, ref: ManifestRef) -> str:
        """The ranges of the partition fields, as in ts_day=2026-01-01..2026-01-31."""
        spec, metadata = self._head.metadata.spec(ref.spec_id), self._head.metadata
        texts = []
        for field, span in zip(spec.fields, ref.partitions, strict=False):
            source = metadata.field_type(field.source_id)
            assert source is not None, "a spec's columns are primitive"
            ends = dict.fromkeys(
                partition_text(field, end, source)
                for end in (span.lower, span.upper)
                if end is not None
            )
            null = ["null"] if span.has_null else []
            texts.append(f"{field.name}={' or '.join(['..'.join(ends)] * bool(ends) + null)}")
        return ", ".join(texts)

    def _partition_texts(self, table: pa.Table, ref: ManifestRef) -> list[str]:
        spec, metadata = self._head.metadata.spec(ref.spec_id), self._head.metadata
        texts: list[list[str]] = []
        for field in spec.fields:
            source = metadata.field_type(field.source_id)
            assert source is not None, "a spec's columns are primitive"
            values = storage_list(table.column(f"part_{field.id}"))
            known = {v: f"{field.name}={partition_text(field, v, source)}" for v in set(values)}
            texts.append([known[value] for value in values])
        if not texts:
            return [""] * table.num_rows
        return ["/".join(parts) for parts in zip(*texts, strict=True)]


_SNAPSHOTS = pa.schema(
    [
        ("version", pa.int64()),
        ("snapshot_id", pa.int64()),
        ("parent_id", pa.int64()),
        ("timestamp", _MOMENT),
        ("operation", pa.string()),
        ("commit_id", pa.string()),
        *((name, pa.int64()) for name in ("added_files", "removed_files", "added_rows")),
        *((name, pa.int64()) for name in ("removed_rows", "total_files", "total_rows")),
        ("total_bytes", pa.int64()),
        ("schema_id", pa.int32()),
        ("spec_id", pa.int32()),
        ("token_app", pa.string()),
        ("token_version", pa.int64()),
        ("parameters", pa.map_(pa.string(), pa.string())),
    ]
)
_FILES = pa.schema(
    [
        ("path", pa.string()),
        ("row_count", pa.int64()),
        ("size_bytes", pa.int64()),
        ("schema_id", pa.int32()),
        ("spec_id", pa.int32()),
        ("partition", pa.string()),
        ("added_version", pa.int64()),
    ]
)
_MANIFESTS = pa.schema(
    [
        ("path", pa.string()),
        ("inline", pa.bool_()),
        ("spec_id", pa.int32()),
        ("written_version", pa.int64()),
        ("file_count", pa.int64()),
        ("row_count", pa.int64()),
        ("data_size_bytes", pa.int64()),
        ("deleted_count", pa.int64()),
        ("size_bytes", pa.int64()),
        ("partitions", pa.string()),
    ]
)
