"""Columns and partitions change without a data file being touched, and old rows stay readable."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from tests.around import interrupted, watched
from tests.fix_catalogs import Opener
from tests.table.samples import NAME, SCHEMA, START, create, minutes, paths, readings

from lakebed.errors import (
    IdentifierError,
    LakebedError,
    PredicateError,
    RequestError,
    SchemaMismatchError,
)
from lakebed.format.snapshot import Operation
from lakebed.table.catalog import Catalog
from lakebed.table.evolution import Evolution
from lakebed.table.table import Table


def column(table: Table, name: str) -> list[Any]:
    return table.scan().to_arrow().sort_by("ts").column(name).to_pylist()


def filled(catalog: Catalog) -> Table:
    table = create(catalog)
    table.append(readings())
    return table


def test_an_added_column_is_null_in_rows_that_were_there(catalog: Catalog) -> None:
    table = filled(catalog)
    watch = watched(table)
    commit = (
        table.evolve()
        .add_column("unit", "string", doc="of the value")
        .add_column("price", pa.decimal128(9, 2))
        .add_column("tags", pa.list_(pa.string()))
        .commit()
    )
    assert (commit.operation, commit.version) == (Operation.EVOLVE, 2)
    assert not [path for path in watch.created if path.startswith("data/")]
    assert table.arrow_schema.names == [*SCHEMA.names, "unit", "price", "tags"]
    assert column(table, "unit") == [None] * 4
    assert table.schema.field("unit").doc == "of the value"
    assert table.scan("unit is null").count() == 4
    assert table.scan("unit = 'bar'").count() == 0


def test_a_renamed_column_keeps_its_rows(opener: Opener) -> None:
    table = filled(opener())
    table.evolve().rename_column("value", "celsius").commit()
    table.append(readings(1).rename_columns(["ts", "sensor_id", "celsius", "status"]))
    cold = opener().table(NAME)
    assert column(cold, "celsius") == [0.0, 0.1, 0.2, 0.3, 1.0, 1.1, 1.2, 1.3]
    assert cold.scan("celsius >= 1.1").count() == 3
    assert cold.scan("celsius > 5").plan.file_count == 0
    with pytest.raises(PredicateError, match="value"):
        cold.scan("value > 1")


def test_a_dropped_column_does_not_come_back_with_its_name(opener: Opener) -> None:
    """A column that is added again is another one, with another field id."""
    table = filled(opener())
    table.evolve().drop_column("value").commit()
    assert "value" not in table.arrow_schema.names
    table.evolve().add_column("value", "double").commit()
    cold = opener().table(NAME)
    assert column(cold, "value") == [None] * 4
    assert cold.scan("value is null").count() == 4
    cold.append(readings(1))
    assert column(cold, "value") == [None] * 4 + [1.0, 1.1, 1.2, 1.3]


def test_two_columns_can_exchange_their_names(catalog: Catalog) -> None:
    schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("a", pa.int64()), ("b", pa.int64())])
    table = catalog.create_table(NAME, schema)
    table.append(pa.table({"ts": [START], "a": [1], "b": [2]}, schema=schema))
    steps = table.evolve().rename_column("a", "x").rename_column("b", "a").rename_column("x", "b")
    steps.commit()
    assert (column(table, "a"), column(table, "b")) == ([2], [1])
    assert table.scan("a = 2 and b = 1").count() == 1
    assert table.scan("a = 1").count() == 0


@pytest.mark.parametrize(
    ("narrow", "wide", "value"),
    [("int32", "long", 7), ("int32", "double", 7), ("float32", "double", 0.5)],
)
def test_a_widened_column_reads_old_and_new_rows_alike(
    memory: Catalog, narrow: str, wide: str, value: Any
) -> None:
    schema = pa.schema([("ts", pa.timestamp("us", "UTC")), ("x", narrow)])
    table = memory.create_table(NAME, schema)
    table.append(pa.table({"ts": [START], "x": [value]}, schema=schema))
    table.evolve().widen_column("x", wide).commit()
    kind = table.arrow_schema.field("x").type
    table.append(pa.table({"ts": [START], "x": pa.array([value], kind)}))
    assert table.scan().to_arrow().column("x").to_pylist() == [value, value]
    assert table.scan(f"x = {value}").count() == 2
    assert table.scan(f"x > {value}").plan.file_count == 0
    assert table.scan().max("x").as_py() == value


REFUSED: dict[str, Callable[[Evolution], Evolution]] = {
    "no such column": lambda e: e.drop_column("nowhere"),
    "rename of no column": lambda e: e.rename_column("nowhere", "x"),
    "a name that is taken": lambda e: e.add_column("value", "int"),
    "a name taken but for case": lambda e: e.add_column("VALUE", "int"),
    "rename to a taken name": lambda e: e.rename_column("value", "status"),
    "a narrower type": lambda e: e.widen_column("value", "float"),
    "another kind of type": lambda e: e.widen_column("status", "string"),
    "no type": lambda e: e.add_column("x", "no-such-type"),
    "nothing that could be a type": lambda e: e.add_column("x", 7),
    "an empty name": lambda e: e.add_column("", "int"),
    "the column of the partition": lambda e: e.drop_column("ts"),
    "a partition of nothing": lambda e: e.partition_by(["day(nowhere)"]),
    "a partition that makes no sense": lambda e: e.partition_by(["day(sensor_id)"]),
    "a property that is no text": lambda e: e.set_properties({"a": 1}),  # type: ignore[dict-item]
    "an isolation level that is none": lambda e: e.set_properties(
        {"commit.isolation-level": "none"}
    ),
    "nothing at all": lambda e: e,
    "a good step and a bad one": lambda e: e.add_column("q", "int").drop_column("nowhere"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_step_that_cannot_be_made_changes_nothing(memory: Catalog, case: str) -> None:
    table = filled(memory)
    with pytest.raises((RequestError, IdentifierError)):
        REFUSED[case](table.evolve()).commit()
    assert table.version == 1
    assert table.arrow_schema == SCHEMA


def test_the_only_column_cannot_be_dropped(memory: Catalog) -> None:
    table = memory.create_table("t", [("x", pa.int64())])
    with pytest.raises(RequestError, match="only column"):
        table.evolve().drop_column("x").commit()


def test_properties_are_set_and_removed(catalog: Catalog) -> None:
    table = catalog.create_table(NAME, SCHEMA, properties={"owner": "plant", "a": "1"})
    table.evolve().set_properties({"owner": None, "b": "2"}).commit()
    assert table.metadata.properties == {"a": "1", "b": "2"}
    assert table.arrow_schema == SCHEMA


# --------------------------------------------------------------------------- two people at a time


def test_two_evolutions_that_do_not_touch_each_other_are_both_made(catalog: Catalog) -> None:
    table = filled(catalog)
    slow = interrupted(catalog, lambda: table.evolve().add_column("a", "int").commit())
    commit = slow.table(NAME).evolve().add_column("b", "int").rename_column("value", "v").commit()
    assert commit.attempts == 2
    assert table.arrow_schema.names == ["ts", "sensor_id", "v", "status", "a", "b"]
    ids = [field.id for field in table.schema.fields]
    assert ids == sorted(set(ids))


@pytest.mark.parametrize(
    ("theirs", "mine"),
    [
        (lambda e: e.add_column("q", "int"), lambda e: e.add_column("q", "int")),
        (lambda e: e.drop_column("status"), lambda e: e.drop_column("status")),
        (lambda e: e.drop_column("status"), lambda e: e.rename_column("status", "s")),
        (lambda e: e.rename_column("status", "s"), lambda e: e.widen_column("status", "long")),
        (lambda e: e.rename_column("status", "s"), lambda e: e.add_column("s", "int")),
        (lambda e: e.partition_by(["status"]), lambda e: e.drop_column("status")),
    ],
    ids=["add-add", "drop-drop", "drop-rename", "rename-widen", "rename-add", "partition-drop"],
)
def test_of_two_evolutions_that_collide_the_second_learns_why(
    catalog: Catalog,
    theirs: Callable[[Evolution], Evolution],
    mine: Callable[[Evolution], Evolution],
) -> None:
    table = filled(catalog)
    slow = interrupted(catalog, lambda: theirs(table.evolve()).commit())
    with pytest.raises(LakebedError):
        mine(slow.table(NAME).evolve()).commit()
    assert table.version == 2
    assert table.scan().count() == 4


def test_a_delete_goes_past_an_evolution_of_another_column(catalog: Catalog) -> None:
    table = filled(catalog)
    slow = interrupted(
        catalog, lambda: table.evolve().rename_column("value", "v").add_column("q", "int").commit()
    )
    assert slow.table(NAME).delete("status = 1").attempts == 2
    assert minutes(table) == [0, 2]
    assert column(table, "v") == [0.0, 0.2]


# ----------------------------------------------------------------------------------- partitioning


def test_files_of_old_and_new_partitioning_are_read_in_one_scan(opener: Opener) -> None:
    table = create(opener())
    for day in range(2):
        table.append(readings(day))
    table.evolve().partition_by(["hour(ts)", "bucket(4, sensor_id)"]).commit()
    table.append(readings(2))
    cold = opener().table(NAME)
    assert {file.spec_id for file in cold.read_plan().files} == {0, 1}
    assert minutes(cold) == [day * 1440 + n for day in range(3) for n in range(4)]
    assert cold.scan("ts < '2026-01-02'").plan.file_count == 1
    assert cold.scan("ts >= '2026-01-03'").plan.file_count == 3
    one = cold.scan("sensor_id = 's1'")
    assert one.count() == 3
    assert {file.spec_id for file in one.plan.files} == {0, 1}


def test_a_delete_over_both_partitionings_removes_from_each(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(readings(0))
    table.evolve().partition_by([]).commit()
    table.append(pa.concat_tables([readings(1), readings(2)]))
    table.delete("ts < '2026-01-02 00:02:00'")
    assert minutes(table) == [1442, 1443, 2880, 2881, 2882, 2883]
    assert {file.spec_id for file in table.read_plan().files} == {1}


def test_a_partitioning_that_was_there_before_is_taken_up_again(catalog: Catalog) -> None:
    table = create(catalog)
    table.evolve().partition_by(["sensor_id"]).commit()
    table.evolve().partition_by(["day(ts)"]).commit()
    assert table.spec.id == 0
    assert len(table.metadata.specs) == 2


def test_an_append_that_was_split_the_old_way_goes_past_a_new_partitioning(
    catalog: Catalog,
) -> None:
    table = create(catalog)
    slow = interrupted(catalog, lambda: table.evolve().partition_by(["sensor_id"]).commit())
    slow.table(NAME).append(readings())
    table.append(readings(1))
    assert {file.spec_id for file in table.read_plan().files} == {0, 1}
    assert minutes(table.scan("sensor_id = 's0'")) == [0, 3, 1440, 1443]


def test_a_column_of_an_old_partitioning_can_be_dropped_and_old_files_still_be_read(
    catalog: Catalog,
) -> None:
    table = create(catalog, by=["sensor_id"])
    table.append(readings())
    table.evolve().partition_by(["day(ts)"]).commit()
    table.evolve().drop_column("sensor_id").commit()
    assert minutes(table.scan("value < 0.25")) == [0, 1, 2]
    table.delete("value = 0.1")
    assert minutes(table) == [0, 2, 3]


@pytest.mark.parametrize(
    "by",
    [
        ["year(ts)"], ["month(ts)"], ["day(ts)"], ["hour(ts)"], ["sensor_id"], ["status"],
        ["bucket(16, sensor_id)"], ["truncate(1, sensor_id)"], ["truncate(2, status)"],
        ["month(ts)", "bucket(3, status)", "sensor_id"],
    ],
    ids=str,
)  # fmt: skip
def test_any_partitioning_gives_the_same_answers(memory: Catalog, by: list[str]) -> None:
    table = create(memory, by=by)
    rows = pa.concat_tables([readings(day, count=6) for day in (0, 1, 40, 400)])
    table.append(rows)
    assert table.scan().to_arrow().sort_by("ts") == rows
    for where, count in [
        ("ts >= '2026-01-02' and ts < '2026-01-03'", 6),
        ("sensor_id = 's1'", 8),
        ("sensor_id in ('s0', 's2') and status = 1", 8),
        ("status = 0", 12),
        ("ts > '2027-01-01'", 6),
        ("sensor_id is null", 0),
    ]:
        assert table.scan(where).count() == count, where
        assert len(minutes(table.scan(where))) == count, where


def test_rows_with_null_in_the_partition_are_kept_apart_and_found(catalog: Catalog) -> None:
    table = create(catalog, by=["sensor_id"])
    table.append(readings().set_column(1, "sensor_id", pa.array(["a", None, "a", None])))
    assert len(paths(table)) == 2
    assert minutes(table.scan("sensor_id is null")) == [1, 3]
    assert table.scan("sensor_id = 'a'").plan.file_count == 1
    assert table.scan("sensor_id is null").plan.file_count == 1


def test_a_new_column_does_not_hide_a_mismatch_of_an_old_one(memory: Catalog) -> None:
    table = filled(memory)
    rows = readings(1).append_column("q", pa.array([1] * 4))
    with pytest.raises(SchemaMismatchError, match="value"):
        table.append(rows.set_column(2, "value", pa.array(["x"] * 4)))
    assert table.arrow_schema == SCHEMA
