"""How `lakebed run` is watched: a line on a terminal, lines in a log, JSON lines in a file.

Spark's own words, thousands of lines when something goes wrong, go to a file beside the
checkpoint; `--debug` lets them through.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from lakebed.cli.session import Session
from lakebed.cli.text import count, escape, plural
from lakebed.cli.values import to_json
from lakebed.clock import Clock
from lakebed.errors import LakebedError, RequestError
from lakebed.spark.pipeline.progress import Observer, Progress, Report, Unwatched

if TYPE_CHECKING:
    from lakebed.flow.flow import Flow

_PLAIN_LINE_MS = 5_000  # a log needs no line for each batch
_STDERR = 2


@contextmanager
def watching(session: Session, flow: "Flow", metrics: str | None) -> Iterator[Observer]:
    """Whoever shall see how the pipeline runs, all of them as one."""
    with ExitStack() as stack:
        observers: list[Observer] = []
        if metrics is not None:
            observers.append(_Metrics(stack.enter_context(_appended(metrics))))
        if not session.quiet:
            if sys.stderr.isatty():
                observers.append(stack.enter_context(_live_line(flow)))
            else:
                observers.append(_Lines(session.clock))
        yield _Several(observers)


@contextmanager
def engine_log(flow: "Flow", *, open_to_all: bool) -> Iterator[None]:
    """Send what the JVM prints to a file, which an error then names."""
    if open_to_all:
        yield
        return
    path = _log_path(flow)
    saved = os.dup(_STDERR)
    ours = sys.stderr
    try:
        with path.open("ab") as log:
            os.dup2(log.fileno(), _STDERR)
        if _is_descriptor(ours, _STDERR):  # ours alone goes on to where it went
            sys.stderr = os.fdopen(os.dup(saved), "w", buffering=1, errors="backslashreplace")
        yield
    except LakebedError as error:
        if not error.hint:
            error.hint = f"Spark's own log is {path}"
        raise
    finally:
        if sys.stderr is not ours:
            sys.stderr.close()
        sys.stderr = ours
        os.dup2(saved, _STDERR)
        os.close(saved)


def progress_line(progress: Progress) -> str:
    """One batch in a line."""
    parts = [
        plural(progress.total_rows_in, "row"),
        f"{progress.rows_per_second:,.0f} rows/s",
        f"lag {progress.lag_ms / 1_000:.1f} s",
        plural(progress.total_commits, "commit"),
        plural(progress.total_files, "file"),
    ]
    if progress.waiting_files:
        parts.append(f"{plural(progress.waiting_files, 'file')} waiting")
    if progress.waiting_rows:
        parts.append(f"{plural(progress.waiting_rows, 'row')} waiting")
    parts += [f"{escape(table)} v{count(v)}" for table, v in progress.versions.items()]
    return ", ".join(parts)


class _Several:
    """Tells each of several observers."""

    def __init__(self, observers: list[Observer]) -> None:
        self._observers = observers

    def started(self, flow: "Flow") -> None:
        for each in self._observers:
            each.started(flow)

    def progressed(self, progress: Progress) -> None:
        for each in self._observers:
            each.progressed(progress)

    def stopping(self, reason: str) -> None:
        for each in self._observers:
            each.stopping(reason)

    def finished(self, report: Report) -> None:
        for each in self._observers:
            each.finished(report)


class _Metrics(Unwatched):
    """A line of JSON for each batch, and one for the run."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def progressed(self, progress: Progress) -> None:
        self._write({"event": "batch", **progress.as_record()})

    def finished(self, report: Report) -> None:
        self._write({"event": "end", **report.as_record()})

    def _write(self, record: dict[str, Any]) -> None:
        self._file.write(to_json(record) + "\n")
        self._file.flush()


class _Lines(Unwatched):
    """Now and then a line, for a log."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next_ms = 0.0

    def started(self, flow: "Flow") -> None:
        click.echo(f"{escape(flow.name)}: started", err=True)

    def progressed(self, progress: Progress) -> None:
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self._next_ms:
            self._next_ms = now_ms + _PLAIN_LINE_MS
            click.echo(f"{escape(progress.flow)}: {progress_line(progress)}", err=True)

    def stopping(self, reason: str) -> None:
        click.echo(f"{reason}: finishing the running batch", err=True)


@contextmanager
def _live_line(flow: "Flow") -> Iterator[Observer]:
    """One line that changes, with a sign of life."""
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    bar = Bar(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        console=Console(stderr=True, file=os.fdopen(os.dup(sys.stderr.fileno()), "w")),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    with bar:
        yield _Line(bar, flow.name)


class _Line(Unwatched):
    def __init__(self, bar: Any, name: str) -> None:
        self._bar = bar
        self._task = bar.add_task(f"{escape(name)}: starting Spark", total=None)

    def started(self, flow: "Flow") -> None:
        self._say(f"{escape(flow.name)}: waiting for rows")

    def progressed(self, progress: Progress) -> None:
        self._say(f"{escape(progress.flow)}: {progress_line(progress)}")

    def stopping(self, reason: str) -> None:
        self._say(f"{reason}: finishing the running batch")

    def _say(self, text: str) -> None:
        self._bar.update(self._task, description=text)


@contextmanager
def _appended(path: str) -> Iterator[IO[str]]:
    try:
        file = Path(path).open("a", encoding="utf-8")  # noqa: SIM115 (closed below)
    except OSError as error:
        raise RequestError(f"{path} cannot be written: {error}") from error
    with file:
        yield file


def _log_path(flow: "Flow") -> Path:
    """Beside the checkpoint if that is here, else among the temporary files."""
    place = Path(tempfile.gettempdir()) if "://" in flow.checkpoint else Path(flow.checkpoint)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RequestError(f"the checkpoint {place} cannot be made: {error}") from error
    return place / f"{flow.name}.spark.log"


def _is_descriptor(stream: Any, descriptor: int) -> bool:
    try:
        return bool(stream.fileno() == descriptor)
    except (OSError, AttributeError, ValueError):
        return False
