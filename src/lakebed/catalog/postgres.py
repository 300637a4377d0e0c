"""A catalog in PostgreSQL: for any number of machines.

    queue   pg_advisory_lock             waiting in line: FIFO, re-entrant, gone with its session
    swap    BEGIN                    ┐
            pg_advisory_xact_lock    │   the same line, for those who did not queue
            UPDATE head … rowcount 1 │   the compare-and-swap, once per table, in order of name
            INSERT commit, log, …    ┘   rows counted too; all in one round trip
            COMMIT                       the moment of truth; an answer lost here is "unknown"

psycopg must be there before this module is imported: `require("psycopg", extra="postgres")`.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg.errors import LockNotAvailable

from lakebed.catalog import rows
from lakebed.catalog.absent import name_taken, no_moment, no_table, no_version
from lakebed.catalog.postgres_session import (
    COLLIDED,
    Address,
    Session,
    connect,
    is_idle,
    is_lost,
    let_go,
    problem,
)
from lakebed.catalog.postgres_values import (
    DECODERS,
    json_in,
    log_pages,
    pointer_out,
    table_id_in,
)
from lakebed.catalog.sessions import Sessions
from lakebed.catalog.statements import statements
from lakebed.errors import CommitUnknownError, LakebedError, RequestError, UnavailableError
from lakebed.format.pointer import Action, Move, Outcome, Pointer, Token

T = TypeVar("T")
Step = tuple[str, Sequence[Any], int]  # a statement, its values, the rows it must touch

ATTEMPT_COUNT_MAX = 3  # of a transaction that was not committed and can simply be run again

SQL = statements("%s")
_COLUMNS = ", ".join(rows.LOG_COLUMNS)
# A row that is there already is no error, which would end the pipeline, but a row too few.
_ONCE = " ON CONFLICT DO NOTHING"
_INSERT_ACTIONS = (
    f"INSERT INTO lakebed_log_action ({_COLUMNS}) SELECT {_COLUMNS}"  # noqa: S608 - our columns
    f" FROM json_populate_recordset(NULL::lakebed_log_action, %s::json){_ONCE}"
)
_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_LOCK = "SELECT pg_advisory_lock(%s)"
_LOCK_IN_TRANSACTION = "SELECT pg_advisory_xact_lock(%s)"
_UNLOCK = "SELECT pg_advisory_unlock(%s)"


class PostgresCatalog:
    """Tables in one schema of a database; each thread and process has a session of its own."""

    decides_by_snapshot: bool = False
    multi_table: bool = True
    keeps_log: bool = True

    def __init__(self, uri: str) -> None:
        self._address = Address(uri)
        self.uri: str = self._address.uri
        self._sessions = Sessions(
            connect=lambda: connect(self._address), disconnect=Session.close, let_go=let_go
        )
        self._sessions.get()  # A server that is not there, or not ours, is refused here and now.

    def __repr__(self) -> str:
        return f"PostgresCatalog({self.uri!r})"

    def warehouse(self, given: str | None) -> str | None:
        """Say where the tables are: what was given now, or else first."""
        if given is not None:
            values = (rows.WAREHOUSE, given)
            if not self._read(SQL.property, values[:1]):
                self._attempt(lambda session: _run(session, SQL.insert_property, values))
            return given
        return next((str(value) for (value,) in self._read(SQL.property, (rows.WAREHOUSE,))), None)

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
        row = rows.pointer_row(last, table_id_in(last.table_id))
        enter = [] if rows.is_tombstone(last) else [(SQL.insert_table + _ONCE, row, 1)]
        if not self._write(enter, moves):
            raise name_taken(last.name)

    def drop(self, move: Move) -> bool:
        """Forget the table's name and record the tombstone."""
        rows.check_step(move)
        return self._write([(SQL.drop_table, _key(move.expected), 1)], [move])

    def tables(self) -> list[str]:
        """The names of all tables, in order."""
        return sorted(name for (name,) in self._read(SQL.names, ()))

    def load(self, name: str) -> Pointer:
        """Read the head of a table."""
        for row in self._read(SQL.load, (name,)):
            return pointer_out(row)
        raise no_table(name)

    def swap(self, moves: Sequence[Move]) -> bool:
        """Make every step or none."""
        rows.check_distinct(moves)
        # One order for all writers: two of them cannot wait for each other.
        ordered = sorted(moves, key=lambda move: move.new.name)
        return self._write([_step(move) for move in ordered], ordered)

    def outcome(self, name: str, commit_id: str, *, since: int) -> Outcome:  # noqa: ARG002
        """Read head and commit id in one statement."""
        row = self._read(SQL.outcome, (name, commit_id, name))[0]
        committed = row[len(rows.POINTER_COLUMNS) :]
        return Outcome(
            head=None if row[0] is None else pointer_out(row),
            committed=None if committed[0] is None else pointer_out(committed),
        )

    def find_commit(self, commit_id: str) -> list[Pointer]:
        """The versions that a commit id made."""
        found = [pointer_out(row) for row in self._read(SQL.find_commit, (commit_id,))]
        return sorted(found, key=lambda pointer: pointer.name)

    def find_token(self, pointer: Pointer, token: Token) -> Pointer | None:
        """The version that committed exactly this token."""
        for row in self._read(SQL.find_token, (pointer.table_id, token.app, token.version)):
            return pointer_out(row)
        return None

    def last_token(self, pointer: Pointer, app: str) -> Token | None:
        """The highest token of `app`."""
        for (version,) in self._read(SQL.last_token, (pointer.table_id, app)):
            return Token(app, version)
        return None

    def at_version(self, pointer: Pointer, version: int) -> Pointer:
        """One version of the table."""
        for row in self._read(SQL.at_version, (pointer.table_id, version)):
            return pointer_out(row)
        raise no_version(pointer, version)

    def at_time(self, pointer: Pointer, timestamp_ms: int) -> Pointer:
        """The last version not later than the moment."""
        for row in self._read(SQL.at_time, (pointer.table_id, timestamp_ms)):
            return pointer_out(row)
        raise no_moment(pointer, timestamp_ms)

    def history(self, pointer: Pointer) -> Iterator[Pointer]:
        """Every version from `pointer` back to the first."""
        version = pointer.version
        while version >= 0:
            key = (pointer.table_id, version, rows.PAGE_ROW_COUNT)
            page = [pointer_out(row) for row in self._read(SQL.history, key)]
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
    def queue(self, names: Sequence[str]) -> Iterator[None]:
        """Wait in line for the sole right to swap these tables."""
        keys, pid = self._keys(names), os.getpid()
        session = self._attempt(lambda session: _wait_in_line(session, keys))
        try:
            yield
        finally:
            if session is not None and os.getpid() == pid and not session.closed:
                self._leave_line(session, keys)

    def close(self) -> None:
        """Release the sessions of all threads."""
        self._sessions.close()

    def _keys(self, names: Sequence[str]) -> list[int]:
        """The advisory locks of tables, in the one order in which all take them."""
        scope = f"lakebed {self._address.schema} "
        digests = [hashlib.blake2b((scope + name).encode(), digest_size=8) for name in set(names)]
        return sorted(int.from_bytes(each.digest(), signed=True) for each in digests)

    def _read(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """All rows of one statement, which is one atomic read."""
        return self._attempt(lambda session: _run(session, sql, values).fetchall())

    def _attempt(self, work: Callable[[Session], T]) -> T:
        """Run what can be run again as long as no COMMIT was sent.

        A session may have died since it was last used, and the server may ask a transaction to
        give way to another.
        """
        for attempt in range(ATTEMPT_COUNT_MAX):
            session, is_done = self._sessions.get(), False
            try:
                result = work(session)
                is_done = True
                return result
            except psycopg.Error as error:
                again = is_lost(session, error) or error.sqlstate in COLLIDED
                if not again or attempt + 1 == ATTEMPT_COUNT_MAX:
                    raise problem(error, self.uri) from error
            except UnicodeEncodeError as error:
                raise RequestError(f"the catalog cannot store this value: {error}") from error
            finally:  # Also when Ctrl-C ends the work.
                if not is_done:
                    self._clean(session)
        raise AssertionError("unreachable")

    def _clean(self, session: Session) -> None:
        """Leave no transaction open; a session of which that cannot be said is given up."""
        try:
            if not session.closed and not is_idle(session):
                session.execute("ROLLBACK")
            is_sound = not session.closed and is_idle(session)
        except psycopg.Error:
            is_sound = False
        if not is_sound:
            self._sessions.discard()

    def _write(self, steps: Sequence[Step], moves: Sequence[Move]) -> bool:
        """Make the steps and record the moves, if all of it finds things as it should."""
        keys = self._keys([move.new.name for move in moves])
        every = [*steps, *(record for move in moves for record in _records(move))]

        def transact(session: Session) -> Session | None:
            """Do all but the COMMIT; None: it was lost and undone."""
            if _send(session, keys, every):
                return session
            session.execute("ROLLBACK")
            return None

        session = self._attempt(transact)
        if session is None:
            return False
        self._commit(session, moves[-1].new)
        return True

    def _commit(self, session: Session, new: Pointer) -> None:
        is_settled = False
        try:
            done = session.execute("COMMIT").statusmessage
            is_settled = True
        except psycopg.Error as error:
            if is_lost(session, error) or not is_idle(session):
                raise self._unknown(new, error) from error
            is_settled = True  # The server answered, and the answer is no.
            raise problem(error, self.uri) from error
        finally:
            if not is_settled:
                self._sessions.discard()
        if done != "COMMIT":
            raise UnavailableError(f"the catalog {self.uri} took the commit back ({done})")

    def _unknown(self, new: Pointer, error: psycopg.Error) -> LakebedError:
        return CommitUnknownError(
            f"no answer came to the commit of {new.name} ({str(error).strip()})",
            hint="catalog.resolve tells whether it is in the table",
            commit_id=new.commit_id,
            table=new.name,
            base_version=new.version - 1,
        )

    def _leave_line(self, session: Session, keys: Sequence[int]) -> None:
        try:
            for key in reversed(keys):
                session.execute(_UNLOCK, (key,))
        except psycopg.Error:
            session.close()  # With the session goes its place in the line.


def _run(session: Session, sql: str, values: Sequence[Any]) -> psycopg.Cursor[tuple[Any, ...]]:
    return session.execute(sql.encode(), values)


def _send(session: Session, keys: Sequence[int], steps: Sequence[Step]) -> bool:
    """Begin a transaction and make the steps, in one round trip; whether each found its rows."""
    with session.pipeline() as pipeline:
        session.execute(_BEGIN)
        for key in keys:
            session.execute(_LOCK_IN_TRANSACTION, (key,))
        results = [_run(session, sql, values) for sql, values, _ in steps]
        pipeline.sync()
        counts = [result.rowcount for result in results]
    return counts == [row_count for _, _, row_count in steps]


def _key(pointer: Pointer) -> tuple[str, str, int]:
    return pointer.name, table_id_in(pointer.table_id), pointer.version


def _step(move: Move) -> Step:
    return SQL.move_table, (*rows.moved_row(move.new), *_key(move.expected)), 1


def _records(move: Move) -> list[Step]:
    """What lands beside the head."""
    new, table_id = move.new, table_id_in(move.new.table_id)
    records: list[Step] = [(SQL.insert_commit + _ONCE, rows.pointer_row(new, table_id), 1)]
    records += [(_INSERT_ACTIONS, (page,), row_count) for page, row_count in log_pages(move)]
    if move.token is not None:
        records.append((SQL.insert_token + _ONCE, (table_id, *move.token, new.version), 1))
    if move.schema_id is not None:
        values = (table_id, move.schema_id, new.version, json_in(move.schema_json))
        records.append((SQL.insert_schema + _ONCE, values, 1))
    return records


def _wait_in_line(session: Session, keys: Sequence[int]) -> Session | None:
    """The session that holds the locks; None: the wait was too long, go on without."""
    held: list[int] = []
    try:
        for key in keys:
            session.execute(_LOCK, (key,))
            held.append(key)
    except psycopg.Error as error:
        if is_lost(session, error):
            raise  # With the session went its locks.
        for key in held:
            session.execute(_UNLOCK, (key,))
        if isinstance(error, LockNotAvailable):
            return None
        raise
    return session
