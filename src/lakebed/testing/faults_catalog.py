"""A catalog whose answers get lost; the pointer it keeps stays sound."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from lakebed.catalog.backend import CatalogBackend
from lakebed.errors import CommitUnknownError
from lakebed.format.pointer import Action, Move, Outcome, Pointer, Token
from lakebed.testing.faults import READ, WRITE, Faults
from lakebed.testing.scheduler import Actor

_Result = TypeVar("_Result")


class Line:
    """The queue of one history's catalog: whoever is inside keeps most other swaps out.

    Not all: it is advisory, and a swap that is already under way may come in between. With
    `holds=False` it lets everybody pass, as a backend without locks does.
    """

    def __init__(self, *, holds: bool) -> None:
        self.holds = holds
        self.inside: Actor | None = None

    def is_free_for(self, actor: Actor | None) -> bool:
        """Whether the actor may swap now."""
        return self.inside is None or self.inside is actor


class FaultyCatalog:
    """A catalog backend behind a network that the seed rules; one per actor, over a shared one."""

    def __init__(self, inner: CatalogBackend, faults: Faults, line: Line) -> None:
        self.uri = inner.uri
        self.decides_by_snapshot = inner.decides_by_snapshot
        self.multi_table = inner.multi_table
        self.keeps_log = inner.keeps_log
        self._inner = inner
        self._faults = faults
        self._line = line

    def warehouse(self, given: str | None) -> str | None:
        """Where the tables are."""
        return self._inner.warehouse(given)

    def next_version(self, name: str) -> int:
        """Where a new table begins."""
        return self._read("next_version", lambda: self._inner.next_version(name))

    def create(self, move: Move) -> None:
        """Enter a table."""
        self._write("create", [move], lambda: self._inner.create(move))

    def restore(self, moves: Sequence[Move]) -> None:
        """Enter a table's history."""
        self._write("restore", moves, lambda: self._inner.restore(moves))

    def drop(self, move: Move) -> bool:
        """Forget a table."""
        return self._write("drop", [move], lambda: self._inner.drop(move))

    def tables(self) -> list[str]:
        """The names of all tables."""
        return self._read("tables", self._inner.tables)

    def load(self, name: str) -> Pointer:
        """Read the head."""
        return self._read("load", lambda: self._inner.load(name))

    def swap(self, moves: Sequence[Move]) -> bool:
        """Make every step or none."""
        self._wait_for_line()
        return self._write("swap", moves, lambda: self._inner.swap(moves))

    def outcome(self, name: str, commit_id: str, *, since: int) -> Outcome:
        """Head and commit id in one read."""
        return self._read("outcome", lambda: self._inner.outcome(name, commit_id, since=since))

    def find_commit(self, commit_id: str) -> list[Pointer]:
        """The versions that a commit id made."""
        return self._read("find_commit", lambda: self._inner.find_commit(commit_id))

    def find_token(self, pointer: Pointer, token: Token) -> Pointer | None:
        """The version that committed this token."""
        return self._read("find_token", lambda: self._inner.find_token(pointer, token))

    def last_token(self, pointer: Pointer, app: str) -> Token | None:
        """The highest token of an app."""
        return self._read("last_token", lambda: self._inner.last_token(pointer, app))

    def at_version(self, pointer: Pointer, version: int) -> Pointer:
        """One version."""
        return self._read("at_version", lambda: self._inner.at_version(pointer, version))

    def at_time(self, pointer: Pointer, timestamp_ms: int) -> Pointer:
        """The version of a moment."""
        return self._read("at_time", lambda: self._inner.at_time(pointer, timestamp_ms))

    def history(self, pointer: Pointer) -> Iterator[Pointer]:
        """Every version."""
        return iter(self._read("history", lambda: list(self._inner.history(pointer))))

    def log(
        self, pointer: Pointer, since: int = -1, until: int | None = None
    ) -> Iterator[tuple[int, int, Action]]:
        """The action rows."""
        return iter(self._read("log", lambda: list(self._inner.log(pointer, since, until))))

    @contextmanager
    def queue(self, names: Sequence[str]) -> Iterator[None]:  # noqa: ARG002 - one line for all
        """Stand in line, in simulated time; a crash inside frees the place, as a socket would."""
        actor = self._faults.scheduler.current
        if not self._line.holds or not self._faults.is_on or self._line.inside is actor:
            yield
            return
        self._faults.point("catalog queue")
        self._wait_for_line()
        self._line.inside = actor
        try:
            yield
        finally:
            self._line.inside = None

    def close(self) -> None:
        """The shared backend stays."""

    def _wait_for_line(self) -> None:
        scheduler = self._faults.scheduler
        if self._line.holds and self._faults.is_on and scheduler.is_mine():
            actor = scheduler.current
            if not self._line.is_free_for(actor):
                scheduler.wait_until(lambda: self._line.is_free_for(actor))

    def _read(self, step: str, effect: Callable[[], _Result]) -> _Result:
        return self._faults.call(f"catalog {step}", effect, menu=READ)

    def _write(self, step: str, moves: Sequence[Move], effect: Callable[[], _Result]) -> _Result:
        def unanswered(message: str) -> CommitUnknownError:
            move = moves[-1]
            return CommitUnknownError(
                message,
                commit_id=move.new.commit_id,
                table=move.new.name,
                base_version=move.expected.version,
            )

        return self._faults.call(f"catalog {step}", effect, menu=WRITE, unanswered=unanswered)
