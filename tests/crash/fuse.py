"""Ends this process at its Nth call of something: SIGKILL, so nothing is cleaned up or flushed."""

import itertools
import os
import signal
import sqlite3
from collections.abc import Callable
from typing import Any

from lakebed.catalog import sqlite

SYSTEM_CALLS = ("open", "write", "fsync", "link", "mkdir", "unlink")
INSTRUCTIONS_PER_BURN = 100


class Fuse:
    """Burns a step at a time; at its end the process dies."""

    def __init__(self, length: int) -> None:
        self._length = length
        self._burnt = itertools.count()  # its next() is atomic: several threads may burn it

    def burn(self) -> None:
        """One step; the last one does not return."""
        if next(self._burnt) == self._length:
            os.kill(os.getpid(), signal.SIGKILL)


class Watched:
    """Stands before a store or catalog; each call burns the fuse before and after its effect."""

    def __init__(self, inner: Any, fuse: Fuse) -> None:
        self._inner = inner
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            self._fuse.burn()
            result = found(*args, **kwargs)
            self._fuse.burn()
            return Watched(result, self._fuse) if name == "child" else result

        return call


def watch_system_calls(fuse: Fuse) -> None:
    """Burn before each call that Python makes to change a file or directory.

    After one call is before the next: in between, nothing on the disk changes.
    """
    for name in SYSTEM_CALLS:
        setattr(os, name, _burning(getattr(os, name), fuse))


def _burning(real: Callable[..., Any], fuse: Fuse) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        fuse.burn()
        return real(*args, **kwargs)

    return call


def watch_statements(fuse: Fuse) -> None:
    """Burn before each statement of SQLite, and in the midst of it."""
    real = sqlite.SqliteCatalog._connect

    def connect(self: sqlite.SqliteCatalog) -> sqlite3.Connection:
        connection = real(self)
        connection.set_trace_callback(lambda _: fuse.burn())
        connection.set_progress_handler(fuse.burn, INSTRUCTIONS_PER_BURN)
        return connection

    sqlite.SqliteCatalog._connect = connect  # type: ignore[method-assign]


LEVELS: dict[str, Callable[[Fuse], None]] = {
    "calls": lambda _: None,  # the store and the catalog are wrapped
    "system": watch_system_calls,
    "statements": watch_statements,
}
