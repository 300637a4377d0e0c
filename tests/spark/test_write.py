"""Law: a frame is in the table as it was, once, or the table is as it was."""

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.around import interrupted

import lakebed
from lakebed.errors import (
    AlreadyExistsError,
    LakebedError,
    NotFoundError,
    RequestError,
    SchemaMismatchError,
)
from lakebed.format.snapshot import Operation
from lakebed.spark.reading.read import read
from lakebed.spark.writing.incoming import with_open_parts
from lakebed.spark.writing.options import WriteOptions
from lakebed.spark.writing.write import write
from lakebed.table.catalog import Catalog
from lakebed.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    # pyspark leaves sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

WAYS = ["driver", "executors"]
DAY = "day(ts)"


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with lakebed.connect(f"sqlite:///{tmp_path}/catalog.db") as opened:
        yield opened


def readings(spark: "SparkSession", first: int, last: int) -> "DataFrame":
    """Rows of three hours each: eight to a day from 2026-01-01 on, three sites."""
    return spark.range(first, last).selectExpr(
        "id",
        "timestamp_micros(1767225600000000 + id * 10800000000) as ts",
        "concat('site-', id % 3) as site",
        "cast(id as double) / 4 as value",
    )


def ids(table: Table, where: str | None = None) -> list[int]:
    found: list[int] = table.scan(where, columns=["id"]).to_arrow().column("id").to_pylist()
    return sorted(found)


def on_disk(table: Table) -> list[str]:
    return sorted(
        str(p.relative_to(table.location)) for p in Path(table.location).rglob("data/**/*.*")
    )


# --------------------------------------------------------------------------------------- modes


@pytest.mark.parametrize("via", WAYS)
def test_append_makes_the_table_and_adds_to_it(
    spark: "SparkSession", catalog: Catalog, via: str
) -> None:
    first = write(readings(spark, 0, 30), "t", catalog=catalog, partition_by=DAY, via=via)
    second = write(readings(spark, 30, 40), "t", catalog=catalog, via=via)
    table = catalog.table("t")
    assert (first.operation, first.added_rows) == (Operation.APPEND, 30)
    assert second.version == first.version + 1
    assert table.spec.describe(table.schema) == [DAY]
    assert not any(field.required for field in table.schema.fields)
    assert ids(table) == list(range(40))
    assert ids(table, "ts >= '2026-01-03'") == list(range(16, 40))


@pytest.mark.parametrize("via", WAYS)
def test_overwrite_replaces_all_rows_even_by_a_frame_of_the_table_itself(
    spark: "SparkSession", catalog: Catalog, via: str
) -> None:
    table = catalog.create_table("t", readings(spark, 0, 0).toArrow())
    write(readings(spark, 0, 30), table, via=via)
    done = write(read(spark, table).where("id % 2 = 0"), table, mode="overwrite", via=via)
    assert (done.operation, done.added_rows, done.removed_rows) == (Operation.OVERWRITE, 15, 30)
    assert ids(table) == list(range(0, 30, 2))
    assert table.scan(as_of=done.version - 1).count() == 30


def test_error_refuses_a_table_that_is_there_and_ignore_leaves_it(
    spark: "SparkSession", catalog: Catalog
) -> None:
    made = write(readings(spark, 0, 5), "t", mode="error", catalog=catalog)
    assert made.added_rows == 5
    for mode in ("error", "errorifexists"):
        with pytest.raises(AlreadyExistsError, match="the table t is there already"):
            write(readings(spark, 0, 5), "t", mode=mode, catalog=catalog)
    left = write(readings(spark, 0, 5), "t", mode="ignore", catalog=catalog)
    assert (left.version, left.added_rows) == (made.version, 0)
    assert write(readings(spark, 0, 3), "u", mode="ignore", catalog=catalog).added_rows == 3
    assert ids(catalog.table("t")) == list(range(5))


