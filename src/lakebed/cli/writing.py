"""Standard output: written in large pieces, silent when its reader goes away."""

import os
import sys

import click

from lakebed.cli.failure import ExitCode
from lakebed.errors import StorageError


def write(text: str) -> None:
    """Write to standard output; ends the program if nobody reads it any more."""
    try:
        sys.stdout.write(text)
    except OSError as error:
        _leave(error)


def flush() -> None:
    """Hand over what is buffered, so that a closed pipe shows now and not at shutdown."""
    try:
        sys.stdout.flush()
    except OSError as error:
        _leave(error)


def _leave(error: OSError) -> None:
    # The interpreter flushes once more at its end: let that go nowhere.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    if isinstance(error, BrokenPipeError):
        raise click.exceptions.Exit(ExitCode.READER_GONE) from error
    raise StorageError(f"the report cannot be written: {error.strerror}") from error
