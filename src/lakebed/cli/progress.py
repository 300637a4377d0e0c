"""Signs of life on standard error, where a person can see them; a pipe or file gets none."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakebed.cli.text import escape

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

Advance = Callable[[int, int], None]  # how much of the total is done, rows so far


def _ignore(done: int, row_count: int) -> None:
    """What a caller advances when nobody looks."""


@contextmanager
def byte_progress(title: str, total_bytes: int, *, finish: str, quiet: bool) -> Iterator[Advance]:
    """A bar over bytes read, with the rows they held; a total of 0 means that it is unknown.

    `finish` names the work that is left when all is read.
    """
    if _is_unseen(quiet=quiet):
        yield _ignore
        return
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn

    columns = (
        BarColumn(),
        DownloadColumn(),
        TextColumn("{task.fields[rows]:,} rows", markup=False),
        TimeRemainingColumn(),
    )
    with _bar(title, total_bytes, columns, finish) as advance:
        yield advance


@contextmanager
def row_progress(title: str, total_rows: int, *, quiet: bool) -> Iterator[Advance]:
    """A bar over rows written to a file or a pipe; on a terminal the rows themselves are seen."""
    if _is_unseen(quiet=quiet) or sys.stdout.isatty():
        yield _ignore
        return
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn

    columns = (
        BarColumn(),
        TextColumn("{task.fields[rows]:,} of at most {task.total:,} rows", markup=False),
        TimeRemainingColumn(),
    )
    with _bar(title, total_rows, columns) as advance:
        yield advance


@contextmanager
def working(title: str, *, quiet: bool) -> Iterator[None]:
    """A sign of life for work whose length is not known."""
    if _is_unseen(quiet=quiet):
        yield
        return
    from rich.progress import SpinnerColumn, TimeElapsedColumn

    with _bar(title, 0, (SpinnerColumn(), TimeElapsedColumn())):
        yield


def _is_unseen(*, quiet: bool) -> bool:
    return quiet or not sys.stderr.isatty()


@contextmanager
def _bar(
    title: str, total: int, columns: "tuple[ProgressColumn, ...]", finish: str = ""
) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import Progress, TextColumn

    name = TextColumn("{task.description}", markup=False)
    drawn = Progress(
        name,
        *columns,
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,  # else the report itself would be printed above the bar
        redirect_stderr=False,
    )
    with drawn as bar:
        task = bar.add_task(escape(title), total=total or None, rows=0)

        def advance(done: int, row_count: int) -> None:
            now = finish if finish and done >= total > 0 else title
            bar.update(task, completed=done, rows=row_count, description=escape(now))

        yield advance
