"""Several tables change in one commit or not at all."""

import threading
from typing import Any

import pytest
from tests.around import Meeting, interrupted, through, together, watched
from tests.fix_catalogs import Opener
from tests.table.samples import create, minutes, readings

from lakebed.catalog.memory import MemoryCatalog
from lakebed.errors import CommitConflictError, RequestError, SchemaMismatchError
from lakebed.format.snapshot import Operation
from lakebed.storage.memory import MemoryStore
from lakebed.table.catalog import Catalog
from lakebed.table.table import Table


def pair(catalog: Catalog) -> tuple[Table, Table]:
    return create(catalog, "plant.a"), create(catalog, "plant.b")


def test_all_tables_change_with_one_commit_id(database_opener: Opener) -> None:
    catalog = database_opener()
    a, _ = pair(catalog)
    with catalog.transaction() as tx:
        tx.append(a, readings(0))
        tx.append("plant.b", readings(1))
    assert [(c.table, c.version) for c in tx.commits] == [("plant.a", 1), ("plant.b", 1)]
    assert len({c.commit_id for c in tx.commits}) == 1
    there = database_opener()
    assert minutes(there.table("plant.a")) == [0, 1, 2, 3]
    assert minutes(there.table("plant.b")) == [1440, 1441, 1442, 1443]


def test_nothing_is_seen_before_the_block_ends(database: Catalog) -> None:
    a, b = pair(database)
    with database.transaction() as tx:
        tx.append(a, readings())
        tx.append(b, readings())
        assert (a.version, b.version) == (0, 0)
    assert (a.version, b.version) == (1, 1)


def test_an_error_inside_the_block_changes_nothing(database: Catalog) -> None:
    a, b = pair(database)
    with pytest.raises(ZeroDivisionError), database.transaction() as tx:
        tx.append(a, readings())
        _ = 1 / 0
    with pytest.raises(SchemaMismatchError), database.transaction() as tx:
        tx.append(a, readings())
        tx.append(b, readings().rename_columns(["ts", "sensor_id", "value", "ts2"]).set_column(
            2, "value", readings().column("sensor_id")))  # fmt: skip
    assert (a.version, b.version) == (0, 0)
    assert tx.commits == []


def test_appends_deletes_and_overwrites_go_together(database: Catalog) -> None:
    a, b = pair(database)
    c = create(database, "plant.c")
    for table in (a, b, c):
        table.append(readings())
    with database.transaction() as tx:
        tx.append(a, readings(1))
        tx.delete(b, "status = 1")
        tx.overwrite(c, readings(2))
    operations = {commit.table: commit.operation for commit in tx.commits}
    assert operations == {
        "plant.a": Operation.APPEND,
        "plant.b": Operation.DELETE,
        "plant.c": Operation.OVERWRITE,
    }
    assert (a.scan().count(), minutes(b), min(minutes(c))) == (8, [0, 2], 2880)


def test_a_race_lost_in_one_table_is_run_again_for_all(database: Catalog) -> None:
    a, b = pair(database)
    session = interrupted(database, lambda: b.append(readings(5)))
    with session.transaction() as tx:
        tx.append(session.table("plant.a"), readings(0))
        tx.append(session.table("plant.b"), readings(1))
    assert [(c.version, c.attempts) for c in tx.commits] == [(1, 2), (2, 2)]
    assert (a.scan().count(), b.scan().count()) == (4, 8)


def test_a_conflict_in_one_table_changes_none(database: Catalog) -> None:
    a, b = pair(database)
    b.append(readings())
    session = interrupted(database, lambda: b.delete("status = 0"))
    with pytest.raises(CommitConflictError, match=r"plant\.b"), session.transaction() as tx:
        tx.append(session.table("plant.a"), readings())
        tx.delete(session.table("plant.b"), "status = 1")
    assert (a.version, b.version) == (0, 2)
    assert minutes(b) == [1, 3]
    assert len(list(a.files.store.list("metadata/snap-"))) == 1


def test_two_transactions_over_the_same_tables_are_both_made(database_opener: Opener) -> None:
    catalog = database_opener()
    a, b = pair(catalog)
    barrier = threading.Barrier(2)

    def write(day: int, names: tuple[str, str]) -> list[Any]:
        session = database_opener()
        mine = through(session, Meeting(session._services.backend, barrier))
        with mine.transaction() as tx:
            for name in names:
                tx.append(name, readings(day))
        return tx.commits

    left, right = together(
        lambda: write(0, ("plant.a", "plant.b")), lambda: write(1, ("plant.b", "plant.a"))
    )
    assert sorted([left[0].attempts, right[0].attempts]) == [1, 2]
    assert (a.version, b.version) == (2, 2)
    assert [s.commit_id for s in a.history()[:2]] == [s.commit_id for s in b.history()[:2]]


def test_several_appends_to_one_table_are_one_commit(catalog: Catalog) -> None:
    """Every catalog can do this: it is one table."""
    table = create(catalog)
    with catalog.transaction() as tx:
        tx.append(table, readings(0))
        tx.append(table, readings(1))
    assert [(c.version, c.added_rows) for c in tx.commits] == [(1, 8)]
    assert table.scan().count() == 8


def test_a_table_is_not_changed_twice_in_ways_that_depend_on_each_other(memory: Catalog) -> None:
    a, _ = pair(memory)
    a.append(readings())
    with pytest.raises(RequestError, match="changed twice"), memory.transaction() as tx:
        tx.append(a, readings(1))
        tx.delete(a, "status = 1")
    with pytest.raises(RequestError, match="changed twice"), memory.transaction() as tx:
        tx.append(a, readings(1), token=("x", 1))
        tx.append(a, readings(2), token=("x", 2))
    assert a.version == 1


def test_a_transaction_that_does_nothing_makes_no_version(database: Catalog) -> None:
    a, _ = pair(database)
    a.append(readings())
    with database.transaction():
        pass
    with database.transaction() as tx:
        tx.delete(a, "value > 100")
    assert (a.version, tx.commits) == (1, [])


def test_a_transaction_is_used_once(memory: Catalog) -> None:
    a, _ = pair(memory)
    with memory.transaction() as tx:
        tx.append(a, readings())
    with pytest.raises(RequestError, match="over"):
        tx.append(a, readings())


def test_a_table_of_another_catalog_is_refused(memory: Catalog) -> None:
    other = create(Catalog(MemoryCatalog(), MemoryStore()), "plant.a")
    with pytest.raises(RequestError, match="another catalog"), memory.transaction() as tx:
        tx.append(other, readings())


def test_data_files_of_a_transaction_are_written_once(memory: Catalog) -> None:
    a, b = pair(memory)
    session = interrupted(memory, *[lambda: b.append(readings(5))] * 3)
    mine = session.table("plant.a")
    watch = watched(mine)
    with session.transaction() as tx:
        tx.append(mine, readings(0))
        tx.append("plant.b", readings(1))
    assert sum(path.startswith("data/") for path in watch.created) == 1
    assert a.scan().count() == 4


def test_a_delete_in_a_transaction_needs_a_predicate(memory: Catalog) -> None:
    a, _ = pair(memory)
    with pytest.raises(RequestError, match="predicate"), memory.transaction() as tx:
        tx.delete(a, None)
