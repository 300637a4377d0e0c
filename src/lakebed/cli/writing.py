"""Standard output: written in large pieces, silent when its reader goes away."""

import os
import sys

import click

from lakebed.cli.failure import ExitCode


def write(text: str) -> None:
    """Write to standard output; ends the program if nobody reads it any more."""
    try:
        sys.stdout.write(text)
    except BrokenPipeError:
        _leave()


def flush() -> None:
    """Hand over what is buffered, so that a closed pipe shows now and not at shutdown."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _leave()


def _leave() -> None:
    # The interpreter flushes once more at its end: let that go nowhere.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    raise click.exceptions.Exit(ExitCode.READER_GONE)
