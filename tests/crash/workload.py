"""A workload whose content after each step is known, and a child that is killed in one of them.

copy of the place after step N-1 ─► child: step N ─► ack        written and fsynced
                                           ✂ SIGKILL            then nothing, or all of it
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.catalog.libraries import use_rollback_journal
from tests.crash.fuse import LEVELS, Fuse, Watched

from lakebed.catalog.sqlite import SqliteCatalog
from lakebed.catalog.store import StoreCatalog
from lakebed.clock import SystemClock
from lakebed.ids import SystemIds
from lakebed.storage.local import LocalStore
from lakebed.table.catalog import Catalog

MAIN, SIDE = "plant.readings", "plant.alarms"
APP = "crash"
DATABASE = "catalog.db"
KINDS = ("sqlite", "store")
ROLLBACK = "sqlite-rollback"  # as where Python has an old SQLite only
START = datetime(2026, 1, 1, tzinfo=UTC)
ROWS_PER_DAY = 4


class QuickClock(SystemClock):
    """The machine's clock, but nobody sleeps for long."""

    def sleep_ms(self, duration_ms: float) -> None:
        super().sleep_ms(min(duration_ms, 5))


# ------------------------------------------------------------------------------------ the model


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """All that a reader can see of one table."""

    columns: tuple[str, ...]
    rows: tuple[tuple[int, float], ...] = ()  # number and value, in order
    tags: tuple[str, ...] = ()


State = dict[str, Content]


def _with(state: State, name: str, values: dict[int, float], **changes: Any) -> State:
    table = replace(state[name], rows=tuple(sorted(values.items())), **changes)
    return {**state, name: table}


def rows(numbers: range, *, add: float = 0.0, value: str = "value") -> pa.Table:
    """Readings, an hour or so apart; the number tells them apart."""
    hours = 24 // ROWS_PER_DAY
    return pa.table(
        {
            "n": pa.array(numbers, pa.int64()),
            "ts": pa.array(
                [START + timedelta(hours=hours * n) for n in numbers], pa.timestamp("us", "UTC")
            ),
            value: pa.array([n / 4 + add for n in numbers], pa.float64()),
        }
    )


def _values(numbers: range, add: float = 0.0) -> dict[int, float]:
    return {n: n / 4 + add for n in numbers}


