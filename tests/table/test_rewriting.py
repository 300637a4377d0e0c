"""A delete or overwrite removes exactly the rows that match, and touches only files that can."""

from typing import Any

import pyarrow as pa
import pytest
from tests.around import watched
from tests.fix_catalogs import Opener
from tests.table.samples import NAME, START, create, minutes, paths, readings

import lakebed
from lakebed.errors import ObjectMissingError, PredicateError, RequestError, SchemaMismatchError
from lakebed.format.snapshot import Operation
from lakebed.table.catalog import Catalog
from lakebed.table.table import Table

HALF_OF_DAY_1 = "ts < '2026-01-02 00:02:00'"


def filled(catalog: Catalog, days: int = 3) -> Table:
    table = create(catalog)
    for day in range(days):
        table.append(readings(day))
    return table


def of_day(files: set[str], day: int) -> set[str]:
    return {path for path in files if f"2026-01-{day + 1:02}" in path}


def hide(table: Table, *some: str) -> None:
    """Take data files away, so that whoever opens one fails."""
    for path in some:
        table.files.store.delete(path)


def test_files_that_match_as_a_whole_go_unread_edges_are_rewritten_the_rest_stays(
    catalog: Catalog,
) -> None:
    table = filled(catalog)
    before = paths(table)
    hide(table, *of_day(before, 0), *of_day(before, 2))
    commit = table.delete(HALF_OF_DAY_1)
    after = paths(table)
    assert commit.operation is Operation.DELETE
    assert (commit.removed_files, commit.added_files) == (2, 1)
    assert commit.removed_rows - commit.added_rows == 6
    assert of_day(after, 0) == set()
    assert of_day(after, 2) == of_day(before, 2)
    assert len(of_day(after, 1) - before) == 1
    assert minutes(table.scan("ts < '2026-01-03'")) == [1442, 1443]


def test_an_edge_file_of_which_no_row_matches_stays_as_it_is(catalog: Catalog) -> None:
    table = filled(catalog)
    before = paths(table)
    commit = table.delete("value = 0.15")
    assert (commit.version, commit.removed_files, commit.removed_rows) == (3, 0, 0)
    assert commit.operation is Operation.DELETE
    assert (table.version, paths(table)) == (3, before)


def test_a_file_whose_rows_all_match_is_not_replaced(catalog: Catalog) -> None:
    table = filled(catalog, 1)
    commit = table.delete("value >= 0.0 or sensor_id = 'x'")
    assert (commit.removed_files, commit.added_files) == (1, 0)
    assert table.scan().count() == 0


def test_rows_whose_answer_is_unknown_stay(catalog: Catalog) -> None:
    """Three-valued logic: null is neither equal nor unequal to anything."""
    table = create(catalog)
    rows = readings().set_column(3, "status", pa.array([0, None, 1, None], pa.int32()))
    table.append(rows)
    table.delete("status = 1")
    assert minutes(table) == [0, 1, 3]
    table.delete("status <> 1")
    assert minutes(table) == [1, 3]
    table.delete("status is null")
    assert minutes(table) == []


def test_a_delete_of_everything_opens_no_file(catalog: Catalog) -> None:
    table = filled(catalog)
    hide(table, *paths(table))
    commit = table.delete("true")
    assert (commit.removed_files, commit.removed_rows) == (3, 12)
    assert table.scan().to_arrow().num_rows == 0


def test_a_delete_takes_an_expression_too(catalog: Catalog) -> None:
    table = filled(catalog, 1)
    table.delete((lakebed.col("status") == 1) & (lakebed.col("value") > 0.2))
    assert minutes(table) == [0, 1, 2]


@pytest.mark.parametrize("where", [None, "nowhere = 1", "value >", "value = 'warm'"], ids=str)
def test_a_delete_that_cannot_be_understood_changes_nothing(memory: Catalog, where: Any) -> None:
    table = filled(memory, 1)
    with pytest.raises((RequestError, PredicateError)):
        table.delete(where)
    assert table.version == 1


def test_a_delete_that_cannot_read_an_edge_file_changes_nothing(catalog: Catalog) -> None:
    table = filled(catalog, 1)
    hide(table, *paths(table))
    with pytest.raises(ObjectMissingError):
        table.delete("status = 1")
    assert table.version == 1


def test_an_overwrite_of_all_puts_new_rows_for_old(catalog: Catalog) -> None:
    table = filled(catalog)
    commit = table.overwrite(readings(7))
    assert (commit.operation, commit.version) == (Operation.OVERWRITE, 4)
    assert (commit.removed_files, commit.added_files) == (3, 1)
    assert minutes(table) == [7 * 1440 + n for n in range(4)]
    assert minutes(table.scan(as_of=3)) == [day * 1440 + n for day in range(3) for n in range(4)]


def test_an_overwrite_of_a_range_keeps_what_is_outside(opener: Opener) -> None:
    table = filled(opener())
    before = paths(table)
    hide(table, *of_day(before, 1))
    table.overwrite(
        readings(1, count=2, first=10), where="ts >= '2026-01-02' and ts < '2026-01-03'"
    )
    after = paths(table)
    assert after - before == of_day(after, 1)
    assert of_day(after, 0) == of_day(before, 0)
    cold = opener().table(NAME)
    assert minutes(cold) == [0, 1, 2, 3, 1450, 1451, 2880, 2881, 2882, 2883]


def test_an_overwrite_in_the_middle_of_a_file_keeps_its_other_rows(catalog: Catalog) -> None:
    table = filled(catalog, 1)
    new = readings(count=1, first=1).set_column(2, "value", pa.array([99.0]))
    table.overwrite(new, where="ts = '2026-01-01 00:01:00'")
    found = table.scan().to_arrow().sort_by("ts")
    assert found.column("value").to_pylist() == [0.0, 99.0, 0.2, 0.3]


def test_rows_outside_of_what_is_replaced_are_refused(catalog: Catalog) -> None:
    table = filled(catalog)
    watch = watched(table)
    with pytest.raises(RequestError, match="2 of 4 rows do not match"):
        table.overwrite(readings(1), where=HALF_OF_DAY_1)
    assert table.version == 3
    assert not [path for path in watch.created if "metadata/" in path]


def test_rows_of_an_overwrite_have_to_fit_the_schema(memory: Catalog) -> None:
    table = filled(memory)
    with pytest.raises(SchemaMismatchError):
        table.overwrite(pa.table({"ts": [START], "value": ["warm"]}))
    assert table.version == 3


def test_an_overwrite_of_nothing_is_an_append(catalog: Catalog) -> None:
    table = create(catalog)
    commit = table.overwrite(readings(), where="ts < '2027-01-01'")
    assert (commit.added_files, commit.removed_files) == (1, 0)
    assert minutes(table) == [0, 1, 2, 3]


def test_an_overwrite_may_bring_new_columns(memory: Catalog) -> None:
    table = filled(memory, 2)
    rows = readings(1).append_column("unit", pa.array(["bar"] * 4))
    table.overwrite(rows, where="ts >= '2026-01-02'")
    found = table.scan().to_arrow().sort_by("ts")
    assert found.column("unit").to_pylist() == [None] * 4 + ["bar"] * 4


def test_survivors_of_an_old_partitioning_are_written_in_the_new_one(memory: Catalog) -> None:
    table = filled(memory, 1)
    table.evolve().partition_by(["sensor_id"]).commit()
    table.delete("value = 0.1")
    assert minutes(table) == [0, 2, 3]
    assert {file.spec_id for file in table.read_plan().files} == {1}
    assert {file.partition for file in table.read_plan().files} == {("s0",), ("s2",)}
