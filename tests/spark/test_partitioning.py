"""Law: Spark's partition values are ours, in any time zone, and directories tell them back."""

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import lakebed
from lakebed.expr.arrow import filter_mask
from lakebed.expr.bind import bind
from lakebed.expr.transform import apply_transform
from lakebed.files.manifest import storage_list
from lakebed.format.partition import PartitionSpec, TransformName, parse_spec, result_type
from lakebed.format.types import Kind
from lakebed.spark.schema import spark_schema
from lakebed.spark.writing.covering import covering
from lakebed.spark.writing.partitioning import transformed
from lakebed.spark.writing.write import write
from lakebed.table.catalog import Catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

DAY = 86_400_000_000
TIMES = [
    0, -1, 1, DAY - 1, DAY, -DAY, -DAY - 1, 1_767_225_600_000_000, 1_774_746_000_000_001,
    -12_219_292_800_000_001, -62_135_596_800_000_000, 253_402_300_799_999_999,
]  # fmt: skip
DATES = [0, -1, 1, 30, 31, 364, 365, -365, -141_428, -719_162, 2_932_896, 20_454]
INTS = [0, 1, -1, 9, 10, -10, -11, 2**31 - 1, -(2**31), -(2**31) + 3, 99, 7]
LONGS = [0, 1, -1, 9, 10, -10, -11, 2**63 - 1, -(2**63), -(2**63) + 3, 99, 7]
TEXTS = ["", "a", "ab", "é", "日本語", "a/b", "x=y", "%2e", "..", "~null", "A" * 300, "null"]
DECIMALS = [Decimal(n) / 100 for n in (0, 1, -1, 999, -999, 1000, -1000, 5, -5, 50, -50, 12345)]

ROWS = pa.table(
    {
        "ts": pa.array(TIMES, pa.timestamp("us", "UTC")),
        "ntz": pa.array(TIMES, pa.timestamp("us")),
        "d": pa.array(DATES, pa.date32()),
        "i": pa.array(INTS, pa.int32()),
        "l": pa.array(LONGS, pa.int64()),
        "s": pa.array(TEXTS, pa.string()),
        "b": pa.array([text.encode() for text in TEXTS], pa.binary()),
        "dec": pa.array(DECIMALS, pa.decimal128(10, 2)),
        "flag": pa.array([True, False] * 6),
    }
)
ROWS = pa.concat_tables(
    [
        ROWS,
        pa.table(
            {n: pa.nulls(1, t) for n, t in zip(ROWS.schema.names, ROWS.schema.types, strict=True)}
        ),
    ]
)
SPECS = [
    *(f"{unit}({name})" for unit in ("year", "month", "day") for name in ("ts", "ntz", "d")),
    "hour(ts)", "hour(ntz)",
    *(f"bucket(7, {name})" for name in ("ts", "ntz", "d", "i", "l", "s", "b", "dec")),
    *(f"truncate(10, {name})" for name in ("i", "l", "dec")), "truncate(2, s)", "truncate(2, b)",
    *ROWS.schema.names,
]  # fmt: skip


def spec_of(schema: Any, *texts: str) -> PartitionSpec:
    return parse_spec(list(texts), schema, spec_id=0, first_field_id=1000)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with lakebed.connect(f"sqlite:///{tmp_path}/catalog.db") as opened:
        yield opened


@pytest.fixture
def tokyo(spark: "SparkSession") -> Iterator[None]:
    """A session that is not in UTC, nor at a whole number of hours from it."""
    before = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    spark.conf.set("spark.sql.session.timeZone", "Australia/Adelaide")
    yield
    spark.conf.set("spark.sql.session.timeZone", before)


def as_storage(value: Any, kind: Kind) -> Any:
    """What Spark gives for a partition value, in storage form; instants come as numbers."""
    if isinstance(value, date):
        return value.toordinal() - date(1970, 1, 1).toordinal()
    return bytes(value) if isinstance(value, bytearray) else value


