"""`format("lakebed")` reads what the table holds, at one version, and says what is wrong."""

import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

import lakebed
from lakebed.spark.schema import spark_schema
from lakebed.spark.source.source import LakebedSource
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


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    place = tmp_path_factory.mktemp("lake")
    return lakebed.connect(f"sqlite:///{place}/catalog.db")


@pytest.fixture(scope="module")
def table(catalog: Catalog) -> Table:
    """Ten rows in each of versions 1 to 3, and the tag `first` on version 1."""
    made = catalog.create_table("plant.readings", rows(0, 0).schema)
    for first in (0, 10, 20):
        made.append(rows(first, first + 10))
    made.tag("first", at=1)
    return made


def rows(first: int, last: int) -> pa.Table:
    numbers = pa.array(range(first, last), pa.int64())
    return pa.table(
        {
            "ts": numbers.cast(pa.timestamp("s")).cast(pa.timestamp("us", "UTC")),
            "n": numbers,
            "kind": pa.array([("even", "odd")[n % 2] for n in range(first, last)], pa.string()),
        }
    )


def load(spark: "SparkSession", table: Table, **options: Any) -> "DataFrame":
    reader = spark.read.format("lakebed").option("catalog", table.connection.uri)
    return reader.options(**options).load(table.name)


def numbers(frame: "DataFrame") -> list[int]:
    return sorted(row.n for row in frame.select("n").collect())


# -------------------------------------------------------------------------------------- reading


def test_a_frame_has_the_rows_and_types_of_the_table(spark: "SparkSession", table: Table) -> None:
    frame = load(spark, table)
    assert frame.schema.simpleString() == "struct<ts:timestamp,n:bigint,kind:string>"
    assert frame.orderBy("n").toArrow().equals(table.scan().to_arrow().sort_by("n"))


def test_time_travel_by_version_time_and_tag(spark: "SparkSession", table: Table) -> None:
    assert numbers(load(spark, table, versionAsOf=2)) == list(range(20))
    assert numbers(load(spark, table, tag="first")) == list(range(10))
    assert numbers(load(spark, table, timestampAsOf="2100-01-01T00:00:00Z")) == list(range(30))
    assert numbers(load(spark, table, versionAsOf=0)) == []


def test_filter_and_columns_are_options(spark: "SparkSession", table: Table) -> None:
    frame = load(spark, table, filter="n >= 8 and n < 12", columns="n, kind")
    assert frame.columns == ["n", "kind"]
    assert numbers(frame) == [8, 9, 10, 11]


def test_one_frame_scanned_twice_gives_each_side_its_own_rows(
    spark: "SparkSession", table: Table
) -> None:
    """Where a source takes Spark's filters, one scan's filter cuts the rows of the other."""
    base = load(spark, table)
    low, high = base.where("n < 5"), base.where("n >= 15")
    assert numbers(low.union(high)) == [*range(5), *range(15, 30)]
    assert base.count() == 30
    joined = base.where("n < 4").join(base.where("n > 1").select("n"), "n")
    assert numbers(joined) == [2, 3]
    base.createOrReplaceTempView("readings_seen")
    try:
        assert spark.sql("select * from readings_seen where n = 3").count() == 1
        assert spark.sql("select * from readings_seen").count() == 30
    finally:
        spark.catalog.dropTempView("readings_seen")


def test_a_frame_stays_at_the_version_it_was_made_at(
    spark: "SparkSession", catalog: Catalog
) -> None:
    made = catalog.create_table("plant.growing", rows(0, 0).schema)
    made.append(rows(0, 3))
    frame = load(spark, made)
    made.append(rows(3, 6))
    made.evolve().drop_column("kind").commit()
    assert numbers(frame) == [0, 1, 2]
    assert frame.columns == ["ts", "n", "kind"]
    assert numbers(load(spark, made)) == list(range(6))


def test_a_frame_of_a_table_that_was_made_anew_is_an_error(
    spark: "SparkSession", catalog: Catalog
) -> None:
    catalog.create_table("plant.passing", rows(0, 0).schema).append(rows(0, 3))
    frame = load(spark, catalog.table("plant.passing"))
    catalog.drop_table("plant.passing")
    catalog.create_table("plant.passing", rows(0, 0).schema).append(rows(5, 9))
    with pytest.raises(Exception, match="was dropped and created anew since this frame was made"):
        frame.count()


