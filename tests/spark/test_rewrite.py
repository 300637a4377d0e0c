"""Law: update, delete and rewrite change the rows that they name, and no file that has none."""

from collections.abc import Iterator
from math import isnan
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.around import interrupted

import lakebed
from lakebed.errors import (
    CommitConflictError,
    NotFoundError,
    PredicateError,
    RequestError,
    SchemaMismatchError,
)
from lakebed.format.snapshot import Operation
from lakebed.spark.writing.rewrite import delete, rewrite, update
from lakebed.spark.writing.write import write
from lakebed.table.catalog import Catalog
from lakebed.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

COLUMNS = pa.schema(
    [("id", pa.int64()), ("site", pa.string()), ("value", pa.float64()), ("at", pa.time64("us"))]
)


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with lakebed.connect(f"sqlite:///{tmp_path}/catalog.db") as opened:
        yield opened


@pytest.fixture
def table(catalog: Catalog) -> Table:
    """Ids 0 to 29 in three files of ten."""
    made = catalog.create_table("t", COLUMNS)
    for first in (0, 10, 20):
        made.append(rows_from(range(first, first + 10)))
    return made


def rows_from(ids: Any) -> pa.Table:
    rows = [{"id": n, "site": f"s{n % 3}", "value": n / 2, "at": None} for n in ids]
    return pa.Table.from_pylist(rows, COLUMNS)


def column(table: Table, name: str) -> dict[int, Any]:
    found = table.scan(columns=["id", name]).to_arrow()
    return dict(zip(found.column(0).to_pylist(), found.column(1).to_pylist(), strict=True))


def paths(table: Table) -> set[str]:
    return {file.path for file in table.read_plan().files}


# -------------------------------------------------------------------------------------- delete


@pytest.mark.parametrize("via", ["driver", "executors"])
def test_delete_drops_whole_files_and_rewrites_edges(
    spark: "SparkSession", table: Table, via: str
) -> None:
    before = paths(table)
    done = delete(table, "id >= 18", spark=spark, via=via)
    assert (done.operation, done.removed_rows - done.added_rows) == (Operation.DELETE, 12)
    assert (done.removed_files, done.added_files) == (2, 1)
    assert len(before & paths(table)) == 1
    assert sorted(column(table, "site")) == list(range(18))
    again = delete(table, "id >= 18", spark=spark, via=via)
    assert (again.version, again.removed_files) == (done.version, 0)
    none = delete(table, "site = 'nowhere'", spark=spark, via=via)
    assert none.version == done.version


