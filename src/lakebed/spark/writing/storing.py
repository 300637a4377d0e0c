"""A frame into data files, by the way that suits it.

driver      small frames: rows come here as Arrow, our writer makes the files
native      the JVM makes the files
workers     our writer in Python workers, where the JVM cannot reach the storage or has no
            type for a column
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from lakebed.errors import LakebedError, RequestError
from lakebed.files.data_writer import WriterOptions
from lakebed.format.datafile import DataFile
from lakebed.spark.failures import spark_failures
from lakebed.spark.places import is_memory, jvm_place
from lakebed.spark.writing.incoming import native_obstacle, with_open_parts
from lakebed.spark.writing.native import CODECS, native_files
from lakebed.spark.writing.sizes import is_small
from lakebed.spark.writing.workers import driver_files, worker_files
from lakebed.table.services import Place
from lakebed.table.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TOO_LARGE = "spark.driver.maxResultSize"


def stored(
    frame: "DataFrame",
    staging: Staging,
    via: str | None = None,
    *,
    options: WriterOptions | None = None,
) -> tuple[DataFile, ...]:
    """Write the rows of a frame, whose columns are the table's by name; they are in no version.

    `options` say how, if not as the table's properties do.
    """
    rows = collected(frame, staging.place, via)
    if rows is not None:
        return driver_files(rows, staging, options or staging.options)
    return executor_files(frame, staging, options)


def executor_files(
    frame: "DataFrame", staging: Staging, options: WriterOptions | None = None
) -> tuple[DataFile, ...]:
    """Have the executors write the rows."""
    how = options or staging.options
    place = jvm_place(frame.sparkSession, staging.place)
    can_encode = how.codec(how.target_file_bytes)[0] in CODECS
    with spark_failures("the write"):
        if place is not None and can_encode and native_obstacle(frame, staging.schema) is None:
            return native_files(frame, staging, place, how)
        return worker_files(frame, staging, how)


def collected(frame: "DataFrame", place: Place, via: str | None) -> Any:
    """The rows as an Arrow table if they shall go over the driver; None if not."""
    if is_memory(place):
        if via == "executors":
            raise RequestError(
                "a table in memory is in this process only", hint='Write it with via="driver"'
            )
        via = "driver"
    if via == "executors" or (via is None and not _is_small(frame)):
        return None
    try:
        with spark_failures("the write"):
            return with_open_parts(frame).toArrow()
    except RequestError as error:
        # Spark's estimate was far too low; it has stopped before the driver ran out of memory.
        if via is None and _TOO_LARGE in str(error.fields.get("spark", "")):
            return None
        raise


def discard(files: Iterable[DataFile], staging: Staging) -> None:
    """Remove files of a write that will not be committed, and was not handed to a commit."""
    with suppress(LakebedError):  # They cost room, and nothing else.
        for file in files:
            staging.files.store.delete(file.path)


def _is_small(frame: "DataFrame") -> bool:
    with spark_failures("the write"):
        return is_small(frame)


__all__ = ["collected", "discard", "executor_files", "stored"]