# --------------------------------------------------------------------------------------- errors


def told(call: Any) -> str:
    """The last line of what Spark raises, without its code: what a person reads first."""
    with pytest.raises(Exception, match="lakebed") as caught:
        call()
    lines = [line for line in str(caught.value).splitlines() if line.strip()]
    return next(line for line in reversed(lines) if "SQLSTATE" not in line)


def test_a_misspelt_option_is_named_with_the_right_one(spark: "SparkSession", table: Table) -> None:
    line = told(lambda: load(spark, table, versionAsOff=2))
    assert "there is no option 'versionasoff' to read. Did you mean versionAsOf?" in line


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"versionAsOf": "two"}, "versionAsOf is 'two'"),
        ({"versionAsOf": 99}, "no version 99"),
        ({"timestampAsOf": "soon"}, "timestampAsOf is 'soon', which is not a time"),
        ({"tag": "last"}, "has no tag 'last'. The tags are: first"),
        ({"tag": "first", "versionAsOf": 1}, "versionAsOf and tag contradict each other"),
        ({"filter": "no_such = 1"}, "no_such"),
        ({"columns": "n, nope"}, "nope"),
        ({"path": "plant.others"}, "the table is named twice"),
        ({"catalog": "memory:lake"}, "a catalog in memory is in one process only"),
        ({"catalog": ""}, "the catalog is not named"),
    ],
)
def test_what_cannot_be_read_is_said_when_the_frame_is_made(
    table: Table, options: dict[str, Any], message: str
) -> None:
    place = {"catalog": table.connection.uri, "table": table.name}
    lower = {key.lower(): str(value) for key, value in (place | options).items()}
    with pytest.raises(lakebed.LakebedError, match=re.escape(message)):
        LakebedSource(lower).schema()


def test_a_missing_table_is_named(table: Table) -> None:
    source = LakebedSource({"catalog": table.connection.uri, "path": "plant.nowhere"})
    with pytest.raises(lakebed.NotFoundError, match=r"plant\.nowhere"):
        source.schema()


def test_an_option_for_streams_is_refused_in_a_batch(table: Table) -> None:
    place = {"catalog": table.connection.uri, "path": table.name}
    source = LakebedSource(place | {"startingversion": "1"})
    schema = source.schema()
    with pytest.raises(lakebed.RequestError, match="It is one to read a stream"):
        source.reader(schema)


def test_a_schema_of_the_users_is_refused(table: Table) -> None:
    source = LakebedSource({"catalog": table.connection.uri, "path": table.name})
    with pytest.raises(lakebed.RequestError, match="a table has its own schema"):
        source.reader(StructType())


# -------------------------------------------------------------------------------------- writing


def save(frame: "DataFrame", catalog: Catalog, name: str, mode: str, **options: Any) -> None:
    writer = frame.write.format("lakebed").option("catalog", catalog.connection.uri)
    writer.mode(mode).options(**options).save(name)


def frame_of(spark: "SparkSession", first: int, last: int) -> "DataFrame":
    return spark.createDataFrame(rows(first, last)).repartition(2)


def test_rows_are_appended_and_the_table_is_made_if_it_is_missing(
    spark: "SparkSession", catalog: Catalog
) -> None:
    save(frame_of(spark, 0, 10), catalog, "w.made", "append", partitionBy="kind")
    save(frame_of(spark, 10, 20), catalog, "w.made", "append", userMetadata="second")
    made = catalog.table("w.made")
    assert made.scan().to_arrow().sort_by("n").equals(rows(0, 20))
    assert made.spec.describe(made.schema) == ["kind"]
    assert made.version == 2
    assert made.current_snapshot().parameters == {"userMetadata": "second"}


def test_overwrite_replaces_all_or_what_matches_or_the_partitions_that_are_hit(
    spark: "SparkSession", catalog: Catalog
) -> None:
    made = catalog.create_table("w.replaced", rows(0, 0).schema, partition_by=["kind"])
    made.append(rows(0, 10))
    save(frame_of(spark, 20, 23), catalog, "w.replaced", "overwrite", replaceWhere="n >= 3")
    assert sorted_numbers(made) == [0, 1, 2, 20, 21, 22]
    odd = frame_of(spark, 30, 40).where("kind = 'odd'")
    save(odd, catalog, "w.replaced", "overwrite", partitionOverwriteMode="dynamic")
    assert sorted_numbers(made) == [0, 2, 20, 22, 31, 33, 35, 37, 39]
    save(frame_of(spark, 50, 52), catalog, "w.replaced", "overwrite")
    assert sorted_numbers(made) == [50, 51]