def test_the_catalog_can_be_named_by_its_uri(spark: "SparkSession", tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/named.db"
    assert write(readings(spark, 0, 5), "plant.t", catalog=uri).added_rows == 5
    with lakebed.connect(uri) as catalog:
        assert ids(catalog.table("plant.t")) == list(range(5))
    with pytest.raises(RequestError, match="needs a catalog"):
        write(readings(spark, 0, 5), "plant.t")


def test_a_write_that_fails_leaves_no_table_that_was_made_for_it(
    spark: "SparkSession", catalog: Catalog
) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    broken = readings(spark, 0, 5).withColumn("x", F.raise_error(F.lit("no such luck")).cast("int"))
    with pytest.raises(RequestError, match="no such luck"):
        write(broken, "t", catalog=catalog, via="executors")
    with pytest.raises(NotFoundError):
        catalog.table("t")


@pytest.mark.parametrize("via", WAYS)
def test_an_empty_frame_is_a_commit_without_files(
    spark: "SparkSession", catalog: Catalog, via: str
) -> None:
    write(readings(spark, 0, 5), "t", catalog=catalog, via=via)
    table = catalog.table("t")
    none = readings(spark, 0, 5).where("id < 0")
    assert write(none, table, via=via).added_files == 0
    assert ids(table) == list(range(5))
    assert write(none, table, mode="overwrite", via=via).removed_rows == 5
    assert ids(table) == []


def test_a_table_in_memory_is_written_over_the_driver(spark: "SparkSession") -> None:
    catalog = lakebed.connect("memory:")
    write(readings(spark, 0, 5), "t", catalog=catalog)
    assert ids(catalog.table("t")) == list(range(5))
    with pytest.raises(RequestError, match="in this process only"):
        write(readings(spark, 0, 5), "t", catalog=catalog, via="executors")


# ----------------------------------------------------------------------------------- overwrite


@pytest.mark.parametrize("via", WAYS)
def test_replace_where_replaces_the_rows_that_match_and_no_others(
    spark: "SparkSession", catalog: Catalog, via: str
) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    write(readings(spark, 0, 40), "t", catalog=catalog, via=via)  # two files: each is an edge
    table = catalog.table("t")
    where = "ts >= '2026-01-02' and ts < '2026-01-03'"
    fresh = readings(spark, 8, 12).withColumn("value", F.lit(-1.0))
    done = write(fresh, table, mode="overwrite", replace_where=where, via=via)
    assert ids(table) == [n for n in range(40) if n < 12 or n >= 16]
    assert ids(table, "value = -1") == [8, 9, 10, 11]
    assert done.operation is Operation.OVERWRITE
    with pytest.raises(RequestError, match=r"4 of \d rows do not match"):
        write(
            readings(spark, 8, 16)
            .where("id < 12 or id >= 12")
            .withColumn("ts", F.expr("if(id < 12, ts, ts + interval 1 day)")),
            table,
            mode="overwrite",
            replace_where=where,
            via=via,
        )
    assert table.version == done.version


@pytest.mark.parametrize("via", WAYS)
def test_a_dynamic_overwrite_replaces_the_partitions_that_the_rows_hit(
    spark: "SparkSession", catalog: Catalog, via: str
) -> None:
    parts = [DAY, "bucket(4, site)"]
    write(readings(spark, 0, 40), "t", catalog=catalog, partition_by=parts, via=via)
    table = catalog.table("t")
    before = {(f.partition, f.path) for f in table.read_plan().files}
    fresh = readings(spark, 8, 11)
    done = write(fresh, table, mode="overwrite", partition_overwrite="dynamic", via=via)
    files = table.read_plan().files
    hit = {partition for partition, path in before if path not in {f.path for f in files}}
    assert hit == {f.partition for f in files if (f.partition, f.path) not in before}
    assert done.removed_rows == 8, "all three sites of the second day, however they are hashed"
    assert ids(table) == [n for n in range(40) if n < 11 or n >= 16]


def test_the_session_can_ask_for_dynamic_overwrites(
    spark: "SparkSession", catalog: Catalog
) -> None:
    write(readings(spark, 0, 16), "t", catalog=catalog, partition_by=DAY)
    table = catalog.table("t")
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        write(readings(spark, 0, 2), table, mode="overwrite")
        assert ids(table) == [0, 1, *range(8, 16)]
        write(readings(spark, 0, 2), table, mode="overwrite", partition_overwrite="static")
        assert ids(table) == [0, 1]
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")


def test_a_dynamic_overwrite_refuses_files_of_an_older_partitioning(
    spark: "SparkSession", catalog: Catalog
) -> None:
    write(readings(spark, 0, 16), "t", catalog=catalog, partition_by="site")
    table = catalog.table("t")
    table.evolve().partition_by([DAY]).commit()
    before = on_disk(table)
    with pytest.raises(RequestError, match="older partitioning"):
        write(readings(spark, 0, 2), table, mode="overwrite", partition_overwrite="dynamic")
    assert on_disk(table) == before


# ------------------------------------------------------------------------------------- columns


@pytest.mark.parametrize("via", WAYS)
def test_new_columns_are_refused_unless_the_schema_may_grow(
    spark: "SparkSession", catalog: Catalog, via: str
) -> None:
    write(readings(spark, 0, 5), "t", catalog=catalog)
    table = catalog.table("t")
    wider = readings(spark, 5, 8).selectExpr("*", "id + 1 as next", "'x' as note")
    with pytest.raises(SchemaMismatchError, match=r"next, note.*mergeSchema"):
        write(wider, table, via=via)
    write(wider, table, merge_schema=True, via=via)
    assert [f.name for f in table.schema.fields] == ["id", "ts", "site", "value", "next", "note"]
    assert table.scan("note = 'x'", columns=["next"]).to_arrow().column(0).to_pylist() == [6, 7, 8]
    assert ids(table, "next is null") == list(range(5))


@pytest.mark.parametrize("via", WAYS)
def test_columns_go_by_name_and_missing_ones_are_null(
    spark: "SparkSession", catalog: Catalog, via: str
) -> None:
    write(readings(spark, 0, 2), "t", catalog=catalog)
    table = catalog.table("t")
    turned = readings(spark, 2, 4).selectExpr("SITE", "cast(ID as int) as Id", "null as value")
    write(turned, table, via=via)
    rows = table.scan("id >= 2").to_arrow().sort_by("id").to_pylist()
    assert rows == [
        {"id": 2, "ts": None, "site": "site-2", "value": None},
        {"id": 3, "ts": None, "site": "site-0", "value": None},
    ]


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        (["cast(id as string) as id"], "column 'id': table has long, data has string"),
        (["cast(id as decimal(20,2)) as id"], "table has long, data has decimal"),
        (["cast(ts as timestamp_ntz) as ts"], "table has timestamptz, data has timestamp"),
        (["make_dt_interval(1) as value"], "interval day to second, which a table cannot hold"),
        (["id", "id as ID"], "several columns named ID, id"),
        (["id", "null as nothing"], "void, which a table cannot hold"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_difference(
    spark: "SparkSession", catalog: Catalog, columns: list[str], problem: str
) -> None:
    write(readings(spark, 0, 2), "t", catalog=catalog)
    table = catalog.table("t")
    with pytest.raises(SchemaMismatchError, match=problem.replace("(", r"\(")):
        write(readings(spark, 2, 4).selectExpr(*columns), table, merge_schema=True)
    assert ids(table) == [0, 1]


@pytest.mark.parametrize("via", WAYS)
def test_nulls_in_a_required_column_are_refused(
    spark: "SparkSession", catalog: Catalog, via: str
) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("site", pa.string())])
    table = catalog.create_table("t", schema)
    good = readings(spark, 0, 4).select("id", "site")
    write(good, table, via=via)
    with pytest.raises(SchemaMismatchError, match="'id' is required and has 2 nulls"):
        write(good.selectExpr("if(id < 2, null, id) as id", "site"), table, via=via)
    with pytest.raises(SchemaMismatchError, match="'id' is required and missing"):
        write(good.select("site"), table, via=via)
    assert ids(table) == [0, 1, 2, 3]
    assert len(on_disk(table)) == len(table.read_plan().files), "nothing is left behind"


