"""A catalog that was lost is made again from the files, and says what it could not know."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.around import Around, through
from tests.table.samples import NAME, create, minutes, put, readings

import lakebed
from lakebed.commit.policy import RetryPolicy
from lakebed.errors import CommitUnknownError, RequestError
from lakebed.ids import SystemIds
from lakebed.table.catalog import Catalog
from lakebed.table.rebuild import RebuildReport, rebuild_catalog
from lakebed.table.table import Table


class Warehouse:
    """A directory of tables with an SQLite catalog that can be lost."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.uri = f"sqlite:///{place}/catalog.db"

    def open(self) -> Catalog:
        return lakebed.connect(self.uri)

    def lose(self) -> None:
        for path in self.place.glob("catalog.db*"):
            path.unlink()

    def rebuild(self) -> RebuildReport:
        self.lose()
        return rebuild_catalog(self.uri)


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path)


def lived(catalog: Catalog, name: str = NAME) -> Table:
    """A table with every kind of commit in its history."""
    table = create(catalog, name)
    for day in range(18):
        table.append(readings(day))
    table.append(readings(18), token=("loader", 7))
    table.append(readings(19).append_column("unit", pa.array(["bar"] * 4)))
    table.delete("ts < '2026-01-02 00:02:00'")
    table.overwrite(readings(5), where="ts >= '2026-01-06' and ts < '2026-01-07'")
    table.evolve().rename_column("value", "v").partition_by(["sensor_id"]).commit()
    table.append(readings(30).rename_columns(["ts", "sensor_id", "v", "status"]))
    table.tag("good")
    table.rollback(10)
    table.evolve().set_properties({"owner": "plant"}).commit()
    table.evolve().partition_by(["sensor_id"]).commit()
    many = [put(table, readings(day, count=1, first=99)) for day in range(60, 80)]
    table.commit_append(many)
    table.commit_overwrite(many[:2], [put(table, readings(60, count=1))], data_change=False)
    return table


def told(table: Table) -> dict[str, Any]:
    """All that a table says of itself, by way of the catalog; who committed is not in files."""
    log = table.inspect.log().drop_columns(["commit_user"])
    rows = [repr(row) for row in log.drop_columns(["ordinal"]).to_pylist()]
    backend = table._services.backend
    head = table.head().pointer
    return {
        "pointer": head,
        "history": list(backend.history(head)),
        "log": sorted(rows),
        "snapshots": table.inspect.snapshots(),
        "files": table.inspect.files(),
        "schema": table.arrow_schema,
        "rows": table.scan().to_arrow().sort_by("ts"),
        "tag": minutes(table.scan(as_of="good")),
    }


@pytest.mark.slow
def test_all_that_the_catalog_knew_is_there_again(warehouse: Warehouse) -> None:
    with warehouse.open() as catalog:
        lived(catalog)
        lived(catalog, "plant.other")
        expected = {name: told(catalog.table(name)) for name in catalog.tables()}
    report = warehouse.rebuild()
    assert report.problems == ()
    assert [(name, version) for name, version, _ in report.tables] == [
        (name, expected[name]["pointer"].version) for name in sorted(expected)
    ]
    with warehouse.open() as catalog:
        assert catalog.tables() == sorted(expected)
        for name, what in expected.items():
            found = told(catalog.table(name))
            for part in what:
                assert found[part] == what[part], part


def test_tokens_and_commit_ids_are_known_again(warehouse: Warehouse) -> None:
    with warehouse.open() as catalog:
        first = create(catalog).append(readings(), token=("loader", 7))
    warehouse.rebuild()
    with warehouse.open() as catalog:
        table = catalog.table(NAME)
        repeat = table.append(readings(), token=("loader", 7))
        assert (repeat.repeated, repeat.commit_id) == (True, first.commit_id)
        assert catalog.resolve(first.commit_id).committed
        assert table.append(readings(1)).version == 2


@pytest.mark.slow
def test_dropped_tables_stay_dropped(warehouse: Warehouse) -> None:
    with warehouse.open() as catalog:
        lived(catalog)
        catalog.drop_table(NAME)
        create(catalog, "plant.kept").append(readings())
    report = warehouse.rebuild()
    assert report.problems == ()
    assert [name for name, _, _ in report.tables] == ["plant.kept"]
    with warehouse.open() as catalog:
        assert catalog.tables() == ["plant.kept"]


def test_a_purged_table_is_neither_restored_nor_a_problem(warehouse: Warehouse) -> None:
    with warehouse.open() as catalog:
        lived(catalog)
        catalog.drop_table(NAME, purge=True)
    assert warehouse.rebuild() == RebuildReport(tables=(), problems=())


@pytest.mark.parametrize("purge", [False, True])
def test_of_two_tables_of_one_name_the_living_one_is_restored(
    warehouse: Warehouse, purge: bool
) -> None:
    with warehouse.open() as catalog:
        create(catalog).append(readings())
        catalog.drop_table(NAME, purge=purge)
        create(catalog).append(readings(1))
    report = warehouse.rebuild()
    assert report.problems == ()
    with warehouse.open() as catalog:
        assert minutes(catalog.table(NAME)) == [1440, 1441, 1442, 1443]


