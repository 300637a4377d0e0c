"""Law: a view is one version of a table under a name, and nothing writes through it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import lakebed
from lakebed.errors import IdentifierError, NotFoundError
from lakebed.spark.reading.read import read
from lakebed.spark.reading.view import view

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakebed.table.table import Table

pytestmark = pytest.mark.spark


def numbers(*values: int) -> pa.Table:
    return pa.table({"a": pa.array(values, pa.int32())})


@pytest.fixture
def table(tmp_path: Path) -> "Table":
    """Of one file, which is what Spark could write into."""
    made = lakebed.connect(tmp_path).create_table("plant.readings", numbers().schema)
    made.append(numbers(1, 2, 3))
    return made


@pytest.fixture(autouse=True)
def clean(spark: "SparkSession") -> Iterator[None]:
    yield
    for name in ("readings", "odd name é", "one"):
        spark.catalog.dropTempView(name)


def count(spark: "SparkSession", name: str) -> int:
    found: int = spark.sql(f"SELECT count(*) FROM `{name}`").collect()[0][0]
    return found


def test_a_view_stays_at_its_version_until_it_is_refreshed(
    spark: "SparkSession", table: "Table"
) -> None:
    made = view(spark, table)
    table.append(numbers(4))
    assert (made.name, made.version, count(spark, "readings")) == ("readings", 1, 3)
    assert made.refresh() is made
    assert (made.version, count(spark, "readings"), made.frame.count()) == (2, 4, 4)
    assert made.refresh(as_of=1).version == 1
    assert count(spark, "readings") == 3
    assert repr(made) == "View('readings' of plant.readings version 1)"
    made.drop()
    assert not spark.catalog.tableExists("readings")
    made.drop()


def test_a_view_can_have_fewer_rows_and_columns_and_an_odd_name(
    spark: "SparkSession", table: "Table"
) -> None:
    made = view(spark, table, "odd name é", where="a >= 2", as_of=1, columns=["a"])
    table.append(numbers(9))
    assert count(spark, "odd name é") == 2
    assert made.refresh().frame.count() == 3
    for name in ("a.b", "a`b"):
        with pytest.raises(IdentifierError, match="cannot be the name of a view"):
            view(spark, table, name)
    with pytest.raises(NotFoundError):
        view(spark, table, as_of=7)


def test_a_frame_has_a_name_in_one_query(spark: "SparkSession", table: "Table") -> None:
    frame = read(spark, table)
    assert spark.sql("SELECT sum(a) FROM {t}", t=frame).collect() == [(6,)]


WRITES: dict[str, "Callable[[SparkSession, DataFrame], object]"] = {
    "INSERT INTO": lambda spark, _: spark.sql("INSERT INTO one VALUES (9)"),
    "INSERT OVERWRITE": lambda spark, _: spark.sql("INSERT OVERWRITE one VALUES (9)"),
    "OVERWRITE from itself": lambda spark, _: spark.sql("INSERT OVERWRITE one SELECT a FROM one"),
    "DELETE": lambda spark, _: spark.sql("DELETE FROM one"),
    "TRUNCATE": lambda spark, _: spark.sql("TRUNCATE TABLE one"),
    "insertInto": lambda _, frame: frame.write.insertInto("one"),
    "insertInto over": lambda _, frame: frame.write.insertInto("one", overwrite=True),
    "writeTo": lambda _, frame: frame.writeTo("one").append(),
}


@pytest.mark.parametrize("way", WRITES)
@pytest.mark.parametrize("where", [None, "a >= 2"])
def test_nothing_is_ever_written_into_a_tables_file(
    spark: "SparkSession", table: "Table", way: str, where: str | None
) -> None:
    view(spark, table, "one", where)
    path = Path(table.location) / table.read_plan().files[0].path
    before = path.read_bytes()
    frame = spark.range(1).selectExpr("cast(id as int) a")
    with pytest.raises(Exception, match=r"(?i)insert|view|write|relation"):
        WRITES[way](spark, frame)
    assert path.read_bytes() == before
    assert [p for p in path.parent.iterdir() if p != path] == []
