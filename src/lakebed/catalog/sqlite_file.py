"""The SQLite file: its tables, its settings, and the refusal of files that are not ours."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

from lakebed.catalog import sqlite_library as library
from lakebed.catalog.rows import POINTER_COLUMNS
from lakebed.errors import (
    BadMetadataError,
    LakebedError,
    RequestError,
    UnavailableError,
    UnsupportedVersionError,
)

APPLICATION_ID = 0x4C6B4264  # "LkBd"
SCHEMA_VERSION = 1
BUSY_TIMEOUT_MS = 30_000
SYNCHRONOUS_FULL = 2
WAL, ROLLBACK = "wal", "persist"
# A WAL that is written over from its begin is cheaper to sync than one that grows: so it is brought
# back into the database early, and the file keeps the length that it had until then.
CHECKPOINT_PAGE_COUNT = 256
JOURNAL_SIZE_BYTES_KEPT = 4 << 20

_PAGE_SIZE_BYTES_MIN = 512

_POINTER_DDL = """
  name          TEXT    NOT NULL,
  table_id      TEXT    NOT NULL,
  location      TEXT    NOT NULL,
  version       INTEGER NOT NULL,
  snapshot_id   INTEGER NOT NULL,
  snapshot_path TEXT    NOT NULL,
  commit_id     TEXT    NOT NULL,
  timestamp_ms  INTEGER NOT NULL,
  operation     TEXT    NOT NULL,"""
_LOG_DDL = """
CREATE TABLE lakebed_log_action (
  table_id           TEXT    NOT NULL,
  version            INTEGER NOT NULL,
  ordinal            INTEGER NOT NULL,
  action_type        TEXT    NOT NULL
    CHECK (action_type IN ('protocol', 'metadata', 'add', 'remove', 'commit', 'txn')),
  commit_ts          TEXT,
  commit_user        TEXT,
  operation          TEXT,
  operation_params   TEXT,
  min_reader_version INTEGER,
  min_writer_version INTEGER,
  reader_features    TEXT,
  writer_features    TEXT,
  table_name         TEXT,
  description        TEXT,
  schema_json        TEXT,
  partition_columns  TEXT,
  configuration      TEXT,
  path               TEXT,
  partition_values   TEXT,
  size_bytes         INTEGER,
  modification_time  TEXT,
  data_change        INTEGER,
  num_records        INTEGER,
  stats_json         TEXT,
  deletion_time      TEXT,
  app_id             TEXT,
  app_version        INTEGER,
  PRIMARY KEY (table_id, version, ordinal)
) WITHOUT ROWID"""


def _append_only(table: str) -> tuple[str, ...]:
    return tuple(
        f"CREATE TRIGGER {table}_no_{event.lower()} BEFORE {event} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
        for event in ("UPDATE", "DELETE")
    )


DDL = (
    f"CREATE TABLE lakebed_table ({_POINTER_DDL}\n  PRIMARY KEY (name)\n) WITHOUT ROWID",
    f"CREATE TABLE lakebed_commit ({_POINTER_DDL}\n  PRIMARY KEY (table_id, version)\n)"
    " WITHOUT ROWID",
    "CREATE UNIQUE INDEX lakebed_commit_id ON lakebed_commit (commit_id, table_id)",
    "CREATE TABLE lakebed_txn (table_id TEXT NOT NULL, app_id TEXT NOT NULL,"
    " app_version INTEGER NOT NULL, version INTEGER NOT NULL,"
    " PRIMARY KEY (table_id, app_id, app_version)) WITHOUT ROWID",
    "CREATE TABLE lakebed_schema (table_id TEXT NOT NULL, schema_id INTEGER NOT NULL,"
    " version INTEGER NOT NULL, schema_json TEXT NOT NULL,"
    " PRIMARY KEY (table_id, version)) WITHOUT ROWID",
    _LOG_DDL,
    "CREATE TABLE lakebed_property (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL)"
    " WITHOUT ROWID",
    *_append_only("lakebed_log_action"),
    *_append_only("lakebed_commit"),
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)
assert all(f"\n  {column} " in _POINTER_DDL for column in POINTER_COLUMNS)


def prepare_file(path: Path) -> None:
    """Make an empty file that only its owner can read, or refuse what cannot be a database.

    One that is there is never opened here: closing it would drop the locks that SQLite holds on
    it in this process. SQLite itself looks at the content.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        _check_length(path)
        return
    except OSError as error:
        raise RequestError(
            f"the catalog {path} cannot be created: {error.strerror}", path=str(path)
        ) from error
    os.close(descriptor)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _check_length(path: Path) -> None:
    try:
        info = path.stat()
    except OSError as error:
        raise RequestError(
            f"the catalog {path} cannot be opened: {error.strerror}", path=str(path)
        ) from error
    if not stat.S_ISREG(info.st_mode):
        raise RequestError(f"the catalog {path} is not a file", path=str(path))
    if 0 < info.st_size < _PAGE_SIZE_BYTES_MIN:  # SQLite would take it for an empty one.
        raise BadMetadataError(f"{path} is not an SQLite database", path=str(path))