def test_a_creation_that_died_half_way_does_not_displace_the_table(warehouse: Warehouse) -> None:
    """Its files are there and the catalog never heard of it."""

    class Dying(Around):
        def create(self, move: Any) -> None:
            raise CommitUnknownError("the process died", commit_id=move.new.commit_id)

    with warehouse.open() as catalog:
        create(catalog).append(readings())
        dying = through(
            catalog, Dying(catalog._services.backend), policy=RetryPolicy(answer_count_max=1)
        )
        with pytest.raises(CommitUnknownError):
            create(dying)
    report = warehouse.rebuild()
    assert len(report.problems) == 1
    assert "was not restored" in report.problems[0]
    with warehouse.open() as catalog:
        assert minutes(catalog.table(NAME)) == [0, 1, 2, 3]


# ------------------------------------------------------------------------------------- in doubt


def snapshots(warehouse: Warehouse) -> list[Path]:
    return sorted((warehouse.place / NAME / "metadata").glob("snap-*.json"))


def test_a_lost_attempt_below_the_newest_version_is_passed_over(warehouse: Warehouse) -> None:
    with warehouse.open() as catalog:
        table = create(catalog)
        table.append(readings(0))
        attempt = leave_attempt(catalog)
        table.append(readings(1))
        table.append(readings(2))
    assert attempt in snapshots(warehouse)
    report = warehouse.rebuild()
    assert report.problems == ()
    with warehouse.open() as catalog:
        assert minutes(catalog.table(NAME)) == [d * 1440 + n for d in range(3) for n in range(4)]


def leave_attempt(catalog: Catalog) -> Path:
    """Leave the snapshot of an attempt that never became a version, as a crash would."""

    class Dying(Around):
        def swap(self, moves: Any) -> bool:
            self.path = moves[0].new.snapshot_path
            raise CommitUnknownError("the process died", commit_id=moves[0].new.commit_id)

    dying = Dying(catalog._services.backend)
    session = through(catalog, dying, policy=RetryPolicy(answer_count_max=1))
    with pytest.raises(CommitUnknownError):
        session.table(NAME).append(readings(99))
    return Path(catalog.table(NAME).location) / dying.path


def test_two_candidates_for_the_newest_version_are_reported(warehouse: Warehouse) -> None:
    with warehouse.open() as catalog:
        table = create(catalog)
        table.append(readings(0))
        leave_attempt(catalog)
        table.append(readings(1))
    report = warehouse.rebuild()
    (problem,) = report.problems
    assert "2 files claim to be version 2" in problem
    assert "took metadata/snap-" in problem
    with warehouse.open() as catalog:
        assert catalog.table(NAME).version == 2


def test_a_history_with_a_gap_is_reported_and_not_restored(warehouse: Warehouse) -> None:
    with warehouse.open() as catalog:
        table = create(catalog)
        for day in range(3):
            table.append(readings(day))
        create(catalog, "plant.sound").append(readings())
    snapshots(warehouse)[1].unlink()
    report = warehouse.rebuild()
    assert [name for name, _, _ in report.tables] == ["plant.sound"]
    assert any("gap" in problem for problem in report.problems)


def test_a_damaged_snapshot_is_reported_by_name(warehouse: Warehouse) -> None:
    with warehouse.open() as catalog:
        table = create(catalog)
        table.append(readings(0))
        table.append(readings(1))
    newest = snapshots(warehouse)[-1]
    newest.write_bytes(newest.read_bytes()[:-9])
    report = warehouse.rebuild()
    assert any(newest.name in problem for problem in report.problems)
    with warehouse.open() as catalog:
        assert minutes(catalog.table(NAME)) == [0, 1, 2, 3]


def test_tables_that_the_catalog_knows_are_left_alone(warehouse: Warehouse) -> None:
    with warehouse.open() as catalog:
        create(catalog).append(readings())
    report = rebuild_catalog(warehouse.uri)
    assert (report.tables, report.problems, report.known) == ((), (), (NAME,))
    with warehouse.open() as catalog:
        assert minutes(catalog.table(NAME)) == [0, 1, 2, 3]


def test_files_that_are_no_tables_are_no_problem(warehouse: Warehouse) -> None:
    with warehouse.open() as catalog:
        create(catalog).append(readings())
    for path in ("notes.txt", "metadata/notes.json", "x/metadata/deep/snap-1.json"):
        (warehouse.place / path).parent.mkdir(parents=True, exist_ok=True)
        (warehouse.place / path).write_text("{}")
    assert warehouse.rebuild().problems == ()


def test_a_catalog_that_is_its_files_needs_no_rebuilding(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="needs no rebuilding"):
        rebuild_catalog(str(tmp_path))


@pytest.mark.postgres
def test_a_lost_database_is_filled_again(tmp_path: Path, postgres_server: Any) -> None:
    def uri() -> str:
        return f"{postgres_server.uri}?schema=t{SystemIds().new()}"

    with lakebed.connect(uri(), warehouse=tmp_path) as catalog:
        expected = told(lived(catalog))
    fresh = uri()
    report = rebuild_catalog(fresh, str(tmp_path))
    assert report.problems == ()
    with lakebed.connect(fresh) as catalog:
        found = told(catalog.table(NAME))
        for part in expected:
            assert found[part] == expected[part], part
