"""How a stream ends between two batches, and not in the middle of one.

Spark stops a stream by interrupting its thread, wherever that is. So a batch first passes a gate,
and a stop closes it:

    running batch      goes on to its commit, and Spark notes it as done
    the next batch     waits at the gate, before it has done anything, and is interrupted there

A batch that was interrupted at the gate comes again, with the same number and the same rows, when
the pipeline is started again.
"""

import threading
from typing import TYPE_CHECKING

from lakebed.errors import RequestError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WAIT_MS_MAX = 600_000
_SPARK_KNOWS = (
    "py4j.protocol.Py4JJavaError: An error occurred while calling sleep.\n"
    ": java.lang.InterruptedException"
)


class Gate:
    """Lets the batches of one stream pass until it is closed."""

    def __init__(self, batch_limit: int | None = None) -> None:
        self._limit = batch_limit
        self._lock = threading.Lock()
        self._closed = False
        self._inside = False
        self._last_done = -1
        self.has_reached_limit = False
        self.is_held = False  # a batch waits; nothing is lost if the stream is interrupted

    def close(self) -> None:
        """Let no further batch begin."""
        with self._lock:
            self._closed = True

    @property
    def is_closed(self) -> bool:
        """Whether a stop was asked for."""
        return self._closed

    def is_quiet(self, last_reported: int) -> bool:
        """Whether no batch is inside, and the last one is known to be noted as done by Spark."""
        with self._lock:
            return not self._inside and last_reported >= self._last_done

    def enter(self, frame: "DataFrame", batch_id: int) -> None:
        """Pass, or wait for the stream to be stopped."""
        with self._lock:
            self.has_reached_limit = self._limit is not None and batch_id >= self._limit
            self.is_held = self._closed or self.has_reached_limit
            self._inside = not self.is_held
        if self.is_held:
            _wait_for_interrupt(frame)

    def leave(self, batch_id: int) -> None:
        """The batch is in all its tables."""
        with self._lock:
            self._inside = False
            self._last_done = batch_id


class _InterruptedError(RuntimeError):
    """The stream was stopped while a batch waited; its text is one that Spark takes for that."""


def _wait_for_interrupt(frame: "DataFrame") -> None:
    """Wait in the JVM, on the stream's own thread, where Spark's interrupt arrives."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

    jvm = frame.sparkSession.sparkContext._jvm
    assert jvm is not None, "a session has a JVM"
    try:
        jvm.java.lang.Thread.sleep(_WAIT_MS_MAX)
    except Py4JJavaError:
        # Spark looks for these words with a pattern that runs out of stack on py4j's own text.
        raise _InterruptedError(_SPARK_KNOWS) from None
    raise RequestError("the pipeline was asked to stop, and nobody stopped it")
