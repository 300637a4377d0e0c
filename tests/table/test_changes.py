"""Between two versions one sees the rows that came and went, and nothing that only moved."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.table.samples import create, minutes, put, readings

from lakebed.errors import NotFoundError, RequestError
from lakebed.table.catalog import Catalog
from lakebed.table.changes import Changes
from lakebed.table.netting import net


def seen(changes: Changes) -> tuple[list[int], list[int]]:
    """The rows that came and those that went; the counts have to agree."""
    added, removed = minutes(changes.added), minutes(changes.removed)
    assert (changes.added.count(), changes.removed.count()) == (len(added), len(removed))
    return added, removed


def test_appends_are_rows_that_came(catalog: Catalog) -> None:
    table = create(catalog)
    for day in range(3):
        table.append(readings(day, count=2))
    assert seen(table.changes(1, 2)) == ([1440, 1441], [])
    assert seen(table.changes(1)) == ([1440, 1441, 2880, 2881], [])
    assert table.changes(0).versions == [1, 2, 3]
    assert seen(table.changes(3)) == ([], [])


def test_a_delete_shows_only_the_rows_that_went(catalog: Catalog) -> None:
    """The survivors of a rewritten file did not change."""
    table = create(catalog)
    table.append(readings())
    table.delete("status = 1")
    assert seen(table.changes(1)) == ([], [1, 3])


def test_an_overwrite_shows_what_differs(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(readings())
    table.overwrite(readings(first=2))
    assert seen(table.changes(1)) == ([4, 5], [0, 1])


def test_rows_that_came_and_went_between_are_both_shown(catalog: Catalog) -> None:
    """The feed tells what each commit did, so that a reader who replays it ends up the same."""
    table = create(catalog)
    table.append(readings())
    table.delete("true")
    assert seen(table.changes(0)) == ([0, 1, 2, 3], [0, 1, 2, 3])


def test_a_compaction_is_not_a_change(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(readings(count=2))
    table.append(readings(count=2, first=2))
    new = put(table, readings())
    table.commit_overwrite(table.read_plan().files, [new], data_change=False)
    table.append(readings(1, count=1))
    changes = table.changes(2)
    assert changes.versions == [4]
    assert seen(changes) == ([1440], [])


def test_tags_and_evolutions_are_not_changes(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(readings())
    table.tag("x")
    table.evolve().add_column("q", "int").commit()
    assert table.changes(1).versions == []
    assert seen(table.changes(1)) == ([], [])


def test_a_rollback_shows_what_it_took_back(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(readings(0, count=2))
    table.append(readings(1, count=2))
    table.rollback(1)
    assert seen(table.changes(2)) == ([], [1440, 1441])
    table.rollback(2)
    assert seen(table.changes(3)) == ([1440, 1441], [])


def test_changes_have_the_columns_of_their_last_version(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(readings(count=2))
    table.evolve().rename_column("value", "celsius").drop_column("status").add_column(
        "q", "int"
    ).widen_column("q", "long").commit()
    table.delete("celsius = 0.1")
    changes = table.changes(0)
    names = ["ts", "sensor_id", "celsius", "q"]
    assert changes.schema.names == names
    assert changes.added.to_arrow().column_names == names
    assert changes.added.to_arrow().column("celsius").to_pylist() == [0.0, 0.1]
    assert changes.removed.to_arrow().column("celsius").to_pylist() == [0.1]
    assert table.changes(0, 1).schema.names == ["ts", "sensor_id", "value", "status"]


def test_points_may_be_tags_and_snapshot_ids(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(readings())
    table.tag("before")
    table.append(readings(1, count=1))
    assert seen(table.changes("before")) == ([1440], [])
    assert seen(table.changes(table.snapshot(1).snapshot_id, "before")) == ([], [])


def test_the_older_version_comes_first(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(readings())
    with pytest.raises(RequestError, match="version 1 comes after 0"):
        table.changes(1, 0)
    with pytest.raises(NotFoundError):
        table.changes(0, 9)


def test_counts_of_pure_appends_open_no_data_file(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(readings())
    for file in table.read_plan().files:
        table.files.store.delete(file.path)
    assert table.changes(0).added.count() == 4


def test_changes_speak_arrow(memory: Catalog) -> None:
    table = create(memory)
    table.append(readings())
    assert pa.table(table.changes(0).added) == readings()
    assert pa.table(table.changes(0).removed).num_rows == 0


# ---------------------------------------------------------------------------------------- netting

NAN = float("nan")
ROW = st.tuples(
    st.sampled_from([None, 0.0, 1.5, NAN]),
    st.sampled_from([None, "a", "b"]),
    st.sampled_from([None, [], [1], [1, None]]),
)
KIND = pa.schema([("f", pa.float64()), ("s", pa.string()), ("l", pa.list_(pa.int64()))])


def laid(rows: list[Any]) -> Any:
    columns = [pa.array([row[n] for row in rows], kind) for n, kind in enumerate(KIND.types)]
    return pa.Table.from_arrays(columns, schema=KIND)


def bag(rows: Any) -> list[str]:
    return sorted(repr(row) for row in rows)


@given(st.lists(ROW, max_size=12), st.lists(ROW, max_size=12))
def test_netting_is_the_difference_of_bags(added: list[Any], removed: list[Any]) -> None:
    came, went = net(laid(added), laid(removed))
    left, right = bag(added), bag(removed)
    for each in list(left):
        if each in right:
            left.remove(each)
            right.remove(each)
    assert bag(tuple(row.values()) for row in came.to_pylist()) == left
    assert bag(tuple(row.values()) for row in went.to_pylist()) == right