def test_delete_takes_a_spark_column_for_what_sql_of_ours_cannot_say(
    spark: "SparkSession", table: Table
) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    before = paths(table)
    delete(table, F.col("id") % 7 == 5, spark=spark)
    assert sorted(column(table, "site")) == [n for n in range(30) if n % 7 != 5]
    delete(table, F.expr("id between 10 and 19"), spark=spark)
    assert sorted(column(table, "site")) == [n for n in range(30) if n % 7 != 5 and n // 10 != 1]
    assert not before & paths(table)
    with pytest.raises(PredicateError):
        delete(table, "id % 7 = 5", spark=spark)
    with pytest.raises(RequestError, match="needs a predicate"):
        delete(table, None, spark=spark)


def test_the_active_session_is_the_one(spark: "SparkSession", table: Table) -> None:
    assert delete(table, "true").removed_rows == 30


# -------------------------------------------------------------------------------------- update


def test_update_changes_the_rows_that_match(spark: "SparkSession", table: Table) -> None:
    before = paths(table)
    done = update(
        table, {"value": "value * 10 + id", "site": "upper(site)"}, "id in (3, 4, 25)", spark=spark
    )
    assert (done.removed_files, done.added_rows) == (2, 20)
    assert len(before & paths(table)) == 1
    assert column(table, "value") == {
        n: n / 2 * 10 + n if n in (3, 4, 25) else n / 2 for n in range(30)
    }
    assert column(table, "site")[25] == "S1"
    assert update(table, {"value": "0"}, "id = 99", spark=spark).version == done.version


def test_update_of_all_rows_and_by_a_column(spark: "SparkSession", table: Table) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    update(table, {"value": F.lit(None), "at": "43200000000L"}, spark=spark)
    assert set(column(table, "value").values()) == {None}
    assert {at.hour for at in column(table, "at").values()} == {12}
    update(table, {"value": 2.5}, F.col("id") % 2 == 0, spark=spark)
    assert {n for n, v in column(table, "value").items() if v == 2.5} == set(range(0, 30, 2))


def test_an_update_that_does_not_fit_changes_nothing(spark: "SparkSession", table: Table) -> None:
    version = table.version
    with pytest.raises(SchemaMismatchError, match="'value': table has double, the new value str"):
        update(table, {"value": "site"}, spark=spark)
    with pytest.raises(NotFoundError, match="there is no column 'valu'"):
        update(table, {"valu": "1"}, spark=spark)
    with pytest.raises(RequestError, match="columns to set"):
        update(table, {}, spark=spark)
    with pytest.raises(RequestError, match=r"the update failed in Spark: .*nope"):
        update(table, {"value": "nope + 1"}, spark=spark)
    for ansi in ("true", "false"):
        spark.conf.set("spark.sql.ansi.enabled", ansi)
        try:
            with pytest.raises(RequestError, match=r"column 'id' cannot hold 1\.5"):
                update(table, {"id": "value + 1"}, "id = 1", spark=spark)
            with pytest.raises(RequestError, match=r"column 'id' cannot hold 1\.0E30"):
                update(table, {"id": "1e30D"}, "id = 1", spark=spark)
        finally:
            spark.conf.unset("spark.sql.ansi.enabled")
    assert table.version == version


def test_a_token_deletes_and_updates_once(spark: "SparkSession", table: Table) -> None:
    for _ in range(2):
        update(table, {"value": "value + 1"}, spark=spark, txn=("job", 1))
        delete(table, "id = 0", spark=spark, txn=("job", 2), via="executors")
        table.append(rows_from([0]))
    assert column(table, "value")[5] == 3.5
    assert table.scan("id = 0").count() == 2


# ------------------------------------------------------------------------------------- rewrite


def test_rewrite_makes_one_file_of_many_and_no_row_changes(
    spark: "SparkSession", table: Table
) -> None:
    before = table.scan().to_arrow().sort_by("id")
    done = rewrite(table, spark=spark)
    assert (done.operation, done.removed_files, done.added_files) == (Operation.REWRITE, 3, 1)
    assert table.scan().to_arrow().sort_by("id").equals(before)
    again = rewrite(table, spark=spark)
    assert again.version == done.version, "one file is as few as there can be"


def test_rewrite_keeps_partitions_and_splits_by_the_newest_partitioning(
    spark: "SparkSession", catalog: Catalog
) -> None:
    made = catalog.create_table("p", COLUMNS, partition_by=["site"])
    for n in range(3):
        made.append(rows_from(range(n * 10, n * 10 + 10)))
    assert len(paths(made)) == 9
    done = rewrite(made, "site = 's0'", spark=spark)
    assert (done.removed_files, done.added_files) == (3, 1)
    made.evolve().partition_by(["truncate(10, id)"]).commit()
    done = rewrite(made, spark=spark)
    assert (done.removed_files, done.added_files) == (7, 3)
    assert {file.partition for file in made.read_plan().files} == {(0,), (10,), (20,)}
    assert sorted(column(made, "site")) == list(range(30))


def test_rewrite_leaves_files_of_a_good_size_alone(spark: "SparkSession", table: Table) -> None:
    version = table.version
    smallest = min(file.size_bytes for file in table.read_plan().files)
    assert rewrite(table, target_file_bytes=smallest, spark=spark).version == version


def test_appends_during_a_rewrite_are_kept_and_deletes_win(
    spark: "SparkSession", catalog: Catalog, table: Table
) -> None:
    meanwhile = interrupted(catalog, lambda: table.append(rows_from([77])))
    rewrite(meanwhile.table("t"), spark=spark)
    assert sorted(column(table, "site")) == [*range(30), 77]
    meanwhile = interrupted(catalog, lambda: table.delete("id = 77"))
    with pytest.raises(CommitConflictError):
        rewrite(meanwhile.table("t"), spark=spark)
    assert sorted(column(table, "site")) == list(range(30))


# -------------------------------------------------------------------------------------- oracle

VALUES = [None, float("nan"), -0.0, 0.0, 1.0, float("inf")]
PREDICATES = ["value > 0", "not value < 1", "value = 0", "value is nan", "site like 'a%' or id = 3"]


def truth(text: str, row: dict[str, Any]) -> bool:
    value, site = row["value"], row["site"]
    match text:
        case "value > 0":
            return value is not None and value > 0
        case "not value < 1":
            return value is not None and not value < 1
        case "value = 0":
            return value == 0
        case "value is nan":
            return value is not None and isnan(value)
    return (site or "").startswith("a") or row["id"] == 3


@pytest.mark.parametrize("seed", range(3))
def test_random_deletes_and_updates_are_what_python_says(
    spark: "SparkSession", catalog: Catalog, seed: int
) -> None:
    random = Random(f"rewrite {seed}")
    table = catalog.create_table("t", COLUMNS.remove(3))
    rows: list[dict[str, Any]] = []
    for start in range(0, 24, 8):
        some = [
            {"id": start + n, "site": random.choice(["a1", "b", None]), "value": value}
            for n, value in enumerate(random.choices(VALUES, k=8))
        ]
        table.append(pa.Table.from_pylist(some, table.arrow_schema))
        rows += some
    for text in random.sample(PREDICATES, k=3):
        if random.random() < 0.5:
            delete(table, text, spark=spark, via="executors")
            rows = [row for row in rows if not truth(text, row)]
        else:
            update(table, {"site": "concat('u', id)"}, text, spark=spark)
            rows = [row | {"site": f"u{row['id']}"} if truth(text, row) else row for row in rows]
    found = table.scan().to_arrow().sort_by("id").to_pylist()
    assert [repr(row) for row in found] == [
        repr(row) for row in sorted(rows, key=lambda r: r["id"])
    ]


def test_a_table_in_memory_can_be_changed_too(spark: "SparkSession") -> None:
    catalog = lakebed.connect("memory:")
    table = catalog.create_table("t", COLUMNS)
    table.append(rows_from(range(10)))
    write(spark.range(10, 12), table)
    update(table, {"value": "7"}, "id >= 8", spark=spark)
    delete(table, "id < 4", spark=spark, via="executors")
    rewrite(table, spark=spark)
    assert column(table, "value") == {n: 7.0 if n >= 8 else n / 2 for n in range(4, 12)}