def test_parts_that_are_required_are_written_by_our_own_writer(
    spark: "SparkSession", catalog: Catalog
) -> None:
    part = pa.field("a", pa.int64(), nullable=False)
    table = catalog.create_table("t", pa.schema([("s", pa.struct([part]))]))
    write(spark.sql("select named_struct('a', 1L) as s"), table, via="executors")
    assert table.scan().to_arrow().column("s").to_pylist() == [{"a": 1}]
    with pytest.raises(SchemaMismatchError, match=r"s\.a' is required and has 1 nulls"):
        write(
            spark.sql("select named_struct('a', cast(null as long)) as s"), table, via="executors"
        )
    assert table.scan().count() == 1


@pytest.mark.parametrize("via", WAYS)
def test_columns_that_two_writers_bring_at_once_get_ids_of_their_own(
    spark: "SparkSession", catalog: Catalog, via: str
) -> None:
    write(readings(spark, 0, 5), "t", catalog=catalog)
    table = catalog.table("t")
    other = pa.table({"id": [100], "other": ["x"]})
    meanwhile = interrupted(catalog, lambda: table.append(other)).table("t")
    wider = readings(spark, 5, 8).selectExpr("*", "id + 1 as next")
    write(wider, meanwhile, merge_schema=True, via=via)
    assert [f.name for f in table.schema.fields][4:] == ["other", "next"]
    assert table.scan("other = 'x'", columns=["next"]).to_arrow().column(0).to_pylist() == [None]
    assert ids(table, "next is not null") == [5, 6, 7]


