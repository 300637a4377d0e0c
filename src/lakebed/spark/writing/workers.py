"""Rows that our own writer turns into files, in Spark's Python workers or here on the driver.

    workers   frame ─► clustered by partition ─► mapInArrow: WriteTask ─► one row per task: its
              files, or what was wrong ─► driver
    driver    frame ─► Arrow ─► WriteTask here

For storage that the JVM cannot reach, and columns that it has no type for. Only files whose row
has reached the driver count: what failed, killed and speculative tasks leave is in no version.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakebed.errors import LakebedError
from lakebed.files.data_writer import WriterOptions
from lakebed.format.datafile import DataFile
from lakebed.format.schema import Schema
from lakebed.spark.settings import for_now
from lakebed.spark.writing.answers import answered_files, files_answer, problem_answer
from lakebed.spark.writing.incoming import quoted, rows_seen_as, seen_as
from lakebed.spark.writing.partitioning import clustered, helpers_of, with_helpers
from lakebed.table.rows import RowWriter, chunks_of
from lakebed.table.staging import Staging
from lakebed.table.tasks import WriteTask

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_RESULT = "answer binary"
_BATCH_SETTINGS = {"spark.sql.execution.arrow.maxRecordsPerBatch": "65536"}


def worker_files(
    frame: "DataFrame", staging: Staging, options: WriterOptions
) -> tuple[DataFile, ...]:
    """Have Python workers write the rows, which have columns of the table's by name.

    Raises:
        RequestError: the job failed.
        SchemaMismatchError: a value does not fit.
    """
    rows = _reduced(frame, staging.schema)
    # A column that is missing is null in each row: nothing to bring together.
    known = helpers_of(staging.schema, staging.spec)
    helpers = [helper for helper in known if helper.source_name in rows.columns]
    if helpers:
        names = [helper.name for helper in helpers]
        rows = clustered(with_helpers(rows, helpers), names).drop(*names)
    answers = rows.mapInArrow(_writer(replace(staging.write_task(), options=options)), _RESULT)
    with for_now(frame.sparkSession, _BATCH_SETTINGS):
        found = answers.collect()
    files: list[DataFile] = []
    for row in found:
        files += answered_files(row.answer, staging.schema, staging.spec)
    return tuple(files)


def driver_files(rows: Any, staging: Staging, options: WriterOptions) -> tuple[DataFile, ...]:
    """Write an Arrow table of Spark's here."""
    seen = arrow_rows(rows, staging.schema)
    writer = RowWriter(
        staging.files.store,
        schema=staging.schema,
        spec=staging.spec,
        ids=staging.services.ids,
        options=options,
    )
    for some in chunks_of(seen.schema, seen.to_batches()):
        writer.write(some)
    writer.flush()
    return writer.files


def arrow_rows(rows: Any, schema: Schema) -> Any:
    """An Arrow table of Spark's as the table takes it."""
    return rows_seen_as(rows, seen_as(_plain_schema(rows.schema), schema))


def _reduced(frame: "DataFrame", schema: Schema) -> "DataFrame":
    """The frame's columns that the table has."""
    names = [name for name in frame.columns if name in schema.by_name]
    return frame if names == frame.columns else frame.select(*(quoted(name) for name in names))


def _plain_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(field.name, field.type) for field in schema])


def _writer(task: WriteTask) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def write(batches: Iterable[Any]) -> Iterator[Any]:
        try:
            answer = files_answer(_written(task, iter(batches)))
        except LakebedError as error:
            if error.retryable:
                raise  # Spark starts the task again.
            answer = problem_answer(error)
        yield pa.RecordBatch.from_arrays([pa.array([answer])], ["answer"])

    return write


def _written(task: WriteTask, batches: Iterator[Any]) -> tuple[DataFile, ...]:
    first = next(batches, None)
    if first is None:
        return ()
    target = seen_as(_plain_schema(first.schema), task.schema)

    def seen() -> Iterator[Any]:
        yield rows_seen_as(first, target)
        for batch in batches:
            yield rows_seen_as(batch, target)

    return task.write(target, seen())


__all__ = ["arrow_rows", "driver_files", "worker_files"]
