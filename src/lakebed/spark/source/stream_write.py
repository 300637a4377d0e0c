"""A table as the end of a stream, through `writeStream.format("lakebed")`.

    worker    write()   rows ─► files, stored durably, in no version ─► message
    planner   commit()  token (app, batch) in the table?  yes ─► ours? ─► nothing to do
                                                          no  ─► files + token, in one commit

Spark makes the writer anew for each commit, in a process that has no session. Which query it is,
and where its sources stood, is read from the query's checkpoint.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from lakebed.commit.change import Commit
from lakebed.errors import CommitConflictError, NotFoundError, RequestError
from lakebed.format.datafile import DataFile
from lakebed.spark.source.batch_write import WritePlan, Written, files_of, prepared
from lakebed.spark.source.options import STREAM_WRITE, Given, given, place_of
from lakebed.spark.streaming.event_time import (
    extent_of_files,
    newest_ns,
    time_field,
    time_properties,
    watermark_properties,
)
from lakebed.spark.streaming.query import QueryBatch, check_replay, checkpoint_batch
from lakebed.spark.writing.commit import commit_files
from lakebed.spark.writing.incoming import columns_of_schema
from lakebed.spark.writing.options import USER_METADATA, WriteOptions
from lakebed.table.staging import Staging
from lakebed.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPlan:
    """All that the writer of a stream knows; made anew for each commit, and pickled."""

    write: WritePlan
    said: Given

    def batch(self, number: int) -> tuple[QueryBatch, tuple[str, int]]:
        """A batch of the query, and its token."""
        found = checkpoint_batch(self.said.text("checkpointLocation") or "", number)
        app_id = self.said.text("txnAppId")
        if not app_id and not found.query_id:
            raise RequestError(
                "the query that writes this stream cannot be told: its checkpoint is not where "
                "Python can read it",
                hint='Name the query: .option("txnAppId", …), and never use that name elsewhere',
            )
        return found, found.token(app_id)

    def commit(self, messages: Iterable[WriterCommitMessage | None], number: int) -> Commit:
        """Make a batch part of the table, exactly once."""
        batch, token = self.batch(number)
        table = self.write.place.open()
        done = table.committed(token)
        if done is None:
            done = self._commit(table, list(messages), batch, token)
        if done.repeated:
            check_replay(table, done, batch, token)
        return done

    def _commit(
        self,
        table: Table,
        messages: list[WriterCommitMessage | None],
        batch: QueryBatch,
        token: tuple[str, int],
    ) -> Commit:
        options = self.write.options
        staging = table.stage(self.write.incoming, evolve=options.merge_schema)
        _check_written(messages, staging, table)
        files = files_of(messages)
        properties = {**options.properties, **batch.properties(), **self._times(files, staging)}
        properties |= watermark_properties(batch.watermark_ms)
        return commit_files(files, staging, replace(options, txn=token, properties=properties))

    def _times(self, files: list[DataFile], staging: Staging) -> dict[str, str]:
        field = time_field(staging.head, self.said.text("eventTime"))
        if field is None:
            return {}
        return time_properties(extent_of_files(files, field), newest_ns(staging.head, field))


def _check_written(
    messages: Iterable[WriterCommitMessage | None], staging: Staging, table: Table
) -> None:
    """Raise if the table is not any more what the files were written for."""
    metadata = staging.head.metadata
    known = {schema.id: schema for schema in metadata.schemas}
    known.setdefault(staging.schema.id, staging.schema)
    for each in messages:
        if not isinstance(each, Written) or not each.files:
            continue
        if each.location != staging.place.location:
            raise NotFoundError(
                f"{table.name} was dropped and created anew while the query was running",
                hint="Nothing was written. Start the query again",
                table=table.name,
            )
        if known.get(each.schema.id) != each.schema:
            raise CommitConflictError(
                f"the columns of {table.name} were changed while the query was running, and its "
                "rows bring new columns too",
                hint="Nothing was written. Start the query again",
                table=table.name,
            )


class LakebedStreamWriter(DataSourceStreamArrowWriter):
    """Writes the batches of one query."""

    def __init__(self, plan: StreamPlan) -> None:
        self._plan = plan

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Called once for each attempt of a task, in a worker."""
        plan = self._plan.write
        return Written(plan.write(iterator), plan.task)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Called when every task has answered, and again for a batch whose end was not noted."""
        self._plan.commit(messages, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803
        """Called when a task has failed for good, and when the commit has."""
        if None in messages:  # Then no commit was tried: nothing can be live.
            self._plan.write.discard(files_of(messages))


def plan_stream_write(
    options: Mapping[str, str], schema: "StructType", *, overwrite: bool
) -> StreamPlan:
    """Prepare the writing of a stream from Spark's options.

    Raises:
        RequestError: an option is unknown, or the query cannot be told.
        SchemaMismatchError: the rows do not fit the table.
    """
    said = given(options, STREAM_WRITE, purpose="write a stream")
    metadata = said.text(USER_METADATA)
    write = WriteOptions.made(
        mode="overwrite" if overwrite else "append",
        partition_by=said.names("partitionBy"),
        merge_schema=said.flag("mergeSchema"),
        properties={} if metadata is None else {USER_METADATA: metadata},
    )
    place = place_of(options)
    plan = StreamPlan(write=prepared(place, write, columns_of_schema(schema)), said=said)
    plan.batch(0)  # Says now if no batch could ever be told.
    if said.text("eventTime") and not write.merge_schema:
        time_field(place.open().head(), said.text("eventTime"))
    return plan


__all__ = ["LakebedStreamWriter", "StreamPlan", "plan_stream_write"]
