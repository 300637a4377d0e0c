"""Reading gives the rows that match, at today's names and types, whatever a file was written as."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.files import tables
from tests.format import build

from lakebed.errors import (
    BadDataFileError,
    NotFoundError,
    ObjectMissingError,
    RequestError,
    UnsafePathError,
)
from lakebed.expr.arrow import filter_mask
from lakebed.expr.bound import BoundConstant
from lakebed.files import data_reader
from lakebed.files.data_reader import count_matching, output_schema, read_files
from lakebed.files.data_writer import WriterOptions
from lakebed.files.intake import conform
from lakebed.format.datafile import ColumnStats, DataFile
from lakebed.format.partition import PartitionSpec
from lakebed.format.schema import Schema
from lakebed.format.types import Field, Kind, Primitive
from lakebed.storage.local import LocalStore
from lakebed.storage.memory import MemoryStore
from lakebed.storage.store import Store

INT, LONG, FLOAT, DOUBLE, TEXT = (
    Primitive(kind) for kind in (Kind.INT, Kind.LONG, Kind.FLOAT, Kind.DOUBLE, Kind.STRING)
)


@pytest.fixture(params=["memory", "local"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return MemoryStore() if request.param == "memory" else LocalStore(str(tmp_path / "root"))


@pytest.fixture(params=["small", "large"])
def _any_size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "large":
        monkeypatch.setattr(data_reader, "_SMALL_FILE_SIZE_BYTES", 0)


def read(
    store: Store, files: list[DataFile], where: str | None = None, **options: Any
) -> list[dict[str, Any]]:
    schema = options.pop("schema", tables.SCHEMA)
    metadata = options.pop("metadata", tables.METADATA)
    columns = options.pop("columns", None)
    batches = list(
        read_files(
            store,
            files,
            metadata=metadata,
            schema=schema,
            columns=columns,
            where=None if where is None else tables.bound(where, schema),
            **options,
        )
    )
    shape = output_schema(schema, columns)
    assert all(batch.schema.equals(shape) for batch in batches)
    return list(pa.Table.from_batches(batches, shape).to_pylist())


def test_all_rows_come_back_in_the_order_of_the_files(store: Store) -> None:
    rows = tables.rows()
    files = tables.stored(store, rows.slice(20), rows.slice(0, 20))
    assert repr(read(store, files)) == repr(
        rows.slice(20).to_pylist() + rows.slice(0, 20).to_pylist()
    )


def test_columns_come_in_the_order_asked_for(store: Store) -> None:
    files = tables.stored(store, tables.rows().slice(0, 2))
    assert (
        read(store, files, columns=["status", "ts"])
        == tables.rows().slice(0, 2).select(["status", "ts"]).to_pylist()
    )


def test_a_column_that_is_not_there_or_asked_for_twice_is_refused(store: Store) -> None:
    with pytest.raises(NotFoundError):
        read(store, [], columns=["nothing"])
    with pytest.raises(RequestError, match="twice"):
        read(store, [], columns=["ts", "ts"])


def test_batches_have_at_most_the_rows_asked_for(store: Store) -> None:
    files = tables.stored(store, tables.rows())
    batches = read_files(
        store, files, metadata=tables.METADATA, schema=tables.SCHEMA, columns=None, where=None,
        batch_rows=7,
    )  # fmt: skip
    assert [batch.num_rows for batch in batches] == [7, 7, 7, 7, 7, 5]


PREDICATES = [
    *("status = 1", "value > 5", "value is nan", "sensor_id is null", "sensor_id in ('s1', 's4')"),
    *("tags is null", "price >= 3.25 and price < 8", "not (value < 10)", "sensor_id like 's%'"),
    *("ts < '2023-11-14T22:13:20.000010Z'", "value = 0.0 or value = -0.0", "status = 99"),
    *("sensor_id = 's1' and status = 2 and value < 15", "ts is not null", "value != 3"),
]


@pytest.mark.usefixtures("_any_size")
@pytest.mark.parametrize("where", PREDICATES)
def test_a_predicate_gives_what_filtering_all_rows_gives(store: Store, where: str) -> None:
    rows = tables.rows()
    options = WriterOptions(row_group_rows=8)
    ((file, data),) = tables.written(rows, options=options)
    store.create(file.path, data)
    names = {field.id: field.name for field in tables.SCHEMA.fields}
    wanted = rows.filter(filter_mask(tables.bound(where), rows, names))
    assert repr(read(store, [file], where)) == repr(wanted.to_pylist())
    only = read(store, [file], where, columns=["price"])
    assert only == wanted.select(["price"]).to_pylist()
    count = count_matching(
        store, [file], metadata=tables.METADATA, schema=tables.SCHEMA, where=tables.bound(where)
    )
    assert count == wanted.num_rows


values = st.none() | st.floats() | st.sampled_from([0.0, -0.0, 1.0, float("nan"), float("inf")])
texts = st.none() | st.text(max_size=3) | st.sampled_from(["\ud7ff", "\U0010ffff", "z" * 70])
PAIR = Schema(0, (Field(1, "x", DOUBLE), Field(2, "s", TEXT)))
PAIR_METADATA = build.metadata(schemas=(PAIR,), specs=(PartitionSpec(0),))


@settings(max_examples=40)
@given(
    st.lists(st.tuples(values, texts), min_size=1, max_size=12),
    st.sampled_from(["=", "!=", "<", "<=", ">", ">="]),
    st.sampled_from(["x", "s"]),
    st.sampled_from(["0.0", "-0.0", "1.0", "1e300"]),
    st.sampled_from(["a", "", "z", "\ud7ff", "\U0010ffff"]),
)
def test_row_groups_are_never_skipped_wrongly(
    rows: list[Any], op: str, column: str, number: str, text: str
) -> None:
    where = tables.bound(f"x {op} {number}" if column == "x" else f"s {op} '{text}'", PAIR)
    table = conform(pa.table({"x": pa.array([r[0] for r in rows], pa.float64()),
                              "s": pa.array([r[1] for r in rows], pa.string())}), PAIR)  # fmt: skip
    ((file, data),) = tables.written(table, schema=PAIR, options=WriterOptions(row_group_rows=2))
    store = MemoryStore()
    store.create(file.path, data)
    # Looked at as a large file, whose row groups are pruned.
    request_size, data_reader._SMALL_FILE_SIZE_BYTES = data_reader._SMALL_FILE_SIZE_BYTES, 0
    try:
        batches = list(
            read_files(
                store, [file], metadata=PAIR_METADATA, schema=PAIR, columns=None, where=where
            )
        )
    finally:
        data_reader._SMALL_FILE_SIZE_BYTES = request_size
    found = pa.Table.from_batches(batches, output_schema(PAIR, None)).to_pylist()
    wanted = table.filter(filter_mask(where, table, {1: "x", 2: "s"})).to_pylist()
    assert repr(found) == repr(wanted)


def test_row_groups_that_cannot_match_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_reader, "_SMALL_FILE_SIZE_BYTES", 0)
    ((file, data),) = tables.written(options=WriterOptions(row_group_rows=10))
    group = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0)
    broken = bytearray(data)
    for place in range(group.num_columns):
        column = group.column(place)
        end = column.data_page_offset + column.total_compressed_size - 1
        broken[end if column.dictionary_page_offset is None else column.data_page_offset - 1] ^= 1
    store = MemoryStore()
    store.create(file.path, bytes(broken))
    assert len(read(store, [file], "ts >= '2023-11-14T22:13:20.000010Z'")) == 30
    with pytest.raises(BadDataFileError):
        read(store, [file], "ts >= '2023-11-14T22:13:20.000009Z'")


# ------------------------------------------------------------------------------------- evolution

OLD = Schema(
    0,
    (
        Field(1, "a", INT),
        Field(2, "b", FLOAT),
        Field(3, "gone", TEXT),
        Field(4, "d", Primitive(Kind.DECIMAL, 5, 2)),
        Field(5, "i", INT),
    ),
)
NEW = Schema(
    1,
    (
        Field(5, "as_double", DOUBLE),
        Field(6, "added", TEXT),
        Field(1, "renamed", LONG),
        Field(2, "b", DOUBLE),
        Field(4, "d", Primitive(Kind.DECIMAL, 9, 2)),
        Field(7, "a", TEXT),  # a new column under the name of an old one
    ),
)
EVOLVED = build.metadata(schemas=(OLD, NEW), specs=(PartitionSpec(0),))


def evolved_files(store: Store) -> list[DataFile]:
    old = pa.table({"a": pa.array([1, None], pa.int32()), "b": pa.array([0.5, 1.5], pa.float32()),
                    "gone": ["x", "y"], "d": pa.array([None, None], pa.decimal128(5, 2)),
                    "i": pa.array([7, 8], pa.int32())})  # fmt: skip
    new = pa.table({"as_double": [0.25], "added": ["z"], "renamed": [1 << 40], "b": [2.5],
                    "d": pa.array([None], pa.decimal128(9, 2)), "a": ["fresh"]})  # fmt: skip
    return [
        *tables.stored(store, conform(old, OLD), schema=OLD),
        *tables.stored(store, conform(new, NEW), schema=NEW),
        *tables.stored(store, conform(old, OLD), schema=OLD),
    ]


def evolved(as_double: float, renamed: int | None, b: float, **more: Any) -> dict[str, Any]:
    return {
        "as_double": as_double,
        "added": None,
        "renamed": renamed,
        "b": b,
        "d": None,
        "a": None,
    } | more


@pytest.mark.usefixtures("_any_size")
def test_renamed_added_dropped_and_widened_columns_are_found_by_id(store: Store) -> None:
    files = evolved_files(store)
    old = [evolved(7.0, 1, 0.5), evolved(8.0, None, 1.5)]
    new = [evolved(0.25, 1 << 40, 2.5, added="z", a="fresh")]
    assert read(store, files, schema=NEW, metadata=EVOLVED) == old + new + old


@pytest.mark.usefixtures("_any_size")
@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("renamed = 1", 2),
        ("renamed >= 1", 3),
        ("renamed is null", 2),
        ("added is null", 4),
        ("added = 'z'", 1),
        ("a = 'fresh'", 1),
        ("a is null", 4),
        ("as_double > 7.5", 2),
        ("b <= 1.5 and added is null", 4),
    ],
)
def test_predicates_see_todays_columns_in_old_files(store: Store, where: str, count: int) -> None:
    files = evolved_files(store)
    assert len(read(store, files, where, schema=NEW, metadata=EVOLVED)) == count
    assert count == count_matching(
        store, files, metadata=EVOLVED, schema=NEW, where=tables.bound(where, NEW)
    )


def test_a_file_that_has_none_of_the_columns_gives_rows_of_nulls(store: Store) -> None:
    files = evolved_files(store)[:1]
    found = read(store, files, schema=NEW, metadata=EVOLVED, columns=["added", "a"])
    assert found == [{"added": None, "a": None}] * 2


def test_counting_without_predicate_opens_nothing_and_a_constant_one_is_heeded(
    store: Store,
) -> None:
    files = tables.stored(store, tables.rows())
    known: dict[str, Any] = {"metadata": tables.METADATA, "schema": tables.SCHEMA}
    ghost = DataFile(path="data/ghost.parquet", row_count=5, size_bytes=9)
    assert count_matching(store, [*files, ghost], where=None, **known) == tables.ROW_COUNT + 5
    assert count_matching(store, files, where=BoundConstant(False), **known) == 0
    assert count_matching(store, files, where=BoundConstant(True), **known) == tables.ROW_COUNT


# --------------------------------------------------------------------------------------- damage


def changed(file: DataFile, **changes: Any) -> DataFile:
    fields = {name: getattr(file, name) for name in file.__struct_fields__}
    return DataFile(**(fields | changes))


@pytest.mark.usefixtures("_any_size")
def test_a_file_that_is_missing_is_named(store: Store) -> None:
    files = tables.stored(store, *[tables.rows().slice(i, 5) for i in range(0, 40, 5)])
    store.delete(files[5].path)
    for where in (None, "status < 9"):
        with pytest.raises(ObjectMissingError, match=files[5].path):
            read(store, files, where)


@pytest.mark.usefixtures("_any_size")
@pytest.mark.parametrize("wrong", [{"size_bytes": 1}, {"size_bytes": 10**6}, {"row_count": 39}])
def test_a_file_that_is_not_the_one_described_is_refused(
    store: Store, wrong: dict[str, int]
) -> None:
    (file,) = tables.stored(store, tables.rows())
    for where in (None, "status < 9"):
        with pytest.raises(BadDataFileError, match="where the manifest says"):
            read(store, [changed(file, **wrong)], where)


def test_a_damaged_file_among_many_is_named(store: Store) -> None:
    files = tables.stored(store, *[tables.rows().slice(i, 5) for i in range(0, 40, 5)])
    data = bytearray(store.read(files[3].path, size_bytes_max=1 << 20))
    data[30] ^= 4
    store.delete(files[3].path)
    store.create(files[3].path, bytes(data))
    with pytest.raises(BadDataFileError, match=files[3].path) as caught:
        read(store, files)
    assert caught.value.fields["path"] == files[3].path


def test_a_flipped_bit_in_plain_values_is_noticed_by_the_checksum_of_the_page(store: Store) -> None:
    plain = WriterOptions(compression="none", compression_level=None)
    ((file, data),) = tables.written(options=plain)
    column = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0).column(2)
    damaged = bytearray(data)
    damaged[column.data_page_offset + column.total_compressed_size - 5] ^= 1
    assert not pq.read_table(pa.BufferReader(bytes(damaged))).equals(tables.rows())
    store.create(file.path, bytes(damaged))
    with pytest.raises(BadDataFileError, match="CRC"):
        read(store, [file])


def other_file(store: Store, file: DataFile, table: Any) -> DataFile:
    """A sound Parquet file with other columns in the place of a data file."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    data = sink.getvalue().to_pybytes()
    store.delete(file.path)
    store.create(file.path, data)
    return changed(file, size_bytes=len(data))