def test_rows_outside_of_what_they_replace_are_refused(
    spark: "SparkSession", catalog: Catalog
) -> None:
    made = catalog.create_table("w.outside", rows(0, 0).schema)
    made.append(rows(0, 10))
    line = told(
        lambda: save(frame_of(spark, 2, 6), catalog, "w.outside", "overwrite", replaceWhere="n > 3")
    )
    assert "rows do not match n > 3" in line
    assert made.version == 1
    assert len(data_files(made)) == 1, "the files of the failed job are gone"


def test_a_transaction_id_makes_a_write_exactly_once(
    spark: "SparkSession", catalog: Catalog
) -> None:
    catalog.create_table("w.once", rows(0, 0).schema)
    for _ in range(2):
        save(frame_of(spark, 0, 5), catalog, "w.once", "append", txnAppId="job", txnVersion=1)
    made = catalog.table("w.once")
    assert (made.version, sorted_numbers(made)) == (1, [0, 1, 2, 3, 4])


def test_new_columns_need_merge_schema(spark: "SparkSession", catalog: Catalog) -> None:
    made = catalog.create_table("w.wider", rows(0, 0).schema)
    wider = frame_of(spark, 0, 3).selectExpr("ts", "N", "kind", "n * 2 as twice")
    line = told(lambda: save(wider, catalog, "w.wider", "append"))
    assert "columns that the table lacks: twice" in line
    save(wider, catalog, "w.wider", "append", mergeSchema="true")
    assert made.scan(columns=["n", "twice"]).to_arrow().sort_by("n").to_pydict() == {
        "n": [0, 1, 2],
        "twice": [0, 2, 4],
    }


def test_a_frame_can_overwrite_the_table_it_reads(spark: "SparkSession", catalog: Catalog) -> None:
    made = catalog.create_table("w.itself", rows(0, 0).schema)
    made.append(rows(0, 10))
    save(load(spark, made).where("n % 3 = 0"), catalog, "w.itself", "overwrite")
    assert sorted_numbers(made) == [0, 3, 6, 9]


def test_a_task_that_fails_for_good_leaves_neither_rows_nor_files(
    spark: "SparkSession", catalog: Catalog
) -> None:
    broken = frame_of(spark, 0, 10).withColumn(
        "kind", F.expr("case when n = 7 then raise_error('boom') else kind end").cast("string")
    )
    with pytest.raises(Exception, match="boom"):
        save(broken, catalog, "w.broken", "append")
    assert "w.broken" not in catalog.tables()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mergeShema": "true"}, "Did you mean mergeSchema?"),
        ({"versionAsOf": "1"}, "there is no write option 'versionasof'"),
        ({"replaceWhere": "n > 1"}, "replaceWhere is for overwriting"),
        ({"txnAppId": "job"}, "txnVersion is missing"),
        ({"via": "driver"}, "always writes by the executors"),
    ],
)
def test_a_write_that_contradicts_itself_is_refused_before_it_starts(
    table: Table, options: dict[str, str], message: str
) -> None:
    place = {"catalog": table.connection.uri, "path": table.name}
    lower = {key.lower(): value for key, value in (place | options).items()}
    with pytest.raises(lakebed.RequestError, match=re.escape(message)):
        LakebedSource(lower).writer(spark_schema(table.schema), overwrite=False)


def test_abort_deletes_nothing_once_a_commit_may_have_been_tried(table: Table) -> None:
    source = LakebedSource({"catalog": table.connection.uri, "path": table.name})
    writer = source.writer(spark_schema(table.schema), overwrite=False)
    message = writer.write(iter(rows(90, 95).to_batches()))
    before = data_files(table)
    writer.abort([message])
    assert data_files(table) == before
    writer.abort([message, None])
    assert len(data_files(table)) == len(before) - 1


def sorted_numbers(table: Table) -> list[int]:
    return sorted(table.scan(columns=["n"]).to_arrow().column("n").to_pylist())


def data_files(table: Table) -> list[str]:
    return sorted(found.path for found in table.files.store.list("data/"))
