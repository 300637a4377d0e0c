"""What two writers may do at once, played through on every catalog: no row is lost unseen."""

from collections.abc import Callable

import pytest
from tests.around import interrupted
from tests.table.samples import NAME, SCHEMA, create, minutes, put, readings

from lakebed.errors import CommitConflictError
from lakebed.table.catalog import Catalog
from lakebed.table.table import Table

STRICT = {"commit.isolation-level": "serializable"}
LOOSE = {"commit.isolation-level": "write-serializable"}

Act = Callable[[Table], object]


def filled(catalog: Catalog, properties: dict[str, str] | None = None) -> Table:
    """Three days of four rows, a file each."""
    table = catalog.create_table(NAME, SCHEMA, ["day(ts)"], properties=properties)
    for day in range(3):
        table.append(readings(day))
    return table


def append_same(table: Table) -> object:
    return table.append(readings(0, count=1, first=9))


def append_other(table: Table) -> object:
    return table.append(readings(2, count=1, first=9))


def delete_same(table: Table) -> object:
    return table.delete("ts = '2026-01-01 00:00:00'")


def delete_other(table: Table) -> object:
    return table.delete("ts >= '2026-01-03'")


def overwrite_same(table: Table) -> object:
    where = "ts >= '2026-01-01' and ts < '2026-01-02'"
    return table.overwrite(readings(0, count=1, first=50), where=where)


def overwrite_other(table: Table) -> object:
    return table.overwrite(readings(2, count=1, first=50), where="ts >= '2026-01-03'")


def compact(day: int) -> Act:
    def act(table: Table) -> object:
        where = f"ts >= '2026-01-{day + 1:02}' and ts < '2026-01-{day + 2:02}'"
        old = table.read_plan(where).files
        return table.commit_overwrite(old, [put(table, readings(day))], data_change=False)

    return act


def evolve(table: Table) -> object:
    return table.evolve().add_column("q", "int").commit()


def tag(table: Table) -> object:
    return table.tag("now")


def roll_back(table: Table) -> object:
    return table.rollback(1)


compact_same, compact_other = compact(0), compact(2)
BOTH, CHANGED = "BOTH_REMOVED", "FILES_CHANGED"

# mine, theirs in between, and the verdict at the strict and at the loose level; "" if both land.
CASES: dict[tuple[str, str], tuple[Act, Act, str, str]] = {
    ("append", "append"): (append_same, append_same, "", ""),
    ("append", "delete"): (append_same, delete_same, "", ""),
    ("append", "overwrite"): (append_same, overwrite_same, "", ""),
    ("append", "rewrite"): (append_same, compact_same, "", ""),
    ("append", "evolve"): (append_same, evolve, "", ""),
    ("append", "rollback"): (append_same, roll_back, "", ""),
    ("delete", "append same"): (delete_same, append_same, "", ""),
    ("delete day", "append same"): (overwrite_same, append_same, "READ_WAS_ADDED_TO", ""),
    ("delete", "append other"): (delete_same, append_other, "", ""),
    ("delete", "delete same"): (delete_same, delete_same, BOTH, BOTH),
    ("delete", "delete other"): (delete_same, delete_other, "", ""),
    ("delete", "overwrite same"): (delete_same, overwrite_same, BOTH, BOTH),
    ("delete", "overwrite other"): (delete_same, overwrite_other, "", ""),
    ("delete", "rewrite same"): (delete_same, compact_same, BOTH, BOTH),
    ("delete", "rewrite other"): (delete_same, compact_other, "", ""),
    ("delete", "evolve"): (delete_same, evolve, "", ""),
    ("delete", "tag"): (delete_same, tag, "", ""),
    ("overwrite", "overwrite same"): (overwrite_same, overwrite_same, BOTH, BOTH),
    ("overwrite", "overwrite other"): (overwrite_same, overwrite_other, "", ""),
    ("overwrite", "delete other"): (overwrite_same, delete_other, "", ""),
    ("overwrite", "rewrite same"): (overwrite_same, compact_same, BOTH, BOTH),
    ("rewrite", "append"): (compact_same, append_same, "", ""),
    ("rewrite", "delete same"): (compact_same, delete_same, BOTH, BOTH),
    ("rewrite", "delete other"): (compact_same, delete_other, "", ""),
    ("rewrite", "rewrite same"): (compact_same, compact_same, BOTH, BOTH),
    ("rewrite", "rewrite other"): (compact_same, compact_other, "", ""),
    ("rollback", "append"): (roll_back, append_other, CHANGED, CHANGED),
    ("rollback", "delete"): (roll_back, delete_other, CHANGED, CHANGED),
    ("rollback", "rewrite"): (roll_back, compact_other, CHANGED, CHANGED),
    ("rollback", "evolve"): (roll_back, evolve, "", ""),
    ("rollback", "tag"): (roll_back, tag, "", ""),
    ("evolve", "delete"): (evolve, delete_same, "", ""),
    ("tag", "rollback"): (tag, roll_back, "", ""),
}


