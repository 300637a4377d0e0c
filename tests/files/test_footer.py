"""A file is adopted if its columns and partition fit, with statistics that its footer proves."""

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.files import tables

from lakebed.errors import (
    BadDataFileError,
    ObjectMissingError,
    SchemaMismatchError,
    UnsafePathError,
)
from lakebed.files.data_reader import read_files
from lakebed.files.footer import adopt
from lakebed.format.datafile import ColumnStats, DataFile
from lakebed.format.partition import PartitionSpec, parse_spec
from lakebed.format.schema import Schema
from lakebed.format.types import Field, Kind, ListOf, MapOf, Primitive, Struct
from lakebed.storage.local import LocalStore
from lakebed.storage.memory import MemoryStore

PATH = "data/theirs.parquet"
INT, LONG = Primitive(Kind.INT), Primitive(Kind.LONG)
MICROS, INSTANT = Primitive(Kind.TIMESTAMP), Primitive(Kind.TIMESTAMPTZ)


def adopted(
    table: Any,
    schema: Schema = tables.SCHEMA,
    spec: PartitionSpec | None = None,
    **options: Any,
) -> DataFile:
    """What adopting a file that somebody wrote with pyarrow gives."""
    store = MemoryStore()
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    store.create(PATH, sink.getvalue())
    return adopt(store, PATH, schema=schema, spec=spec or PartitionSpec(0))


def column(kind: Any, *, required: bool = False) -> Schema:
    return Schema(0, (Field(1, "c", kind, required),))


def refused(table: Any, schema: Schema = tables.SCHEMA, **options: Any) -> list[str]:
    with pytest.raises(SchemaMismatchError, match=PATH) as caught:
        adopted(table, schema, **options)
    found: Any = caught.value.fields["problems"]
    return list(found)


def test_our_own_files_are_adopted_with_the_statistics_they_were_written_with() -> None:
    ((file, data),) = tables.written()
    store = MemoryStore()
    store.create(PATH, data)
    found = adopt(store, PATH, schema=tables.SCHEMA, spec=PartitionSpec(0))
    assert (found.row_count, found.size_bytes) == (file.row_count, file.size_bytes)
    assert found.stats == {
        number: ColumnStats(stats.null_count, None, stats.lower, stats.upper)
        for number, stats in file.stats.items()
    }


@pytest.mark.parametrize(
    "options",
    [{}, {"store_schema": False}, {"row_group_size": 7}, {"data_page_version": "2.0"}],
)
def test_a_file_of_others_is_adopted_and_read(options: dict[str, Any]) -> None:
    plain = pa.table({name: tables.rows().column(name) for name in reversed(tables.SCHEMA.by_name)})
    plain = plain.append_column("unknown to the table", pa.array(range(tables.ROW_COUNT)))
    store = MemoryStore()
    sink = pa.BufferOutputStream()
    pq.write_table(plain, sink, **options)
    store.create(PATH, sink.getvalue())
    file = adopt(store, PATH, schema=tables.SCHEMA, spec=PartitionSpec(0))
    batches = list(
        read_files(
            store, [file], metadata=tables.METADATA, schema=tables.SCHEMA, columns=None, where=None
        )
    )
    assert not tables.is_other(batches)


def test_dictionaries_large_text_and_extensions_are_adopted() -> None:
    text = pa.table({"c": pa.array(["x", "y"]).dictionary_encode()})
    assert adopted(text, column(Primitive(Kind.STRING))).stats[1] == ColumnStats(0, None, "x", "y")
    large = pa.table({"c": pa.array(["x"], pa.large_string())})
    assert adopted(large, column(Primitive(Kind.STRING))).row_count == 1
    ids = pa.table({"c": pa.array([b"i" * 16], pa.binary(16)).cast(pa.uuid())})
    assert adopted(ids, column(Primitive(Kind.FIXED, length=16))).stats[1].lower == b"i" * 16


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (pa.array([7], pa.int32()), Primitive(Kind.LONG)),
        (pa.array([7], pa.int32()), Primitive(Kind.DOUBLE)),
        (pa.array([7.5], pa.float32()), Primitive(Kind.DOUBLE)),
        (pa.array([7], pa.int8()), Primitive(Kind.INT)),
        (pa.array([7], pa.decimal128(5, 2)), Primitive(Kind.DECIMAL, 9, 2)),
        (pa.array([7], pa.date64()), Primitive(Kind.DATE)),
    ],
    ids=str,
)
def test_narrower_types_are_adopted_with_bounds_of_the_tables_type(
    array: Any, kind: Primitive
) -> None:
    stats = adopted(pa.table({"c": array}), column(kind)).stats[1]
    assert stats.null_count == 0
    assert stats.lower == stats.upper
    assert stats.lower is not None


