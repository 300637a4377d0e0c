"""Law: whatever is done to tables, and whatever fails, they are what a plain model says they are.

Rows, columns, partitions, tags, tokens and history agree after each step, at every version.
"""

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import invariant, precondition, rule, run_state_machine_as_test
from tests.property.kinds import exact
from tests.property.machine import WritingMachine
from tests.property.model import ModelTable
from tests.property.predicates import sql_of
from tests.property.steps import TABLES, bag_of, names, points, predicate_of, seeds, spec_texts

from lakebed.table.connect import connect
from lakebed.table.rebuild import rebuild_catalog
from lakebed.table.table import Table

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class TableMachine(WritingMachine):
    """Reads after each write, at the newest version and at older ones."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    @invariant()
    def tables_are_what_the_model_says(self) -> None:
        assert self.catalog.tables() == sorted(self.tables)
        self.looks += 1
        for name, model in self.tables.items():
            table = self.table(name)
            _check_head(table, model)
            older = sorted(model.versions)[self.looks % len(model.versions)]
            _check_rows(table, model, older)

    @invariant()
    def history_is_one_unbroken_chain_and_every_file_is_there(self) -> None:
        name = TABLES[self.looks % len(TABLES)]
        if name in self.tables:
            _check_history(self.table(name), self.tables[name])
            audit = self.catalog.doctor(name)
            assert audit.ok, audit.problems
            assert audit.snapshot_count == len(self.tables[name].versions)

    @invariant()
    def the_last_step_changed_what_the_model_changed(self) -> None:
        for name, model in self.tables.items():
            if model.head - 1 in model.versions:
                _check_changes(self.table(name), model, model.head - 1, model.head)

    @rule(name=names, seed=seeds, point=points)
    def read_some_rows_of_any_version(self, name: str, seed: int, point: float) -> None:
        model, table = self.tables[name], self.table(name)
        number = self.version(model, point)
        then = model.versions[number]
        where = predicate_of(then, Random(seed))
        columns = {column.key: column for column in then.columns}
        scan = table.scan(sql_of(where, columns), as_of=table.snapshot(number).snapshot_id)
        assert bag_of(scan.to_arrow(), then.columns) == then.matching(where)
        assert scan.count() == then.matching(where).total()
        for column in then.columns:
            values = [exact(each, column.kind) for each in then.values(column.key, where)]
            for scalar, expected in (
                (scan.min(column.name), min(values, default=None)),
                (scan.max(column.name), max(values, default=None)),
            ):
                value = scalar.value if column.kind.unit_ns else scalar.as_py()
                assert (None if value is None else exact(value, column.kind)) == expected

    @rule(name=names, first=points, last=points)
    def read_what_changed(self, name: str, first: float, last: float) -> None:
        model = self.tables[name]
        since, until = sorted((self.version(model, first), self.version(model, last)))
        _check_changes(self.table(name), model, since, until)

    @rule(name=names, point=points)
    def find_a_version_by_its_time_and_by_its_tags(self, name: str, point: float) -> None:
        model, table = self.tables[name], self.table(name)
        number = self.version(model, point)
        moment = _EPOCH + timedelta(milliseconds=table.snapshot(number).timestamp_ms)
        assert table.snapshot(moment).version == number
        assert table.metadata.tags == model.tags
        for tag, tagged in model.tags.items():
            assert table.scan(as_of=tag).count() == model.versions[tagged].rows.total()

    @rule(jump=points)
    def clock_jumps(self, jump: float) -> None:
        self.world.clock.ms += int((jump - 0.5) * 7_200_000)

    @rule()
    def open_again(self) -> None:
        self.world.reopen()

    @precondition(lambda self: self.is_rebuildable)
    @rule()
    def rebuild_the_catalog_from_files_alone(self) -> None:
        for name, model in self.tables.items():
            while self.is_unsure(name, model):  # Two versions more, and a lost one is seen as such.
                self.append(name, self.looks, None, "etl")
        uri = f"sqlite:///{self.root}/rebuilt-{self.looks}.db"
        report = rebuild_catalog(uri, warehouse=str(self.root / "lake"))
        assert report.problems == ()
        with connect(uri, warehouse=self.root / "lake") as rebuilt:
            assert rebuilt.tables() == sorted(self.tables)
            for name, model in self.tables.items():
                table = rebuilt.table(name)
                _check_head(table, model)
                _check_history(table, model)
                assert _log(table) == _log(self.table(name))
                for app, used in model.tokens.items():
                    data = table.scan(limit=0).to_arrow()
                    commit = table.append(data, (app, model.last_token(app)))
                    assert commit.version == used[model.last_token(app)]


def _check_head(table: Table, model: ModelTable) -> None:
    now = model.now
    assert table.version == model.head
    assert [(f.id, f.name, str(f.type)) for f in table.schema.fields] == [
        (column.key, column.name, column.kind.name) for column in now.columns
    ]
    assert table.spec.describe(table.schema) == spec_texts(now.parts, now)
    _check_rows(table, model, model.head)


def _check_rows(table: Table, model: ModelTable, number: int) -> None:
    then = model.versions[number]
    scan = table.scan(as_of=number)
    assert bag_of(scan.to_arrow(), then.columns) == then.rows
    assert scan.count() == then.rows.total()


def _check_changes(table: Table, model: ModelTable, since: int, until: int) -> None:
    expected = model.changed(since, until)
    if expected is None:
        return
    columns, *bags = expected
    changes = table.changes(since, until)
    assert all(model.versions[number].changes_rows for number in changes.versions)
    for rows, expected_bag in zip((changes.added, changes.removed), bags, strict=True):
        assert bag_of(rows.to_arrow(), columns) == expected_bag
        assert rows.count() == expected_bag.total()


def _check_history(table: Table, model: ModelTable) -> None:
    history = table.history()[::-1]
    found = {snapshot.version: snapshot.operation.value for snapshot in history}
    assert found == {number: then.operation for number, then in sorted(model.versions.items())}
    assert history[0].parent_id is None
    for before, after in pairwise(history):
        assert after.parent_id == before.snapshot_id
        assert after.timestamp_ms > before.timestamp_ms
        assert after.summary.total_rows == model.versions[after.version].rows.total()


def _log(table: Table) -> Counter[tuple[object, ...]]:
    rows = table.inspect.log().to_pylist()
    keys = ("version", "action_type", "path", "num_records", "app_id", "app_version", "operation")
    return Counter(tuple(row[key] for key in keys) for row in rows)


class SqliteMachine(TableMachine):
    """On disk, with the catalog in SQLite."""

    kind = "sqlite"


class StoreMachine(TableMachine):
    """On disk, with no database."""

    kind = "store"


def _run(machine: type[TableMachine], *, examples: int, steps: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            derandomize=True,
            deadline=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_tables_do_what_the_model_does() -> None:
    _run(TableMachine, examples=20, steps=12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("machine", "examples"),
    [(TableMachine, 110), (SqliteMachine, 40), (StoreMachine, 50)],
    ids=["memory", "sqlite", "store"],
)
def test_tables_do_what_the_model_does_for_long(machine: type[TableMachine], examples: int) -> None:
    _run(machine, examples=examples, steps=40)
