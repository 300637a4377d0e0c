"""A table as a stream of Spark's, for those who have it open: `format("lakebed")`, spelt out."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lakebed.expr.parse import as_predicate
from lakebed.spark.source.options import options_of
from lakebed.spark.source.source import LakebedSource
from lakebed.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_stream(  # noqa: PLR0913 - what can be said of a stream
    spark: "SparkSession",
    table: Table,
    *,
    starting_version: int | str | None = None,
    starting_timestamp: str | None = None,
    max_files: int | None = None,
    max_bytes: int | None = None,
    available_now: bool | None = None,
    change_feed: bool = False,
    skip_change_commits: bool = False,
    ignore_deletes: bool = False,
    where: object = None,
    columns: Sequence[str] | None = None,
    nanoseconds: str = "refuse",
) -> "DataFrame":
    """Read a table as a stream: what it holds, and then each version as it is committed.

    Args:
        spark: any session.
        table: of `catalog.table`; its catalog must be one that other processes can open.
        starting_version: read the changes from this version on, and not what was there before;
            `"latest"` for those from now on.
        starting_timestamp: the same for the first version at this time or later.
        max_files: read at most so many files in a batch, and at least one.
        max_bytes: read at most so many bytes in a batch, and at least one file.
        available_now: whether the query will run with `Trigger.AvailableNow`; to be said with a
            limit on Spark 4.1, which does not tell: then all is read in one batch.
        change_feed: give inserted, updated and deleted rows, with `_change_type`,
            `_commit_version` and `_commit_timestamp`.
        skip_change_commits: leave commits out that update or delete rows.
        ignore_deletes: leave commits out that only delete rows.
        where: only these rows, as in `Table.scan`.
        columns: only these columns.
        nanoseconds: as in `lakebed.spark.read`.

    Raises:
        RequestError: an option contradicts another, or the catalog is in memory.
        NotFoundError: there is no such column.
    """
    node = as_predicate(where)
    said: Mapping[str, object] = {
        "startingVersion": starting_version,
        "startingTimestamp": starting_timestamp,
        "maxFilesPerTrigger": max_files,
        "maxBytesPerTrigger": max_bytes,
        "triggerAvailableNow": available_now,
        "readChangeFeed": change_feed or None,
        "skipChangeCommits": skip_change_commits or None,
        "ignoreDeletes": ignore_deletes or None,
        "filter": None if node is None else str(node),
        "columns": None if columns is None else ", ".join(columns),
        "nanoseconds": nanoseconds,
    }
    given = {key: _text(value) for key, value in said.items() if value is not None}
    options = options_of(table) | given
    LakebedSource(options).schema()  # Says here, in our own words, what Spark would wrap in its.
    return spark.readStream.format(LakebedSource.name()).options(**options).load()


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


__all__ = ["read_stream"]