def test_names_that_differ_in_case_are_other_names_if_the_session_says_so(
    spark: "SparkSession", catalog: Catalog
) -> None:
    write(readings(spark, 0, 2), "t", catalog=catalog)
    table = catalog.table("t")
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(SchemaMismatchError, match="'ID' differs only in case"):
            write(readings(spark, 2, 4).selectExpr("id as ID"), table, merge_schema=True)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    assert ids(table) == [0, 1]


@pytest.mark.parametrize("via", WAYS)
def test_a_long_that_a_double_cannot_hold_is_refused(
    spark: "SparkSession", catalog: Catalog, via: str
) -> None:
    table = catalog.create_table("t", pa.schema([("x", pa.float64())]))
    write(spark.sql("select 4L as x"), table, via=via)
    with pytest.raises(SchemaMismatchError, match="cannot be held as double"):
        write(spark.sql("select 9007199254740993L as x"), table, via=via)
    assert table.scan().to_arrow().column("x").to_pylist() == [4.0]


@pytest.mark.parametrize("via", WAYS)
def test_types_that_spark_lacks_are_written_from_their_stand_ins(
    spark: "SparkSession", catalog: Catalog, via: str
) -> None:
    schema = pa.schema(
        [
            ("at", pa.time64("us")),
            ("fine", pa.timestamp("ns", "UTC")),
            ("code", pa.binary(2)),
            ("list", pa.list_(pa.timestamp("ns"))),
        ]
    )
    table = catalog.create_table("t", schema, partition_by=["day(fine)"])
    frame = spark.sql(
        "select 5L as at, 1700000000123456789L as fine, X'0102' as code, array(7L) as list"
    )
    write(frame, table, via=via)
    write(frame.selectExpr("at", "timestamp_micros(3) as fine"), table, via=via)
    found = table.scan().to_arrow()
    numbers = found.column("fine").cast(pa.int64()).to_pylist()
    assert sorted(numbers) == [3000, 1700000000123456789]
    assert found.column("at").cast(pa.int64()).to_pylist() == [5, 5]
    assert b"\x01\x02" in found.column("code").to_pylist()
    with pytest.raises(SchemaMismatchError, match="time of day"):
        write(spark.sql("select 86400000000L as at"), table, via=via)
    with pytest.raises(SchemaMismatchError, match="code"):
        write(spark.sql("select X'01' as code"), table, via=via)