# ------------------------------------------------------------------------------------ the steps


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a user; `token` says that it may be sent again at any time."""

    name: str
    act: Callable[[Catalog], object]
    then: Callable[[State], State]
    token: int | None = None
    needs_database: bool = False


def _append(number: int, which: range, value: str) -> Step:
    return Step(
        f"append {number}",
        lambda c: c.table(MAIN).append(rows(which, value=value), token=(APP, number)),
        lambda s: _with(s, MAIN, dict(s[MAIN].rows) | _values(which)),
        token=number,
    )


def _transaction(catalog: Catalog) -> None:
    with catalog.transaction() as tx:
        tx.append(catalog.table(MAIN), rows(range(40, 42), value="reading"))
        tx.append(catalog.table(SIDE), rows(range(40, 42)))


_STEPS = (
    Step(
        "create",
        lambda c: c.create_table(MAIN, rows(range(0)).schema, partition_by=["day(ts)"]),
        lambda s: {**s, MAIN: Content(columns=("n", "ts", "value"))},
    ),
    _append(1, range(6), "value"),
    _append(2, range(6, 12), "value"),
    Step(
        "overwrite",
        lambda c: c.table(MAIN).overwrite(rows(range(3, 8), add=100.0), where="n >= 3 and n < 8"),
        lambda s: _with(s, MAIN, dict(s[MAIN].rows) | _values(range(3, 8), 100.0)),
    ),
    Step(
        "delete",
        lambda c: c.table(MAIN).delete("n = 9"),
        lambda s: _with(s, MAIN, {n: v for n, v in s[MAIN].rows if n != 9}),
    ),
    Step(
        "evolve",
        lambda c: (
            c.table(MAIN)
            .evolve()
            .rename_column("value", "reading")
            .add_column("note", "string")
            .commit()
        ),
        lambda s: _with(s, MAIN, dict(s[MAIN].rows), columns=("n", "ts", "reading", "note")),
    ),
    # So many days that their files go into a manifest of their own.
    _append(3, range(100, 100 + 18 * ROWS_PER_DAY, ROWS_PER_DAY), "reading"),
    Step(
        "tag",
        lambda c: c.table(MAIN).tag("good"),
        lambda s: _with(s, MAIN, dict(s[MAIN].rows), tags=("good",)),
    ),
    Step(
        "delete whole files",
        lambda c: c.table(MAIN).delete("n >= 100"),
        lambda s: _with(s, MAIN, {n: v for n, v in s[MAIN].rows if n < 100}),
    ),
    Step(
        "rollback",
        lambda c: c.table(MAIN).rollback("good"),
        lambda s: _with(s, MAIN, dict(s[MAIN].rows) | _values(range(100, 172, ROWS_PER_DAY))),
    ),
    Step(
        "create the other",
        lambda c: c.create_table(SIDE, rows(range(0)).schema),
        lambda s: {**s, SIDE: Content(columns=("n", "ts", "value"))},
    ),
    Step(
        "transaction",
        _transaction,
        lambda s: {
            MAIN: _with(s, MAIN, dict(s[MAIN].rows) | _values(range(40, 42)))[MAIN],
            SIDE: _with(s, SIDE, _values(range(40, 42)))[SIDE],
        },
        needs_database=True,
    ),
    Step(
        "drop",
        lambda c: c.drop_table(SIDE, purge=True),
        lambda s: {name: table for name, table in s.items() if name != SIDE},
    ),
    _append(4, range(50, 52), "reading"),
)


def steps(kind: str) -> list[Step]:
    """The steps that a kind of catalog can do."""
    return [step for step in _STEPS if kind != "store" or not step.needs_database]


def states(kind: str) -> list[State]:
    """What there is after 0, 1, 2 … steps; no two neighbours are alike."""
    found: list[State] = [{}]
    for step in steps(kind):
        found.append(step.then(found[-1]))
    assert all(one != next_ for one, next_ in pairwise(found))
    return found


def content(catalog: Catalog) -> State:
    """What a reader sees."""
    found = {}
    for name in catalog.tables():
        table = catalog.table(name)
        data = table.scan().to_arrow()
        pairs = zip(data.column(0).to_pylist(), data.column(2).to_pylist(), strict=True)
        found[name] = Content(
            columns=tuple(data.column_names),
            rows=tuple(sorted(pairs)),
            tags=tuple(sorted(table.metadata.tags)),
        )
    return found


# ------------------------------------------------------------------------------------ the child


def open_catalog(place: Path, kind: str, fuse: Fuse | None = None) -> Catalog:
    """A session on the place; with a fuse, each call of store and catalog burns it."""
    ids, clock = SystemIds(), QuickClock()
    store: Any = LocalStore(place)
    if fuse is not None:
        store = Watched(store, fuse)
    backend: Any
    if kind == "store":
        backend = StoreCatalog(store, ids, clock, probes=False)
    else:
        backend = SqliteCatalog(place / DATABASE)
    if fuse is not None and kind != "store":
        backend = Watched(backend, fuse)
    return Catalog(backend, store, clock=clock, ids=ids)


def acknowledged(place: Path) -> bool:
    """Whether the child has reported its step as done."""
    return _ack_file(place).exists() and bool(_ack_file(place).read_bytes())


def _ack_file(place: Path) -> Path:
    return place.with_suffix(".ack")


def work(place: Path, kind: str, number: int, level: str, fuse_length: int) -> None:
    """Do one step in a process of its own, which ends itself when the fuse is burnt."""
    if kind == ROLLBACK:
        use_rollback_journal(pytest.MonkeyPatch())  # Never undone: the process ends.
    write, sync = os.write, os.fsync  # The fuse shall not burn for what only the test does.
    ack = os.open(_ack_file(place), os.O_WRONLY | os.O_CREAT)
    fuse = Fuse(fuse_length)
    LEVELS[level](fuse)
    catalog = open_catalog(place, kind, fuse if level == "calls" else None)
    steps(kind)[number].act(catalog)
    fuse.burn()  # Done, and nobody was told.
    write(ack, b"done")
    sync(ack)
    os._exit(0)
