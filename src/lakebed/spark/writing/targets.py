"""Files of a table as a frame whose rows know which file they are from.

    DataFile values ─► rows at today's columns + the path of each row's file

Rewriting copies what stays of a file and leaves other files alone, so it has to know which rows
are where. Columns come as `lakebed.spark.schema` gives them, nanoseconds as numbers: nothing is
lost on the way back.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from lakebed.errors import BadDataFileError
from lakebed.files.data_reader import read_files
from lakebed.format.datafile import DataFile
from lakebed.format.schema import Schema
from lakebed.spark.places import JvmPlace, is_memory, jvm_place
from lakebed.spark.reading.native import native_frame
from lakebed.spark.reading.workers import bins
from lakebed.spark.schema import as_frame_rows, frame_arrow_schema, spark_schema
from lakebed.table.scan import Scan
from lakebed.table.staging import Staging
from lakebed.table.tasks import ReadTask

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_NANOSECONDS = "long"


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """The files of the version that a staging is pinned to, for one session."""

    spark: "SparkSession"
    staging: Staging

    @property
    def schema(self) -> Schema:
        """The columns of today."""
        head = self.staging.head
        return head.metadata.schema(head.snapshot.schema_id)

    @property
    def marker(self) -> str:
        """The name of the column that holds the path of a row's file; no column has it."""
        name = "lakebed_file"
        while name in {column.casefold() for column in self.schema.by_name}:
            name += "_"
        return name

    def frame(self, files: Sequence[DataFile]) -> "DataFrame":
        """All rows of these files, and the marker after their columns."""
        from pyspark.sql import functions as F  # noqa: N812

        scan = Scan(self.staging.head, self.staging.files, place=self.staging.place)
        place = jvm_place(self.spark, scan.place)
        if not files:
            return self.spark.createDataFrame([], self._marked_schema())
        if is_memory(scan.place):
            return self._over_driver(files)
        hidden = any(file.path.rpartition("/")[2].startswith(("_", ".")) for file in files)
        if place is None or hidden:
            return self._by_workers(files)
        rows = native_frame(self.spark, scan, files, place, _NANOSECONDS)
        return rows.withColumn(self.marker, F.input_file_name())

    def by_mark(self, files: Sequence[DataFile]) -> "Marks":
        """What a marker says, back to the file."""
        return Marks(jvm_place(self.spark, self.staging.place), files)

    def _marked_schema(self) -> "StructType":
        from pyspark.sql.types import StringType

        schema = spark_schema(self.schema, nanoseconds=_NANOSECONDS, field_ids=False)
        return schema.add(self.marker, StringType())

    def _tasks(self, files: Sequence[DataFile]) -> list[ReadTask]:
        whole = ReadTask(
            place=self.staging.place,
            metadata=self.staging.head.metadata,
            schema=self.schema,
            files=(),
        )
        return [replace(whole, files=some) for some in bins(files)]

    def _by_workers(self, files: Sequence[DataFile]) -> "DataFrame":
        from pyspark.sql.types import StructField, StructType

        tasks = self._tasks(files)
        shown = self._marked_schema()
        # Spark takes names apart at dots; numbers have none.
        inner = StructType([StructField(str(i), f.dataType) for i, f in enumerate(shown.fields)])
        numbers = self.spark.range(0, len(tasks), 1, len(tasks))
        return numbers.mapInArrow(_reader(tasks), inner).toDF(*shown.names)

    def _over_driver(self, files: Sequence[DataFile]) -> "DataFrame":
        batches: list[Any] = []
        for file in files:
            found = read_files(
                self.staging.files.store,
                [file],
                metadata=self.staging.head.metadata,
                schema=self.schema,
                columns=None,
                where=None,
            )
            batches.extend(_marked(found, file))
        rows = pa.Table.from_batches(batches).rename_columns(self._marked_schema().names)
        return self.spark.createDataFrame(rows, self._marked_schema())


class Marks:
    """From a marker to its file."""

    def __init__(self, place: JvmPlace | None, files: Sequence[DataFile]) -> None:
        self._by_path = {file.path: file for file in files}
        if place is not None:
            self._by_path |= {_plain_uri(place.uri(file.path)): file for file in files}

    def file(self, mark: str) -> DataFile:
        """The file, or BadDataFileError: a row must not be lost because its file is unknown."""
        found = self._by_path.get(mark) or self._by_path.get(_plain_uri(unquote(mark)))
        if found is None:
            raise BadDataFileError(f"Spark read a row from {mark!r}, which is no file of the table")
        return found


def _plain_uri(uri: str) -> str:
    """Hadoop writes one slash or three after `file:`."""
    scheme, _, rest = uri.partition(":")
    return f"{scheme}:/{rest.lstrip('/')}"


def _reader(tasks: Sequence[ReadTask]) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def read(numbers: Iterable[Any]) -> Iterator[Any]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                task = tasks[number]
                for file in task.files:
                    yield from _marked(replace(task, files=(file,)).batches(), file)

    return read


def _marked(batches: Iterable[Any], file: DataFile) -> Iterator[Any]:
    for batch in batches:
        target = frame_arrow_schema(batch.schema, _NANOSECONDS)
        rows = as_frame_rows(batch, target)
        mark = pa.repeat(pa.scalar(file.path), batch.num_rows)
        names = [str(place) for place in range(len(target) + 1)]
        yield pa.RecordBatch.from_arrays([*rows.columns, mark], names=names)


__all__ = ["Marks", "Targets"]