def test_a_new_table_refuses_a_partitioning_that_an_old_one_lacks(
    spark: "SparkSession", catalog: Catalog
) -> None:
    write(readings(spark, 0, 2), "t", catalog=catalog, partition_by=DAY)
    write(readings(spark, 2, 3), "t", catalog=catalog, partition_by="days(ts)")
    with pytest.raises(RequestError, match=r"is partitioned by day\(ts\), not by site"):
        write(readings(spark, 0, 2), "t", catalog=catalog, partition_by="site")


# ------------------------------------------------------------------------------------- options


def test_a_token_writes_once(spark: "SparkSession", catalog: Catalog) -> None:
    table = catalog.create_table("t", readings(spark, 0, 0).toArrow())
    for via in WAYS:
        token = (via, 7)
        first = write(readings(spark, 0, 5), table, txn=token, via=via)
        again = write(readings(spark, 0, 9), table, txn=token, via=via)
        assert again.repeated
        assert again.version == first.version
    assert table.scan().count() == 10


@pytest.mark.parametrize("via", WAYS)
def test_properties_stay_with_the_commit(spark: "SparkSession", catalog: Catalog, via: str) -> None:
    write(readings(spark, 0, 5), "t", catalog=catalog, properties={"job": "nightly"}, via=via)
    assert catalog.table("t").current_snapshot().parameters["job"] == "nightly"


def test_options_are_read_by_their_names_in_any_case() -> None:
    options = WriteOptions.of(
        {
            "replacewhere": "id > 5",
            "mergeSchema": "TRUE",
            "txnappid": "job",
            "txnVersion": "9",
            "userMetadata": "note",
            "partitionby": "day(ts), bucket(16, site)",
            "catalog": "somebody else's",
        },
        mode="Overwrite",
        known=["catalog"],
    )
    assert options == WriteOptions(
        mode="overwrite",
        partition_by=("day(ts)", "bucket(16, site)"),
        replace_where="id > 5",
        merge_schema=True,
        txn=("job", 9),
        properties={"userMetadata": "note"},
    )


@pytest.mark.parametrize(
    ("options", "mode", "problem"),
    [
        ({"replaceWere": "x"}, "overwrite", "no write option 'replaceWere'. Did you mean replaceW"),
        ({"replaceWhere": "x"}, "append", "replaceWhere is for overwriting"),
        ({"partitionOverwriteMode": "dynamic"}, "append", "is for overwriting"),
        (
            {"replaceWhere": "x", "partitionOverwriteMode": "dynamic"},
            "overwrite",
            "both say what to replace",
        ),
        ({"partitionOverwriteMode": "dynamc"}, "overwrite", "Did you mean 'dynamic'"),
        ({"mergeSchema": "yes"}, "append", "Use true or false"),
        ({"txnAppId": "a"}, "append", "txnVersion is missing"),
        ({"txnVersion": "1"}, "append", "txnAppId is missing"),
        ({"txnAppId": "a", "txnVersion": "one"}, "append", "not a whole number"),
        ({"via": "executor"}, "append", "Did you mean 'executors'"),
        ({}, "upsert", "mode is 'upsert'"),
    ],
)
def test_bad_options_are_refused_with_what_was_meant(
    options: dict[str, str], mode: str, problem: str
) -> None:
    with pytest.raises(RequestError, match=problem):
        WriteOptions.of(options, mode=mode)


