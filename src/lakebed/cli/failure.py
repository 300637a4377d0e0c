"""What a command says and returns when it did not succeed: two lines and a stable exit code."""

import re
import shlex
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
  6    doctor or rebuild found problems, or resolve found that the commit failed
  130  interrupted; 141 the reader of the output went away
"""

_GOES_ON = re.compile(r"\n[ \t]+")

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


def said(error: LakebedError) -> str:
    """The message in one line; a predicate's lines with the caret make way for the position.

    Only lines that go on from the one before are joined: any other is not ours, and is escaped.
    """
    if "position" in error.fields and "\n" in error.message:
        lines = error.message.split("\n")
        return f"{lines[0]}: {lines[-1]}"
    return _GOES_ON.sub(" ", error.message)


def next_step(error: LakebedError) -> str:
    """The hint of an error in words of the command line."""
    if isinstance(error, CommitUnknownError) and error.commit_id:
        return (
            f"{_resolve_call(error)} tells whether it is in; "
            "an append with the same --token can be repeated at no risk"
        )
    hint = error.hint
    for call, option in _IN_PYTHON:
        hint = hint.replace(call, option)
    return hint or ("Try again" if error.retryable else "")


def _resolve_call(error: CommitUnknownError) -> str:
    """The command that asks for this commit; what it was to follow allows a definite answer."""
    call = ["lakebed", "resolve", error.commit_id]
    table, base = error.fields.get("table"), error.fields.get("base_version")
    if isinstance(table, str) and isinstance(base, int):
        call += ["--table", table, "--after", str(base)]
    return shlex.join(call)


# What the library's hints call by its Python name, as it is called here.
_IN_PYTHON = (
    ("evolve().partition_by([…])", "lakebed evolve --partition-by"),
    (
        "inspect.manifests() lists them",
        "`lakebed inspect-manifest` with the table alone lists them",
    ),
    ("connect(uri, warehouse=…)", "--warehouse URI"),
    ("with warehouse=…", "with --warehouse"),
    ("Leave `warehouse` out", "Leave --warehouse out"),
    ("Leave `location` out", "Leave --location out"),
    ("Open it again: catalog.table(name)", "Run the command again"),
    ("Open the table again: catalog.table(name)", "Run the command again"),
    ("append()", "lakebed append"),
)
