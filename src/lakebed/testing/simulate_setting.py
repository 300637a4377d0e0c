"""What kind of world a history plays in: drawn from its seed before anything else.

Each history has only some of the faults, at rates of its own ("swarm testing"): a world where
everything fails all the time never gets far enough to be interesting.
"""

import random
from dataclasses import dataclass, field
from enum import StrEnum

from lakebed.testing.faults import Fault
from lakebed.testing.history import Kind

TABLES = ("plant.first", "plant.second")
CREATED = "plant.third"  # not there at the beginning
KEYS = range(4)


class Backend(StrEnum):
    """Where the pointer is."""

    MEMORY = "memory"
    STORE = "store"


class Beginning(StrEnum):
    """What is in the tables before the history."""

    EMPTY = "empty"
    FEW = "few"  # files, all listed inside the snapshot
    EDGE = "edge"  # one file more, and the list inside the snapshot becomes a manifest
    DEEP = "deep"  # one manifest more, and a tier folds


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One thing that a writer is going to do; `key` selects files or rows."""

    kind: Kind
    tables: tuple[str, ...]
    key: int
    number: int  # of the token, where there is one
    has_token: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Everything about a history that is fixed before its first step."""

    backend: Backend
    beginning: Beginning
    tables: tuple[str, ...]
    is_partitioned: bool
    is_serializable: bool
    is_whole: bool  # rows through Arrow and Parquet, instead of small stand-ins for data files
    holds_line: bool  # whether the catalog lets writers wait in line
    walks: bool  # random walk, or else priority changes
    shares_app: bool  # two writers use the same tokens: one of them is a zombie
    look_count: int
    attempt_count_max: int  # of the writers' retry policy
    answer_count_max: int
    rates: dict[Fault, float] = field(default_factory=dict)
    orders: dict[str, tuple[Order, ...]] = field(default_factory=dict)  # by writer


_RATES: dict[Fault, tuple[float, ...]] = {
    Fault.REFUSED: (0.01, 0.05),
    Fault.LOST_REQUEST: (0.03, 0.15),
    Fault.LOST_REPLY: (0.03, 0.2),
    Fault.LATE: (0.03, 0.2),
    Fault.LATE_CRASH: (0.02, 0.1),
    Fault.TORN: (0.1, 0.3),
    Fault.FULL: (0.01, 0.05),
    Fault.STALE: (0.3, 0.9),
    Fault.CRASH: (0.005, 0.03),
    Fault.CRASH_AFTER: (0.02, 0.1),
    Fault.INTERRUPT: (0.003, 0.01),
    Fault.CLOCK_JUMP: (0.01, 0.05),
}

_KINDS: tuple[tuple[Kind, int], ...] = (
    (Kind.APPEND, 45),
    (Kind.OVERWRITE, 14),
    (Kind.REWRITE, 10),
    (Kind.DELETE, 14),
    (Kind.REPLACE, 4),
    (Kind.TAG, 4),
    (Kind.EVOLVE, 4),
    (Kind.ROLLBACK, 5),
    (Kind.CREATE, 3),
)
_STAND_IN_KINDS = tuple((kind, weight) for kind, weight in _KINDS if kind is not Kind.REPLACE)
_WHOLE_KINDS = tuple(
    (kind, weight) for kind, weight in _KINDS if kind not in (Kind.OVERWRITE, Kind.REWRITE)
)


def draw_setting(chance: random.Random) -> Setting:
    """Draw a world, its writers and what they are going to do."""
    backend = Backend.MEMORY if chance.random() < 0.6 else Backend.STORE
    is_whole = chance.random() < 0.04
    several = backend is Backend.MEMORY and chance.random() < 0.3
    beginnings = (Beginning.EMPTY, Beginning.FEW, Beginning.EDGE, Beginning.DEEP)
    beginning = chance.choices(beginnings, (38, 54, 7, 1))[0]  # manifests take milliseconds
    tables = TABLES if several else TABLES[:1]
    writer_count = chance.randrange(2, 5)
    kinds = _WHOLE_KINDS if is_whole else _STAND_IN_KINDS
    return Setting(
        backend=backend,
        beginning=Beginning.EMPTY if is_whole else beginning,
        tables=tables,
        is_partitioned=chance.random() < 0.3,
        is_serializable=chance.random() < 0.3,
        is_whole=is_whole,
        holds_line=chance.random() < 0.5,
        walks=chance.random() < 0.7,
        shares_app=chance.random() < 0.15,
        look_count=chance.randrange(0, 5),
        attempt_count_max=chance.choice((2, 16, 16)),
        answer_count_max=chance.choice((1, 2, 16)),  # few: then outcomes stay unknown
        rates=_rates(chance),
        orders={f"w{n}": _orders(chance, tables, kinds) for n in range(1, writer_count + 1)},
    )


def _rates(chance: random.Random) -> dict[Fault, float]:
    if chance.random() < 0.12:
        return {}  # fair weather: nothing but races
    share = chance.choice((0.25, 0.5))
    return {
        fault: chance.choice(rates) for fault, rates in _RATES.items() if chance.random() < share
    }


def _tables_of(
    chance: random.Random, tables: tuple[str, ...], kind: Kind, *, both: bool
) -> tuple[str, ...]:
    if kind is Kind.CREATE:
        return (CREATED,)
    return tables if both else (chance.choice(tables),)


def _orders(
    chance: random.Random, tables: tuple[str, ...], kinds: tuple[tuple[Kind, int], ...]
) -> tuple[Order, ...]:
    names, weights = [kind for kind, _ in kinds], [weight for _, weight in kinds]
    orders = []
    for number in range(1, chance.randrange(1, 4) + 1):
        kind = chance.choices(names, weights)[0]
        both = len(tables) > 1 and kind is Kind.APPEND and chance.random() < 0.6
        orders.append(
            Order(
                kind=kind,
                tables=_tables_of(chance, tables, kind, both=both),
                key=chance.choice(KEYS),
                number=number,
                has_token=kind is Kind.APPEND and not both and chance.random() < 0.4,
            )
        )
    return tuple(orders)
