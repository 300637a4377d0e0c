"""What happened between two versions: the rows that came, and the rows that went.

A copy-on-write commit removes a file and adds most of its rows again. Those are not changes: for
a commit that does both, rows that it removed and added are set off against each other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from lakebed.commit.head import Head
from lakebed.commit.rebase import commits_since
from lakebed.errors import RequestError
from lakebed.files.data_reader import output_schema, read_files
from lakebed.files.delta import Delta, delta_of
from lakebed.files.metadata_files import MetadataFiles
from lakebed.format.datafile import DataFile
from lakebed.format.schema import Schema
from lakebed.format.snapshot import Snapshot
from lakebed.format.types import can_widen
from lakebed.table.netting import net


class ChangedRows:
    """Rows of one kind of change, in the order of the commits."""

    def __init__(self, changes: "Changes", *, added: bool) -> None:
        self._changes = changes
        self._added = added
        self.schema: pa.Schema = changes.schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as record batches."""
        for step in self._changes.steps:
            yield from step.rows(added=self._added)

    def to_arrow(self) -> pa.Table:
        """All rows as an Arrow table."""
        return pa.Table.from_batches(self.to_batches(), self.schema)

    def count(self) -> int:
        """How many rows there are; commits that only append are counted from metadata."""
        return sum(step.count(added=self._added) for step in self._changes.steps)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self.schema, self.to_batches())
        return reader.__arrow_c_stream__(requested_schema)


class Changes:
    """The changes of versions in (since, until], at the columns of `until`.

    Where a rollback has made a column narrow again, it has the widest type of the versions.
    """

    def __init__(
        self, since: Head, until: Head, deltas: Sequence[Delta], files: MetadataFiles
    ) -> None:
        self.since = since.pointer.version
        self.until = until.pointer.version
        schema = _schema(until, [since.snapshot, *(delta.snapshot for delta in deltas)])
        self.schema: pa.Schema = output_schema(schema, None)
        self.steps = [
            _Step(delta, until, files, schema) for delta in deltas if delta.snapshot.data_change
        ]

    def __repr__(self) -> str:
        return f"Changes({self.since} .. {self.until})"

    @property
    def versions(self) -> list[int]:
        """The versions that changed rows, oldest first."""
        return [step.delta.snapshot.version for step in self.steps if step.has_rows]

    @property
    def added(self) -> ChangedRows:
        """The rows that came."""
        return ChangedRows(self, added=True)

    @property
    def removed(self) -> ChangedRows:
        """The rows that went."""
        return ChangedRows(self, added=False)


def changes_between(since: Head, until: Head, files: MetadataFiles) -> Changes:
    """The changes of the versions after `since`, up to and with `until`."""
    first, last = since.pointer.version, until.pointer.version
    if first > last:
        raise RequestError(
            f"version {first} comes after {last}", hint="Give the older version first"
        )
    steps = commits_since(files, until.snapshot, first)
    deltas = [delta_of(files, snapshot) for snapshot in steps]
    return Changes(since, until, deltas[::-1], files)


def _schema(until: Head, snapshots: Sequence[Snapshot]) -> Schema:
    """The columns of `until`, wide enough for the rows of each of the snapshots."""
    schema = until.metadata.schema(until.snapshot.schema_id)
    fields = {field.id: field for field in schema.fields}
    for schema_id in {snapshot.schema_id for snapshot in snapshots}:
        for field in until.metadata.schema(schema_id).fields:
            mine = fields.get(field.id)
            if mine is not None and mine.type != field.type and can_widen(mine.type, field.type):
                fields[field.id] = replace(mine, type=field.type)
    return Schema(schema.id, tuple(fields.values()))


@dataclass(frozen=True)
class _Step:
    """The changes of one commit."""

    delta: Delta
    until: Head
    files: MetadataFiles
    schema: Schema

    @property
    def has_rows(self) -> bool:
        return bool(self.delta.added or self.delta.removed)

    @cached_property
    def _netted(self) -> tuple[pa.Table, pa.Table] | None:
        """Added and removed rows, set off against each other; None if there is only one kind."""
        if not (self.delta.added and self.delta.removed):
            return None
        arrow = output_schema(self.schema, None)
        added = pa.Table.from_batches(self._read(self.delta.added), arrow)
        removed = pa.Table.from_batches(self._read(self.delta.removed), arrow)
        return net(added, removed)

    def rows(self, *, added: bool) -> Iterator[pa.RecordBatch]:
        if self._netted is not None:
            yield from self._netted[0 if added else 1].to_batches()
        else:
            yield from self._read(self.delta.added if added else self.delta.removed)

    def count(self, *, added: bool) -> int:
        if self._netted is not None:
            return int(self._netted[0 if added else 1].num_rows)
        return sum(f.row_count for f in (self.delta.added if added else self.delta.removed))

    def _read(self, files: Sequence[DataFile]) -> Iterator[Any]:
        return read_files(
            self.files.store,
            files,
            metadata=self.until.metadata,
            schema=self.schema,
            columns=None,
            where=None,
        )
