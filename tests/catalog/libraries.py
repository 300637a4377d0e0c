"""Both SQLite libraries, chosen by name: for a test, or for a process of its own."""

import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lakebed.catalog import sqlite_library as library

NAMES = ("standard", "brought")
MODULES = {"standard": "sqlite3", "brought": library.BROUGHT_ALONG}


def module_of(name: str) -> Any:
    """One of the two; a test that needs the second is skipped where it has no wheel."""
    return pytest.importorskip(MODULES[name], reason="pysqlite3 has no wheel here")


def use(name: str, patch: pytest.MonkeyPatch) -> None:
    """Let the catalogs of this test use that library."""
    patch.setattr(library, "sqlite3", module_of(name))


def use_rollback_journal(patch: pytest.MonkeyPatch) -> None:
    """Let the catalogs of this test be as where there is but an old library."""
    patch.setattr(library, "sqlite3", sqlite3)
    patch.setattr(library, "is_wal_safe", lambda _: False)


def require_old_and_new() -> None:
    """Skip unless there is one library on each side of the line."""
    if library.is_wal_safe(sqlite3) or not library.is_wal_safe(module_of("brought")):
        pytest.skip("needs a standard library that is too old for WAL, and pysqlite3")


class Other:
    """A process that uses one of the libraries."""

    def __init__(self, name: str, path: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.catalog.other_process", MODULES[name], str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> "Other":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)

    def ask(self, line: str) -> str:
        """What it answers."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def kill(self) -> None:
        """End it at once, with nothing closed."""
        self._process.kill()
        self._process.wait(timeout=60)
