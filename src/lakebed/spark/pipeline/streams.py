"""The running part of a pipeline: its streams, watched until they end, ended when asked to."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakebed.clock import Clock
from lakebed.commit.change import Commit
from lakebed.errors import LakebedError, RequestError
from lakebed.flow.flow import Flow, TriggerKind
from lakebed.spark.pipeline.gate import Gate
from lakebed.spark.pipeline.progress import Meter, Observer, Report
from lakebed.spark.pipeline.sources import batch_limit, cause

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_POLL_MS = 50
_END, _TIMEOUT = "end", "timeout"

BatchWriter = Callable[["DataFrame", int], Commit]


@dataclass(kw_only=True)
class Stream:
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
        known_errors: tuple[type[BaseException], ...] = (LakebedError, *spark_errors())
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


class Runner:
    """Watches the streams until they end, and ends them when asked to."""

    def __init__(
        self,
        flow: Flow,
        streams: list[Stream],
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


def spark_errors() -> tuple[type[BaseException], ...]:
    """What Spark raises; pyspark is loaded only when somebody asks."""
    from pyspark.errors import PySparkException

    return (PySparkException,)


__all__ = ["BatchWriter", "Runner", "Stream", "spark_errors"]
