"""A catalog in this process's memory: for tests, notebooks and the simulator."""

import threading
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, ClassVar

from lakebed.catalog.absent import name_taken, no_moment, no_table, no_version
from lakebed.catalog.rows import check_distinct
from lakebed.format.pointer import Action, Move, Outcome, Pointer, Token


@dataclass(slots=True)
class _Record:
    """All that is kept of one table id; it outlives the table's name."""

    history: list[Pointer] = field(default_factory=list)  # place in the list == version
    actions: list[tuple[Action, ...]] = field(default_factory=list)
    commits: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, dict[int, int]] = field(default_factory=dict)  # app -> token -> version
    schemas: list[tuple[int, int, dict[str, Any]]] = field(default_factory=list)

    def append(self, move: Move) -> None:
        new = move.new
        assert new.version == len(self.history), "versions are contiguous"
        self.history.append(new)
        self.actions.append(move.actions)
        self.commits[new.commit_id] = new.version
        if move.token is not None:
            self.tokens.setdefault(move.token.app, {})[move.token.version] = new.version
        if move.schema_id is not None:
            self.schemas.append((move.schema_id, new.version, move.schema_json or {}))


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

    def create(self, move: Move) -> None:
        """Enter a table."""
        with self._lock:
            if move.new.name in self._heads or move.new.table_id in self._records:
                raise name_taken(move.new.name)
            record = self._records[move.new.table_id] = _Record()
            record.append(move)
            self._heads[move.new.name] = move.new

    def drop(self, pointer: Pointer) -> bool:
        """Forget the table's name if `pointer` is still its head."""
        with self._lock:
            if not self._is_head(pointer):
                return False
            del self._heads[pointer.name]
            return True

    def next_version(self, name: str) -> int:  # noqa: ARG002 - part of the contract
        """The version at which a table of that name would begin."""
        return 0

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

    def outcome(self, name: str, commit_id: str) -> Outcome:
        """Read head and commit id under one lock."""
        with self._lock:
            head = self._head(name)
            record = self._records[head.table_id]
            version = record.commits.get(commit_id)
            committed = None if version is None else record.history[version]
            return Outcome(head=head, committed=committed)

    def find_commit(self, commit_id: str) -> list[Pointer]:
        """The versions that a commit id made."""
        with self._lock:
            found = [
                record.history[record.commits[commit_id]]
                for record in self._records.values()
                if commit_id in record.commits
            ]
        return sorted(found, key=lambda pointer: pointer.name)

    def find_token(self, pointer: Pointer, token: Token) -> Pointer | None:
        """The version that committed exactly this token."""
        with self._lock:
            record = self._record(pointer)
            version = record.tokens.get(token.app, {}).get(token.version)
            return None if version is None else record.history[version]

    def last_token(self, pointer: Pointer, app: str) -> Token | None:
        """The highest token of `app`."""
        with self._lock:
            versions = self._record(pointer).tokens.get(app)
            return Token(app, max(versions)) if versions else None

    def at_version(self, pointer: Pointer, version: int) -> Pointer:
        """One version of the table."""
        with self._lock:
            history = self._record(pointer).history
            if 0 <= version < len(history):
                return history[version]
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
        """Every version from `pointer` back to 0."""
        with self._lock:
            past = self._record(pointer).history[: pointer.version + 1]
        return reversed(past)

    def log(
        self, pointer: Pointer, since: int = -1, until: int | None = None
    ) -> Iterator[tuple[int, int, Action]]:
        """The action rows of versions in (since, until]."""
        last = pointer.version if until is None else until
        with self._lock:
            versions = self._record(pointer).actions[: last + 1]
        for version in range(since + 1, len(versions)):
            for ordinal, action in enumerate(versions[version]):
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

    def _record(self, pointer: Pointer) -> _Record:
        try:
            return self._records[pointer.table_id]
        except KeyError:
            raise no_table(pointer.name) from None
