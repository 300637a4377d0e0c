"""The SQLite file: its tables, its settings, and the refusal of files that are not ours."""

import os
import sqlite3
from pathlib import Path

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
WAL_SAFE_SINCE = (3, 51, 3)  # before it, two connections and a checkpoint could damage the file
JOURNAL_MODE = "wal" if sqlite3.sqlite_version_info >= WAL_SAFE_SINCE else "persist"
JOURNAL_SIZE_BYTES_KEPT = 1 << 20
SYNCHRONOUS_FULL = 2

_MAGIC = b"SQLite format 3\x00"
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
    """Make an empty file that only its owner can read, or refuse one that is no database."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        _check_magic(path)
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


def _check_magic(path: Path) -> None:
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except OSError as error:
        raise RequestError(
            f"the catalog {path} cannot be opened: {error.strerror}", path=str(path)
        ) from error
    if magic not in (b"", _MAGIC):
        raise BadMetadataError(f"{path} is not an SQLite database", path=str(path))


def connect(path: Path) -> sqlite3.Connection:
    """Open the file with the settings that commits stand on."""
    prepare_file(path)
    connection = sqlite3.connect(
        path, timeout=BUSY_TIMEOUT_MS / 1000, isolation_level=None, check_same_thread=False
    )
    sound = False
    try:
        _set_up(connection, path)
        sound = True
    except sqlite3.Error as error:
        raise problem(error, path) from error
    finally:
        if not sound:
            connection.close()
    return connection


def _set_up(connection: sqlite3.Connection, path: Path) -> None:
    if not _is_ours(connection, path):
        _initialise(connection, path)
    (mode,) = connection.execute(f"PRAGMA journal_mode = {JOURNAL_MODE}").fetchone()
    connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS_FULL}")
    connection.execute(f"PRAGMA journal_size_limit = {JOURNAL_SIZE_BYTES_KEPT}")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    (synchronous,) = connection.execute("PRAGMA synchronous").fetchone()
    (busy_ms,) = connection.execute("PRAGMA busy_timeout").fetchone()
    if (mode, synchronous, busy_ms) != (JOURNAL_MODE, SYNCHRONOUS_FULL, BUSY_TIMEOUT_MS):
        raise UnavailableError(
            f"{path} did not take its settings: journal {mode}, synchronous {synchronous},"
            f" busy timeout {busy_ms} ms",
            hint="Another program may have it open in another journal mode; close that first",
        )


def _is_ours(connection: sqlite3.Connection, path: Path) -> bool:
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


def _initialise(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("PRAGMA auto_vacuum = NONE")
    connection.execute(f"PRAGMA journal_mode = {JOURNAL_MODE}")
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


_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
_AWAY = (
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_INTERRUPT,
)
_FORBIDDEN = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_SCHEMA)


def primary_code(error: sqlite3.Error) -> int:
    """The error's class without its detail; 0 when SQLite itself did not speak."""
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def problem(error: sqlite3.Error, path: Path) -> LakebedError:
    """What an SQLite error means to a caller, given that nothing was changed."""
    code, name = primary_code(error), getattr(error, "sqlite_errorname", type(error).__name__)
    where = {"path": str(path), "sqlite": name}
    if code in _BUSY:
        return UnavailableError(f"the catalog {path} is busy ({name})", **where)
    if code == sqlite3.SQLITE_FULL:
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
    if code in (0, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE):
        return RequestError(f"the catalog {path} cannot take this: {error}", **where)
    return BadMetadataError(f"the catalog {path} does not work ({name}: {error})", **where)
