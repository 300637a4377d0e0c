"""Rows that Spark's own Parquet writer turns into files of a table.

    frame ─► the table's columns, each with its field id
          ─► partitioned: clustered by partition, large ones split      not: no shuffle
          ─► df.write.parquet(<table>/data/<id>): tasks write aside, the job moves what succeeded
          ─► list the directory, read footers ─► DataFile values, in no version yet

Spark's commit protocol keeps the files of failed, killed and speculative tasks out of the
directory. The directory is new and of this write alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from lakebed.errors import LakebedError, SchemaMismatchError
from lakebed.files.data_writer import WriterOptions
from lakebed.format.datafile import DataFile
from lakebed.format.schema import Schema
from lakebed.limits import DATA_FILE_ROW_COUNT_MAX
from lakebed.spark.places import JvmPlace
from lakebed.spark.schema import spark_schema
from lakebed.spark.settings import for_now
from lakebed.spark.writing.partitioning import clustered, helpers_of, partitions_of, with_helpers
from lakebed.table.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CODECS = {"zstd": "zstd", "snappy": "snappy", "gzip": "gzip", "lz4": "lz4_raw", "none": "none"}

# What only the session can say; a user's session may have other things in mind.
_SETTINGS = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",  # INT96 has no statistics
    "spark.sql.parquet.fieldId.write.enabled": "true",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}
_ADVISORY = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
_OPTIONS = {
    "parquet.writer.version": "v2",  # half the bytes for times and counters, as our writer has it
    "parquet.page.write-checksum.enabled": "true",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    # A task's files appear at once when the whole job succeeds; version 2 moves them one by one.
    "mapreduce.fileoutputcommitter.algorithm.version": "1",
}
# Hadoop's usual class for local files lays a checksum file beside each.
_LOCAL_OPTIONS = {
    "fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "fs.file.impl.disable.cache": "true",
}
_SHUFFLE_RATIO = 3  # bytes of a shuffle per byte of Parquet, guessed low
_ARROW_RATIO = 4  # bytes in memory per byte of Parquet, as our writer guesses
_TEXT_BYTES = 20  # what Spark takes a text to be
_ZLIB_LEVELS = {1: "BEST_SPEED", 9: "BEST_COMPRESSION"}
_NUMBERS = ("TWO", "THREE", "FOUR", "FIVE", "SIX", "SEVEN", "EIGHT")


def native_files(
    frame: "DataFrame", staging: Staging, place: JvmPlace, options: WriterOptions
) -> tuple[DataFile, ...]:
    """Have Spark write the rows below the staging's directory, and describe the files.

    The frame has columns of the table's, by name, that Spark's casts keep exactly.

    Raises:
        RequestError: the job failed; its files are gone.
        SchemaMismatchError: a required column has nulls.
    """
    helpers = helpers_of(staging.schema, staging.spec)
    rows = frame.to(spark_schema(staging.schema))
    settings = dict(_SETTINGS)
    names = [helper.name for helper in helpers]
    if names:
        rows = clustered(with_helpers(rows, helpers), names)
        settings[_ADVISORY] = f"{options.target_file_bytes * _SHUFFLE_RATIO}b"
    writer = rows.write.options(**_options(options, staging.schema, place)).mode("error")
    if names:
        writer = writer.partitionBy(*names)
    with _own_directory(staging):
        with for_now(frame.sparkSession, settings):
            writer.parquet(place.uri(staging.directory))
        paths = _written(staging)
        known = partitions_of(paths, staging.files.store, helpers, staging.spec)
        return _described(staging, paths, known)


@contextmanager
def _own_directory(staging: Staging) -> Iterator[None]:
    """Remove the files of a write that failed: they are in a directory that is its own.

    Nothing was handed to a commit yet, so no version can list them.
    """
    is_done = False
    try:
        yield
        is_done = True
    finally:
        if not is_done:
            store = staging.files.store
            with suppress(LakebedError):  # They cost room, and nothing else.
                for found in list(store.list(f"{staging.directory}/")):
                    store.delete(found.path)


def _written(staging: Staging) -> list[str]:
    """The files that have rows; Spark's first task writes one even if it has none."""
    store = staging.files.store
    paths = []
    for found in store.list(f"{staging.directory}/"):
        name = found.path.rpartition("/")[2]
        if name.startswith(("_", ".")):
            continue
        if name.startswith("part-00000-") and not _row_count(staging, found.path):
            store.delete(found.path)
            continue
        paths.append(found.path)
    return paths


def _row_count(staging: Staging, path: str) -> int:
    filesystem, prefix = staging.files.store.arrow_filesystem()
    with filesystem.open_input_file(prefix + path) as source:
        return int(pq.ParquetFile(source).metadata.num_rows)


def _described(
    staging: Staging, paths: list[str], known: dict[str, tuple[Any, ...]]
) -> tuple[DataFile, ...]:
    try:
        return staging.describe(paths, known)
    except SchemaMismatchError as error:
        problems = error.fields.get("problems")
        if not isinstance(problems, list):
            raise
        raise SchemaMismatchError(
            f"the rows do not fit the table: {'; '.join(map(str, problems))}",
            hint="Nothing was changed. Fill the nulls or drop those rows",
            problems=problems,
        ) from error


# ------------------------------------------------------------------------------------- options


def _options(options: WriterOptions, schema: Schema, place: JvmPlace) -> dict[str, str]:
    found = _OPTIONS | dict(place.options) | (_LOCAL_OPTIONS if place.is_local else {})
    codec, level = options.codec(options.target_file_bytes)
    found["compression"] = CODECS[codec]
    found["parquet.block.row.count.limit"] = str(options.row_group_rows)
    found["maxRecordsPerFile"] = str(_rows_per_file(options, schema))
    if level is not None and codec == "zstd":
        found["parquet.compression.codec.zstd.level"] = str(level)
    if level is not None and codec == "gzip":
        found["zlib.compress.level"] = _ZLIB_LEVELS.get(level) or _NUMBERS[level - 2]
    return found


def _rows_per_file(options: WriterOptions, schema: Schema) -> int:
    """How many rows make a file of the size wanted, by the types of the columns."""
    width = sum(_width(str(field.type)) for field in schema.fields)
    wanted = options.target_file_bytes * _ARROW_RATIO // max(width, 1)
    return max(1, min(wanted, DATA_FILE_ROW_COUNT_MAX))


def _width(kind: str) -> int:
    """About how many bytes a value takes in memory."""
    if kind in ("boolean", "int", "float", "date"):
        return 4
    return 8 if kind in ("long", "double", "timestamp", "timestamptz") else _TEXT_BYTES


__all__ = ["CODECS", "native_files"]
