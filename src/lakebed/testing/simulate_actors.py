"""The actors: writers that carry out orders through crashes, and readers that look on."""

from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from lakebed.commit.change import Commit
from lakebed.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitUnknownError,
    TokenError,
    UnavailableError,
)
from lakebed.format.datafile import DataFile
from lakebed.format.pointer import Pointer
from lakebed.format.snapshot import Operation
from lakebed.table.catalog import Catalog
from lakebed.table.resolution import Fate
from lakebed.table.table import Table
from lakebed.testing.faults import Interrupted
from lakebed.testing.history import Attempt, Claim, Kind, Look, Part, Result, Row
from lakebed.testing.scheduler import Crash
from lakebed.testing.simulate_setting import Order
from lakebed.testing.simulate_world import SCHEMA, Process, World

_TRIES_MAX = 4
_PAST_CHANCE = 0.25
_REFUSALS = (CommitConflictError, UnavailableError, TokenError, AlreadyExistsError)


def live(world: World, process: Process, work: Callable[[], None]) -> None:
    """Work, and after each crash start anew with nothing but what the user remembers."""
    while True:
        try:
            work()
        except (Crash, Interrupted):
            actor = world.scheduler.current
            assert actor is not None, "an actor crashed"
            actor.is_dead = False
            process.incarnation += 1
            world.faults.note("starts anew")
        else:
            return


