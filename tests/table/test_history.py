"""Every version of a table can be named in five ways and read for ever after."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from tests.commit.scripted import CountingClock
from tests.fix_catalogs import Opener
from tests.table.samples import NAME, create, minutes, paths, readings

from lakebed.catalog.memory import MemoryCatalog
from lakebed.errors import IdentifierError, NotFoundError, RequestError
from lakebed.format.datafile import DataFile
from lakebed.format.snapshot import Operation
from lakebed.storage.memory import MemoryStore
from lakebed.table.catalog import Catalog
from lakebed.table.table import Table

BASE_MS = 1_767_225_600_000  # 2026-01-01T00:00:00Z
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(time_ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=time_ms)


def timed(step_ms: int = 1_000) -> Table:
    """Versions 0 to 4, one second apart, with one more day of rows in each."""
    clock = CountingClock(BASE_MS)
    table = create(Catalog(MemoryCatalog(), MemoryStore(), clock=clock))
    for day in range(4):
        clock.time_ms += step_ms
        table.append(readings(day))
    return table


# ------------------------------------------------------------------------------- naming a version


def test_a_version_is_found_by_number_snapshot_id_time_and_tag(catalog: Catalog) -> None:
    table = create(catalog)
    for day in range(3):
        table.append(readings(day))
    then = table.snapshot(2)
    table.tag("golden", 2)
    time = moment(then.timestamp_ms)
    points: list[Any] = [
        2,
        "2",
        then.snapshot_id,
        str(then.snapshot_id),
        time,
        time.replace(tzinfo=None),
        time.astimezone(timezone(timedelta(hours=5, minutes=30))),
        time.isoformat(),
        time.isoformat().replace("+00:00", "Z"),
        "golden",
    ]
    for point in points:
        assert table.snapshot(point) == then, repr(point)
        assert table.scan(as_of=point).count() == 8, repr(point)
        assert len(table.read_plan(snapshot_id=point).files) == 2, repr(point)


@pytest.mark.parametrize(
    ("offset_ms", "version"), [(0, 0), (999, 0), (1_000, 1), (1_001, 1), (3_999, 3), (10**6, 4)]
)
def test_a_moment_names_the_version_that_was_current_then(offset_ms: int, version: int) -> None:
    table = timed()
    assert table.snapshot(moment(BASE_MS + offset_ms)).version == version
    assert table.snapshot(moment(BASE_MS + offset_ms).isoformat()).version == version


def test_each_millisecond_counts() -> None:
    table = timed(step_ms=1)
    found = [table.snapshot(moment(BASE_MS + n)).version for n in range(5)]
    assert found == [0, 1, 2, 3, 4]
    late = moment(BASE_MS + 2) + timedelta(microseconds=999)
    assert table.snapshot(late).version == 2


def test_a_moment_before_the_table_was_made_is_not_found() -> None:
    table = timed()
    for point in (moment(BASE_MS - 1), "2025-12-31", "1960-01-01T00:00:00Z"):
        with pytest.raises(NotFoundError):
            table.scan(as_of=point)


@pytest.mark.parametrize("point", [5, -1, "5", "no-such-tag", 1 << 40, 1 << 70, ""])
def test_a_version_that_is_not_there_is_not_found(catalog: Catalog, point: Any) -> None:
    table = create(catalog)
    table.append(readings())
    with pytest.raises(NotFoundError):
        table.scan(as_of=point)


@pytest.mark.parametrize("point", [1.5, True, b"1", [1]], ids=repr)
def test_what_is_no_point_in_time_is_refused(memory: Catalog, point: Any) -> None:
    table = create(memory)
    with pytest.raises(RequestError, match="not a point"):
        table.scan(as_of=point)


def test_a_snapshot_of_another_table_is_not_found(catalog: Catalog) -> None:
    a, b = create(catalog, "a"), create(catalog, "b")
    a.append(readings())
    b.append(readings())
    with pytest.raises(NotFoundError):
        b.snapshot(a.current_snapshot().snapshot_id)


# ----------------------------------------------------------------------------------- time travel


def test_a_scan_stays_at_its_version_while_the_table_goes_on(opener: Opener) -> None:
    table = create(opener())
    table.append(readings())
    scan, plan = table.scan(), table.read_plan()
    other = opener().table(NAME)
    other.delete("true")
    other.append(readings(5))
    assert minutes(scan) == [0, 1, 2, 3]
    assert scan.count() == 4
    assert len(plan.files) == 1
    assert minutes(table) == [7200, 7201, 7202, 7203]


@pytest.mark.slow
def test_an_old_version_is_readable_after_a_thousand_later_commits(memory: Catalog) -> None:
    table = create(memory)
    table.append(readings(0))
    table.append(readings(1))
    then, expected = table.current_snapshot(), paths(table)
    for number in range(1_000):
        file = DataFile(
            path=f"data/{number}", row_count=1, size_bytes=1, partition=(30_000 + number,)
        )
        table.commit_append([file], verify=False)
    table.delete("ts < '2026-01-03'")
    assert table.version == then.version + 1_001
    cold = Catalog(memory._services.backend, memory._services.warehouse).table(NAME)
    for point in (2, then.snapshot_id, moment(then.timestamp_ms)):
        assert paths(cold, point) == expected
        assert minutes(cold.scan(as_of=point)) == [0, 1, 2, 3, 1440, 1441, 1442, 1443]
    assert len(cold.history()) == 1_004
    assert cold.scan(as_of=1_002).count() == 1_008


def test_an_old_version_is_read_with_the_columns_it_had(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(readings())
    table.evolve().rename_column("value", "celsius").drop_column("status").commit()
    assert table.scan(as_of=1).to_arrow().schema.names == ["ts", "sensor_id", "value", "status"]
    assert table.scan("value > 0.1", as_of=1).count() == 2
    assert table.scan("celsius > 0.1").count() == 2


# -------------------------------------------------------------------------------- history and tags


def test_history_tells_each_version_and_can_be_cut_short(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(readings())
    table.delete("status = 1")
    table.overwrite(readings(1))
    table.evolve().add_column("q", "int").commit()
    table.tag("done")
    table.rollback(1)
    operations = [snapshot.operation for snapshot in table.history()]
    assert operations == [
        Operation.ROLLBACK,
        Operation.TAG,
        Operation.EVOLVE,
        Operation.OVERWRITE,
        Operation.DELETE,
        Operation.APPEND,
        Operation.CREATE,
    ]
    assert [s.version for s in table.history(limit=2)] == [6, 5]
    assert table.history(limit=0) == []
    assert table.snapshot(2).parameters == {"where": "status = 1"}


def test_a_tag_names_one_version_until_it_is_moved(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(readings())
    commit = table.tag("release", 0)
    assert (commit.version, commit.operation) == (2, Operation.TAG)
    table.append(readings(1))
    assert table.scan(as_of="release").count() == 0
    table.tag("release")
    assert table.scan(as_of="release").count() == 8
    assert table.metadata.tags == {"release": 3}


def test_a_tag_of_a_tag_names_the_same_version(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(readings())
    table.tag("a", 1)
    table.tag("b", "a")
    assert table.metadata.tags == {"a": 1, "b": 1}


@pytest.mark.parametrize("name", ["", " ", "a b", "12", "x" * 300, "2026-01-01", "a/b\n"])
def test_a_name_that_could_be_taken_for_a_version_is_no_tag(memory: Catalog, name: str) -> None:
    table = create(memory)
    with pytest.raises(IdentifierError):
        table.tag(name)
    assert table.version == 0


def test_a_tag_cannot_name_what_is_not_there(catalog: Catalog) -> None:
    table = create(catalog)
    with pytest.raises(NotFoundError):
        table.tag("future", 9)
    assert table.version == 0


# --------------------------------------------------------------------------------------- rollback


def test_a_rollback_is_a_new_version_that_holds_what_the_old_one_held(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(readings(0))
    table.append(readings(1))
    table.delete("status = 1")
    commit = table.rollback(2)
    assert (commit.version, commit.operation) == (4, Operation.ROLLBACK)
    assert paths(table) == paths(table, 2)
    assert minutes(table) == [0, 1, 2, 3, 1440, 1441, 1442, 1443]
    summary = table.current_snapshot().summary
    assert (summary.total_rows, summary.total_files) == (8, 2)
    table.rollback(3)
    assert paths(table) == paths(table, 3)
    assert table.scan().count() == 4


def test_a_rollback_brings_back_columns_and_partitioning(opener: Opener) -> None:
    table = create(opener())
    table.append(readings())
    table.evolve().drop_column("status").rename_column("value", "v").partition_by([]).commit()
    table.append(readings(1).select(["ts", "sensor_id"]))
    table.rollback(1)
    assert table.arrow_schema.names == ["ts", "sensor_id", "value", "status"]
    assert table.spec.describe(table.schema) == ["day(ts)"]
    assert table.scan().to_arrow() == readings()
    table.append(readings(2))
    assert opener().table(NAME).scan("status = 1").count() == 4


def test_commits_after_a_rollback_build_on_what_it_restored(catalog: Catalog) -> None:
    table = create(catalog)
    for day in range(20):
        table.append(readings(day, count=1))
    table.rollback(3)
    table.append(readings(30))
    table.delete("ts < '2026-01-02'")
    assert minutes(table) == [1440, 2880, *(30 * 1440 + n for n in range(4))]
    assert catalog.doctor(NAME).ok


def test_a_rollback_to_the_first_version_empties_the_table(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(readings())
    table.rollback(0)
    assert table.scan().to_arrow().num_rows == 0
    table.rollback(1)
    assert minutes(table) == [0, 1, 2, 3]


def test_a_rollback_keeps_tags(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(readings())
    table.tag("good")
    table.rollback(0)
    assert table.scan(as_of="good").count() == 4


def test_a_rollback_to_nowhere_changes_nothing(catalog: Catalog) -> None:
    table = create(catalog)
    with pytest.raises(NotFoundError):
        table.rollback(7)
    assert table.version == 0
