"""A catalog in one SQLite file: for one machine, any number of processes.

    queue   flock on <file>-queue      waiting in line, re-entrant, advisory
    swap    BEGIN IMMEDIATE            SQLite's own lock: the correctness
            UPDATE head … rowcount 1   the compare-and-swap, once per table
            INSERT commit, log, token
            COMMIT                     fsync: the moment of truth; one with a WAL, else five

Readers are never queued.
"""

import atexit
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from lakebed.catalog import rows, sqlite_guard
from lakebed.catalog import sqlite_library as library
from lakebed.catalog.absent import name_taken, no_moment, no_table, no_version
from lakebed.catalog.sessions import GATE, Sessions
from lakebed.catalog.sqlite_file import (
    WAL,
    connect,
    is_frozen,
    journal_mode,
    primary_code,
    problem,
    require_safe_journal,
)
from lakebed.catalog.statements import statements
from lakebed.catalog.turnstile import Turnstile
from lakebed.errors import CommitUnknownError, LakebedError, RequestError, UnavailableError
from lakebed.format.pointer import Action, Move, Outcome, Pointer, Token

_TEXTS = msgspec.json.Decoder(list[str])
ENCODERS = rows.Encoders(
    table_id=str, time=rows.utc_text, json=rows.json_text, texts=rows.json_text, flag=int
)
DECODERS = rows.Decoders(
    table_id=str,
    time=lambda text: rows.utc_ms(datetime.fromisoformat(text)),
    json=msgspec.json.decode,
    texts=_TEXTS.decode,
)


SQL = statements("?")
_UNDONE = (library.sqlite3.SQLITE_BUSY, library.sqlite3.SQLITE_LOCKED, library.sqlite3.SQLITE_FULL)


_opened: "weakref.WeakSet[SqliteCatalog]" = weakref.WeakSet()


def _pointer(row: Sequence[Any]) -> Pointer:
    return rows.pointer_of(row, row[1])