class Writer:
    """Carries out its orders; those with a token until they are done, others once."""

    def __init__(self, world: World, name: str, orders: tuple[Order, ...], app: str) -> None:
        self._world = world
        self._orders = orders
        self._app = app
        self._place = 0
        self._tries = 0
        self._token_rows: dict[int, frozenset[Row]] = {}
        self.process = Process(world, name)

    def run(self) -> None:
        """The whole life."""
        live(self._world, self.process, self._work)

    def _work(self) -> None:
        catalog = self._world.open(self.process)
        while self._place < len(self._orders):
            order = self._orders[self._place]
            self._tries += 1
            try:
                if not order.has_token or self._tries > _TRIES_MAX:
                    self._done()  # before it is tried: after a crash it is not repeated
                    self._carry_out(catalog, order)
                elif self._carry_out(catalog, order) is Result.COMMITTED:
                    self._done()
            except UnavailableError:
                self._world.faults.note("could not even begin")

    def _done(self) -> None:
        self._place += 1
        self._tries = 0

    def _carry_out(self, catalog: Catalog, order: Order) -> Result | None:
        """Read what has to be read, then make one attempt; None if there was nothing to do."""
        if order.kind is Kind.CREATE:
            return self._create(catalog, order)
        tables = {name: catalog.table(name) for name in order.tables}
        name, table = next(iter(tables.items()))
        match order.kind:
            case Kind.APPEND:
                return self._append(catalog, tables, order)
            case Kind.OVERWRITE | Kind.REWRITE:
                return self._replace_files(catalog, table, name, order)
            case Kind.DELETE:
                attempt = self._begin(order, {name: Part(key=order.key)})
                return self._attempt(catalog, attempt, lambda: table.delete(f"key = {order.key}"))
            case Kind.REPLACE:
                attempt = self._begin(order, {})
                rows = frozenset({Row(order.key, attempt.serial, 1)})
                attempt.parts[name] = Part(key=order.key, rows=rows)
                where = f"key = {order.key}"
                return self._attempt(catalog, attempt, lambda: table.overwrite(_arrow(rows), where))
            case Kind.TAG:
                attempt = self._begin(order, {})
                attempt.parts[name] = Part(name=f"tag-{attempt.serial}")
                return self._attempt(catalog, attempt, lambda: table.tag(f"tag-{attempt.serial}"))
            case Kind.EVOLVE:
                attempt = self._begin(order, {})
                column = f"column_{attempt.serial}"
                attempt.parts[name] = Part(name=column)
                return self._attempt(
                    catalog, attempt, lambda: table.evolve().add_column(column, "long").commit()
                )
            case Kind.ROLLBACK:
                return self._roll_back(catalog, table, name, order)
        raise AssertionError("every kind has its case")

    def _create(self, catalog: Catalog, order: Order) -> Result:
        attempt = self._begin(order, {name: Part() for name in order.tables})
        return self._attempt(
            catalog,
            attempt,
            lambda: _founding(catalog.create_table(order.tables[0], SCHEMA)._pointer),
        )

    def _append(self, catalog: Catalog, tables: dict[str, Table], order: Order) -> Result:
        token = (self._app, order.number) if order.has_token else None
        attempt = self._begin(order, {}, token)
        fresh = frozenset(Row(order.key, attempt.serial, number) for number in (1, 2))
        rows = self._token_rows.setdefault(order.number, fresh) if token else fresh
        attempt.parts = {name: Part(rows=rows) for name in tables}
        if len(tables) > 1:
            return self._attempt(catalog, attempt, lambda: _append_all(catalog, tables, rows))
        name, table = next(iter(tables.items()))
        if self._world.setting.is_whole:
            return self._attempt(catalog, attempt, lambda: table.append(_arrow(rows), token=token))
        file = self._store(attempt, name, rows)
        return self._attempt(
            catalog, attempt, lambda: table.commit_append([file], token=token, verify=False)
        )

    def _replace_files(
        self, catalog: Catalog, table: Table, name: str, order: Order
    ) -> Result | None:
        plan = table.read_plan()
        files = [file for file in plan.files if file.stats[1].lower == order.key][:2]
        if not files:
            return None
        paths = frozenset(file.path for file in files)
        attempt = self._begin(order, {})
        rows = frozenset({Row(order.key, attempt.serial, 1)})
        if order.kind is Kind.REWRITE:
            rows = self._world.rows_of(name, paths)
        attempt.parts[name] = Part(rows=rows, removed=paths)
        added = self._store(attempt, name, rows)
        base = plan.snapshot if self._world.chance.random() < 0.5 else None
        return self._attempt(
            catalog,
            attempt,
            lambda: table.commit_overwrite(
                files,
                [added],
                verify=False,
                base=base,
                data_change=order.kind is Kind.OVERWRITE,
            ),
        )

    def _roll_back(self, catalog: Catalog, table: Table, name: str, order: Order) -> Result | None:
        now = table.current_snapshot().version
        target = max(now - 1 - order.key, 0)
        if target == now:
            return None
        attempt = self._begin(order, {name: Part(target=target)})
        return self._attempt(catalog, attempt, lambda: table.rollback(target))

    def _begin(
        self, order: Order, parts: dict[str, Part], token: tuple[str, int] | None = None
    ) -> Attempt:
        attempt = self._world.history.begin(self.process.name, order.kind, parts, token)
        self.process.ids.serial = attempt.serial
        self._world.faults.note(f"begins {order.kind} {attempt.serial}")
        return attempt

    def _store(self, attempt: Attempt, table: str, rows: Iterable[Row]) -> DataFile:
        """Write a data file, under another name if need be; giving up refuses the attempt."""
        for _ in range(_TRIES_MAX):
            file, content = self._world.stand_in(self.process, rows)
            try:
                self._world.put(table, file, content)
            except UnavailableError:
                continue
            return file
        self._end(attempt, Result.FAILED, "no room for data")
        raise UnavailableError("the data file cannot be stored")

    def _attempt(self, catalog: Catalog, attempt: Attempt, call: Callable[[], Any]) -> Result:
        """Make the call and keep what the caller is told."""
        try:
            told = call()
        except CommitUnknownError as error:
            attempt.commit_id = error.commit_id
            self._world.unknown[attempt.serial] = error
            self._end(attempt, Result.UNKNOWN, str(error))
            self._ask(catalog, attempt)
        except _REFUSALS as error:
            self._end(attempt, Result.FAILED, f"{type(error).__name__}: {error}")
        else:
            commits: list[Commit] = told if isinstance(told, list) else [told]
            attempt.commit_id = commits[0].commit_id
            attempt.versions = {commit.table: commit.version for commit in commits}
            attempt.is_repeated = commits[0].repeated
            is_idle = attempt.kind is Kind.DELETE and not commits[0].removed_files
            result = Result.IDLE if is_idle else Result.COMMITTED
            self._end(attempt, result, str(attempt.versions))
        return attempt.result

    def _end(self, attempt: Attempt, result: Result, reason: str) -> None:
        attempt.result, attempt.reason = result, reason
        attempt.ended = self._world.history.tick()
        self._world.faults.note(f"{attempt.kind} {attempt.serial} {result.value}: {reason}")

    def _ask(self, catalog: Catalog, attempt: Attempt) -> None:
        """Sometimes ask at once what became of it."""
        if self._world.chance.random() < 0.5:
            return
        try:
            attempt.claims.append(ask(catalog, self._world.unknown[attempt.serial]))
        except UnavailableError:
            self._world.faults.note("no answer to that either")