def test_failures_are_one_error_of_ours_without_java(
    spark: "SparkSession", catalog: Catalog
) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    table = catalog.create_table("t", readings(spark, 0, 0).toArrow())

    @F.udf("double")
    def broken(number):  # type: ignore[no-untyped-def]
        raise ValueError(f"sensor {number} is on fire")

    for via in WAYS:
        with pytest.raises(LakebedError) as caught:
            write(readings(spark, 0, 5).withColumn("value", broken("id")), table, via=via)
        text = str(caught.value)
        assert "ValueError: sensor" in text
        assert "\tat " not in text
        assert len(text.splitlines()) == 1
        assert caught.value.__cause__ is None
    assert table.current_snapshot().summary.total_rows == 0
    assert on_disk(table) == []


# ---------------------------------------------------------------------------------- who writes


def test_small_frames_go_over_the_driver_and_others_do_not(
    spark: "SparkSession", catalog: Catalog
) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    from lakebed.spark.writing.sizes import estimated_bytes, is_small

    assert is_small(readings(spark, 0, 1000))
    assert not is_small(readings(spark, 0, 10_000_000))
    many = spark.range(1).select(F.explode(F.sequence(F.lit(1), F.lit(10_000_000))).alias("id"))
    assert estimated_bytes(many) is None
    assert estimated_bytes(readings(spark, 0, 10).mapInArrow(lambda b: b, "id long")) is None
    for rows, written_by in ((1_000, "Arrow"), (400_000, "parquet-mr")):
        write(readings(spark, 0, rows), f"t{rows}", catalog=catalog)
        table = catalog.table(f"t{rows}")
        path = Path(table.location) / table.read_plan().files[0].path
        assert written_by.lower() in pq.read_metadata(path).created_by.lower()


def everything(spark: "SparkSession") -> "DataFrame":
    """A row of values and a row of nulls for each of Spark's types that a table takes."""
    full = """select 1 as row, true as bool, cast(2 as tinyint) as tiny, cast(3 as smallint) as
        small, 4 as int, 5L as long, cast(0.5 as float) as float, -0.0d as double,
        cast(1234.56 as decimal(10,2)) as dec, cast(-1e30 as decimal(38,0)) as big,
        'é\\u0000x' as text, X'00ff' as bytes, date'1582-10-14' as date,
        timestamp_micros(-12219292800000001) as ts, timestamp_ntz'0001-01-01 00:00:00' as ntz,
        named_struct('a', 1, 'b', array(named_struct('c', map('k', 2L)))) as nested,
        array(cast(null as int), 1) as list, map('x', cast(null as double)) as map"""
    frame = spark.sql(full)
    names = [name for name in frame.columns if name != "row"]
    nulls = frame.selectExpr("2 as row", *(f"if(true, null, {n}) as {n}" for n in names))
    return frame.union(nulls)


@pytest.mark.parametrize("via", WAYS)
def test_every_type_comes_back_as_it_was(spark: "SparkSession", catalog: Catalog, via: str) -> None:
    frame = everything(spark)
    write(frame, "t", catalog=catalog, via=via)
    table = catalog.table("t")
    found = table.scan().to_arrow().sort_by("row").to_pylist()
    assert found == with_open_parts(frame).toArrow().sort_by("row").to_pylist()
    assert found[0]["dec"] == Decimal("1234.56")
    assert set(found[1].values()) == {2, None}
    back = read(spark, table).toArrow().sort_by("row").to_pylist()
    assert back == found


def test_duckdb_reads_what_spark_wrote(spark: "SparkSession", catalog: Catalog) -> None:
    import duckdb

    write(readings(spark, 0, 500), "t", catalog=catalog, partition_by=DAY, via="executors")
    table = catalog.table("t")
    glob = f"{table.location}/data/**/*.parquet"
    query = f"select id, epoch_us(ts) as us, site, value from read_parquet('{glob}')"
    with duckdb.connect() as connection:
        found = sorted(connection.execute(query).fetchall())
    wanted = readings(spark, 0, 500).selectExpr("id", "unix_micros(ts) as us", "site", "value")
    assert found == sorted(tuple(row) for row in wanted.collect())
    assert found[0][1] >= int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1e6)
