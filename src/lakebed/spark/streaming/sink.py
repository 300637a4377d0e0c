"""A table as the end of a stream, through `foreachBatch`: the fast way.

    frame.writeStream.foreachBatch(lake.foreach_batch(table)).option("checkpointLocation", …)

    batch 7 ─► token (app, 7) in the table?  yes ─► ours?  yes ─► nothing to do
                                                           no  ─► TokenError
                                             no  ─► rows + token, in one commit

Spark repeats a batch until it has noted its end, so a batch is written at least once; the token
makes it at most once. A batch without rows is committed too: the table shows how far the stream
has come.

Nobody knows how large a batch is before it is computed. It is taken to be as large as the one
before it: small ones come to the driver, where a commit is quickest, and large ones, like the
first of a run, are written by the executors.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lakebed.commit.change import Commit
from lakebed.errors import RequestError
from lakebed.format.datafile import DataFile
from lakebed.format.types import Field
from lakebed.spark.places import is_memory
from lakebed.spark.streaming.event_time import (
    Extent,
    extent_of_files,
    extent_of_rows,
    newest_ns,
    time_field,
    time_properties,
    watermark_properties,
)
from lakebed.spark.streaming.query import QueryBatch, check_replay, running_batch
from lakebed.spark.writing.commit import commit_files
from lakebed.spark.writing.options import WriteOptions
from lakebed.spark.writing.storing import collected, executor_files
from lakebed.spark.writing.workers import arrow_rows
from lakebed.spark.writing.write import staged
from lakebed.table.appending import replanned
from lakebed.table.connect import reconnect
from lakebed.table.services import Connection
from lakebed.table.staging import Staging
from lakebed.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Measured by lakebed.spark.sizes: beyond it the executors are quicker.
DRIVER_ROW_COUNT_MAX = 100_000

_MODES = ("append", "overwrite")
_TOO_LARGE = "spark.driver.maxResultSize"  # in Spark's message when it stops to collect


class BatchSink:
    """What `foreachBatch` calls; made by `foreach_batch`.

    Called on the driver, once for each batch and again for a batch whose end Spark has not noted.
    Under Spark Connect it is pickled and called in a process of the server's, so it takes its
    table along by name and opens it there.
    """

    def __init__(
        self,
        table: Table,
        *,
        app_id: str | None,
        mode: str,
        merge_schema: bool,
        event_time: str | None,
        properties: Mapping[str, str],
        via: str | None,
    ) -> None:
        self.app_id = app_id
        self._mode = mode
        self._merge_schema = merge_schema
        self._event_time = event_time
        self._properties = dict(properties)
        self._via = via
        self._connection: Connection = table.connection
        self._name = table.name
        self._opened: Table | None = table
        self._row_count: int | None = None  # of the batch before

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_opened": None}

    @property
    def table(self) -> Table:
        """The table, opened again if this is another process."""
        if self._opened is None:
            self._opened = reconnect(self._connection).table(self._name)
        return self._opened

    def __call__(self, frame: "DataFrame", batch_id: int) -> None:
        """Write one batch, exactly once."""
        batch = running_batch(frame.sparkSession, batch_id)
        token = batch.token(self.app_id)
        done = self.table.committed(token)
        if done is None:
            done = replanned(lambda: self._write(frame, batch, token), replayable=True)
        if done.repeated:
            check_replay(self.table, done, batch, token)

    def _write(self, frame: "DataFrame", batch: QueryBatch, token: tuple[str, int]) -> Commit:
        rows, staging = staged(frame, self.table, merge_schema=self._merge_schema)
        collected = self._collected(rows, staging)
        if collected is None:
            done = self._commit_files(executor_files(rows, staging), staging, batch, token)
        else:
            done = self._commit_rows(arrow_rows(collected, staging.schema), staging, batch, token)
        self._row_count = done.added_rows
        return done

    def _collected(self, rows: "DataFrame", staging: Staging) -> Any:
        """The rows as an Arrow table if they shall come to the driver; None if not."""
        is_few = self._row_count is not None and self._row_count <= DRIVER_ROW_COUNT_MAX
        via = self._via or ("driver" if is_few or is_memory(staging.place) else "executors")
        try:
            return collected(rows, staging.place, via)
        except RequestError as error:
            # Far more rows than in the batch before; Spark has stopped before memory ran out.
            if self._via is None and _TOO_LARGE in str(error.fields.get("spark", "")):
                return None
            raise

    def _commit_rows(
        self, rows: Any, staging: Staging, batch: QueryBatch, token: tuple[str, int]
    ) -> Commit:
        field = time_field(staging.head, self._event_time)
        extent = None if field is None else extent_of_rows(rows, field)
        properties = self._noted(batch, staging, field, extent)
        write = self.table.overwrite if self._mode == "overwrite" else self.table.append
        return write(rows, token=token, properties=properties)

    def _commit_files(
        self,
        files: tuple[DataFile, ...],
        staging: Staging,
        batch: QueryBatch,
        token: tuple[str, int],
    ) -> Commit:
        field = time_field(staging.head, self._event_time)
        extent = None if field is None else extent_of_files(files, field)
        properties = self._noted(batch, staging, field, extent)
        options = WriteOptions(mode=self._mode, txn=token, properties=properties)
        return commit_files(files, staging, options)

    def _noted(
        self, batch: QueryBatch, staging: Staging, field: Field | None, extent: Extent | None
    ) -> dict[str, str]:
        """What the commit remembers of the batch."""
        properties = self._properties | batch.properties()
        properties |= watermark_properties(batch.watermark_ms)
        if field is not None:
            properties |= time_properties(extent, newest_ns(staging.head, field))
        return properties


def foreach_batch(
    table: Table,
    *,
    app_id: str | None = None,
    mode: str = "append",
    merge_schema: bool = False,
    event_time: str | None = None,
    properties: Mapping[str, str] | None = None,
    via: str | None = None,
) -> BatchSink:
    """Make the function that writes a stream's batches to a table, each exactly once.

    Args:
        table: where to; its catalog must be one that outlives the process for that promise to
            hold after a restart.
        app_id: the name under which the stream's batches are remembered; the id of the query,
            which is in its checkpoint, if None. With a name of your own, a checkpoint that was
            deleted is noticed: the next run is refused instead of writing everything again.
        mode: `"append"`, or `"overwrite"` for a query in complete mode.
        merge_schema: whether columns that the table lacks are added to it.
        event_time: the column of event times, for the commit's summary; else the one whose day
            or hour splits the table, else the only column of timestamps.
        properties: texts that stay with each commit.
        via: `"driver"` or `"executors"`, who writes the rows; the size of the batch before
            decides if None.

    Raises:
        RequestError: the mode or `via` is none of these, or `event_time` is no column of times.
    """
    if mode not in _MODES:
        raise RequestError(
            f"a stream cannot be written in mode {mode!r}",
            hint="Use append, or overwrite for a query whose output mode is complete",
        )
    if event_time is not None and not merge_schema:
        time_field(table.head(), event_time)
    return BatchSink(
        table,
        app_id=app_id,
        mode=mode,
        merge_schema=merge_schema,
        event_time=event_time,
        properties=properties or {},
        via=WriteOptions(via=via).via,
    )


__all__ = ["BatchSink", "foreach_batch"]