class Reader:
    """Looks at the tables again and again."""

    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self._left = world.setting.look_count
        self.process = Process(world, name)

    def run(self) -> None:
        """The whole life."""
        live(self._world, self.process, self._work)

    def _work(self) -> None:
        catalog = self._world.open(self.process)
        tables: dict[str, Table] = {}
        while self._left > 0:
            self._left -= 1
            name = self._world.chance.choice(self._world.setting.tables)
            try:
                if name not in tables:
                    tables[name] = catalog.table(name)
                seen = look(self._world, self.process, name, tables[name])
                if self._world.chance.random() < _PAST_CHANCE:
                    past = self._world.chance.randrange(seen + 1)
                    look(self._world, self.process, name, tables[name], past)
            except UnavailableError:
                self._world.faults.note("could not read")
            self._world.faults.pause(self._world.chance.random() * 100)


def look(world: World, process: Process, name: str, table: Table, at: int | None = None) -> int:
    """Read a table, now or at an old version, and keep what was seen; tells the version."""
    began = world.history.tick()
    plan = table.read_plan(snapshot_id=at)
    files = frozenset(file.path for file in plan.files)
    seen: tuple[Row, ...] | None = None
    if world.setting.is_whole:
        version = plan.snapshot.version
        columns = table.scan(as_of=version, columns=list(Row._fields)).to_arrow()
        seen = tuple(Row(**row) for row in columns.to_pylist())
    world.faults.note(f"sees v{plan.snapshot.version} of {name}")
    world.history.looks.append(
        Look(
            actor=process.name,
            incarnation=process.incarnation,
            table=name,
            began=began,
            ended=world.history.tick(),
            version=plan.snapshot.version,
            files=files,
            rows=seen,
            is_past=at is not None,
        )
    )
    return plan.snapshot.version


def ask(catalog: Catalog, error: CommitUnknownError) -> Claim:
    """Ask the catalog what became of a commit."""
    found = catalog.resolve(error)
    return Claim(
        commit_id=error.commit_id,
        versions={commit.table: commit.version for commit in found.commits},
        is_final=found.fate is not Fate.UNDECIDED,
    )


def _founding(pointer: Pointer) -> Commit:
    """What was told of a new table, as a commit."""
    return Commit(
        table=pointer.name,
        version=pointer.version,
        snapshot_id=pointer.snapshot_id,
        commit_id=pointer.commit_id,
        timestamp_ms=pointer.timestamp_ms,
        operation=Operation.CREATE,
    )


def _append_all(catalog: Catalog, tables: dict[str, Table], rows: Iterable[Row]) -> list[Commit]:
    with catalog.transaction() as transaction:
        for table in tables.values():
            transaction.append(table, _arrow(rows))
    return transaction.commits


def _arrow(rows: Iterable[Row]) -> pa.Table:
    return pa.Table.from_pylist([row._asdict() for row in sorted(rows)], schema=SCHEMA)