@pytest.mark.usefixtures("tokyo")
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_each_transform_gives_what_ours_gives(
    spark: "SparkSession", catalog: Catalog, ansi: str
) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    schema = catalog.create_table("t", ROWS.schema).schema
    spec = spec_of(schema, *SPECS)
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        frame = spark.createDataFrame(ROWS, spark_schema(schema, field_ids=False))
        columns = []
        for place, field in enumerate(spec.fields):
            source = schema.by_id[field.source_id]
            value = transformed(field, source.type, F.col(source.name))  # type: ignore[arg-type]
            if result_type(field, source.type).kind is Kind.DATE:  # type: ignore[arg-type]
                value = F.unix_date(value)
            columns.append(value.alias(str(place)))
        found = frame.select(*columns).toArrow()
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    for place, field in enumerate(spec.fields):
        source = schema.by_id[field.source_id]
        values = ROWS.column(source.name).combine_chunks()
        wanted = storage_list(apply_transform(field, values, source.type))  # type: ignore[arg-type]
        given = [as_storage(v, Kind.INT) for v in found.column(place).to_pylist()]
        assert given == wanted, SPECS[place]


@pytest.mark.usefixtures("tokyo")
def test_directories_tell_the_partition_of_each_file(
    spark: "SparkSession", catalog: Catalog
) -> None:
    schema = catalog.create_table("t", ROWS.schema).schema
    frame = spark.createDataFrame(ROWS, spark_schema(schema, field_ids=False))
    for name, parts in {
        "times": ["month(ts)", "hour(ntz)", "d"],
        "texts": ["s", "truncate(2, b)"],
        "numbers": ["truncate(10, l)", "dec", "flag"],
        "hashes": ["bucket(3, s)", "bucket(3, dec)", "ts"],
    }.items():
        table = catalog.create_table(name, ROWS.schema, partition_by=parts)
        write(frame, table, via="executors")
        other = catalog.create_table(f"{name}_embedded", ROWS.schema, partition_by=parts)
        other.append(ROWS)
        found, wanted = (
            sorted(((f.partition, f.row_count) for f in t.read_plan().files), key=repr)
            for t in (table, other)
        )
        assert found == wanted
        assert rows_of(table) == rows_of(other)


def rows_of(table: Any) -> list[str]:
    return sorted(repr(row) for row in table.scan().to_arrow().to_pylist())


def test_helpers_never_collide_with_columns(spark: "SparkSession", catalog: Catalog) -> None:
    schema = pa.schema([("p0_Site", pa.int64()), ("site", pa.string()), ("a.b`c", pa.int64())])
    table = catalog.create_table("t", schema, partition_by=["site", "truncate(5, a.b`c)"])
    rows = pa.table({"p0_Site": [1, 2], "site": ["x", "y"], "a.b`c": [4, 9]}, schema)
    write(spark.createDataFrame(rows), table, via="executors")
    assert {f.partition for f in table.read_plan().files} == {("x", 0), ("y", 5)}
    assert table.scan().to_arrow().sort_by("site").equals(rows)


@pytest.mark.parametrize("text", [text for text in SPECS if not text.startswith("bucket")])
def test_a_covering_predicate_holds_for_each_row_of_its_partitions(
    catalog: Catalog, text: str
) -> None:
    schema = catalog.create_table("t", ROWS.schema).schema
    spec = spec_of(schema, text)
    (field,) = spec.fields
    source = schema.by_id[field.source_id]
    values = apply_transform(field, ROWS.column(source.name).combine_chunks(), source.type)  # type: ignore[arg-type]
    names = {f.id: f.name for f in schema.fields}
    wide = 0
    for place, value in enumerate(storage_list(values)):
        node = covering([(value,)], schema, spec)
        mask = filter_mask(bind(node, schema), ROWS, names).to_pylist()
        same = [row for row, other in enumerate(storage_list(values)) if other == value]
        assert place in same
        assert all(mask[row] for row in same)
        wide += all(mask)
    whole = covering([(v,) for v in storage_list(values)], schema, spec)
    assert all(filter_mask(bind(whole, schema), ROWS, names).to_pylist())
    if field.transform is not TransformName.TRUNCATE:
        assert wide == 0, "it leaves out rows of other partitions"
