"""A progress bar on standard error, where a person can see it."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lakebed.cli.text import escape


@contextmanager
def progress(
    title: str, total_bytes: int, *, quiet: bool, color: bool = True
) -> Iterator[Callable[[int, int], None]]:
    """Give a function to call with the bytes and rows done; without a terminal it does nothing."""
    if quiet or not sys.stderr.isatty():
        yield lambda done_bytes, row_count: None  # noqa: ARG005 (the caller's signature)
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.text import Text

    console = Console(stderr=True, color_system="standard" if color else None)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TextColumn("{task.fields[rows]:,} rows", markup=False),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(Text(escape(title)).plain, total=total_bytes or None, rows=0)

        def advance(done_bytes: int, row_count: int) -> None:
            bar.update(task, completed=done_bytes, rows=row_count)

        yield advance