def connect(path: Path) -> library.sqlite3.Connection:
    """Open the file with the settings that commits stand on.

    Where nobody may write, a file in WAL mode is opened as one that does not change; such a
    connection is for one read, see `is_frozen`.
    """
    prepare_file(path)
    try:
        return _connected(str(path), path, _set_up)
    except library.sqlite3.Error as error:
        if not _is_left_alone(error, path):
            raise problem(error, path) from error
    try:
        return _connected(f"{path.as_uri()}?immutable=1", path, _freeze)
    except library.sqlite3.Error as error:
        raise problem(error, path) from error


def _connected(
    name: str, path: Path, set_up: Callable[[library.sqlite3.Connection, Path], None]
) -> library.sqlite3.Connection:
    connection = library.sqlite3.connect(
        name,
        timeout=BUSY_TIMEOUT_MS / 1000,
        isolation_level=None,
        check_same_thread=False,
        uri=name.startswith("file:"),
    )
    sound = False
    try:
        set_up(connection, path)
        sound = True
    finally:
        if not sound:
            connection.close()
    return connection


def _is_left_alone(error: library.sqlite3.Error, path: Path) -> bool:
    """Whether it cannot be opened because we may not write there, and nobody has it open.

    Whoever has it open in WAL mode has a -wal file beside it.
    """
    shut = primary_code(error) in (*_FORBIDDEN, library.sqlite3.SQLITE_CANTOPEN)
    return shut and not os.access(path.parent, os.W_OK) and not Path(f"{path}-wal").exists()


def _freeze(connection: library.sqlite3.Connection, path: Path) -> None:
    connection.execute("PRAGMA query_only = ON")
    if not _is_ours(connection, path):
        raise RequestError(f"the catalog {path} is empty, and may not be written", path=str(path))


def is_frozen(connection: library.sqlite3.Connection) -> bool:
    """Whether it takes the file for one that does not change: true only for a moment."""
    return bool(connection.execute("PRAGMA query_only").fetchone()[0])


def _set_up(connection: library.sqlite3.Connection, path: Path) -> None:
    if not _is_ours(connection, path):
        _initialise(connection, path)
    mode = _choose_journal(connection, path)
    connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS_FULL}")
    connection.execute(f"PRAGMA journal_size_limit = {JOURNAL_SIZE_BYTES_KEPT}")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGE_COUNT}")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    (synchronous,) = connection.execute("PRAGMA synchronous").fetchone()
    (busy_ms,) = connection.execute("PRAGMA busy_timeout").fetchone()
    if mode not in (WAL, ROLLBACK) or (synchronous, busy_ms) != (SYNCHRONOUS_FULL, BUSY_TIMEOUT_MS):
        raise UnavailableError(
            f"{path} did not take its settings: journal {mode}, synchronous {synchronous},"
            f" busy timeout {busy_ms} ms",
            hint="Another program may have it open in another journal mode; close that first",
        )


def _choose_journal(connection: library.sqlite3.Connection, path: Path) -> str:
    """Set the best mode that this library can share; where WAL cannot be had, the other will do."""
    if library.is_wal_safe(library.sqlite3):
        try:
            mode = _set_journal(connection, WAL)
        except library.sqlite3.OperationalError as error:
            if primary_code(error) not in _FORBIDDEN:
                raise
            mode = ""  # It may only be read, and can be read as it is.
        return mode if mode == WAL else _set_journal(connection, ROLLBACK)
    try:
        return _set_journal(connection, ROLLBACK)
    except library.sqlite3.OperationalError as error:
        if primary_code(error) not in _BUSY or journal_mode(connection) != WAL:
            raise
        raise _unsafe_here(path) from error


def _set_journal(connection: library.sqlite3.Connection, mode: str) -> str:
    return str(connection.execute(f"PRAGMA journal_mode = {mode}").fetchone()[0])


