"""What a command says and returns when it did not succeed: two lines and a stable exit code."""

from enum import IntEnum

from lakebed.cli.text import escape
from lakebed.errors import (
    BadTableError,
    CommitConflictError,
    CommitUnknownError,
    LakebedError,
    ObjectExistsError,
    ObjectMissingError,
    RequestError,
    StorageError,
    UnsafeStoreError,
)


class ExitCode(IntEnum):
    """What the shell sees; scripts rely on the numbers, so they never change."""

    OK = 0
    UNEXPECTED = 1  # a bug, or something nobody thought of
    REQUEST = 2  # what was asked cannot be done, or the table is damaged
    CONFLICT = 3
    OUTCOME_UNKNOWN = 4
    STORAGE = 5
    PROBLEMS = 6
    INTERRUPTED = 130  # as a shell reports SIGINT
    READER_GONE = 141  # as a shell reports SIGPIPE


EXIT_CODES = """\
\b
Exit codes:
  0    done
  1    unexpected error (run again with --debug)
  2    bad request, bad usage, or a damaged table
  3    another commit came first; nothing was changed: try again
  4    the commit's outcome is unknown: ask `lakebed resolve`
  5    storage or catalog unavailable: try again later
  6    doctor or rebuild found problems
  130  interrupted; 141 the reader of the output went away
"""

# The first class that fits decides, so the special ones stand before their parents.
_CODES: tuple[tuple[type[LakebedError], ExitCode], ...] = (
    (RequestError, ExitCode.REQUEST),
    (BadTableError, ExitCode.REQUEST),
    (CommitConflictError, ExitCode.CONFLICT),
    (CommitUnknownError, ExitCode.OUTCOME_UNKNOWN),
    (ObjectExistsError, ExitCode.REQUEST),  # trying again will not help
    (ObjectMissingError, ExitCode.REQUEST),
    (UnsafeStoreError, ExitCode.REQUEST),
    (StorageError, ExitCode.STORAGE),
)


def exit_code(error: LakebedError) -> ExitCode:
    """The exit code that belongs to an error of the library."""
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code
    return ExitCode.UNEXPECTED


def describe(message: str, hint: str = "") -> str:
    """The lines for stderr: what happened, and what to do next."""
    lines = [f"error: {escape(message)}"]
    if hint:
        lines.append(f"next: {escape(hint)}")
    return "\n".join(lines)


def next_step(error: LakebedError) -> str:
    """The hint of an error in words of the command line."""
    if isinstance(error, CommitUnknownError) and error.commit_id:
        return (
            f"lakebed resolve {error.commit_id} tells whether it is in; "
            "an append with the same --token can be repeated at no risk"
        )
    return error.hint
