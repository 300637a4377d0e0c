"""A table as the end of a stream, through `foreachBatch`: the fast way.

    frame.writeStream.foreachBatch(lake.foreach_batch(table)).option("checkpointLocation", …)

    batch 7 ─► token (app, 7) in the table?  yes ─► ours?  yes ─► nothing to do
                                                           no  ─► TokenError
                                             no  ─► rows + token, in one commit

Spark repeats a batch until it has noted its end, so a batch is written at least once; the token
makes it at most once. A batch without rows is committed too: the table shows how far the stream
has come.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lakebed.errors import RequestError
from lakebed.spark.event_time import (
    extent_of_rows,
    newest_ns,
    time_field,
    time_properties,
    watermark_properties,
)
from lakebed.spark.incoming import incoming_columns, named_as, rows_seen_as
from lakebed.spark.stream_query import QueryBatch, check_replay, running_batch
from lakebed.table.connect import reconnect
from lakebed.table.services import Connection
from lakebed.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MODES = ("append", "overwrite")


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
    ) -> None:
        self.app_id = app_id
        self._mode = mode
        self._merge_schema = merge_schema
        self._event_time = event_time
        self._properties = dict(properties)
        self._connection: Connection = table.connection
        self._name = table.name
        self._opened: Table | None = table

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
            done = self._write(frame, batch, token)
        if done.repeated:
            check_replay(self.table, done, batch, token)

    def _write(self, frame: "DataFrame", batch: QueryBatch, token: tuple[str, int]) -> Any:
        schema = self.table.schema
        frame = named_as(frame, schema)
        columns = incoming_columns(frame, schema)
        head = self.table.stage(columns, evolve=self._merge_schema).head
        field = time_field(head, self._event_time)
        rows = rows_seen_as(frame.toArrow(), columns)
        properties = self._properties | batch.properties()
        properties |= watermark_properties(batch.watermark_ms)
        if field is not None:
            properties |= time_properties(extent_of_rows(rows, field), newest_ns(head, field))
        if self._mode == "overwrite":
            return self.table.overwrite(rows, token=token, properties=properties)
        return self.table.append(rows, token=token, properties=properties)


def foreach_batch(
    table: Table,
    *,
    app_id: str | None = None,
    mode: str = "append",
    merge_schema: bool = False,
    event_time: str | None = None,
    properties: Mapping[str, str] | None = None,
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

    Raises:
        RequestError: the mode is none of these.
    """
    if mode not in _MODES:
        raise RequestError(
            f"a stream cannot be written in mode {mode!r}",
            hint="Use append, or overwrite for a query whose output mode is complete",
        )
    return BatchSink(
        table,
        app_id=app_id,
        mode=mode,
        merge_schema=merge_schema,
        event_time=event_time,
        properties=properties or {},
    )


__all__ = ["BatchSink", "foreach_batch"]
