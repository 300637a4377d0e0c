"""Runs a flow on Spark: one stream for each step that reaches a table, each batch exactly once.

    sources ─> SQL steps ─> foreachBatch ─┬─> commit to table 1, token (pipeline / step, batch)
    (streaming frames)                    └─> commit to table 2, token (pipeline / step, batch)

A batch that is repeated, because the process died between a commit and Spark's note of it, finds
its token in the table and writes nothing. The name of the pipeline is part of the token: if its
checkpoint is lost, batches would begin anew under numbers that the table has seen, and that is
refused rather than swallowed or doubled.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lakebed.clock import Clock, SystemClock
from lakebed.commit.change import Commit
from lakebed.errors import LakebedError, NotFoundError, RequestError
from lakebed.flow.flow import PREVIOUS, Flow, Sink, TriggerKind
from lakebed.spark.pipeline_gate import Gate
from lakebed.spark.pipeline_sources import batch_limit, catalog_of, cause, source_frame
from lakebed.spark.progress import Meter, Observer, Report, Unwatched
from lakebed.spark.schema import to_arrow
from lakebed.spark.session import session as start_session
from lakebed.table.catalog import Catalog
from lakebed.table.connect import connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_POLL_MS = 50
_ADAPTIVE = "spark.sql.adaptive.enabled"
_END, _TIMEOUT = "end", "timeout"

BatchWriter = Callable[["DataFrame", int], Commit]


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
            _Stream(
                step=step,
                frame=_streaming(step, steps[step]),
                gate=Gate(limit),
                writers=tuple(_writer(flow, step, sink, steps[step], catalogs) for sink in sinks),
                meter=meter,
            )
            for step, sinks in flow.sinks_by_step().items()
        ]
        runner = _Runner(flow, streams, meter, observer, time)
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
        except _spark_errors() as error:
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
    from lakebed.spark.sink import foreach_batch

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


# -------------------------------------------------------------------------------------- running


@dataclass(kw_only=True)
class _Stream:
    """One query of Spark's and the tables it feeds."""

    step: str
    frame: "DataFrame"
    gate: Gate
    writers: tuple[BatchWriter, ...]
    meter: Meter
    query: "StreamingQuery | None" = None
    failure: BaseException | None = None
    reported: int = field(default=-1)

    def start(self, flow: Flow) -> None:
        """Begin, or go on from the checkpoint."""
        writer = self.frame.writeStream.queryName(f"{flow.name}/{self.step}")
        writer = writer.option("checkpointLocation", f"{flow.checkpoint}/{self.step}")
        match flow.trigger.kind:
            case TriggerKind.INTERVAL:
                writer = writer.trigger(processingTime=f"{flow.trigger.interval_ms} milliseconds")
            case TriggerKind.ONCE:
                writer = writer.trigger(once=True)
            case TriggerKind.AVAILABLE_NOW if batch_limit(flow) is None:
                writer = writer.trigger(availableNow=True)
        self.query = writer.foreachBatch(self._write).start()

    def _write(self, frame: "DataFrame", batch_id: int) -> None:
        """Called by Spark for each batch, on a thread of its own."""
        self.gate.enter(frame, batch_id)
        several = len(self.writers) > 1
        known_errors: tuple[type[BaseException], ...] = (LakebedError, *_spark_errors())
        try:
            if several:
                frame.persist()  # else each table would compute the rows anew
            for write in self.writers:
                self.meter.committed(write(frame, batch_id))
            self.gate.leave(batch_id)
        except known_errors as error:
            self.failure = error  # Spark would make text of it.
            raise
        finally:
            if several:
                frame.unpersist()

    @property
    def is_active(self) -> bool:
        """Whether Spark still runs it."""
        return self.query is not None and bool(self.query.isActive)

    def is_between_batches(self) -> bool:
        """Whether it can be stopped with no batch half done."""
        assert self.query is not None, "a stream is asked after its start"
        if self.gate.is_held:
            return True
        waits = not self.query.status["isTriggerActive"]
        return waits and self.gate.is_quiet(self.reported)

    def news(self) -> Iterator[dict[str, Any]]:
        """What Spark tells of batches since the last call."""
        assert self.query is not None, "a stream is asked after its start"
        last = self.query.lastProgress
        if last is None or last["batchId"] <= self.reported:
            return
        for told in self.query.recentProgress:
            if told["batchId"] > self.reported and "addBatch" in (told["durationMs"] or {}):
                self.reported = told["batchId"]
                yield told

    def check(self) -> None:
        """Raise what ended the stream, if it did not end well."""
        assert self.query is not None, "a stream is asked after its start"
        error = self.query.exception()
        if error is None or (self.gate.is_held and self.failure is None):
            return
        if isinstance(self.failure, LakebedError):
            raise self.failure
        raise RequestError(
            f"the stream of {self.step!r} failed: {cause(self.failure or error)}",
            hint="What was committed stays; correct it and run the pipeline again",
            step=self.step,
        ) from error