@pytest.mark.parametrize("level", ["strict", "loose"])
@pytest.mark.parametrize("case", CASES, ids=" against ".join)
def test_two_changes_at_once_both_land_or_the_second_changes_nothing(
    memory: Catalog, case: tuple[str, str], level: str
) -> None:
    mine, theirs, strict, loose = CASES[case]
    table = filled(memory, STRICT if level == "strict" else LOOSE)
    verdict = strict if level == "strict" else loose
    slow = interrupted(memory, lambda: theirs(table)).table(NAME)
    if not verdict:
        mine(slow)
        assert table.version == 5
        return
    with pytest.raises(CommitConflictError) as raised:
        mine(slow)
    error = raised.value
    assert error.fields["verdict"] == verdict
    assert error.fields["version"] == 4
    assert "version 4" in error.message
    assert "Nothing was changed" in error.hint
    assert error.retryable
    assert table.version == 4
    mine(memory.table(NAME))  # What the hint says helps.


@pytest.mark.parametrize("properties", [STRICT, LOOSE, None], ids=["strict", "loose", "default"])
def test_a_blind_append_into_a_range_that_is_overwritten(
    catalog: Catalog, properties: dict[str, str] | None
) -> None:
    """Strictly they cannot be told in any order; loosely the append comes after."""
    table = filled(catalog, properties)
    slow = interrupted(catalog, lambda: append_same(table)).table(NAME)
    if properties is STRICT:
        with pytest.raises(CommitConflictError, match=r"version 4 \(append\)"):
            overwrite_same(slow)
        assert 9 in minutes(table)
        assert 0 in minutes(table)
    else:
        overwrite_same(slow)
        assert minutes(table.scan("ts < '2026-01-02'")) == [9, 50]


def test_a_conflict_is_looked_for_in_every_commit_in_between(catalog: Catalog) -> None:
    table = filled(catalog)
    slow = interrupted(
        catalog,
        lambda: [append_other(table), delete_same(table), append_other(table), tag(table)],
    ).table(NAME)
    with pytest.raises(CommitConflictError, match=r"version 5 \(delete\)"):
        overwrite_same(slow)
    assert table.version == 7


def test_a_conflict_that_comes_with_the_second_attempt_is_seen_too(catalog: Catalog) -> None:
    table = filled(catalog)
    slow = interrupted(catalog, lambda: append_other(table), lambda: delete_same(table))
    with pytest.raises(CommitConflictError, match=r"version 5 \(delete\)"):
        overwrite_same(slow.table(NAME))
    assert table.version == 5


def test_partitions_that_do_not_meet_are_no_conflict_even_without_statistics(
    memory: Catalog,
) -> None:
    """Two deletes of different sensors: what the files hold is told by their partition alone."""
    table = memory.create_table(NAME, SCHEMA, ["sensor_id"], properties=STRICT)
    table.append(readings(0, count=6))
    slow = interrupted(memory, lambda: table.delete("sensor_id = 's1' and status = 1"))
    assert slow.table(NAME).delete("sensor_id = 's2' and status = 1").attempts == 2
    assert minutes(table) == [0, 2, 3, 4]


def test_a_delete_of_what_was_added_meanwhile_leaves_it_at_the_loose_level(
    catalog: Catalog,
) -> None:
    table = filled(catalog, LOOSE)
    late = readings(0, count=1, first=0)
    slow = interrupted(catalog, lambda: table.append(late)).table(NAME)
    slow.delete("ts = '2026-01-01'")
    assert minutes(table.scan("ts < '2026-01-02'")) == [0, 1, 2, 3]


def test_a_compaction_loses_no_row_that_came_meanwhile(catalog: Catalog) -> None:
    table = filled(catalog)
    slow = interrupted(catalog, lambda: append_same(table)).table(NAME)
    compact_same(slow)
    assert minutes(table.scan("ts < '2026-01-02'")) == [0, 1, 2, 3, 9]


def test_an_unconditional_overwrite_conflicts_with_a_concurrent_delete(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(readings())
    slow = interrupted(catalog, lambda: table.delete("status = 1")).table(NAME)
    with pytest.raises(CommitConflictError):
        slow.overwrite(readings(5))
    assert minutes(table) == [0, 2]