def test_missing_nullable_columns_have_no_statistics() -> None:
    file = adopted(tables.rows().select(["ts", "status"]))
    assert sorted(file.stats) == [1, 4]


@pytest.mark.parametrize(
    ("array", "kind", "sentence"),
    [
        (pa.array([1]), INT, "column 'c': table has int, file has long"),
        (pa.array(["1"]), INT, "column 'c': table has int, file has string"),
        (pa.array([1], pa.uint16()), INT, "column 'c': table has int, file has uint16"),
        (pa.array([1.0], pa.float16()), Primitive(Kind.FLOAT), "float, file has halffloat"),
        (pa.array([1], pa.timestamp("ms")), MICROS, "timestamp, file has timestamp[ms]"),
        (pa.array([1], pa.timestamp("us")), INSTANT, "timestamptz, file has timestamp"),
        (pa.array([1], pa.timestamp("ns", "UTC")), INSTANT, "file has timestamptz_ns"),
        (pa.array([1], pa.time32("ms")), Primitive(Kind.TIME), "time, file has time32[ms]"),
        (pa.array([1], pa.decimal128(9, 3)), Primitive(Kind.DECIMAL, 9, 2), "has decimal(9,3)"),
        (pa.array([[1]]), LONG, "table has long, file has list<long>"),
        (pa.array([b"abc"], pa.binary(3)), Primitive(Kind.FIXED, length=4), "file has fixed[3]"),
    ],
    ids=str,
)
def test_a_type_that_does_not_fit_is_told_exactly(array: Any, kind: Any, sentence: str) -> None:
    (problem,) = refused(pa.table({"c": array}), column(kind))
    assert sentence in problem


def test_old_timestamps_are_refused_with_the_option_that_avoids_them() -> None:
    (problem,) = refused(tables.rows(), use_deprecated_int96_timestamps=True)
    assert "use_deprecated_int96_timestamps=False" in problem


def test_all_differences_are_told_at_once() -> None:
    table = pa.table({"sensor_id": [1], "value": ["x"]})
    assert refused(table) == [
        "column 'ts' is required and missing",
        "column 'sensor_id': table has string, file has long",
        "column 'value': table has double, file has string",
    ]


def with_id(number: int | str, name: str = "c") -> Any:
    field = pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(number)})
    return pa.Table.from_arrays([pa.array([1])], schema=pa.schema([field]))


def test_field_ids_in_a_file_must_be_the_tables() -> None:
    long = column(Primitive(Kind.LONG))
    assert adopted(with_id(1), long).row_count == 1
    assert refused(with_id(2), long) == ["column 'c' has field id 2 where the table has 1"]
    two = Schema(0, (Field(1, "c", Primitive(Kind.LONG)), Field(2, "d", Primitive(Kind.LONG))))
    assert refused(with_id(2, "other"), two) == [
        "column 'other' has the field id of the table's 'd'"
    ]


def test_columns_that_differ_only_in_case_are_refused() -> None:
    """Spark would read `C` where the table's `c` is missing in the file, and is null."""
    long = column(Primitive(Kind.LONG))
    problem = "column 'C' differs only in case from the table's 'c'"
    assert refused(pa.table({"C": [1]}), long) == [problem]
    assert refused(pa.table({"c": [1], "C": [1]}), long) == [problem]


def test_two_columns_of_one_name_are_refused() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["c", "c"])
    assert "two of its columns have the same name" in refused(table, column(Primitive(Kind.LONG)))


# -------------------------------------------------------------------------------------- nested


LONGS = ListOf(Field(2, "element", LONG))
RECORD = Struct((Field(2, "x", LONG),))
KEY = Field(2, "key", Primitive(Kind.STRING), required=True)
MAPS = pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64()))
NESTED: list[tuple[Any, Any, str]] = [
    (pa.array([[1]]), LONGS, ""),
    (pa.array([["x"]]), LONGS, "'c.element': table has long, file has string"),
    (
        pa.array([[1]]),
        ListOf(Field(2, "element", LONG, required=True)),
        "'c.element' is required and may be null",
    ),
    (pa.array([{"x": 1}]), RECORD, ""),
    (pa.array([{"y": 1}]), RECORD, "table has struct<x: long>, file has struct<y: long>"),
    (MAPS, MapOf(KEY, Field(3, "value", LONG)), ""),
    (MAPS, MapOf(KEY, Field(3, "value", INT)), "'c.value': table has int, file has long"),
    (pa.array([1]), LONGS, "table has list<long>, file has long"),
]


