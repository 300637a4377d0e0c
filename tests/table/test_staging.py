"""Files that an engine writes by itself become part of a table whole, checked, once."""

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.table.samples import NAME, SCHEMA, create, readings

import lakebed
from lakebed.errors import (
    BadDataFileError,
    CommitConflictError,
    ObjectMissingError,
    RequestError,
    SchemaMismatchError,
)
from lakebed.files.arrow_schema import to_arrow_schema
from lakebed.format.snapshot import Operation
from lakebed.table.catalog import Catalog
from lakebed.table.connect import reconnect
from lakebed.table.staging import Staging
from lakebed.table.table import Table
from lakebed.table.tasks import ReadTask


@pytest.fixture
def warehouse(tmp_path: Path) -> Catalog:
    return lakebed.connect(f"sqlite:///{tmp_path}/catalog.db")


def engine_writes(table: Table, staging: Staging, rows: Any, name: str = "part-0") -> str:
    """What Spark does: a file with field ids below the staging's own directory."""
    schema = to_arrow_schema(staging.schema)
    path = f"{staging.directory}/{name}.parquet"
    target = Path(table.location) / path
    target.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows.cast(schema.remove_metadata()).cast(schema), target)
    return path


def test_files_of_an_engine_are_seen_after_the_commit_and_not_before(warehouse: Catalog) -> None:
    table = create(warehouse)
    staging = table.stage(SCHEMA)
    path = engine_writes(table, staging, readings())
    files = staging.describe([path])
    assert table.scan().count() == 0
    commit = staging.commit(files, token=("spark", 1), properties={"job": "nightly"})
    assert (commit.operation, commit.added_rows) == (Operation.APPEND, 4)
    assert table.scan().to_arrow().sort_by("ts").equals(readings())
    assert table.current_snapshot().parameters == {"job": "nightly"}


def test_a_staged_write_with_a_known_token_is_not_made_again(warehouse: Catalog) -> None:
    table = create(warehouse)
    first = table.append(readings(), token=("spark", 1))
    assert table.committed(("spark", 1)) is not None
    assert table.committed(("spark", 2)) is None
    staging = table.stage(SCHEMA)
    files = staging.describe([engine_writes(table, staging, readings(1))])
    again = staging.commit(files, token=("spark", 1))
    assert (again.repeated, again.version) == (True, first.version)
    assert table.scan().count() == 4


def test_new_columns_come_with_the_same_commit(warehouse: Catalog) -> None:
    table = create(warehouse)
    table.append(readings())
    wide = readings(1).append_column("unit", pa.array(["K"] * 4))
    staging = table.stage(wide.schema)
    files = staging.describe([engine_writes(table, staging, wide)])
    assert "unit" not in table.schema.by_name
    staging.commit(files)
    assert sorted(table.scan(columns=["unit"]).to_arrow()["unit"].to_pylist(), key=str) == [
        *["K"] * 4,
        *[None] * 4,
    ]


def test_new_columns_are_refused_if_they_were_not_wanted(warehouse: Catalog) -> None:
    table = create(warehouse)
    wide = readings().append_column("unit", pa.array(["K"] * 4))
    with pytest.raises(SchemaMismatchError, match="unit"):
        table.stage(wide.schema, evolve=False)


def test_columns_that_others_added_meanwhile_are_a_conflict(warehouse: Catalog) -> None:
    table = create(warehouse)
    wide = readings().append_column("unit", pa.array(["K"] * 4))
    staging = table.stage(wide.schema)
    files = staging.describe([engine_writes(table, staging, wide)])
    table.evolve().add_column("place", "string").commit()
    with pytest.raises(CommitConflictError, match="columns"):
        staging.commit(files)


