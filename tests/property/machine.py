"""The machine that does the same things to the library's tables and to their model.

A commit that failed half way is in the table as a whole or not at all; the machine looks which,
and has the model follow.
"""

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from tests.property.model import ModelTable, Version
from tests.property.predicates import sql_of
from tests.property.steps import (
    TABLES,
    arrow_of,
    equality_of,
    first_columns,
    names,
    new_column,
    parts_of,
    points,
    predicate_of,
    rows_of,
    seeds,
    spec_texts,
    troubles,
    value_of,
)
from tests.property.worlds import Crashed, Trouble, World

from lakebed.errors import (
    CommitUnknownError,
    NotFoundError,
    RequestError,
    TokenError,
    UnavailableError,
)
from lakebed.files.data_writer import WriterOptions
from lakebed.table.catalog import Catalog
from lakebed.table.resolution import Fate
from lakebed.table.rows import RowWriter
from lakebed.table.table import Table


class WritingMachine(RuleBasedStateMachine):
    """Two tables of one catalog, and their model."""

    kind = "memory"

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="lakebed-model-"))
        self.world = World(self.kind, self.root)
        self.tables: dict[str, ModelTable] = {}
        self.unsure: dict[str, int] = {}  # tables that a lost commit left a snapshot file of
        self.is_rebuildable = self.kind == "sqlite"

    def teardown(self) -> None:
        self.world.close()
        shutil.rmtree(self.root)

    @property
    def catalog(self) -> Catalog:
        return self.world.catalog

    def table(self, name: str) -> Table:
        return self.catalog.table(name)

    # ---------------------------------------------------------------------------------- making

    @initialize(seed=seeds)
    def begin(self, seed: int) -> None:
        for place, name in enumerate(TABLES):
            self._create(name, Random(seed + place), first=0, trouble=None)

    def _create(self, name: str, chance: Random, *, first: int, trouble: Trouble | None) -> None:
        columns = first_columns(chance)
        version = Version("create", columns, Counter())
        parts = parts_of(version, chance)
        schema = pa.schema([(column.name, column.kind.arrow) for column in columns])
        self.world.troubles.plan(trouble)
        try:
            self.catalog.create_table(name, schema, partition_by=spec_texts(parts, version))
        except (Crashed, CommitUnknownError, UnavailableError):
            self.is_rebuildable = False  # A table that never was may have left its first snapshot.
            self.world.reopen()
            if name not in self.catalog.tables():
                self.catalog.create_table(name, schema, partition_by=spec_texts(parts, version))
        self.world.troubles.plan(None)
        model = ModelTable({first - 1: version})
        model.push(Version("create", columns, Counter(), parts))
        del model.versions[first - 1]
        self.tables[name] = model

    @rule(name=names, seed=seeds, purge=st.booleans(), trouble=troubles)
    def drop_and_create_anew(
        self, name: str, seed: int, purge: bool, trouble: Trouble | None
    ) -> None:
        old = self.table(name)
        model = self.tables.pop(name)
        self.is_rebuildable = self.is_rebuildable and not self.is_unsure(name, model)
        self.world.troubles.plan(trouble)
        try:
            self.catalog.drop_table(name, purge=purge)
        except (Crashed, CommitUnknownError, UnavailableError):
            self.is_rebuildable = False
            self.world.reopen()
            if name in self.catalog.tables():
                self.catalog.drop_table(name, purge=purge)
        self.world.troubles.plan(None)
        assert name not in self.catalog.tables()
        first = model.head + 2 if self.kind == "store" else 0  # behind the tombstone
        self._create(name, Random(seed), first=first, trouble=trouble)
        with pytest.raises(NotFoundError, match="created anew"):
            old.scan()

    # --------------------------------------------------------------------------------- writing

    def _write(
        self,
        act: Callable[[], Any],
        after: dict[str, Version],
        trouble: Trouble | None,
        token: tuple[str, int] | None = None,
    ) -> bool:
        """Do it to the library; if it is done there, do it to the model."""
        before = {name: self.tables[name].head for name in after}
        self.world.troubles.plan(trouble)
        moved = True
        try:
            act()
        except Crashed:
            self.world.reopen()
            moved = self._has_moved(before)
        except CommitUnknownError as error:
            assert trouble is not None
            assert trouble.kind == "deaf", "a single lost answer is found out"
            self.world.troubles.plan(None)
            moved = self._has_moved(before)
            fate = self.catalog.resolve(error).fate
            assert fate is (Fate.COMMITTED if moved else Fate.UNDECIDED)
        except UnavailableError:
            assert trouble is not None
            assert trouble.kind == "refused"
            self.world.troubles.plan(None)
            moved = self._has_moved(before)
            assert not moved, "an error that says nothing was changed"
        self.world.troubles.plan(None)
        for name, version in after.items():
            if moved:
                self._push(name, version, token)
            else:
                self.unsure[name] = before[name]
        return moved

    def _has_moved(self, before: dict[str, int]) -> bool:
        steps = {self.table(name).version - head for name, head in before.items()}
        assert steps in ({0}, {1}), f"of several tables only some have moved: {before}"
        return steps == {1}

    def _push(self, name: str, version: Version, token: tuple[str, int] | None) -> None:
        model = self.tables[name]
        model.push(version)
        if token is not None:
            model.tokens.setdefault(token[0], {})[token[1]] = model.head

    def is_unsure(self, name: str, model: ModelTable) -> bool:
        return model.head < self.unsure.get(name, -2) + 2

    @rule(name=names, seed=seeds, trouble=troubles, app=st.sampled_from([None, "etl", "cdc"]))
    def append(self, name: str, seed: int, trouble: Trouble | None, app: str | None) -> None:
        chance, model = Random(seed), self.tables[name]
        rows = rows_of(model.now, chance)
        data = arrow_of(rows, model.now.columns)
        token = (app, model.last_token(app) + chance.choice([1, 2])) if app else None
        after = model.now.appended(rows)
        moved = self._write(
            lambda: self.table(name).append(data, token), {name: after}, trouble, token
        )
        if token is None or trouble is None:
            return
        again = self.table(name).append(data, token)
        assert again.repeated is moved
        if not moved:
            self._push(name, after, token)

    @rule(name=names, seed=seeds, trouble=troubles)
    def append_with_new_columns(self, name: str, seed: int, trouble: Trouble | None) -> None:
        chance, model = Random(seed), self.tables[name]
        column = new_column(model.now, model.last_key + 1, chance)
        if column is None:
            return
        wider = model.now.with_column(column)
        rows = rows_of(wider, chance)
        data = arrow_of(rows, wider.columns)
        self._write(lambda: self.table(name).append(data), {name: wider.appended(rows)}, trouble)

    @rule(name=names, seed=seeds)
    def repeat_a_token(self, name: str, seed: int) -> None:
        chance, model = Random(seed), self.tables[name]
        data = arrow_of(rows_of(model.now, chance), model.now.columns)
        for app, used in model.tokens.items():
            number = chance.randrange(model.last_token(app) + 1)
            if number not in used:
                with pytest.raises(TokenError):
                    self.table(name).append(data, (app, number))
                continue
            commit = self.table(name).append(data, (app, number))
            assert (commit.repeated, commit.version) == (True, used[number])

    @rule(name=names, seed=seeds, trouble=troubles)
    def overwrite(self, name: str, seed: int, trouble: Trouble | None) -> None:
        chance, now = Random(seed), self.tables[name].now
        rows = rows_of(now, chance)
        column = chance.choice(now.columns)
        where = None
        if column.kind.name != "timestamptz" and chance.random() < 0.6:
            value = value_of(column, chance)
            where = equality_of(column, value)
            rows = [{**row, column.key: value} for row in rows]
        data = arrow_of(rows, now.columns)
        text = None if where is None else sql_of(where, {column.key: column})
        self._write(
            lambda: self.table(name).overwrite(data, where=text),
            {name: now.overwritten(rows, where)},
            trouble,
        )

    @rule(name=names, seed=seeds, trouble=troubles)
    def delete(self, name: str, seed: int, trouble: Trouble | None) -> None:
        now = self.tables[name].now
        where = predicate_of(now, Random(seed))
        text = sql_of(where, {column.key: column for column in now.columns})
        if now.matching(where):
            self._write(lambda: self.table(name).delete(text), {name: now.deleted(where)}, trouble)
        else:
            self.table(name).delete(text)

    @rule(name=names, trouble=troubles)
    def compact(self, name: str, trouble: Trouble | None) -> None:
        table, now = self.table(name), self.tables[name].now
        old = table.read_plan().files
        if not old:
            return
        writer = RowWriter(
            table.files.store,
            schema=table.schema,
            spec=table.spec,
            ids=self.world.ids,
            options=WriterOptions(),
        )
        writer.write(table.scan().to_arrow())
        table.files.store.create_all(writer.pending)
        # What footers tell does not show that several values are in one bucket.
        shown = all(transform != "bucket" for transform, _, _ in now.parts)
        self._write(
            lambda: table.commit_overwrite(old, writer.files, verify=shown, data_change=False),
            {name: now.rewritten()},
            trouble,
        )

    @rule(seed=seeds, trouble=troubles, tokened=st.booleans())
    def commit_two_tables(self, seed: int, trouble: Trouble | None, tokened: bool) -> None:
        chance = Random(seed)
        nows = {name: self.tables[name].now for name in TABLES}
        rows = {name: rows_of(now, chance) for name, now in nows.items()}
        last = max(self.tables[name].last_token("tx") for name in TABLES)
        token = ("tx", last + 1) if tokened else None

        def act() -> None:
            with self.catalog.transaction() as tx:
                for name, now in nows.items():
                    tx.append(name, arrow_of(rows[name], now.columns), token)

        after = {name: now.appended(rows[name]) for name, now in nows.items()}
        if self.kind == "store":
            with pytest.raises(RequestError, match="several tables"):
                act()
            return
        moved = self._write(act, after, trouble, token)
        if token is not None and trouble is not None:
            act()
            if not moved:
                for name, version in after.items():
                    self._push(name, version, token)

    # ------------------------------------------------------------------------------- evolution

    @rule(
        name=names, seed=seeds, trouble=troubles, what=st.sampled_from(["add", "rename", "parts"])
    )
    def evolve(self, name: str, seed: int, trouble: Trouble | None, what: str) -> None:
        chance, model = Random(seed), self.tables[name]
        now, evolution = model.now, self.table(name).evolve()
        column = new_column(now, model.last_key + 1, chance)
        if what == "parts":
            parts = parts_of(now, chance)
            evolution.partition_by(spec_texts(parts, now))
            after = now.repartitioned(parts)
        elif column is None:
            return
        elif what == "add":
            evolution.add_column(column.name, column.kind.name)
            after = now.with_column(column)
        else:
            renamed = chance.choice(now.columns)
            evolution.rename_column(renamed.name, column.name)
            after = now.renamed(renamed.key, column.name)
        self._write(evolution.commit, {name: after}, trouble)

    @rule(name=names, seed=seeds, trouble=troubles)
    def drop_column(self, name: str, seed: int, trouble: Trouble | None) -> None:
        now = self.tables[name].now
        column = Random(seed).choice(now.columns)
        evolution = self.table(name).evolve().drop_column(column.name)
        if len(now.columns) == 1 or column.key in {key for _, key, _ in now.parts}:
            with pytest.raises(RequestError):
                evolution.commit()
        else:
            self._write(evolution.commit, {name: now.without_column(column.key)}, trouble)

    @rule(name=names, kind=st.sampled_from(["long", "double"]), trouble=troubles)
    def widen_column(self, name: str, kind: str, trouble: Trouble | None) -> None:
        model = self.tables[name]
        column = next((c for c in model.now.columns if c.kind.name == "int"), None)
        if column is None:
            return
        evolution = self.table(name).evolve().widen_column(column.name, kind)
        if model.may_widen(column.key, kind):
            self._write(evolution.commit, {name: model.now.widened(column.key, kind)}, trouble)
        else:
            with pytest.raises(RequestError):
                evolution.commit()

    @rule(name=names, tag=st.sampled_from(["good", "v1.0"]), point=points, trouble=troubles)
    def tag(self, name: str, tag: str, point: float, trouble: Trouble | None) -> None:
        model = self.tables[name]
        version = self.version(model, point)
        if self._write(
            lambda: self.table(name).tag(tag, at=version), {name: model.now.tagged()}, trouble
        ):
            model.tags[tag] = version

    @rule(name=names, point=points, trouble=troubles)
    def rollback(self, name: str, point: float, trouble: Trouble | None) -> None:
        model = self.tables[name]
        to = self.version(model, point)
        self._write(lambda: self.table(name).rollback(to), {name: model.rolled_back(to)}, trouble)

    def version(self, model: ModelTable, point: float) -> int:
        numbers = sorted(model.versions)
        return numbers[int(point * len(numbers))]
