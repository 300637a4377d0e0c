"""What a table tells of its metadata agrees with what it holds."""

import json

import pytest
from tests.table.samples import NAME, create, paths, put, readings

from lakebed.errors import NotFoundError
from lakebed.table.catalog import Catalog
from lakebed.table.table import Table


def lived(catalog: Catalog) -> Table:
    table = create(catalog)
    table.append(readings(0), token=("loader", 3))
    table.append(readings(1))
    table.delete("ts < '2026-01-01 00:02:00'")
    table.evolve().partition_by(["sensor_id"]).commit()
    table.append(readings(2))
    return table


def test_snapshots_are_the_history(catalog: Catalog) -> None:
    table = lived(catalog)
    rows = table.inspect.snapshots().to_pylist()
    history = table.history()
    assert [row["version"] for row in rows] == [s.version for s in history]
    assert [row["snapshot_id"] for row in rows] == [s.snapshot_id for s in history]
    assert [row["total_rows"] for row in rows] == [10, 6, 6, 8, 4, 0]
    operations = ["append", "evolve", "delete", "append", "append", "create"]
    assert [row["operation"] for row in rows] == operations
    assert (rows[-2]["token_app"], rows[-2]["token_version"]) == ("loader", 3)
    assert dict(rows[2]["parameters"])["where"].startswith("ts <")
    assert rows[-1]["parent_id"] is None


def test_files_are_what_a_plan_without_predicate_reads(catalog: Catalog) -> None:
    table = lived(catalog)
    found = table.inspect.files()
    assert set(found.column("path").to_pylist()) == paths(table)
    assert sum(found.column("row_count").to_pylist()) == 10
    for row in found.to_pylist():
        assert table.files.store.size(row["path"]) == row["size_bytes"]
    assert set(found.column("spec_id").to_pylist()) == {0, 1}
    assert "ts_day=2026-01-02" in found.column("partition").to_pylist()


def test_partitions_add_up_to_the_table(catalog: Catalog) -> None:
    rows = lived(catalog).inspect.partitions().to_pylist()
    assert sum(row["row_count"] for row in rows) == 10
    assert [(row["spec_id"], row["partition"], row["row_count"]) for row in rows] == [
        (0, "ts_day=2026-01-01", 2),
        (0, "ts_day=2026-01-02", 4),
        (1, "sensor_id=s0", 2),
        (1, "sensor_id=s1", 1),
        (1, "sensor_id=s2", 1),
    ]


def test_a_table_without_partitions_is_one(memory: Catalog) -> None:
    table = create(memory, by=())
    assert table.inspect.partitions().num_rows == 0
    table.append(readings())
    assert table.inspect.partitions().column("partition").to_pylist() == [""]


def test_manifests_and_their_entries_are_listed(catalog: Catalog) -> None:
    table = create(catalog)
    many = [put(table, readings(day, count=1)) for day in range(17)]
    table.commit_append(many)
    table.append(readings(30))
    table.commit_overwrite([many[3]], [])
    folded, tail = table.inspect.manifests().to_pylist()
    assert (folded["inline"], folded["file_count"], folded["deleted_count"]) == (False, 16, 1)
    assert (tail["inline"], tail["file_count"]) == (True, 1)
    entries = table.inspect.manifest(folded["path"])
    status = dict(zip(entries["path"].to_pylist(), entries["status"].to_pylist(), strict=True))
    assert status.pop(many[3].path) == "deleted"
    assert set(status.values()) == {"existing"}
    assert table.inspect.manifest(tail["path"]).column("status").to_pylist() == ["existing"]
    short = folded["path"].rpartition("/")[2]
    assert table.inspect.manifest(short) == entries


def test_a_manifest_that_is_not_listed_is_not_found(memory: Catalog) -> None:
    table = create(memory)
    with pytest.raises(NotFoundError, match="no manifest"):
        table.inspect.manifest("metadata/manifest-none.parquet")


def test_the_log_tells_each_action_of_each_commit(catalog: Catalog) -> None:
    """A catalog that keeps no log tells it from the files."""
    table = lived(catalog)
    rows = table.inspect.log().to_pylist()
    kinds: dict[int, list[str]] = {}
    for row in rows:
        kinds.setdefault(row["version"], []).append(row["action_type"])
    assert kinds == {
        0: ["commit", "protocol", "metadata"],
        1: ["commit", "add", "txn"],
        2: ["commit", "add"],
        3: ["commit", "remove", "add"],
        4: ["commit", "metadata"],
        5: ["commit", "add", "add", "add"],
    }
    by_kind = {row["action_type"]: row for row in rows if row["version"] <= 1}
    assert (by_kind["txn"]["app_id"], by_kind["txn"]["app_version"]) == ("loader", 3)
    stats = json.loads(by_kind["add"]["stats_json"])
    assert stats["numRecords"] == by_kind["add"]["num_records"] == 4
    assert stats["minValues"]["value"] == 0.0
    assert stats["maxValues"]["sensor_id"] == "s2"
    assert stats["nullCount"]["status"] == 0
    assert json.loads(by_kind["add"]["partition_values"]) == {"ts_day": "2026-01-01"}
    assert by_kind["metadata"]["table_name"] == NAME
    assert by_kind["metadata"]["partition_columns"] == ["day(ts)"]
    assert [row["operation"] for row in rows if row["action_type"] == "commit"][:2] == [
        "CREATE",
        "APPEND",
    ]
    removed = next(row for row in rows if row["action_type"] == "remove")
    assert (removed["data_change"], removed["num_records"]) == (True, 4)


def test_adding_and_removing_by_the_log_gives_the_files_of_the_table(catalog: Catalog) -> None:
    table = lived(catalog)
    table.rollback(2)
    table.delete("status = 1")
    live: set[str] = set()
    for row in table.inspect.log().to_pylist():
        if row["action_type"] == "add":
            assert row["path"] not in live
            live.add(row["path"])
        elif row["action_type"] == "remove":
            live.remove(row["path"])
    assert live == paths(table)


# ----------------------------------------------------------------------------------------- health


def test_a_sound_table_is_found_sound(catalog: Catalog) -> None:
    table = lived(catalog)
    audit = catalog.doctor(NAME)
    assert audit.ok
    assert (audit.version, audit.snapshot_count, audit.unlisted_count) == (5, 6, 0)
    assert audit.file_count == 6
    put(table, readings(9, count=1))
    assert catalog.doctor(NAME).unlisted_count == 1


def test_a_data_file_that_is_gone_or_of_another_size_is_named(catalog: Catalog) -> None:
    table = lived(catalog)
    gone, cut = sorted(paths(table))[:2]
    data = table.files.store.read(cut, size_bytes_max=1 << 20)
    for path in (gone, cut):
        table.files.store.delete(path)
    table.files.store.create(cut, data[:-1])
    problems = catalog.doctor(NAME).problems
    assert len(problems) == 2
    assert any(gone in problem and "missing" in problem for problem in problems)
    assert any(cut in problem and "bytes" in problem for problem in problems)


def test_a_metadata_file_that_is_damaged_is_a_problem(memory: Catalog) -> None:
    table = create(memory)
    table.commit_append([put(table, readings(day, count=1)) for day in range(17)])
    (manifest,) = (ref.path for ref in table.current_snapshot().manifest_list)
    store = table.files.store
    data = store.read(manifest, size_bytes_max=1 << 20)
    store.delete(manifest)
    store.create(manifest, data[:-1] + b"x")
    cold = Catalog(memory._services.backend, memory._services.warehouse)
    audit = cold.doctor(NAME)
    assert not audit.ok
    assert any(manifest in problem for problem in audit.problems)