def test_a_replacement_is_checked_against_what_came_since(warehouse: Catalog) -> None:
    table = create(warehouse)
    table.append(readings(0))
    staging = table.stage()
    plan = staging.plan("ts < '2026-01-02'")
    files = staging.describe([engine_writes(table, staging, readings(0, count=2))])
    table.delete("sensor_id = 's0'")
    with pytest.raises(CommitConflictError):
        staging.commit(files, removed=plan.files, where="ts < '2026-01-02'")
    assert table.scan().count() == 2


def test_a_file_of_two_partitions_is_refused(warehouse: Catalog) -> None:
    table = create(warehouse)
    staging = table.stage(SCHEMA)
    path = engine_writes(table, staging, pa.concat_tables([readings(0), readings(1)]))
    with pytest.raises(SchemaMismatchError, match="partitions"):
        staging.describe([path])


def test_a_bucket_is_what_its_writer_says(warehouse: Catalog) -> None:
    table = create(warehouse, by=["bucket(4, sensor_id)"])
    staging = table.stage(SCHEMA)
    path = engine_writes(table, staging, readings())
    with pytest.raises(SchemaMismatchError):
        staging.describe([path])
    (file,) = staging.describe([path], {path: (3,)})
    assert file.partition == (3,)


def test_a_writer_that_contradicts_the_statistics_is_not_believed(warehouse: Catalog) -> None:
    table = create(warehouse)
    staging = table.stage(SCHEMA)
    path = engine_writes(table, staging, readings())
    with pytest.raises(BadDataFileError, match="statistics"):
        staging.describe([path], {path: (1,)})


def test_a_file_that_is_not_there_is_missed(warehouse: Catalog) -> None:
    with pytest.raises(ObjectMissingError):
        create(warehouse).stage(SCHEMA).describe(["data/none.parquet"])


def test_tasks_do_their_work_after_pickling(warehouse: Catalog) -> None:
    table = create(warehouse)
    staging = table.stage(SCHEMA)
    task = pickle.loads(pickle.dumps(staging.write_task()))
    written = task.write(SCHEMA, pa.concat_tables([readings(0), readings(1)]).to_batches())
    files = pickle.loads(pickle.dumps(written))
    assert [file.partition for file in files] == [(20454,), (20455,)]
    staging.commit(files)
    scan = table.scan("sensor_id = 's1'", columns=["ts"])
    read = ReadTask(
        place=scan.place,
        metadata=scan.head.metadata,
        schema=scan.table_schema,
        files=scan.plan.files,
        columns=("ts",),
        where=scan.where,
    )
    batches = list(pickle.loads(pickle.dumps(read)).batches())
    assert pa.Table.from_batches(batches).equals(scan.to_arrow())


def test_a_connection_leads_back_to_the_catalog(warehouse: Catalog) -> None:
    create(warehouse).append(readings())
    connection = pickle.loads(pickle.dumps(warehouse.connection))
    assert reconnect(connection).table(NAME).scan().count() == 4
    assert "catalog.db" not in repr(connection)


def test_a_catalog_in_memory_is_not_reached_from_elsewhere() -> None:
    with pytest.raises(RequestError, match="memory"):
        reconnect(lakebed.connect("memory:").connection)


def test_overwrites_and_deletes_are_made_once_per_token(warehouse: Catalog) -> None:
    table = create(warehouse)
    table.append(readings())
    first = table.overwrite(readings(1), token=("job", 1), properties={"why": "correction"})
    assert table.overwrite(readings(2), token=("job", 1)).repeated
    assert table.current_snapshot().parameters["why"] == "correction"
    gone = table.delete("sensor_id = 's0'", token=("job", 2))
    assert table.delete("true", token=("job", 2)).version == gone.version == first.version + 1
    assert table.scan().count() == 2


@pytest.mark.parametrize("properties", [{"": "x"}, {"a": 1}, {"a": "x" * 5000}])
def test_properties_that_are_not_short_texts_are_refused(
    warehouse: Catalog, properties: Any
) -> None:
    table = create(warehouse)
    with pytest.raises(RequestError, match="propert"):
        table.append(readings(), properties=properties)
    assert table.version == 0
