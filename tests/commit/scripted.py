"""A catalog that answers from a script, and a clock that only counts."""

from collections.abc import Sequence
from typing import Any, cast

from lakebed.catalog.backend import CatalogBackend
from lakebed.errors import LakebedError
from lakebed.format.pointer import Move, Outcome, Pointer

Answer = Any  # a value to return, or an error to raise


def pointer(
    name: str = "t", version: int = 1, *, commit: str = "c", table_id: str = "id"
) -> Pointer:
    """A version that some commit made."""
    return Pointer(
        name=name,
        table_id=table_id,
        location=name,
        version=version,
        snapshot_id=version,
        snapshot_path=f"metadata/snap-{version}.json",
        commit_id=commit,
        timestamp_ms=version,
    )


def move(name: str = "t", version: int = 1, *, commit: str = "mine") -> Move:
    """A step from `version` to the next one."""
    return Move(
        expected=pointer(name, version, commit="base"),
        new=pointer(name, version + 1, commit=commit),
        document=b"",
    )


class Script:
    """Gives the answers in order and keeps what was asked; a call too many is an error."""

    uri = "script:"

    def __init__(
        self,
        *,
        swaps: Sequence[Answer] = (),
        outcomes: Sequence[Answer] = (),
        finds: Sequence[Answer] = (),
    ) -> None:
        self._answers = {"swap": list(swaps), "outcome": list(outcomes), "find": list(finds)}
        self.asked: list[tuple[str, Any]] = []

    def swap(self, moves: Sequence[Move]) -> bool:
        return cast(bool, self._answer("swap", list(moves)))

    def outcome(self, name: str, commit_id: str, *, since: int) -> Outcome:
        return cast(Outcome, self._answer("outcome", (name, commit_id, since)))

    def find_commit(self, commit_id: str) -> list[Pointer]:
        return cast(list[Pointer], self._answer("find", commit_id))

    def kinds(self) -> list[str]:
        """Which calls came, in order."""
        return [kind for kind, _ in self.asked]

    def as_backend(self) -> CatalogBackend:
        """Itself, for code that asks no more than it can answer."""
        return cast(CatalogBackend, self)

    def _answer(self, kind: str, asked: Any) -> Answer:
        self.asked.append((kind, asked))
        answer = self._answers[kind].pop(0)
        if isinstance(answer, LakebedError):
            raise answer
        return answer


class CountingClock:
    """Time that passes only while somebody sleeps."""

    def __init__(self, start_ms: int = 1_000_000) -> None:
        self.time_ms = float(start_ms)
        self.slept_ms: list[float] = []

    def now_ms(self) -> int:
        return int(self.time_ms)

    def monotonic_ms(self) -> float:
        return self.time_ms

    def sleep_ms(self, duration_ms: float) -> None:
        self.slept_ms.append(duration_ms)
        self.time_ms += duration_ms
