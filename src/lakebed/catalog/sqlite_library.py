"""Which SQLite we speak to: the standard library's, or the newer one that is brought along.

    the standard one, if its WAL is safe to share       WAL: one fsync per commit
    else pysqlite3, if it is installed and is           WAL
    else the standard one                               rollback journal: five fsyncs per commit

Both speak the same API, but their classes differ: an error of the one is not caught by the
other's name. So everybody takes `sqlite3` from here, and looks it up when it is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sqlite3 as sqlite3

# Before it, a checkpoint beside a writer that begins the WAL anew could damage the file.
WAL_SAFE_SINCE = (3, 51, 3)
BROUGHT_ALONG = "pysqlite3.dbapi2"

# Result codes are SQLite's own and the same everywhere; pysqlite3 has no names for these.
CONSTRAINT_PRIMARYKEY = 1555
CONSTRAINT_UNIQUE = 2067


def choose(standard: Any, brought_along: str = BROUGHT_ALONG) -> Any:
    """The standard module if it will do, else the other if it is there and does better."""
    if standard.sqlite_version_info >= WAL_SAFE_SINCE:
        return standard
    try:
        other = import_module(brought_along)
    except ImportError:  # Not installed, or made for another system: it is not needed.
        return standard
    return other if is_wal_safe(other) else standard


def is_wal_safe(module: Any) -> bool:
    """Whether several processes may share a WAL of this library."""
    return bool(module.sqlite_version_info >= WAL_SAFE_SINCE)


def is_taken(error: "sqlite3.Error") -> bool:
    """Whether a row was refused because one of its key is there.

    pysqlite3 gives the code without its detail; the detail is in the text, which is SQLite's.
    """
    code = getattr(error, "sqlite_errorcode", 0)
    if code == sqlite3.SQLITE_CONSTRAINT:
        return str(error).startswith("UNIQUE constraint failed")
    return code in (CONSTRAINT_PRIMARYKEY, CONSTRAINT_UNIQUE)


if not TYPE_CHECKING:
    sqlite3 = choose(import_module("sqlite3"))
