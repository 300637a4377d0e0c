"""Law: a name in SQL is the version that was asked for, read natively, and cannot be written."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakebed
from lakebed.errors import IdentifierError, RequestError
from lakebed.spark.reading.attach import attach
from lakebed.spark.reading.read import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakebed.table.catalog import Catalog
    from lakebed.table.table import Table

pytestmark = pytest.mark.spark


def numbers(*values: int) -> pa.Table:
    floats = pa.array([float(v) for v in values], pa.float64())
    return pa.table({"a": pa.array(values, pa.int32()), "v": floats})


@pytest.fixture
def catalog(tmp_path: Path) -> "Iterator[Catalog]":
    with lakebed.connect(f"sqlite:///{tmp_path}/catalog.db") as made:
        yield made


@pytest.fixture
def table(spark: "SparkSession", catalog: "Catalog") -> "Iterator[Table]":
    """A table of one file, under the name lake.plant.readings."""
    made = catalog.create_table("plant.readings", numbers().schema)
    made.append(numbers(1, 2, 3))
    attached = attach(spark, catalog, "lake")
    yield made
    attached.detach()


def ask(spark: "SparkSession", text: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in spark.sql(text).collect()]


# ------------------------------------------------------------------------------------ reading


def test_a_name_is_scanned_natively_with_filters_pushed_down(
    spark: "SparkSession", table: "Table"
) -> None:
    frame = spark.sql("SELECT v FROM lake.plant.readings WHERE a > 1")
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "ParquetScan" in plan
    assert "ColumnarToRow" in plan
    assert "GreaterThan(a,1)" in plan
    assert sorted(row.v for row in frame.collect()) == [2.0, 3.0]


def test_each_query_sees_the_newest_version_or_the_one_it_names(
    spark: "SparkSession", table: "Table"
) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    name = "lake.plant.readings"
    old = spark.sql(f"SELECT * FROM {name} VERSION AS OF 1")
    spark.sql(f"CREATE OR REPLACE TEMP VIEW pinned AS SELECT * FROM {name} VERSION AS OF 1")
    first = table.current_snapshot().timestamp_ms / 1000
    table.append(numbers(4))
    table.tag("four")
    table.append(numbers(5))
    assert spark.table(name).count() == 5
    assert ask(spark, f"SELECT count(*) FROM {name} VERSION AS OF 1") == [(3,)]
    assert ask(spark, f"SELECT count(*) FROM {name} VERSION AS OF 'four'") == [(4,)]
    assert ask(spark, f"SELECT count(*) FROM {name} TIMESTAMP AS OF '2100-01-01'") == [(5,)]
    moment = spark.range(1).select(F.lit(first).cast("timestamp").cast("string")).first()
    assert moment is not None
    assert ask(spark, f"SELECT count(*) FROM {name} TIMESTAMP AS OF '{moment[0]}'") == [(3,)]
    assert spark.read.option("versionAsOf", 2).table(name).count() == 4
    assert (old.count(), spark.table("pinned").count()) == (3, 3)
    both = f"SELECT n.a FROM {name} n LEFT ANTI JOIN {name} VERSION AS OF 1 o ON n.a = o.a"
    assert sorted(ask(spark, both)) == [(4,), (5,)]
    spark.catalog.dropTempView("pinned")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("VERSION AS OF 99", "has no version 99"),
        ("VERSION AS OF 'soon'", "neither a tag nor a time"),
        ("TIMESTAMP AS OF '2000-01-01'", "had no version yet"),
    ],
)
def test_a_version_that_is_not_there_is_one_clear_sentence(
    spark: "SparkSession", table: "Table", asked: str, message: str
) -> None:
    from pyspark.errors import IllegalArgumentException

    with pytest.raises(IllegalArgumentException, match=message) as caught:
        ask(spark, f"SELECT * FROM lake.plant.readings {asked}")
    assert "\tat " not in str(caught.value)
    assert "Traceback" not in str(caught.value)


def test_tables_and_namespaces_are_listed_and_described(
    spark: "SparkSession", catalog: "Catalog", table: "Table"
) -> None:
    from pyspark.errors import AnalysisException

    catalog.create_table("plant.line.deep", numbers().schema)
    catalog.create_table("alone", numbers().schema)
    assert ask(spark, "SHOW NAMESPACES IN lake") == [("plant",)]
    assert ask(spark, "SHOW NAMESPACES IN lake.plant") == [("plant.line",)]
    assert ask(spark, "SHOW TABLES IN lake.plant") == [("plant", "readings", False)]
    assert ask(spark, "SHOW TABLES IN lake") == [("", "alone", False)]
    assert ask(spark, "DESCRIBE lake.plant.readings")[:2] == [
        ("a", "int", None),
        ("v", "double", None),
    ]
    extended = dict(row[:2] for row in ask(spark, "DESCRIBE EXTENDED lake.plant.readings"))
    assert (extended["Provider"], extended["Location"]) == ("lakebed", table.location)
    assert ask(spark, "SELECT * FROM lake.plant.line.deep") == []
    assert spark.catalog.tableExists("lake.plant.readings")
    assert not spark.catalog.tableExists("lake.plant.nope")
    for missing in ("SELECT * FROM lake.plant.nope", "SHOW TABLES IN lake.nope"):
        with pytest.raises(AnalysisException, match="cannot be found"):
            ask(spark, missing)


def test_many_tables_join_and_feed_tables_of_sparks_own(
    spark: "SparkSession", table: "Table"
) -> None:
    spark.sql("DROP TABLE IF EXISTS copied")
    spark.sql("CREATE TABLE copied USING parquet AS SELECT * FROM lake.plant.readings")
    spark.sql("INSERT INTO copied SELECT * FROM lake.plant.readings VERSION AS OF 1 WHERE a = 1")
    joined = "SELECT count(*) FROM copied JOIN lake.plant.readings USING (a)"
    assert ask(spark, joined) == [(4,)]
    spark.sql("DROP TABLE copied")


# -------------------------------------------------------------------------------------- writing


STATEMENTS = [
    "INSERT INTO lake.plant.readings VALUES (9, 9)",
    "INSERT OVERWRITE lake.plant.readings VALUES (9, 9)",
    "INSERT OVERWRITE lake.plant.readings SELECT * FROM lake.plant.readings",
    "DELETE FROM lake.plant.readings WHERE a = 1",
    "TRUNCATE TABLE lake.plant.readings",
    "UPDATE lake.plant.readings SET a = 1",
    "MERGE INTO lake.plant.readings t USING (SELECT 1 AS a) s ON t.a = s.a"
    " WHEN MATCHED THEN DELETE",
    "DROP TABLE lake.plant.readings",
    "DROP TABLE IF EXISTS lake.plant.readings PURGE",
    "ALTER TABLE lake.plant.readings ADD COLUMN z INT",
    "ALTER TABLE lake.plant.readings RENAME TO lake.plant.other",
    "ALTER TABLE lake.plant.readings SET TBLPROPERTIES ('a' = 'b')",
    "CREATE TABLE lake.plant.fresh (a INT)",
    "CREATE TABLE lake.plant.fresh AS SELECT 1 AS a",
    "CREATE OR REPLACE TABLE lake.plant.readings AS SELECT 1 AS a",
    "CREATE NAMESPACE lake.other",
    "DROP NAMESPACE lake.plant CASCADE",
]


def test_no_statement_can_change_a_table(spark: "SparkSession", table: "Table") -> None:
    from pyspark.errors import AnalysisException, UnsupportedOperationException

    path = Path(table.location) / table.read_plan().files[0].path
    before = path.read_bytes()
    frame = spark.sql("SELECT * FROM lake.plant.readings")
    name = "lake.plant.readings"
    calls: list[Any] = [lambda text=text: spark.sql(text) for text in STATEMENTS]
    calls += [
        lambda: frame.writeTo(name).append(),
        lambda: frame.writeTo(name).overwritePartitions(),
        lambda: frame.writeTo(name).createOrReplace(),
        lambda: frame.write.insertInto(name, overwrite=True),
        lambda: frame.write.mode("append").saveAsTable(name),
        lambda: frame.write.mode("overwrite").saveAsTable(name),
        lambda: spark.readStream.table(name).writeStream.format("noop").start(),
    ]
    for call in calls:
        with pytest.raises(
            (UnsupportedOperationException, AnalysisException),
            match=r"cannot be changed by SQL names|does not support",
        ) as caught:
            call()
        assert "\tat " not in str(caught.value)
    assert path.read_bytes() == before
    assert [p for p in path.parent.iterdir() if p != path] == []
    assert table.version == 1


# ------------------------------------------------------------------------------------ evolution


def test_evolved_tables_read_as_they_are_or_are_refused(
    spark: "SparkSession", table: "Table"
) -> None:
    from pyspark.errors import IllegalArgumentException

    name = "lake.plant.readings"

    def same(where: str = "true") -> bool:
        wanted = sorted(table.scan(where).to_arrow().to_pylist(), key=str)
        found = spark.sql(f"SELECT * FROM {name} WHERE {where}").toArrow().to_pylist()
        return sorted(found, key=str) == wanted

    table.evolve().add_column("n", "string").widen_column("a", "long").commit()
    table.append(pa.table({"a": [2**40], "v": [1.5], "n": ["x"]}))
    assert same()
    assert same("a >= 3 and n is null")
    table.evolve().rename_column("v", "value").commit()
    table.append(pa.table({"a": [7], "value": [7.5], "n": ["y"]}))
    assert same()
    assert same("value >= 3")
    assert same("value < 2 or n = 'y'")
    table.evolve().rename_column("n", "v").commit()  # an old name for another column
    with pytest.raises(IllegalArgumentException, match=r"'v' is another column.*lakebed\.spark"):
        ask(spark, f"SELECT * FROM {name}")
    assert ask(spark, f"SELECT count(*) FROM {name} VERSION AS OF 3") == [(4,)]
    assert read(spark, table).count() == 5


def test_a_file_without_field_ids_fails_where_they_are_needed(
    spark: "SparkSession", table: "Table"
) -> None:
    """An adopted file may have none; its columns must not come out as nulls."""
    pq.write_table(numbers(8), Path(table.location) / "data" / "adopted.parquet")
    table.add_files(["data/adopted.parquet"])
    assert ask(spark, "SELECT sum(a) FROM lake.plant.readings") == [(14,)]
    table.evolve().rename_column("v", "value").commit()
    with pytest.raises(Exception, match=r"(?i)field ids?"):
        ask(spark, "SELECT value FROM lake.plant.readings")
    assert read(spark, table).selectExpr("sum(value)").collect() == [(14.0,)]


def test_a_lost_file_is_an_error_whatever_the_query_says(
    spark: "SparkSession", table: "Table"
) -> None:
    from pyspark.errors import IllegalArgumentException

    (Path(table.location) / table.read_plan().files[0].path).unlink()
    for more in ("", " WITH ('ignoreMissingFiles' = 'true', 'ignoreCorruptFiles' = 'true')"):
        with pytest.raises(IllegalArgumentException, match=r"\.parquet"):
            ask(spark, f"SELECT * FROM lake.plant.readings{more}")


# ------------------------------------------------------------------------------------- requests


def test_what_names_cannot_read_is_refused_with_the_way_out(
    spark: "SparkSession", table: "Table"
) -> None:
    from pyspark.errors import IllegalArgumentException

    with lakebed.connect("memory:") as catalog:
        catalog.create_table("t", numbers().schema).append(numbers(1))
        attached = attach(spark, catalog, "remembered")
        with pytest.raises(IllegalArgumentException, match=r"cannot reach.*lakebed\.spark\.view"):
            ask(spark, "SELECT * FROM remembered.t")
        attached.detach()


def test_nanoseconds_are_numbers_if_so_chosen(spark: "SparkSession", catalog: "Catalog") -> None:
    from pyspark.errors import IllegalArgumentException

    rows = pa.table({"t": pa.array([1, None], pa.timestamp("ns")), "a.b`c": [1, 2]})
    catalog.create_table("ns", rows.schema).append(rows)
    attached = attach(spark, catalog, "fine")
    with pytest.raises(IllegalArgumentException, match="nanoseconds"):
        ask(spark, "SELECT * FROM fine.ns")
    attached.detach()
    attached = attach(spark, catalog, "fine", nanoseconds="long")
    assert ask(spark, "SELECT t FROM fine.ns WHERE `a.b``c` = 1") == [(1,)]
    attached.detach()
    with pytest.raises(RequestError, match="cannot cut nanoseconds"):
        attach(spark, catalog, "fine", nanoseconds="truncate")


def test_a_name_is_a_word_that_is_not_taken(spark: "SparkSession", catalog: "Catalog") -> None:
    for name in ("", "a.b", "spark_catalog", "a b"):
        with pytest.raises(IdentifierError, match="cannot be the name of a catalog"):
            attach(spark, catalog, name)
    spark.conf.set("spark.sql.catalog.taken", "some.Class")
    with pytest.raises(RequestError, match="another catalog of the name 'taken'"):
        attach(spark, catalog, "taken")
    spark.conf.unset("spark.sql.catalog.taken")
    attached = attach(spark, catalog, "here")
    assert ("here",) in ask(spark, "SHOW CATALOGS")
    attached.detach()
    assert ("here",) not in ask(spark, "SHOW CATALOGS")
