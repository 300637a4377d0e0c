"""A catalog in this process's memory: for tests, notebooks and the simulator."""

import threading
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, ClassVar

from lakebed.catalog.absent import name_taken, no_moment, no_table, no_version
from lakebed.catalog.rows import check_distinct, check_history, check_step, is_tombstone
from lakebed.format.pointer import Action, Move, Outcome, Pointer, Token


@dataclass(slots=True)
class _Record:
    """All that is kept of one table id; it outlives the table's name."""

    first: int = 0  # the version at place 0 of the lists
    history: list[Pointer] = field(default_factory=list)
    actions: list[tuple[Action, ...]] = field(default_factory=list)
    commits: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, dict[int, int]] = field(default_factory=dict)  # app -> token -> version
    schemas: list[tuple[int, int, dict[str, Any]]] = field(default_factory=list)

    def append(self, move: Move) -> None:
        new = move.new
        assert new.version == self.first + len(self.history), "versions are contiguous"
        self.history.append(new)
        self.actions.append(move.actions)
        self.commits[new.commit_id] = new.version
        if move.token is not None:
            self.tokens.setdefault(move.token.app, {})[move.token.version] = new.version
        if move.schema_id is not None:
            self.schemas.append((move.schema_id, new.version, move.schema_json or {}))

    def at(self, version: int) -> Pointer | None:
        place = version - self.first
        return self.history[place] if 0 <= place < len(self.history) else None

    def made_by(self, commit_id: str) -> Pointer | None:
        version = self.commits.get(commit_id)
        return None if version is None else self.at(version)