class SqliteCatalog:
    """Tables in one file, made if it is not there; opened anew by each thread and process."""

    decides_by_snapshot: bool = False
    multi_table: bool = True
    keeps_log: bool = True

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path).absolute()
        self.uri: str = f"sqlite:///{self._path}"
        self._line = Turnstile(f"{self._path}-queue")
        self._is_frozen = False
        self._sessions = Sessions(connect=self._connect, disconnect=_disconnect)
        with GATE:
            self._sessions.get()  # A file that is not ours is refused here and now.
        _opened.add(self)

    def __repr__(self) -> str:
        return f"SqliteCatalog({str(self._path)!r})"

    def warehouse(self, given: str | None) -> str:
        """Say where the tables are: beside the file, unless somebody said otherwise.

        The file's own directory is not remembered: moving it moves the warehouse.
        """
        beside = str(self._path.parent)
        known = self._read(SQL.property, (rows.WAREHOUSE,))
        if given is None:
            return str(known[0][0]) if known else beside
        if not known and given != beside:
            self._read(SQL.insert_property, (rows.WAREHOUSE, given))
        return given

    def next_version(self, name: str) -> int:  # noqa: ARG002 - a new table has a new id
        """The version at which a table of that name would begin."""
        return 0

    def create(self, move: Move) -> None:
        """Enter a table."""
        self.restore([move])

    def restore(self, moves: Sequence[Move]) -> None:
        """Enter a table with its history."""
        rows.check_history(moves)
        last = moves[-1].new
        if not self._write(lambda connection: self._enter(connection, moves), last):
            raise name_taken(last.name)

    def drop(self, move: Move) -> bool:
        """Forget the table's name and record the tombstone."""
        rows.check_step(move)
        return self._write(lambda connection: self._leave(connection, move), move.new)

    def tables(self) -> list[str]:
        """The names of all tables, in order."""
        return sorted(name for (name,) in self._read(SQL.names, ()))

    def load(self, name: str) -> Pointer:
        """Read the head of a table."""
        for row in self._read(SQL.load, (name,)):
            return _pointer(row)
        raise no_table(name)

    def swap(self, moves: Sequence[Move]) -> bool:
        """Make every step or none."""
        rows.check_distinct(moves)
        return self._write(
            lambda connection: all(self._step(connection, move) for move in moves), moves[0].new
        )

    def outcome(self, name: str, commit_id: str, *, since: int) -> Outcome:  # noqa: ARG002
        """Read head and commit id in one statement."""
        row = self._read(SQL.outcome, (name, commit_id, name))[0]
        committed = row[len(rows.POINTER_COLUMNS) :]
        return Outcome(
            head=None if row[0] is None else _pointer(row),
            committed=None if committed[0] is None else _pointer(committed),
        )

    def find_commit(self, commit_id: str) -> list[Pointer]:
        """The versions that a commit id made."""
        found = [_pointer(row) for row in self._read(SQL.find_commit, (commit_id,))]
        return sorted(found, key=lambda pointer: pointer.name)

    def find_token(self, pointer: Pointer, token: Token) -> Pointer | None:
        """The version that committed exactly this token."""
        for row in self._read(SQL.find_token, (pointer.table_id, token.app, token.version)):
            return _pointer(row)
        return None

    def last_token(self, pointer: Pointer, app: str) -> Token | None:
        """The highest token of `app`."""
        for (version,) in self._read(SQL.last_token, (pointer.table_id, app)):
            return Token(app, version)
        return None

    def at_version(self, pointer: Pointer, version: int) -> Pointer:
        """One version of the table."""
        for row in self._read(SQL.at_version, (pointer.table_id, version)):
            return _pointer(row)
        raise no_version(pointer, version)

    def at_time(self, pointer: Pointer, timestamp_ms: int) -> Pointer:
        """The last version not later than the moment."""
        for row in self._read(SQL.at_time, (pointer.table_id, timestamp_ms)):
            return _pointer(row)
        raise no_moment(pointer, timestamp_ms)

    def history(self, pointer: Pointer) -> Iterator[Pointer]:
        """Every version from `pointer` back to the first."""
        version = pointer.version
        while version >= 0:
            key = (pointer.table_id, version, rows.PAGE_ROW_COUNT)
            page = [_pointer(row) for row in self._read(SQL.history, key)]
            yield from page
            version = page[-1].version - 1 if page else -1

    def log(
        self, pointer: Pointer, since: int = -1, until: int | None = None
    ) -> Iterator[tuple[int, int, Action]]:
        """The action rows of versions in (since, until]."""
        last = pointer.version if until is None else until
        version, ordinal = since + 1, -1
        while True:
            key = (pointer.table_id, version, ordinal, last, rows.PAGE_ROW_COUNT)
            page = self._read(SQL.log, key)
            for row in page:
                yield row[1], row[2], rows.action_of(row, DECODERS)
            if len(page) < rows.PAGE_ROW_COUNT:
                return
            version, ordinal = page[-1][1:3]

    @contextmanager
    def queue(self, names: Sequence[str]) -> Iterator[None]:  # noqa: ARG002 - one line for all
        """Wait in line for the sole right to write this file."""
        with self._line.pass_through():
            yield

    def close(self) -> None:
        """Release the connections of all threads."""
        with GATE:
            sqlite_guard.release(self, self._sessions.close)

    def _connect(self) -> library.sqlite3.Connection:
        connection = connect(self._path)
        self._is_frozen = is_frozen(connection)
        if not self._is_frozen and journal_mode(connection) == WAL:
            sqlite_guard.hold(self, self._path)
        return connection

    def _read(self, sql: str, values: Sequence[Any]) -> list[Any]:
        """All rows of one statement, which is one atomic read."""
        with GATE:
            try:
                found: list[Any] = self._sessions.get().execute(sql, values).fetchall()
            except library.sqlite3.Error as error:
                raise self._failed(error) from error
            except (OverflowError, UnicodeEncodeError) as error:
                raise _unfit(error) from error
            if self._is_frozen:
                self._sessions.discard()  # Somebody else may begin to write.
            return found

    def _write(self, work: Callable[[library.sqlite3.Connection], bool], new: Pointer) -> bool:
        """Run `work` in a transaction; it says whether to commit."""
        with self._line.pass_through(), GATE:
            connection = self._sessions.get()
            try:
                connection.execute("BEGIN IMMEDIATE")
                self._check_journal(connection)
                if work(connection):
                    self._commit(connection, new)
                    return True
            except library.sqlite3.Error as error:
                if not library.is_taken(error):
                    self._roll_back(connection)
                    raise self._failed(error) from error
            except (OverflowError, UnicodeEncodeError) as error:
                raise _unfit(error) from error
            finally:  # Also when Ctrl-C ends the work.
                self._roll_back(connection)
            return False

    def _check_journal(self, connection: library.sqlite3.Connection) -> None:
        try:
            require_safe_journal(connection, self._path)
        except UnavailableError:
            self._sessions.discard()  # The next connection sets the mode anew, if it can.
            raise

    def _roll_back(self, connection: library.sqlite3.Connection) -> None:
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except library.sqlite3.Error:  # Closed already, or beyond use: the journal undoes it.
            self._sessions.discard()

    def _commit(self, connection: library.sqlite3.Connection, new: Pointer) -> None:
        try:
            connection.execute("COMMIT")
        except library.sqlite3.Error as error:
            if primary_code(error) in _UNDONE:
                raise  # Nothing has reached the file, or SQLite has taken it back.
            self._sessions.discard()  # The next one to open the file settles it from the journal.
            raise CommitUnknownError(
                f"the commit of {new.name} failed half-way ({error})",
                hint="catalog.resolve tells whether it is in the table",
                commit_id=new.commit_id,
                table=new.name,
                base_version=new.version - 1,
            ) from error

    def _enter(self, connection: library.sqlite3.Connection, moves: Sequence[Move]) -> bool:
        last = moves[-1].new
        if not rows.is_tombstone(last):
            connection.execute(SQL.insert_table, rows.pointer_row(last, last.table_id))
        for move in moves:
            self._record(connection, move)
        return True

    def _leave(self, connection: library.sqlite3.Connection, move: Move) -> bool:
        old = move.expected
        key = (old.name, old.table_id, old.version)
        if connection.execute(SQL.drop_table, key).rowcount != 1:
            return False
        self._record(connection, move)
        return True

    def _step(self, connection: library.sqlite3.Connection, move: Move) -> bool:
        old = move.expected
        values = (*rows.moved_row(move.new), old.name, old.table_id, old.version)
        if connection.execute(SQL.move_table, values).rowcount != 1:
            return False
        self._record(connection, move)
        return True

    def _record(self, connection: library.sqlite3.Connection, move: Move) -> None:
        """Insert what lands beside the head."""
        new = move.new
        connection.execute(SQL.insert_commit, rows.pointer_row(new, new.table_id))
        if move.actions:
            connection.executemany(SQL.insert_action, rows.action_rows(move, ENCODERS))
        if move.token is not None:
            connection.execute(SQL.insert_token, (new.table_id, *move.token, new.version))
        if move.schema_id is not None:
            schema = rows.json_text(move.schema_json)
            connection.execute(
                SQL.insert_schema, (new.table_id, move.schema_id, new.version, schema)
            )

    def _failed(self, error: library.sqlite3.Error) -> LakebedError:
        if primary_code(error) not in (library.sqlite3.SQLITE_BUSY, library.sqlite3.SQLITE_LOCKED):
            self._sessions.discard()
        return problem(error, self._path)


@atexit.register
def _close_all() -> None:
    """Whoever forgot to close leaves one file too: the last one to close it empties the WAL."""
    for catalog in list(_opened):
        catalog.close()


def _disconnect(connection: library.sqlite3.Connection) -> None:
    connection.close()


def _unfit(error: Exception) -> RequestError:
    return RequestError(f"the catalog cannot store this value: {error}")
