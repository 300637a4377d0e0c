"""Runs a flow on Spark: one stream for each step that reaches a table, each batch exactly once.

    sources ─> SQL steps ─> foreachBatch ─┬─> commit to table 1, token (pipeline / step, batch)
    (streaming frames)                    └─> commit to table 2, token (pipeline / step, batch)

A batch that is repeated, because the process died between a commit and Spark's note of it, finds
its token in the table and writes nothing. The name of the pipeline is part of the token: if its
checkpoint is lost, batches would begin anew under numbers that the table has seen, and that is
refused rather than swallowed or doubled.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lakebed.clock import Clock, SystemClock
from lakebed.commit.change import Commit
from lakebed.errors import NotFoundError, RequestError
from lakebed.flow.flow import PREVIOUS, Flow, Sink
from lakebed.spark.pipeline.gate import Gate
from lakebed.spark.pipeline.progress import Meter, Observer, Report, Unwatched
from lakebed.spark.pipeline.sources import batch_limit, catalog_of, cause, source_frame
from lakebed.spark.pipeline.streams import BatchWriter, Runner, Stream, spark_errors
from lakebed.spark.schema import to_arrow
from lakebed.spark.sessions import session as start_session
from lakebed.table.catalog import Catalog
from lakebed.table.connect import connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ADAPTIVE = "spark.sql.adaptive.enabled"
_QUERY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def run(
    flow: Flow,
    spark: "SparkSession | None" = None,
    *,
    progress: Observer | None = None,
    timeout: float | None = None,
    clock: Clock | None = None,
) -> Report:
    """Run a flow until its source ends, a signal or the timeout asks it to stop, or it fails.

    SIGINT and SIGTERM let the running batch finish; a second one ends the program at once, which
    loses nothing either. What was done is done: the next run goes on from the checkpoint.

    Args:
        flow: what to run.
        spark: a session; one is started, and stopped at the end, if None.
        progress: who wants to know about each batch.
        timeout: seconds after which the pipeline stops as after a signal.
        clock: where the time comes from.

    Raises:
        RequestError: the flow does not fit its sources or tables, or its SQL is wrong.
    """
    time = clock or SystemClock()
    observer = progress or Unwatched()
    with _catalogs(flow) as catalogs, _session(flow, spark) as session, _told_plainly():
        steps = _frames(session, flow)
        limit = batch_limit(flow)
        meter = Meter(flow.name, time)
        streams = [
            Stream(
                step=step,
                frame=_streaming(step, steps[step]),
                gate=Gate(limit),
                writers=tuple(_writer(flow, step, sink, steps[step], catalogs) for sink in sinks),
                meter=meter,
            )
            for step, sinks in flow.sinks_by_step().items()
        ]
        runner = Runner(flow, streams, meter, observer, time)
        return runner.run(timeout)


# ------------------------------------------------------------------------------------- building


def _frames(spark: "SparkSession", flow: Flow) -> dict[str, "DataFrame"]:
    """The rows of each step by its name; SQL sees them as views of this session alone."""
    frames: dict[str, DataFrame] = {}

    def keep(name: str, frame: "DataFrame") -> None:
        frame.createOrReplaceTempView(name)
        frame.createOrReplaceTempView(PREVIOUS)
        frames[name] = frame

    for source in flow.sources:
        keep(source.name, source_frame(spark, flow, source))
    for step in flow.transforms:
        if step.unique_by:
            previous = frames[next(reversed(frames))]
            keep(step.name, previous.dropDuplicatesWithinWatermark(list(step.unique_by)))
            continue
        try:
            # Inside a SELECT, text can only be a query; line numbers in errors stay what they are.
            query = f"select * from ({step.sql.rstrip().rstrip(';')}\n)"  # noqa: S608 (the user's)
            keep(step.name, spark.sql(query))
        except spark_errors() as error:
            raise RequestError(
                f"the SQL of {step.name!r}: {cause(error)}",
                hint=f"It can use: {', '.join(frames)}, and {PREVIOUS} for the step before it",
                step=step.name,
            ) from error
    return frames


def _streaming(step: str, frame: "DataFrame") -> "DataFrame":
    if not frame.isStreaming:
        raise RequestError(
            f"the rows of {step!r} come from no source that goes on",
            hint="A sink takes a step that reads from at least one source with new rows",
        )
    return frame


def _writer(
    flow: Flow, step: str, sink: Sink, frame: "DataFrame", catalogs: dict[Any, Catalog]
) -> BatchWriter:
    """What puts a batch into the table of a sink, which is made if need be."""
    from lakebed.spark.streaming.sink import foreach_batch

    place = catalog_of(flow, sink)
    columns = _nullable(to_arrow(frame.schema))
    try:
        table = catalogs[place].table(sink.table)
    except NotFoundError as error:
        if not sink.create:
            raise NotFoundError(
                error.message,
                hint="Make it with `lakebed init`, or write create = true into the sink",
                table=sink.table,
            ) from error
        table = catalogs[place].create_table(sink.table, columns, partition_by=sink.partition_by)
    table.stage(columns, evolve=sink.merge_schema)  # Tells now what the first batch would.
    app = f"{flow.name}/{step}"
    sink_batch = foreach_batch(table, app_id=app, merge_schema=sink.merge_schema)

    def write(rows: "DataFrame", batch_id: int) -> Commit:
        before = table.version
        sink_batch(rows, batch_id)
        commit = table.committed((app, batch_id))
        assert commit is not None, "a batch that was written has left its token"
        return replace(commit, repeated=commit.version <= before)

    return write


def _nullable(columns: Any) -> Any:
    """Spark knows of some columns that they have no nulls; that is no promise for the future."""
    import pyarrow as pa

    return pa.schema([column.with_nullable(nullable=True) for column in columns])


# ------------------------------------------------------------------------------- opened for a run


@contextmanager
def _catalogs(flow: Flow) -> Iterator[dict[tuple[str, str], Catalog]]:
    """The catalogs of all sinks, opened once each."""
    opened: dict[tuple[str, str], Catalog] = {}
    try:
        for place in {catalog_of(flow, sink) for sink in flow.sinks}:
            opened[place] = connect(
                place[0],
                warehouse=place[1] or None,
                storage_options=dict(flow.storage_options) or None,
            )
        yield opened
    finally:
        for catalog in opened.values():
            catalog.close()


@contextmanager
def _session(flow: Flow, spark: "SparkSession | None") -> Iterator["SparkSession"]:
    """A session with views of its own; a Spark that was not there before ends with it."""
    if spark is not None:
        yield _own_session(spark)
        return
    from lakebed.require import require

    require("pyspark", extra="spark")
    from pyspark.sql import SparkSession

    is_ours = SparkSession.getActiveSession() is None
    settings = {key: value for key, value in flow.engine.items() if key != "spark.master"}
    started = start_session(flow.engine.get("spark.master"), **settings)
    try:
        yield _own_session(started)
    finally:
        if is_ours:
            started.stop()


def _own_session(spark: "SparkSession") -> "SparkSession":
    """The same Spark and settings; the names of our steps hide nobody's views."""
    own = spark.newSession()
    for key, value in spark.conf.getAll.items():
        if spark.conf.isModifiable(key):
            own.conf.set(key, value)
    own.conf.set(_ADAPTIVE, "false")  # Streams do without it, and would say so at each start.
    return own


@contextmanager
def _told_plainly() -> Iterator[None]:
    """An error of Spark's in one line: raised here, so nobody needs to log its stack as well."""
    from pyspark.logger import PySparkLogger

    loggers = [logging.getLogger("py4j.clientserver")]
    loggers += [PySparkLogger.getLogger(name) for name in _QUERY_LOGGERS]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    except spark_errors() as error:
        raise RequestError(f"Spark refuses the pipeline: {cause(error)}") from error
    finally:
        for logger, was in zip(loggers, before, strict=True):
            logger.disabled = was


__all__ = ["run"]