@pytest.mark.parametrize(("array", "kind", "problem"), NESTED)
def test_nested_columns_are_compared_part_by_part(array: Any, kind: Any, problem: str) -> None:
    table = pa.table({"c": array})
    if not problem:
        assert adopted(table, column(kind)).stats == {}
        return
    (found,) = refused(table, column(kind))
    assert problem in found


# --------------------------------------------------------------------------------- nullability


def test_a_required_column_must_be_shown_to_be_without_nulls() -> None:
    long = column(Primitive(Kind.LONG), required=True)
    assert adopted(pa.table({"c": [1]}), long).row_count == 1
    assert refused(pa.table({"c": [1, None]}), long) == ["column 'c' is required and has 1 nulls"]
    without = refused(pa.table({"c": [1]}), long, write_statistics=False)
    assert without == ["column 'c' is required and may be null in the file"]
    strict = pa.schema([pa.field("c", pa.int64(), nullable=False)])
    sure = pa.Table.from_arrays([pa.array([1])], schema=strict)
    assert adopted(sure, long, write_statistics=False).stats == {1: ColumnStats()}
    nested = column(ListOf(Field(2, "element", Primitive(Kind.LONG))), required=True)
    assert "may be null" in refused(pa.table({"c": [[1]]}), nested)[0]


# ---------------------------------------------------------------------------------- partitions

BY_DAY = parse_spec(["day(ts)"], tables.SCHEMA, spec_id=4, first_field_id=1000)
NIGHT = dt.datetime(2026, 1, 1, 23, 59, 59, tzinfo=dt.UTC)


def at(*moments: dt.datetime) -> Any:
    return pa.table({"ts": pa.array(moments, pa.timestamp("us", "UTC"))})


def test_a_file_within_one_partition_gets_its_value() -> None:
    file = adopted(at(NIGHT, NIGHT - dt.timedelta(hours=23)), spec=BY_DAY)
    assert (file.spec_id, file.partition) == (4, (20_454,))


@pytest.mark.parametrize("options", [{}, {"row_group_size": 1}])
def test_a_file_over_several_partitions_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(SchemaMismatchError, match=r"spans several partitions of day\(ts\)"):
        adopted(at(NIGHT, NIGHT + dt.timedelta(seconds=1)), spec=BY_DAY, **options)


def test_a_file_whose_statistics_show_no_partition_is_refused() -> None:
    schema = Schema(0, (Field(1, "ts", Primitive(Kind.TIMESTAMPTZ)),))
    with pytest.raises(SchemaMismatchError, match="statistics do not show"):
        adopted(at(NIGHT), schema, BY_DAY, write_statistics=False)
    some = pa.table({"ts": pa.array([NIGHT, None], pa.timestamp("us", "UTC"))})
    with pytest.raises(SchemaMismatchError, match="spans several partitions"):
        adopted(some, schema, BY_DAY)


def test_a_file_without_rows_is_refused() -> None:
    with pytest.raises(SchemaMismatchError, match="has no rows"):
        adopted(tables.rows().slice(0, 0))


# --------------------------------------------------------------------------------------- places


def test_a_file_that_is_missing_or_outside_is_not_adopted(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path / "root"))
    with pytest.raises(ObjectMissingError):
        adopt(store, PATH, schema=tables.SCHEMA, spec=PartitionSpec(0))
    for path in ("../x.parquet", "/etc/passwd", "s3://b/x"):
        with pytest.raises(UnsafePathError):
            adopt(store, path, schema=tables.SCHEMA, spec=PartitionSpec(0))
    outside = tmp_path / "outside.parquet"
    outside.write_bytes(tables.written()[0][1])
    (tmp_path / "root" / "data").mkdir(parents=True)
    (tmp_path / "root" / PATH).symlink_to(outside)
    with pytest.raises((UnsafePathError, ObjectMissingError)):
        adopt(store, PATH, schema=tables.SCHEMA, spec=PartitionSpec(0))


@pytest.mark.parametrize("data", [b"", b"PAR1", b"not a parquet file at all", b"PAR1" * 5])
def test_what_is_no_parquet_file_is_refused(data: bytes) -> None:
    store = MemoryStore()
    store.create(PATH, data)
    with pytest.raises(BadDataFileError, match=PATH):
        adopt(store, PATH, schema=tables.SCHEMA, spec=PartitionSpec(0))