def test_a_file_that_lost_a_column_it_had_is_refused_instead_of_read_as_nulls(store: Store) -> None:
    (file,) = tables.stored(store, tables.rows())
    file = other_file(store, file, tables.rows().drop_columns(["value"]))
    with pytest.raises(BadDataFileError, match="lacks the column 'value'"):
        read(store, [file])


def test_a_file_whose_column_has_another_type_is_refused_instead_of_cast(store: Store) -> None:
    (file,) = tables.stored(store, tables.rows())
    seconds = tables.rows().column("ts").cast(pa.timestamp("ns", "UTC"))
    file = other_file(store, file, tables.rows().set_column(0, "ts", seconds))
    with pytest.raises(BadDataFileError, match="column 'ts': table has timestamptz"):
        read(store, [file])


def test_an_adopted_file_without_a_nullable_column_gives_nulls(store: Store) -> None:
    (file,) = tables.stored(store, tables.rows())
    file = other_file(store, file, tables.rows().drop_columns(["value"]))
    adopted = changed(file, stats={1: ColumnStats(0)})
    assert {row["value"] for row in read(store, [adopted])} == {None}


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "data/../../x"])
def test_a_path_out_of_the_table_is_not_opened(store: Store, path: str) -> None:
    with pytest.raises(UnsafePathError):
        read(store, [DataFile(path=path, row_count=1, size_bytes=10)])


def test_a_link_out_of_the_table_is_not_followed(tmp_path: Path) -> None:
    inside = LocalStore(str(tmp_path / "root"))
    outside = LocalStore(str(tmp_path / "outside"))
    (file,) = tables.stored(outside, tables.rows())
    link = tmp_path / "root" / file.path
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "outside" / file.path)
    with pytest.raises((UnsafePathError, ObjectMissingError)):
        read(inside, [file])


def test_a_reader_that_stops_early_leaves_nothing_open(store: Store) -> None:
    files = tables.stored(store, *[tables.rows()] * 4)
    stream: Iterator[Any] = read_files(
        store, files, metadata=tables.METADATA, schema=tables.SCHEMA, columns=None, where=None
    )
    assert next(stream).num_rows == tables.ROW_COUNT
    stream.close()  # type: ignore[attr-defined]
    with pytest.raises(StopIteration):
        next(stream)
