"""Catalogs that fail at a chosen call, and can be opened again on what is left.

crash     the process dies before or after the call took effect
lost      the answer to one swap never comes, before or after its effect
deaf      the answers to all swaps never come, nor those to questions about them
refused   the store does not answer one call that creates objects, before or after its effect
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from lakebed.catalog.memory import MemoryCatalog
from lakebed.catalog.sqlite import SqliteCatalog
from lakebed.catalog.store import StoreCatalog
from lakebed.commit.policy import RetryPolicy
from lakebed.errors import CommitUnknownError, UnavailableError
from lakebed.storage.local import LocalStore
from lakebed.storage.memory import MemoryStore
from lakebed.table.catalog import Catalog

_DECIDES = frozenset({"create_table", "swap", "drop"})
_ASKS = frozenset({"outcome", "find_commit"})
_STORES = frozenset({"create", "create_all"})
_CLEANS = frozenset({"delete"})


class Crashed(BaseException):
    """The process is gone; no clean-up code for errors sees this."""


@dataclass(frozen=True)
class Trouble:
    """What happens, at which call of its kind, and whether that takes effect."""

    kind: str
    call: int = 0
    after: bool = False


class Troubles:
    """Meets every call of a catalog and its store; quiet until told otherwise."""

    def __init__(self) -> None:
        self.planned: Trouble | None = None
        self.met = False
        self._count = 0

    def plan(self, trouble: Trouble | None) -> None:
        """Have something happen from now on."""
        self.planned, self.met, self._count = trouble, False, 0

    def call(self, name: str, effect: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Make one call, or what becomes of it."""
        trouble = self.planned
        if trouble is None or not self._is_hit(trouble, name):
            return effect(*args, **named)
        self.met = True
        if trouble.after and name not in _ASKS:
            effect(*args, **named)
        if trouble.kind == "crash":
            raise Crashed
        if trouble.kind == "refused" or name in _ASKS:
            raise UnavailableError(f"planned: no answer to {name}")
        moves = args[0] if name == "swap" else args
        move = moves[0]
        raise CommitUnknownError(
            f"planned: no answer to {name}",
            commit_id=move.new.commit_id,
            table=move.new.name,
            base_version=move.expected.version,
        )

    def _is_hit(self, trouble: Trouble, name: str) -> bool:
        match trouble.kind:
            case "crash":
                concerned = name in _DECIDES | _STORES | _CLEANS
            case "refused":
                concerned = name in _STORES
            case "lost":
                concerned = name == "swap"
            case _:
                return name == "swap" or name in _ASKS
        self._count += concerned
        return concerned and self._count == trouble.call + 1


class _Shaky:
    """A backend or a store; each of its calls meets the troubles."""

    def __init__(self, inner: Any, troubles: Troubles) -> None:
        self._inner = inner
        self._troubles = troubles

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name == "child":
            return lambda path: _Shaky(found(path), self._troubles)
        if name == "create" and hasattr(self._inner, "swap"):
            name = "create_table"
        if name not in _DECIDES | _ASKS | _STORES | _CLEANS:
            return found
        return lambda *args, **named: self._troubles.call(name, found, *args, **named)


class SteppingClock:
    """Time that goes on with each look, and jumps when told to; sleeping takes none."""

    def __init__(self) -> None:
        self.ms = 1_767_225_600_000

    def now_ms(self) -> int:
        self.ms += 1
        return self.ms

    def monotonic_ms(self) -> float:
        return float(self.now_ms())

    def sleep_ms(self, duration_ms: float) -> None:
        self.ms += int(duration_ms)


class CountedIds:
    """Ids in order of asking, the same in each run."""

    def __init__(self) -> None:
        self._count = 0
        self._chance = Random(7)

    def new(self) -> str:
        self._count += 1
        return f"{self._count:032x}"

    def bits(self, count: int) -> int:
        return self._chance.getrandbits(count)

    def fraction(self) -> float:
        return self._chance.random()


class World:
    """One warehouse; `reopen` is what a new process does."""

    def __init__(self, kind: str, root: Path) -> None:
        self.kind = kind
        self.root = root
        self.clock = SteppingClock()
        self.ids = CountedIds()
        self.troubles = Troubles()
        self._memory = MemoryCatalog(), MemoryStore()
        self._backend: Any = None
        self.catalog = self.reopen()

    def reopen(self) -> Catalog:
        """Open the catalog with nothing remembered."""
        self.close()
        self.troubles.plan(None)
        backend, store = self._open()
        self._backend = backend
        shaky = _Shaky(backend, self.troubles)
        self.catalog = Catalog(
            shaky,
            store,
            clock=self.clock,
            ids=self.ids,
            policy=RetryPolicy(answer_count_max=3),
        )
        return self.catalog

    def close(self) -> None:
        """Let go of files."""
        if self._backend is not None:
            self._backend.close()

    def _open(self) -> tuple[Any, Any]:
        if self.kind == "memory":
            backend, store = self._memory
            return backend, _Shaky(store, self.troubles)
        disk = _Shaky(LocalStore(self.root / "lake", fsync=False, ids=self.ids), self.troubles)
        if self.kind == "sqlite":
            return SqliteCatalog(self.root / "catalog.db"), disk
        return StoreCatalog(disk, self.ids, self.clock, probes=False), disk
