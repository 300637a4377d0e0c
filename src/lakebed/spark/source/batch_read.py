"""The batch reader of `format("lakebed")`: rows through our own reader, in Python workers.

    planner   schema()  ─► the version is found, once, and goes along with the frame
    planner   partitions() at that version ─► bins of files, one ReadTask each
    worker    read() ─► Arrow batches in exactly Spark's types

Spark asks for the partitions anew each time a plan is made, in other processes: without the
version that travels with it, one frame could be two versions. It offers filters too
(`pushFilters`), but mixes them up when a frame is scanned twice in one query, so they are not
taken: `filter` and `columns` are options, and belong to the frame.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from lakebed.errors import NotFoundError
from lakebed.spark.reading.workers import bins
from lakebed.spark.schema import as_frame_rows, frame_arrow_schema, spark_schema
from lakebed.spark.source.options import Given, TablePlace, point_of
from lakebed.table.point import Point
from lakebed.table.scan import Scan
from lakebed.table.table import Table
from lakebed.table.tasks import ReadTask

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_BATCH_ROWS = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """The version that a frame reads, whatever is committed later."""

    table_id: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRequest:
    """What a frame reads: made where the frame is made, used where its plan is."""

    place: TablePlace
    said: Given

    @property
    def nanoseconds(self) -> str:
        """What columns of nanoseconds shall be."""
        return self.said.text("nanoseconds") or "refuse"

    def pin(self) -> tuple[Pinned, "StructType"]:
        """Find the version, and the columns that it has."""
        table = self.place.open()
        scan = self._scan(table, point_of(self.said, table))
        pointer = scan.head.pointer
        schema = spark_schema(
            scan.table_schema,
            columns=scan.columns,
            nanoseconds=self.nanoseconds,
            field_ids=False,
        )
        return Pinned(table_id=pointer.table_id, version=pointer.version), schema

    def tasks(self, pinned: Pinned) -> list[ReadTask]:
        """The work of reading that version, in bins of about equal size."""
        table = self.place.open()
        if table.head().pointer.table_id != pinned.table_id:
            raise NotFoundError(
                f"{table.name} was dropped and created anew since this frame was made",
                hint="Make the frame again: spark.read.format(…).load(…)",
                table=table.name,
            )
        scan = self._scan(table, pinned.version)
        columns = None if scan.columns is None else tuple(scan.columns)
        return [
            ReadTask(
                place=scan.place,
                metadata=scan.head.metadata,
                schema=scan.table_schema,
                files=files,
                columns=columns,
                where=scan.where,
            )
            for files in bins(scan.plan.readable_files())
        ]

    def _scan(self, table: Table, point: Point | None) -> Scan:
        return table.scan(self.said.text("filter"), self.said.names("columns"), point)


class TaskPartition(InputPartition):
    """One bin of files."""

    def __init__(self, task: ReadTask) -> None:
        super().__init__(None)
        self.task = task


class LakebedReader(DataSourceReader):
    """Reads one version; made and pickled anew for each plan of a frame."""

    def __init__(self, request: ReadRequest, pinned: Pinned) -> None:
        self._request = request
        self._pinned = pinned

    def partitions(self) -> list[InputPartition]:
        """Called once for each plan, on the driver's side."""
        return [TaskPartition(task) for task in self._request.tasks(self._pinned)]

    def read(self, partition: InputPartition | None) -> Iterator[Any]:
        """Called once for each attempt of a task, in a worker; None if there are no files."""
        if not isinstance(partition, TaskPartition):
            return
        yield from rows_of(partition.task, self._request.nanoseconds)


def rows_of(task: ReadTask, nanoseconds: str) -> Iterator[Any]:
    """The rows of a task as Spark takes them."""
    target = frame_arrow_schema(task.arrow_schema, nanoseconds)
    for batch in task.batches(_BATCH_ROWS):
        yield as_frame_rows(batch, target)


__all__ = ["LakebedReader", "Pinned", "ReadRequest", "rows_of"]
