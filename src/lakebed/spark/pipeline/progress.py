"""How a running pipeline is watched: one value per batch, one at the end, for anyone who asks.

    Spark's own report of a batch ──┐
                                    ├─> Meter ─> Progress ─> Observer (a line, a file, a test)
    commits that the sinks made ────┘            └─ at the end ─> Report

Nothing here knows a terminal: the command line draws, programs write JSON.
"""

import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from lakebed.clock import Clock
from lakebed.commit.change import Commit
from lakebed.flow.flow import Flow


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One batch that is done, and the run's totals with it.

    `rows_in` is as Spark counts: rows that its reader left out by a filter of the SQL are not in
    it. `lag_ms` is how long the batch took from looking for rows to their being visible. What still
    waits in the source is known of files and of Kafka only. `late_rows` were dropped because
    they were later than the watermark allows.
    """

    flow: str
    step: str
    batch: int
    time_ms: int
    rows_in: int
    rows_per_second: float
    lag_ms: int
    waiting_files: int | None
    waiting_rows: int | None
    watermark: str
    late_rows: int
    total_rows_in: int
    total_rows_out: int
    total_commits: int
    total_files: int
    versions: Mapping[str, int]

    def as_record(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a run did; `stopped_by` is "end", "timeout" or the name of a signal."""

    flow: str
    stopped_by: str
    seconds: float
    batches: int
    rows_in: int
    rows_out: int
    late_rows: int
    commits: int
    repeated_commits: int  # batches that an earlier run had committed: nothing was written
    files: int
    rows_per_second: float
    lag_ms: int
    versions: Mapping[str, int] = field(default_factory=dict)

    def as_record(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


class Observer(Protocol):
    """Who wants to know how a pipeline runs; called on the thread that runs it, never at once."""

    def started(self, flow: Flow) -> None:
        """The first batch can begin."""

    def progressed(self, progress: Progress) -> None:
        """A batch is done."""

    def stopping(self, reason: str) -> None:
        """No further batch begins; the running one is finished first."""

    def finished(self, report: Report) -> None:
        """All streams have ended well."""


class Unwatched:
    """An observer that looks away; the base of those that care for some of it."""

    def started(self, flow: Flow) -> None:
        """Nothing."""

    def progressed(self, progress: Progress) -> None:
        """Nothing."""

    def stopping(self, reason: str) -> None:
        """Nothing."""

    def finished(self, report: Report) -> None:
        """Nothing."""


class Meter:
    """Adds up what sinks and Spark tell, from several threads."""

    def __init__(self, flow: str, clock: Clock) -> None:
        self._flow = flow
        self._clock = clock
        self._lock = threading.Lock()
        self._start_ms = clock.monotonic_ms()
        self._last_batch: dict[str, int] = {}
        self._rows_in = self._rows_out = self._late_rows = self._batches = 0
        self._commits = self._repeated = self._files = 0
        self._lags_ms: list[int] = []
        self._versions: dict[str, int] = {}

    def committed(self, commit: Commit) -> None:
        """Count what a sink did."""
        with self._lock:
            self._versions[commit.table] = commit.version
            if commit.repeated:
                self._repeated += 1
                return
            self._commits += 1
            self._files += commit.added_files
            self._rows_out += commit.added_rows

    def batch(self, step: str, told: Mapping[str, Any]) -> Progress | None:
        """Count what Spark tells of a batch; None if it told of that batch before, or of none."""
        number = int(told["batchId"])
        durations = told.get("durationMs") or {}
        if "addBatch" not in durations or number <= self._last_batch.get(step, -1):
            return None  # an idle trigger repeats the number of the batch to come
        with self._lock:
            self._last_batch[step] = number
            rows_in = int(told.get("numInputRows") or 0)
            late = sum(int(op.get("numRowsDroppedByWatermark") or 0) for op in _operators(told))
            lag_ms = int(durations.get("triggerExecution") or 0)
            self._batches += 1
            self._rows_in += rows_in
            self._late_rows += late
            self._lags_ms.append(lag_ms)
            return Progress(
                flow=self._flow,
                step=step,
                batch=number,
                time_ms=self._clock.now_ms(),
                rows_in=rows_in,
                rows_per_second=round(rows_in * 1_000 / max(lag_ms, 1), 1),
                lag_ms=lag_ms,
                waiting_files=_waiting(told, "numFilesOutstanding"),
                waiting_rows=_waiting(told, "maxOffsetsBehindLatest"),
                watermark=str((told.get("eventTime") or {}).get("watermark") or ""),
                late_rows=late,
                total_rows_in=self._rows_in,
                total_rows_out=self._rows_out,
                total_commits=self._commits,
                total_files=self._files,
                versions=dict(self._versions),
            )

    def report(self, stopped_by: str) -> Report:
        """The totals of the run so far."""
        with self._lock:
            seconds = (self._clock.monotonic_ms() - self._start_ms) / 1_000
            busy_ms = sum(self._lags_ms)
            return Report(
                flow=self._flow,
                stopped_by=stopped_by,
                seconds=round(seconds, 3),
                batches=self._batches,
                rows_in=self._rows_in,
                rows_out=self._rows_out,
                late_rows=self._late_rows,
                commits=self._commits,
                repeated_commits=self._repeated,
                files=self._files,
                rows_per_second=round(self._rows_in * 1_000 / max(busy_ms, 1), 1),
                lag_ms=max(self._lags_ms, default=0),
                versions=dict(self._versions),
            )


def _operators(told: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(told.get("stateOperators") or [])


def _waiting(told: Mapping[str, Any], metric: str) -> int | None:
    """What the sources say is not read yet; None if none of them says."""
    found = [
        int(metrics[metric])
        for source in told.get("sources") or []
        if (metrics := source.get("metrics") or {}) and metric in metrics
    ]
    return sum(found) if found else None


__all__ = ["Meter", "Observer", "Progress", "Report", "Unwatched"]