def journal_mode(connection: library.sqlite3.Connection) -> str:
    """The mode of the file; inside a transaction it cannot change."""
    return str(connection.execute("PRAGMA journal_mode").fetchone()[0])


def require_safe_journal(connection: library.sqlite3.Connection, path: Path) -> None:
    """Inside a transaction: refuse to write a WAL with a library that cannot share one.

    A process with a newer library may have changed the mode since we opened the file, which this
    library would go along with in silence.
    """
    if not library.is_wal_safe(library.sqlite3) and journal_mode(connection) == WAL:
        raise _unsafe_here(path)


def _unsafe_here(path: Path) -> UnavailableError:
    needed = ".".join(map(str, library.WAL_SAFE_SINCE))
    return UnavailableError(
        f"the catalog {path} is in use by a process with a newer SQLite, in a mode that this"
        f" one's SQLite {library.sqlite3.sqlite_version} cannot share safely (it needs {needed})",
        hint="Nothing was changed. Install pysqlite3 here, or end the other process first",
        path=str(path),
    )


def _is_ours(connection: library.sqlite3.Connection, path: Path) -> bool:
    """True: it has our tables; False: it is empty."""
    row = connection.execute(
        "SELECT (SELECT application_id FROM pragma_application_id),"
        " (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_master)"
    ).fetchone()
    application_id, version, object_count = row
    if row == (0, 0, 0):
        return False
    if application_id != APPLICATION_ID or version < 1 or object_count < len(DDL) - 2:
        raise BadMetadataError(
            f"{path} is an SQLite database, but no Lakebed catalog",
            hint="Name another file; this one was not changed",
            path=str(path),
        )
    if version > SCHEMA_VERSION:
        raise UnsupportedVersionError(
            f"{path} has catalog version {version}; this library knows {SCHEMA_VERSION}",
            hint="Upgrade lakebed: pip install -U lakebed",
            path=str(path),
        )
    return True


def _initialise(connection: library.sqlite3.Connection, path: Path) -> None:
    connection.execute("PRAGMA auto_vacuum = NONE")
    _choose_journal(connection, path)
    connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS_FULL}")
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not _is_ours(connection, path):  # Nobody else was first.
            for statement in DDL:
                connection.execute(statement)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


_BUSY = (
    library.sqlite3.SQLITE_BUSY,
    library.sqlite3.SQLITE_LOCKED,
    library.sqlite3.SQLITE_PROTOCOL,
)
_AWAY = (
    library.sqlite3.SQLITE_IOERR,
    library.sqlite3.SQLITE_CANTOPEN,
    library.sqlite3.SQLITE_NOMEM,
    library.sqlite3.SQLITE_INTERRUPT,
)
_FORBIDDEN = (
    library.sqlite3.SQLITE_READONLY,
    library.sqlite3.SQLITE_PERM,
    library.sqlite3.SQLITE_AUTH,
)
_DAMAGED = (
    library.sqlite3.SQLITE_CORRUPT,
    library.sqlite3.SQLITE_NOTADB,
    library.sqlite3.SQLITE_SCHEMA,
)


def primary_code(error: library.sqlite3.Error) -> int:
    """The error's class without its detail; 0 when SQLite itself did not speak."""
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def problem(error: library.sqlite3.Error, path: Path) -> LakebedError:
    """What an SQLite error means to a caller, given that nothing was changed."""
    code, name = primary_code(error), getattr(error, "sqlite_errorname", type(error).__name__)
    where = {"path": str(path), "sqlite": name}
    if code in _BUSY:
        return UnavailableError(f"the catalog {path} is busy ({name})", **where)
    if code == library.sqlite3.SQLITE_FULL:
        return UnavailableError(
            f"there is no room for the catalog {path} ({name})",
            hint="Free some space and try again",
            **where,
        )
    if code in _AWAY:
        return UnavailableError(f"the catalog {path} cannot be reached ({name}: {error})", **where)
    if code in _FORBIDDEN:
        return RequestError(f"the catalog {path} may not be written ({name})", **where)
    if code in _DAMAGED:
        return BadMetadataError(f"the catalog {path} is damaged ({name}: {error})", **where)
    if code in (
        0,
        library.sqlite3.SQLITE_TOOBIG,
        library.sqlite3.SQLITE_MISMATCH,
        library.sqlite3.SQLITE_RANGE,
    ):
        return RequestError(f"the catalog {path} cannot take this: {error}", **where)
    return BadMetadataError(f"the catalog {path} does not work ({name}: {error})", **where)