class MemoryCatalog:
    """Tables that live as long as this object, behind one lock.

    `named` gives each part of a process the same catalog by name. After a fork the child has a
    copy of its own: nothing is shared between processes. A scheduler that runs several writers
    in one thread sets `queues=False`: waiting in line would wait for itself.
    """

    decides_by_snapshot: bool = False
    multi_table: bool = True
    keeps_log: bool = True

    _named: ClassVar[dict[str, "MemoryCatalog"]] = {}
    _named_lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, name: str = "", *, queues: bool = True) -> None:
        self.uri: str = f"memory:{name}"
        self._lock = threading.Lock()
        self._line: AbstractContextManager[Any] = threading.RLock() if queues else nullcontext()
        self._heads: dict[str, Pointer] = {}
        self._records: dict[str, _Record] = {}
        self._warehouse: str | None = None

    def __repr__(self) -> str:
        return f"MemoryCatalog({self.uri!r})"

    @classmethod
    def named(cls, name: str) -> "MemoryCatalog":
        """The one catalog of that name in this process; made at the first call."""
        with cls._named_lock:
            catalog = cls._named.get(name)
            if catalog is None:
                catalog = cls._named[name] = cls(name)
            return catalog

    @classmethod
    def forget(cls, name: str) -> None:
        """Let go of a named catalog; none of that name is no error."""
        with cls._named_lock:
            cls._named.pop(name, None)

    def warehouse(self, given: str | None) -> str | None:
        """Say where the tables are: what was given now, or else first."""
        with self._lock:
            if self._warehouse is None:
                self._warehouse = given
            return self._warehouse if given is None else given

    def next_version(self, name: str) -> int:  # noqa: ARG002 - a new table has a new id
        """The version at which a table of that name would begin."""
        return 0

    def create(self, move: Move) -> None:
        """Enter a table."""
        self.restore([move])

    def restore(self, moves: Sequence[Move]) -> None:
        """Enter a table with its history."""
        check_history(moves)
        last = moves[-1].new
        with self._line, self._lock:
            is_taken = last.name in self._heads and not is_tombstone(last)
            if is_taken or last.table_id in self._records:
                raise name_taken(last.name)
            record = self._records[last.table_id] = _Record(first=moves[0].new.version)
            for move in moves:
                record.append(move)
            if not is_tombstone(last):
                self._heads[last.name] = last

    def drop(self, move: Move) -> bool:
        """Forget the table's name and record the tombstone."""
        check_step(move)
        with self._line, self._lock:
            if not self._may_move(move):
                return False
            self._records[move.new.table_id].append(move)
            del self._heads[move.new.name]
            return True

    def tables(self) -> list[str]:
        """The names of all tables, in order."""
        with self._lock:
            return sorted(self._heads)

    def load(self, name: str) -> Pointer:
        """Read the head of a table."""
        with self._lock:
            return self._head(name)

    def swap(self, moves: Sequence[Move]) -> bool:
        """Make every step or none."""
        check_distinct(moves)
        with self._line, self._lock:
            if not all(self._may_move(move) for move in moves):
                return False
            for move in moves:
                self._records[move.new.table_id].append(move)
                self._heads[move.new.name] = move.new
            return True

    def outcome(self, name: str, commit_id: str, *, since: int) -> Outcome:  # noqa: ARG002
        """Read head and commit id under one lock."""
        with self._lock:
            found = [made for made in self._made_by(commit_id) if made.name == name]
            return Outcome(head=self._heads.get(name), committed=found[0] if found else None)

    def find_commit(self, commit_id: str) -> list[Pointer]:
        """The versions that a commit id made."""
        with self._lock:
            found = self._made_by(commit_id)
        return sorted(found, key=lambda pointer: pointer.name)

    def find_token(self, pointer: Pointer, token: Token) -> Pointer | None:
        """The version that committed exactly this token."""
        with self._lock:
            record = self._record(pointer)
            version = record.tokens.get(token.app, {}).get(token.version)
            return None if version is None else record.at(version)

    def last_token(self, pointer: Pointer, app: str) -> Token | None:
        """The highest token of `app`."""
        with self._lock:
            versions = self._record(pointer).tokens.get(app)
            return Token(app, max(versions)) if versions else None

    def at_version(self, pointer: Pointer, version: int) -> Pointer:
        """One version of the table."""
        with self._lock:
            found = self._record(pointer).at(version)
        if found is not None:
            return found
        raise no_version(pointer, version)

    def at_time(self, pointer: Pointer, timestamp_ms: int) -> Pointer:
        """The last version not later than the moment."""
        with self._lock:
            history = self._record(pointer).history
            place = bisect_right(history, timestamp_ms, key=lambda past: past.timestamp_ms)
            if place > 0:
                return history[place - 1]
        raise no_moment(pointer, timestamp_ms)

    def history(self, pointer: Pointer) -> Iterator[Pointer]:
        """Every version from `pointer` back to the first."""
        with self._lock:
            record = self._record(pointer)
            past = record.history[: pointer.version + 1 - record.first]
        return reversed(past)

    def log(
        self, pointer: Pointer, since: int = -1, until: int | None = None
    ) -> Iterator[tuple[int, int, Action]]:
        """The action rows of versions in (since, until]."""
        last = pointer.version if until is None else until
        with self._lock:
            record = self._record(pointer)
            first = max(since + 1, record.first)
            versions = record.actions[first - record.first : max(last + 1 - record.first, 0)]
        for version, actions in enumerate(versions, first):
            for ordinal, action in enumerate(actions):
                yield version, ordinal, action

    @contextmanager
    def queue(self, names: Sequence[str]) -> Iterator[None]:  # noqa: ARG002 - one line for all
        """Wait in line for the sole right to swap."""
        with self._line:
            yield

    def close(self) -> None:
        """Nothing to release: a named catalog stays for whoever opens it next."""

    def _head(self, name: str) -> Pointer:
        try:
            return self._heads[name]
        except KeyError:
            raise no_table(name) from None

    def _is_head(self, pointer: Pointer) -> bool:
        head = self._heads.get(pointer.name)
        return head is not None and (head.table_id, head.version) == (
            pointer.table_id,
            pointer.version,
        )

    def _may_move(self, move: Move) -> bool:
        if not self._is_head(move.expected):
            return False
        record = self._records[move.new.table_id]
        if move.new.commit_id in record.commits:
            return False
        return move.token is None or move.token.version not in record.tokens.get(move.token.app, {})

    def _made_by(self, commit_id: str) -> list[Pointer]:
        made = (record.made_by(commit_id) for record in self._records.values())
        return [pointer for pointer in made if pointer is not None]

    def _record(self, pointer: Pointer) -> _Record:
        try:
            return self._records[pointer.table_id]
        except KeyError:
            raise no_table(pointer.name) from None
