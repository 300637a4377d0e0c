"""Which batch of which query is being written: what makes a stream's commits exactly once.

    token       (app id, batch id)   the commit's own; a repeat of it commits nothing
    query id    who used the token   in the checkpoint; a new checkpoint is another query
    offsets     what was in it       a digest of where each source stood at the batch's end

A token that was used before is a replay only if the same query used it for the same offsets.
Otherwise the rows are other rows, and skipping them would lose them: that is an error.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakebed.commit.change import Commit
from lakebed.errors import RequestError, TokenError
from lakebed.spark.places import is_connect
from lakebed.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY_ID = "stream.query-id"
BATCH_ID = "stream.batch-id"
OFFSETS = "stream.offsets"

_QUERY_ID_LOCAL = "sql.streaming.queryId"  # what Spark's stream threads are marked with
_DIGEST_LENGTH = 16
_HEADER_LINES = 2  # of a file below offsets/: its version, and the batch's metadata


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryBatch:
    """One batch of one query; what cannot be found out is empty or None."""

    batch_id: int
    query_id: str = ""
    offsets: str = ""
    watermark_ms: int | None = None

    def token(self, app_id: str | None) -> tuple[str, int]:
        """The token of the batch's commit; the query itself is the app unless one is named."""
        app = app_id or self.query_id
        if not app:
            raise RequestError(
                "the query that writes this batch cannot be told",
                hint="Name it: foreach_batch(table, app_id=…), and never use that name elsewhere",
            )
        return app, self.batch_id

    def properties(self) -> dict[str, str]:
        """What the commit remembers of the batch."""
        known = {QUERY_ID: self.query_id, BATCH_ID: str(self.batch_id), OFFSETS: self.offsets}
        return {key: value for key, value in known.items() if value}


def check_replay(table: Table, done: Commit, batch: QueryBatch, token: tuple[str, int]) -> None:
    """Raise unless a commit that has our token was made by this very batch.

    Raises:
        TokenError: another query, or the same one with other rows, has used the token.
    """
    made_by: Mapping[str, str] = table.snapshot(done.version).parameters
    app, number = token
    other = made_by.get(QUERY_ID, "")
    if batch.query_id and other != batch.query_id:
        raise TokenError(
            f"batch {number} of {app!r} was written to {table.name} by another query"
            f"{f', {other}' if other else ''}: its checkpoint was deleted, or two queries share "
            "the name",
            hint="Nothing was written. Choose a new app id (txnAppId) to append what this query "
            "reads, or restore the checkpoint of the other to go on with it",
            app=app,
            version=number,
            query_id=other,
        )
    before = made_by.get(OFFSETS, "")
    if batch.offsets and before and before != batch.offsets:
        raise TokenError(
            f"batch {number} of {app!r} was written to {table.name} with other rows: the "
            "checkpoint is an older copy, and Spark has cut this batch differently",
            hint="Nothing was written. Restore the newest checkpoint, or start with a new one and "
            "a new app id (txnAppId)",
            app=app,
            version=number,
            query_id=other,
        )


# ------------------------------------------------------------------------ from a running query


def running_batch(spark: "SparkSession", batch_id: int) -> QueryBatch:
    """The batch that this thread is called for by `foreachBatch`."""
    if is_connect(spark):
        active = spark.streams.active
        # The one that calls us is active, so a single one is ours.
        query_id = str(active[0].id) if len(active) == 1 else ""
        return QueryBatch(batch_id=batch_id, query_id=query_id)
    query_id = str(spark.sparkContext.getLocalProperty(_QUERY_ID_LOCAL) or "")
    if not query_id:
        return QueryBatch(batch_id=batch_id)
    offsets, watermark_ms = _execution_facts(spark, query_id, batch_id)
    return QueryBatch(
        batch_id=batch_id, query_id=query_id, offsets=offsets, watermark_ms=watermark_ms
    )


def _execution_facts(spark: "SparkSession", query_id: str, batch_id: int) -> tuple[str, int | None]:
    """Offsets and watermark of the batch; Spark shows them to nobody but its own classes."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    jvm: Any = spark._jvm
    session: Any = spark._jsparkSession
    try:
        number = jvm.java.util.UUID.fromString(query_id)
        execution = session.sharedState().activeStreamingQueries().get(number)
        offsets = str(execution.offsetLog().get(batch_id).get().toString())
        watermark_ms = int(execution.lastExecution().offsetSeqMetadata().batchWatermarkMs())
    except (Py4JError, AttributeError, TypeError):
        return "", None  # A Spark that keeps them elsewhere: the token still holds.
    return _digest(offsets), watermark_ms or None


# -------------------------------------------------------------------------- from a checkpoint


def checkpoint_batch(checkpoint: str, batch_id: int) -> QueryBatch:
    """The batch as Spark has planned it in a checkpoint that this process can read."""
    query_id = checkpoint_query_id(checkpoint)
    lines = _lines(checkpoint, f"offsets/{batch_id}")
    if len(lines) <= _HEADER_LINES:
        return QueryBatch(batch_id=batch_id, query_id=query_id)
    watermark_ms = int(json.loads(lines[1]).get("batchWatermarkMs", 0))
    return QueryBatch(
        batch_id=batch_id,
        query_id=query_id,
        # The form in which Spark prints them: the same batch has one digest everywhere.
        offsets=_digest(f"[{', '.join(lines[_HEADER_LINES:])}]"),
        watermark_ms=watermark_ms or None,
    )


def checkpoint_query_id(checkpoint: str) -> str:
    """The id of the query that a checkpoint belongs to; empty if it cannot be read."""
    lines = _lines(checkpoint, "metadata")
    return str(json.loads(lines[0])["id"]) if lines else ""


def _lines(checkpoint: str, name: str) -> list[str]:
    path = Path(checkpoint.removeprefix("file://").removeprefix("file:")) / name
    if not path.is_file():
        return []  # On storage of Hadoop's that Python does not see.
    return path.read_text(encoding="utf-8").splitlines()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]


__all__ = [
    "BATCH_ID",
    "OFFSETS",
    "QUERY_ID",
    "QueryBatch",
    "check_replay",
    "checkpoint_batch",
    "checkpoint_query_id",
    "running_batch",
]
