"""A dropped table is gone by name; a purge deletes what was the table's own, and nothing else."""

from pathlib import Path

import pytest
from tests.fix_catalogs import Opener
from tests.table.samples import NAME, SCHEMA, create, minutes, put, readings

import lakebed
from lakebed.errors import NotFoundError, RequestError
from lakebed.format.snapshot import Operation
from lakebed.storage.store import Store
from lakebed.table.catalog import Catalog


def warehouse(catalog: Catalog) -> Store:
    store = catalog._services.warehouse
    assert store is not None
    return store


def everything(catalog: Catalog) -> set[str]:
    """All files but those of the catalog itself."""
    listed = {info.path for info in warehouse(catalog).list()}
    return {path for path in listed if "/" in path and not path.startswith(".lakebed")}


def test_a_dropped_table_is_listed_no_more_and_its_files_stay(opener: Opener) -> None:
    catalog = opener()
    table = create(catalog)
    table.append(readings())
    before = everything(catalog)
    catalog.drop_table(NAME)
    assert opener().tables() == []
    with pytest.raises(NotFoundError):
        opener().table(NAME)
    assert before < everything(catalog)


def test_a_purge_deletes_every_file_of_the_history_and_leaves_a_tombstone(
    catalog: Catalog,
) -> None:
    table = create(catalog)
    for day in range(20):
        table.append(readings(day, count=2))
    table.delete("status = 1")
    table.evolve().add_column("q", "int").commit()
    table.rollback(5)
    catalog.drop_table(NAME, purge=True)
    left = sorted(path.removeprefix(f"{NAME}/metadata/") for path in everything(catalog))
    snapshots = [path for path in left if path.startswith("snap-")]
    (definition,) = (path for path in left if not path.startswith("snap-"))
    assert definition.startswith("table-"), "the tombstone can still be read"
    # Where files are the catalog, versions stay, so that none is ever made again.
    by_files = catalog._services.backend.decides_by_snapshot
    assert len(snapshots) == (25 if by_files else 1)
    assert f"{24:020}" in snapshots[-1]


def test_a_purge_leaves_foreign_files_and_neighbours_alone(catalog: Catalog) -> None:
    table, neighbour = create(catalog), create(catalog, "plant.readings2")
    table.append(readings())
    neighbour.append(readings(1))
    unlisted = put(table, readings(5))
    table.files.store.create("data/notes.txt", b"mine")
    table.files.store.create("elsewhere/notes.txt", b"mine")
    kept = {path for path in everything(catalog) if path.startswith("plant.readings2/")}
    catalog.drop_table(NAME, purge=True)
    left = everything(catalog)
    assert kept < left
    for path in (unlisted.path, "data/notes.txt", "elsewhere/notes.txt"):
        assert f"{NAME}/{path}" in left
    assert minutes(neighbour) == [1440, 1441, 1442, 1443]
    assert catalog.doctor("plant.readings2").ok


def test_a_name_is_free_again_after_a_drop(opener: Opener) -> None:
    catalog = opener()
    old = create(catalog)
    old.append(readings())
    catalog.drop_table(NAME)
    new = create(catalog)
    new.append(readings(1))
    there = opener()
    assert there.tables() == [NAME]
    assert minutes(there.table(NAME)) == [1440, 1441, 1442, 1443]
    assert new.metadata.table_id != old._pointer.table_id
    assert new.history()[-1].operation is Operation.CREATE


@pytest.mark.parametrize("purge", [False, True])
def test_a_purge_of_the_second_table_of_a_name_spares_the_first(
    catalog: Catalog, purge: bool
) -> None:
    create(catalog).append(readings())
    before = everything(catalog)
    catalog.drop_table(NAME)
    create(catalog).append(readings(1))
    catalog.drop_table(NAME, purge=purge)
    assert before < everything(catalog)
    third = create(catalog)
    third.append(readings(2))
    assert minutes(third) == [2880, 2881, 2882, 2883]
    assert catalog.doctor(NAME).ok


def test_a_table_can_be_made_again_after_a_purge(opener: Opener) -> None:
    catalog = opener()
    for day in range(3):
        table = create(catalog)
        table.append(readings(day))
        assert min(minutes(opener().table(NAME))) == day * 1440
        catalog.drop_table(NAME, purge=True)
    assert opener().tables() == []


def test_what_is_not_there_cannot_be_dropped(catalog: Catalog) -> None:
    with pytest.raises(NotFoundError):
        catalog.drop_table(NAME)
    create(catalog)
    catalog.drop_table(NAME)
    with pytest.raises(NotFoundError):
        catalog.drop_table(NAME, purge=True)


def test_tables_are_listed_in_order(catalog: Catalog) -> None:
    for name in ("b.x", "a", "c", "a.b"):
        create(catalog, name)
    catalog.drop_table("c")
    assert catalog.tables() == ["a", "a.b", "b.x"]


def test_a_table_may_live_where_its_owner_says(tmp_path: Path) -> None:
    with lakebed.connect(f"sqlite:///{tmp_path}/warehouse/catalog.db") as catalog:
        place = tmp_path / "far" / "away"
        table = catalog.create_table(NAME, SCHEMA, location=str(place))
        table.append(readings())
        assert (place / "metadata").is_dir()
        assert not (tmp_path / "warehouse" / NAME).exists()
        with pytest.raises(RequestError, match="already"):
            catalog.create_table("other", SCHEMA, location=str(place))
        assert minutes(catalog.table(NAME)) == [0, 1, 2, 3]


def test_a_store_without_database_keeps_each_table_below_itself(tmp_path: Path) -> None:
    with lakebed.connect(tmp_path) as catalog, pytest.raises(RequestError, match="below itself"):
        catalog.create_table(NAME, SCHEMA, location="elsewhere")


def test_a_table_moves_with_its_directory(tmp_path: Path) -> None:
    """Paths in metadata are relative: copying the files is copying the table."""
    with lakebed.connect(tmp_path / "here") as catalog:
        table = create(catalog)
        for day in range(18):
            table.append(readings(day, count=1))
    (tmp_path / "here").rename(tmp_path / "there")
    with lakebed.connect(tmp_path / "there") as catalog:
        assert catalog.table(NAME).scan().count() == 18
        assert catalog.doctor(NAME).ok