class _Runner:
    """Watches the streams until they end, and ends them when asked to."""

    def __init__(
        self,
        flow: Flow,
        streams: list[_Stream],
        meter: Meter,
        observer: Observer,
        clock: Clock,
    ) -> None:
        self._flow = flow
        self._streams = streams
        self._meter = meter
        self._observer = observer
        self._clock = clock
        self._asked = ""  # by a signal

    def run(self, timeout: float | None) -> Report:
        """Start, watch, stop."""
        stopped_by = _END
        deadline_ms = None if timeout is None else self._clock.monotonic_ms() + timeout * 1_000
        with self._signals():
            try:
                for stream in self._streams:
                    stream.start(self._flow)
                self._observer.started(self._flow)
                while any(stream.is_active for stream in self._streams):
                    self._look()
                    reason = self._reason(deadline_ms)
                    if reason and stopped_by == _END:
                        stopped_by = reason
                        self._observer.stopping(reason)
                        for stream in self._streams:
                            stream.gate.close()
                    self._clock.sleep_ms(_POLL_MS)
                self._look()
            finally:
                for stream in self._streams:
                    if stream.is_active:
                        stream.gate.close()
                        stream.query.stop()  # type: ignore[union-attr]  # active: it was started
        report = self._meter.report(stopped_by)
        self._observer.finished(report)
        return report

    def _reason(self, deadline_ms: float | None) -> str:
        if self._asked:
            return self._asked
        is_late = deadline_ms is not None and self._clock.monotonic_ms() >= deadline_ms
        return _TIMEOUT if is_late else ""

    def _look(self) -> None:
        """Hand on what is new, raise what went wrong, stop what can be stopped."""
        for stream in self._streams:
            for told in stream.news():
                progress = self._meter.batch(stream.step, told)
                if progress is not None:
                    self._observer.progressed(progress)
            if not stream.is_active:
                stream.check()
            elif (
                stream.gate.is_closed or stream.gate.has_reached_limit
            ) and stream.is_between_batches():
                assert stream.query is not None, "active: it was started"
                stream.query.stop()

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """SIGINT and SIGTERM ask for an end; what was there before deals with the second one."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

        def ask(number: int, _: object) -> None:
            self._asked = signal.Signals(number).name
            for each in before:
                signal.signal(each, signal.SIG_DFL)

        for number in before:
            signal.signal(number, ask)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


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


def _spark_errors() -> tuple[type[BaseException], ...]:
    from pyspark.errors import PySparkException

    return (PySparkException,)


@contextmanager
def _told_plainly() -> Iterator[None]:
    """An error of Spark's in one line, and no stack of the JVM."""
    try:
        yield
    except _spark_errors() as error:
        raise RequestError(f"Spark refuses the pipeline: {cause(error)}") from error


__all__ = ["run"]
