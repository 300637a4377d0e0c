"""The work of a stream's batch, for Spark's workers: rows as they are, or rows with their fate.

plain         the rows of some files, whatever version brought them
change feed   the rows of one commit, each with what became of it

_change_type        insert, delete, update_preimage, update_postimage
_commit_version     the version that did it
_commit_timestamp   when
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakebed.errors import RequestError
from lakebed.expr.bind import Bound
from lakebed.format.datafile import DataFile
from lakebed.format.schema import Schema
from lakebed.spark.reading.workers import bins
from lakebed.spark.schema import as_frame_rows, frame_arrow_schema
from lakebed.spark.source.stream_log import Piece, Step
from lakebed.spark.writing.change_labels import DELETE, INSERT, labelled
from lakebed.table.netting import net
from lakebed.table.table import Table
from lakebed.table.tasks import ReadTask

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_BATCH_ROWS = 1 << 16
_FATE = pa.schema(
    [
        pa.field("_change_type", pa.string()),
        pa.field("_commit_version", pa.int64()),
        pa.field("_commit_timestamp", pa.timestamp("us", "UTC")),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsTask:
    """The rows of some files."""

    read: ReadTask
    nanoseconds: str

    def batches(self) -> Iterator[Any]:
        """The rows as Spark takes them."""
        target = frame_arrow_schema(self.read.arrow_schema, self.nanoseconds)
        for batch in self.read.batches(_BATCH_ROWS):
            yield as_frame_rows(batch, target)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesTask:
    """The rows that one commit put in and took out."""

    added: ReadTask
    removed: ReadTask
    version: int
    timestamp_ms: int
    note: Mapping[str, str] = field(default_factory=dict)
    nanoseconds: str

    def batches(self) -> Iterator[Any]:
        """The rows as Spark takes them, each with its fate."""
        target = frame_arrow_schema(self.added.arrow_schema, self.nanoseconds)
        whole = pa.schema([*target, *_FATE])
        for label, batch in self._labelled():
            rows = as_frame_rows(batch, target)
            fate = (label, self.version, self.timestamp_ms * 1000)
            columns = [
                pa.repeat(pa.scalar(value, kind), batch.num_rows)
                for value, kind in zip(fate, _FATE.types, strict=True)
            ]
            yield pa.RecordBatch.from_arrays([*rows.columns, *columns], schema=whole)

    def _labelled(self) -> Iterator[tuple[str, Any]]:
        if not self.removed.files:
            yield from ((INSERT, batch) for batch in self.added.batches(_BATCH_ROWS))
        elif not self.added.files:
            yield from ((DELETE, batch) for batch in self.removed.batches(_BATCH_ROWS))
        else:
            schema = self.added.arrow_schema
            added = pa.Table.from_batches(self.added.batches(), schema)
            removed = pa.Table.from_batches(self.removed.batches(), schema)
            for label, rows in labelled(*net(added, removed), self.note):
                yield from ((label, batch) for batch in rows.to_batches(_BATCH_ROWS))


StreamTask = RowsTask | ChangesTask


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskMaker:
    """Makes the tasks of a batch, at the columns that the stream gives out."""

    table: Table
    schema: Schema
    columns: tuple[str, ...] | None
    where: Bound | None
    nanoseconds: str
    feed: bool

    def tasks(self, steps: Iterable[tuple[Step, tuple[Piece, ...]]]) -> list[StreamTask]:
        """The tasks for some pieces of some versions."""
        found = [(step, pieces) for step, pieces in steps if pieces]
        if not found:
            return []
        if self.feed:
            return [task for step, pieces in found for task in self._changes(step, pieces)]
        # The newest of them knows the schemas that the files of all were written with.
        read = self._read(found[-1][0])
        files = [file for _, pieces in found for piece in pieces for file in piece.added]
        return [
            RowsTask(read=replace(read, files=some), nanoseconds=self.nanoseconds)
            for some in bins(files)
        ]

    def _changes(self, step: Step, pieces: tuple[Piece, ...]) -> Iterator[ChangesTask]:
        read = self._read(step)
        mixed = [piece for piece in pieces if piece.added and piece.removed]
        for piece in mixed:
            yield self._task(step, read, piece.added, piece.removed)
        for some in bins([file for p in pieces if not p.removed for file in p.added]):
            yield self._task(step, read, some, ())
        for some in bins([file for p in pieces if not p.added for file in p.removed]):
            yield self._task(step, read, (), some)

    def _task(
        self,
        step: Step,
        read: ReadTask,
        added: tuple[DataFile, ...],
        removed: tuple[DataFile, ...],
    ) -> ChangesTask:
        return ChangesTask(
            added=replace(read, files=added),
            removed=replace(read, files=removed),
            version=step.snapshot.version,
            timestamp_ms=step.snapshot.timestamp_ms,
            note=dict(step.snapshot.parameters),
            nanoseconds=self.nanoseconds,
        )

    def _read(self, step: Step) -> ReadTask:
        return ReadTask(
            place=self.table.place,
            metadata=self.table.files.metadata(step.snapshot.metadata_path),
            schema=self.schema,
            files=(),
            columns=self.columns,
            where=self.where,
        )


def with_fate(schema: "StructType") -> "StructType":
    """The columns of a change feed.

    Raises:
        RequestError: the table has a column of such a name.
    """
    from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

    taken = sorted(set(schema.names) & set(_FATE.names))
    if taken:
        raise RequestError(
            f"the table has a column {taken[0]!r}, a name that the change feed gives out",
            hint='Leave it out: .option("columns", …)',
        )
    kinds = (StringType(), LongType(), TimestampType())
    fate = [StructField(name, kind) for name, kind in zip(_FATE.names, kinds, strict=True)]
    return StructType([*schema.fields, *fate])


__all__ = ["ChangesTask", "RowsTask", "StreamTask", "TaskMaker", "with_fate"]
