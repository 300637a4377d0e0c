"""Written files hold each row once, in order, one partition each, with ids and exact statistics."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.files import tables
from tests.files.manifests import KINDS, VALUES

from lakebed.errors import RequestError
from lakebed.files import data_writer
from lakebed.files.arrow_schema import from_arrow
from lakebed.files.column_stats import column_stats
from lakebed.files.data_writer import WriterOptions, one_partition
from lakebed.files.intake import conform
from lakebed.files.manifest import typed_array
from lakebed.format.datafile import ColumnStats
from lakebed.format.partition import PartitionSpec, parse_spec
from lakebed.format.paths import check_path
from lakebed.format.schema import Schema
from lakebed.format.types import Field, Kind, ListOf, MapOf, Primitive, Struct

SCHEMA = Schema(
    0,
    (
        Field(1, "ts", Primitive(Kind.TIMESTAMPTZ)),
        Field(2, "site", Primitive(Kind.STRING)),
        Field(3, "n", Primitive(Kind.LONG)),
        Field(4, "x", Primitive(Kind.DOUBLE)),
    ),
)


def spec(*texts: str) -> PartitionSpec:
    return parse_spec(list(texts), SCHEMA, spec_id=2, first_field_id=1000)


def table(rows: list[tuple[Any, Any, Any, Any]]) -> Any:
    columns = list(zip(*rows, strict=True)) or [()] * 4
    arrays = [
        typed_array(list(column), field.type)
        for column, field in zip(columns, SCHEMA.fields, strict=True)
        if isinstance(field.type, Primitive)
    ]
    return conform(pa.Table.from_arrays(arrays, list(SCHEMA.by_name)), SCHEMA)


def read(data: bytes) -> Any:
    return pq.read_table(pa.BufferReader(data))


DAY = 86_400_000_000
rows = st.lists(
    st.tuples(
        st.none() | st.integers(-3 * DAY, 3 * DAY),
        st.none() | st.sampled_from(["a", "b", "", "é/..", "__null__", "z" * 90]),
        st.none() | st.integers(-25, 25),
        st.none() | st.floats(),
    ),
    max_size=12,
)
specs = st.sampled_from(
    [
        (),
        ("day(ts)",),
        ("site",),
        ("hour(ts)", "site"),
        ("bucket(4, site)",),
        ("truncate(10, n)", "truncate(1, site)"),
        ("month(ts)", "bucket(3, n)", "site"),
    ]
)


@settings(max_examples=60)
@given(rows, specs)
def test_each_row_is_in_one_file_and_each_file_in_one_partition(
    values: list[Any], texts: tuple[str, ...]
) -> None:
    given_rows = table(values)
    files = tables.written(given_rows, schema=SCHEMA, spec=spec(*texts))
    found = [read(data) for _, data in files]
    assert sorted(repr(row) for part in found for row in part.to_pylist()) == sorted(
        repr(row) for row in given_rows.to_pylist()
    )
    keys = [file.partition for file, _ in files]
    assert len(set(keys)) == len(keys)
    for (file, data), part in zip(files, found, strict=True):
        assert (file.row_count, file.size_bytes) == (part.num_rows, len(data))
        assert (file.schema_id, file.spec_id) == (0, 2)
        assert check_path(file.path)
        assert repr(file.stats) == repr(column_stats(part, SCHEMA))
        # Split once more, the rows of a file fall into its own partition and no other.
        again = tables.written(conform(part, SCHEMA), schema=SCHEMA, spec=spec(*texts))
        assert [each.partition for each, _ in again] == [file.partition]


def test_rows_keep_their_order_inside_a_partition() -> None:
    given_rows = table([(0, "ab"[i % 2], i, None) for i in range(10)])
    files = tables.written(given_rows, schema=SCHEMA, spec=spec("site"))
    assert [read(data).column("n").to_pylist() for _, data in files] == [
        [0, 2, 4, 6, 8],
        [1, 3, 5, 7, 9],
    ]
    assert [file.partition for file, _ in files] == [("a",), ("b",)]


def test_no_rows_make_no_files() -> None:
    assert tables.written(table([]), schema=SCHEMA, spec=spec("site")) == []


def test_directories_say_the_partition_in_words() -> None:
    moment = int(dt.datetime(2026, 1, 2, 3, tzinfo=dt.UTC).timestamp()) * 10**6
    given_rows = table([(moment, "a/b", 17, None)])
    ((file, _),) = tables.written(given_rows, schema=SCHEMA, spec=spec("hour(ts)", "site"))
    assert file.path.startswith("data/ts_hour=2026-01-02-03/site=a%2Fb/")
    assert file.path.endswith(".parquet")


def test_a_spec_on_a_dropped_column_gives_null_partitions() -> None:
    without = Schema(1, SCHEMA.fields[1:])
    given_rows = conform(table([(0, "a", 1, 1.0)]).drop_columns(["ts"]), without)
    ((file, _),) = tables.written(given_rows, schema=without, spec=spec("day(ts)", "site"))
    assert file.partition == (None, "a")


# ------------------------------------------------------------------------------- what is inside

NESTED = Schema(
    0,
    (
        Field(1, "t", Primitive(Kind.TIMESTAMPTZ_NS), required=True),
        Field(2, "l", ListOf(Field(3, "element", Primitive(Kind.STRING)))),
        Field(
            4,
            "m",
            MapOf(
                Field(5, "key", Primitive(Kind.STRING), required=True),
                Field(6, "value", Struct((Field(7, "x", Primitive(Kind.DECIMAL, 5, 1)),))),
            ),
        ),
    ),
)


def nested_file() -> bytes:
    data = pa.table(
        {
            "t": pa.array([1_700_000_000_123_456_789], pa.timestamp("ns", "UTC")),
            "l": pa.array([["a"]]),
            "m": pa.array(
                [[("k", {"x": Decimal("1.5")})]],
                pa.map_(pa.string(), pa.struct([("x", pa.decimal128(5, 1))])),
            ),
        }
    )
    ((_, content),) = tables.written(conform(data, NESTED), schema=NESTED)
    return content


def test_every_column_carries_its_field_id_nested_ones_too() -> None:
    text = str(pq.ParquetFile(pa.BufferReader(nested_file())).schema)
    for number, name in enumerate(("t", "l", "element", "m", "key", "value", "x"), start=1):
        assert f"field_id={number} {name}" in text


def test_nanoseconds_are_kept_and_microseconds_are_utc() -> None:
    schema = pq.ParquetFile(pa.BufferReader(nested_file())).schema
    assert "isAdjustedToUTC=true, timeUnit=nanoseconds" in str(schema)
    assert read(nested_file()).column("t").cast(pa.int64()).to_pylist() == [
        1_700_000_000_123_456_789
    ]
    ((_, data),) = tables.written(table([(5, "a", 1, 1.0)]), schema=SCHEMA)
    found = pq.ParquetFile(pa.BufferReader(data))
    assert "isAdjustedToUTC=true, timeUnit=microseconds" in str(found.schema)
    assert found.schema_arrow.field("ts").type == pa.timestamp("us", "UTC")


def test_pages_have_checksums_that_notice_a_flipped_bit() -> None:
    ((_, data),) = tables.written(table([(i, "a", i * i, i / 7) for i in range(50)]), schema=SCHEMA)
    footer = pq.ParquetFile(pa.BufferReader(data)).metadata
    column = footer.row_group(0).column(3)
    changed = bytearray(data)
    changed[column.data_page_offset + column.total_compressed_size - 1] ^= 1
    with pytest.raises(OSError, match="CRC"):
        pq.ParquetFile(pa.BufferReader(bytes(changed)), page_checksum_verification=True).read()


def test_nothing_of_arrow_or_pandas_is_left_in_the_footer() -> None:
    ((_, data),) = tables.written()
    assert not pq.ParquetFile(pa.BufferReader(data)).metadata.metadata


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_columns_of_every_type_are_read_back_exactly(kind: Primitive) -> None:
    schema = Schema(0, (Field(1, "c", kind),))
    given_rows = conform(pa.table({"c": typed_array([*VALUES[kind.kind], None], kind)}), schema)
    ((file, data),) = tables.written(given_rows, schema=schema)
    assert read(data).column("c").equals(given_rows.column("c"))
    assert repr(file.stats) == repr(column_stats(given_rows, schema))


def test_times_are_written_as_differences_and_repeated_text_as_a_dictionary() -> None:
    count = 2000
    given_rows = table([(i * 1000, f"s{i % 10}", i * 7919 % 10**9, i / 7) for i in range(count)])
    ((_, data),) = tables.written(given_rows, schema=SCHEMA)
    group = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0)
    encodings = {group.column(i).path_in_schema: group.column(i).encodings for i in range(4)}
    assert "DELTA_BINARY_PACKED" in encodings["ts"]
    assert "RLE_DICTIONARY" in encodings["site"]
    assert "DELTA_BINARY_PACKED" in encodings["n"]
    assert "RLE_DICTIONARY" not in encodings["x"]


def test_statistics_that_parquet_does_not_keep_are_made_from_the_rows() -> None:
    given_rows = table([(0, "y" * 5000, 1, float("nan")), (0, "z" * 5000, 1, float("nan"))])
    ((file, _),) = tables.written(given_rows, schema=SCHEMA)
    assert file.stats[2] == ColumnStats(0, None, "y" * 64, "z" * 63 + "{")
    assert file.stats[4] == ColumnStats(0, 2)


# ---------------------------------------------------------------------------------------- pieces


def test_rows_are_cut_into_files_of_the_wanted_size() -> None:
    given_rows = table([(i, "a", i, float(i)) for i in range(1000)])
    options = WriterOptions(target_file_bytes=given_rows.nbytes // 16 + 1)
    files = tables.written(given_rows, schema=SCHEMA, options=options)
    assert len(files) == 4
    found = pa.concat_tables([read(data) for _, data in files])
    assert found.column("n").to_pylist() == list(range(1000))


def test_no_file_has_more_rows_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_writer, "DATA_FILE_ROW_COUNT_MAX", 300)
    files = tables.written(table([(i, "a", i, None) for i in range(1000)]), schema=SCHEMA)
    assert [file.row_count for file, _ in files] == [250] * 4


def test_a_tiny_target_never_makes_more_files_than_rows() -> None:
    given_rows = table([(0, "a" * 100, 1, None), (1, "b" * 100, 2, None)])
    files = tables.written(given_rows, schema=SCHEMA, options=WriterOptions(target_file_bytes=1))
    assert [file.row_count for file, _ in files] == [1, 1]


def test_row_groups_have_the_wanted_length() -> None:
    options = WriterOptions(row_group_rows=400)
    ((_, data),) = tables.written(
        table([(i, "a", i, None) for i in range(1000)]), schema=SCHEMA, options=options
    )
    footer = pq.ParquetFile(pa.BufferReader(data)).metadata
    assert [footer.row_group(i).num_rows for i in range(3)] == [400, 400, 200]


# --------------------------------------------------------------------------------------- options


@pytest.mark.parametrize(
    "codec", ["zstd", "snappy", "gzip", "lz4", "brotli", "none", "UNCOMPRESSED"]
)
def test_each_codec_can_be_chosen_and_read(codec: str) -> None:
    options = WriterOptions.from_properties({"write.parquet.compression-codec": codec})
    ((_, data),) = tables.written(options=options)
    assert read(data).num_rows == tables.ROW_COUNT


def codecs_of(data: Any) -> set[str]:
    group = pq.ParquetFile(pa.BufferReader(data)).metadata.row_group(0)
    return {group.column(number).compression for number in range(group.num_columns)}


def test_small_files_are_made_fast_and_large_ones_small_unless_a_codec_is_named() -> None:
    few = pa.table({"n": pa.array(range(1_000), pa.int64())})
    many = pa.table({"n": pa.array(range(200_000), pa.int64())})
    schema = from_arrow(few.schema)
    for rows, codec in ((few, "LZ4"), (many, "ZSTD")):
        ((_, data),) = tables.written(rows, schema=schema)
        assert codecs_of(data) == {codec}
        named = WriterOptions.from_properties({"write.parquet.compression-codec": "snappy"})
        ((_, data),) = tables.written(rows, schema=schema, options=named)
        assert codecs_of(data) == {"SNAPPY"}


def test_properties_are_read() -> None:
    assert WriterOptions.from_properties({}) == WriterOptions()
    found = WriterOptions.from_properties(
        {
            "write.parquet.compression-codec": "ZSTD",
            "write.parquet.compression-level": "9",
            "write.parquet.row-group-limit": "1000",
            "write.target-file-size-bytes": "1048576",
        }
    )
    assert found == WriterOptions(
        compression="zstd", compression_level=9, row_group_rows=1000, target_file_bytes=1 << 20
    )
    level_alone = WriterOptions.from_properties({"write.parquet.compression-level": "9"})
    assert level_alone.codec(1) == ("zstd", 9)
    other = WriterOptions.from_properties({"write.parquet.compression-codec": "snappy"})
    assert other.compression_level is None


@pytest.mark.parametrize(
    "properties",
    [
        {"write.parquet.compression-codec": "rar"},
        {"write.parquet.compression-codec": "auto", "write.parquet.compression-level": "1"},
        {"write.parquet.compression-level": "99"},
        {"write.parquet.compression-level": "high"},
        {"write.parquet.compression-codec": "snappy", "write.parquet.compression-level": "1"},
        {"write.parquet.compression-codec": "none", "write.parquet.compression-level": "1"},
        {"write.parquet.row-group-limit": "0"},
        {"write.target-file-size-bytes": "-1"},
        {"write.target-file-size-bytes": "1e6"},
    ],
)
def test_properties_that_make_no_sense_are_refused(properties: dict[str, str]) -> None:
    with pytest.raises(RequestError, match=r"write\."):
        WriterOptions.from_properties(properties)


# ------------------------------------------------------------------------------- one partition


@pytest.mark.parametrize(
    ("text", "stats", "wanted"),
    [
        ("day(ts)", ColumnStats(0, None, 0, DAY - 1), (0,)),
        ("day(ts)", ColumnStats(0, None, -1, 0), None),
        ("day(ts)", ColumnStats(1, None, 0, 1), None),
        ("day(ts)", ColumnStats(9, None), (None,)),
        ("day(ts)", ColumnStats(None, None, 0, 1), None),
        ("day(ts)", ColumnStats(0), None),
        ("day(ts)", None, None),
        ("bucket(1, ts)", ColumnStats(0, None, 0, 1), None),
        ("bucket(1, ts)", ColumnStats(0, None, 7, 7), (0,)),
    ],
)
def test_statistics_show_one_partition_only_if_they_prove_it(
    text: str, stats: ColumnStats | None, wanted: tuple[Any, ...] | None
) -> None:
    assert one_partition({1: stats} if stats else {}, 9, SCHEMA, spec(text)) == wanted
