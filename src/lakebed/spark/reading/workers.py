"""Data files read by our own reader in Spark's Python workers, where the JVM cannot go.

    driver    files ─► bins of about equal size ─► one ReadTask each
    worker    a number ─► its task ─► rows ─► Arrow batches to the JVM

Each partition gets the number of one task; the tasks travel inside the function, which Spark
broadcasts. The workers need this package.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakebed.format.datafile import DataFile
from lakebed.spark.schema import as_frame_rows, frame_arrow_schema, spark_schema
from lakebed.table.scan import Scan
from lakebed.table.tasks import ReadTask

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BIN_SIZE_BYTES = 64 << 20
_FILE_COST_BYTES = 1 << 20  # what opening one costs, as if it were so many bytes to read
_BATCH_ROWS = 1 << 16


def worker_frame(
    spark: "SparkSession", scan: Scan, files: Sequence[DataFile], nanoseconds: str
) -> "DataFrame":
    """The matching rows of some files, one or more, at the columns that the scan asks for."""
    from pyspark.sql.types import LongType, StructField, StructType

    whole = ReadTask(
        place=scan.place,
        metadata=scan.head.metadata,
        schema=scan.table_schema,
        files=(),
        columns=None if scan.columns is None else tuple(scan.columns),
        where=scan.where,
    )
    tasks = [replace(whole, files=some) for some in bins(files)]
    shown = spark_schema(
        scan.table_schema, columns=scan.columns, nanoseconds=nanoseconds, field_ids=False
    )
    # Spark takes names apart at dots; numbers have none. The first is there for rows of nothing.
    inner = StructType(
        [StructField("0", LongType())]
        + [StructField(str(i + 1), f.dataType) for i, f in enumerate(shown.fields)]
    )
    numbers = spark.range(0, len(tasks), 1, len(tasks))
    frame = numbers.mapInArrow(_reader(tasks, nanoseconds), inner).drop("0")
    return frame.toDF(*shown.names) if shown.names else frame


def bins(files: Sequence[DataFile]) -> list[tuple[DataFile, ...]]:
    """Files in bins of about equal cost, in their order."""
    found: list[tuple[DataFile, ...]] = []
    some: list[DataFile] = []
    cost = 0
    for file in files:
        cost += file.size_bytes + _FILE_COST_BYTES
        some.append(file)
        if cost >= _BIN_SIZE_BYTES:
            found.append(tuple(some))
            some, cost = [], 0
    return [*found, tuple(some)] if some else found


def _reader(
    tasks: Sequence[ReadTask], nanoseconds: str
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def read(numbers: Iterable[Any]) -> Iterator[Any]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from _rows(tasks[number], nanoseconds)

    return read


def _rows(task: ReadTask, nanoseconds: str) -> Iterator[Any]:
    target = frame_arrow_schema(task.arrow_schema, nanoseconds)
    names = [str(place) for place in range(len(target) + 1)]
    for batch in task.batches(_BATCH_ROWS):
        rows = as_frame_rows(batch, target) if len(target) else batch
        counted = pa.nulls(batch.num_rows, pa.int64())
        yield pa.RecordBatch.from_arrays([counted, *rows.columns], names=names)


__all__ = ["bins", "worker_frame"]
