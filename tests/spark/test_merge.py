"""Law: a merge is what SQL says it is, row by row, and touches only files that it must."""

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.around import interrupted

import lakebed
from lakebed.errors import CommitConflictError, RequestError, SchemaMismatchError
from lakebed.spark.writing.merge import merge
from lakebed.spark.writing.merge_terms import key_pairs, shortened
from lakebed.table.catalog import Catalog
from lakebed.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

COLUMNS = pa.schema([("id", pa.int64()), ("site", pa.string()), ("value", pa.float64())])
Row = tuple[Any, ...]


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with lakebed.connect(f"sqlite:///{tmp_path}/catalog.db") as opened:
        yield opened


@pytest.fixture
def table(catalog: Catalog) -> Table:
    """Ids 0 to 29 in three files of ten; the value is the id."""
    made = catalog.create_table("t", COLUMNS)
    for first in (0, 10, 20):
        made.append(rows_from(range(first, first + 10)))
    return made


def rows_from(ids: Any) -> list[dict[str, Any]]:
    return [{"id": n, "site": f"s{n % 3}", "value": float(n)} for n in ids]


def frame(spark: "SparkSession", rows: list[dict[str, Any]]) -> "DataFrame":
    return spark.createDataFrame(pa.Table.from_pylist(rows, COLUMNS))


def plain(value: Any) -> Any:
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def content(table: Table) -> Counter[Row]:
    return Counter(tuple(map(plain, row.values())) for row in table.scan().to_arrow().to_pylist())


def values(table: Table) -> dict[int, Any]:
    return {row["id"]: row["value"] for row in table.scan().to_arrow().to_pylist()}


def paths(table: Table) -> set[str]:
    return {file.path for file in table.read_plan().files}


# ------------------------------------------------------------------------------------- clauses


def test_an_upsert_updates_what_is_there_and_inserts_the_rest(
    spark: "SparkSession", table: Table
) -> None:
    source = frame(spark, [{"id": n, "site": "new", "value": n + 0.5} for n in (5, 6, 99)])
    before = paths(table)
    report = (
        merge(table, source).on(["id"]).when_matched_update().when_not_matched_insert().execute()
    )
    assert (report.updated_rows, report.inserted_rows, report.deleted_rows) == (2, 1, 0)
    assert report.copied_rows == 8
    assert report.commit is not None
    assert report.commit.removed_files == 1
    assert len(before & paths(table)) == 2, "two of three files are left alone"
    assert values(table) == {n: float(n) for n in range(30)} | {5: 5.5, 6: 6.5, 99: 99.5}


def test_clauses_are_tried_in_their_order(spark: "SparkSession", table: Table) -> None:
    source = frame(spark, rows_from([1, 2, 3, 4, 50, 51, 52]))
    report = (
        merge(table, source)
        .on("target.id = source.id")
        .when_matched_delete("source.id = 1")
        .when_matched_update({"value": "t.value * 100"}, condition="t.id <= 2")
        .when_matched_update({"site": "'target.x'"}, condition="s.id < 4")
        .when_not_matched_insert({"id": "s.id", "value": -1}, condition="s.id = 50")
        .when_not_matched_insert(condition="s.id = 51")
        .execute()
    )
    assert (report.updated_rows, report.deleted_rows, report.inserted_rows) == (2, 1, 2)
    rows = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    assert 1 not in rows
    assert rows[2]["value"] == 200.0
    assert (rows[3]["site"], rows[3]["value"]) == ("target.x", 3.0)
    assert rows[4] == {"id": 4, "site": "s1", "value": 4.0}
    assert rows[50] == {"id": 50, "site": None, "value": -1.0}
    assert rows[51] == {"id": 51, "site": "s0", "value": 51.0}
    assert 52 not in rows


def test_conditions_and_values_can_be_spark_columns(spark: "SparkSession", table: Table) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    source = frame(spark, rows_from([1, 2, 60]))
    report = (
        merge(table, source)
        .on(F.col("t.id") == F.col("s.id"))
        .when_matched_update({"value": F.col("s.value") + 0.5}, condition=F.col("t.id") > 1)
        .when_not_matched_insert({"id": F.col("s.id"), "site": F.lit("x")}, F.col("s.id") > 50)
        .execute()
    )
    assert (report.updated_rows, report.inserted_rows) == (1, 1)
    assert (values(table)[1], values(table)[2], values(table)[60]) == (1.0, 2.5, None)


def test_a_merge_that_only_inserts_rewrites_nothing(spark: "SparkSession", table: Table) -> None:
    before = paths(table)
    source = frame(spark, rows_from([0, 15, 40]))
    report = merge(table, source).on("t.id = s.id").when_not_matched_insert().execute()
    assert report.inserted_rows == 1
    assert before < paths(table)


def test_a_merge_that_changes_nothing_commits_nothing(spark: "SparkSession", table: Table) -> None:
    version = table.version
    for source in (rows_from([100]), []):
        report = merge(table, frame(spark, source)).on(["id"]).when_matched_delete().execute()
        assert report.commit is None
    kept = frame(spark, rows_from([1]))
    report = merge(table, kept).on(["id"]).when_matched_delete("s.value > 5").execute()
    assert report.commit is None
    assert table.version == version


def test_rows_without_a_partner_can_be_updated_and_deleted(
    spark: "SparkSession", table: Table
) -> None:
    source = frame(spark, rows_from(range(25)))
    report = (
        merge(table, source)
        .on(["id"])
        .when_matched_update({"value": "s.value"}, condition="t.id = 0")
        .when_not_matched_by_source_delete("t.id >= 28")
        .when_not_matched_by_source_update({"site": "'old'"})
        .execute()
    )
    assert (report.updated_rows, report.deleted_rows) == (4, 2)
    rows = {row["id"]: row["site"] for row in table.scan().to_arrow().to_pylist()}
    assert sorted(rows) == list(range(28))
    assert [n for n, site in rows.items() if site == "old"] == [25, 26, 27]


def test_a_column_can_be_set_to_what_its_type_takes_and_to_nothing_else(
    spark: "SparkSession", table: Table
) -> None:
    source = frame(spark, rows_from([1]))
    start = merge(table, source).on(["id"])
    start.when_matched_update({"value": "1.5", "id": "cast(77 as smallint)"}).execute()
    assert values(table)[77] == 1.5
    with pytest.raises(SchemaMismatchError, match="'id': table has long, the new value string"):
        start.when_not_matched_insert({"id": "'x'"}).execute()
    two = merge(table, frame(spark, rows_from([2]))).on(["id"])
    with pytest.raises(RequestError, match=r"column 'id' cannot hold 2\.5"):
        two.when_matched_update({"id": "s.value + 0.5"}).execute()
    with pytest.raises(RequestError, match="there is no column 'nope'"):
        two.when_matched_update({"nope": "1"}).execute()
    with pytest.raises(RequestError, match="nowhere"):
        two.when_matched_update({"value": "s.nowhere"}).execute()
    with pytest.raises(SchemaMismatchError, match="the source lacks 'site'"):
        merge(table, source.drop("site")).on(["id"]).when_matched_update().execute()
    assert 2 in values(table)


def test_a_merge_without_a_condition_or_clauses_is_refused(
    spark: "SparkSession", table: Table
) -> None:
    source = frame(spark, rows_from([1]))
    with pytest.raises(RequestError, match="which rows belong together"):
        merge(table, source).when_matched_delete().execute()
    with pytest.raises(RequestError, match="does nothing"):
        merge(table, source).on(["id"]).execute()


# ------------------------------------------------------------------------------------ matching


def test_several_source_rows_for_one_row_are_refused_with_their_keys(
    spark: "SparkSession", table: Table
) -> None:
    source = frame(spark, [*rows_from([3, 3, 4, 7, 7, 7]), {"id": 8, "site": "x", "value": 0.0}])
    version = table.version
    with pytest.raises(RequestError, match=r"several source rows match one row of t: id=[37]; id="):
        merge(table, source).on(["id"]).when_matched_update().execute()
    assert table.version == version
    # Those that no clause wants do no harm, nor do they when nothing matches.
    source = frame(
        spark, [{"id": 3, "site": "a", "value": 1.0}, {"id": 3, "site": "b", "value": 2.0}]
    )
    report = merge(table, source).on(["id"]).when_matched_update(condition="s.site = 'b'").execute()
    assert report.updated_rows == 1
    assert values(table)[3] == 2.0
    twice = frame(spark, rows_from([60, 60]))
    assert merge(table, twice).on(["id"]).when_not_matched_insert().execute().inserted_rows == 2


def test_null_matches_nothing(spark: "SparkSession", table: Table) -> None:
    table.append([{"id": None, "site": "none", "value": 0.0}])
    source = frame(spark, [{"id": None, "site": "other", "value": 1.0}])
    report = (
        merge(table, source).on(["id"]).when_matched_delete().when_not_matched_insert().execute()
    )
    assert (report.deleted_rows, report.inserted_rows) == (0, 1)
    assert sum(row[0] is None for row in content(table).elements()) == 2


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("target.id = source.id", [("id", "id")]),
        ("s.a=t.`b c` AND T.x = S.y and t.z > s.z", [("b c", "a"), ("x", "y")]),
        ("t.id = s.id or true", []),
        ("if(t.a and t.id = s.id and t.b, true, true)", []),
        ("case when t.a and t.id = s.id and t.b then true else true end", []),
        ("not t.id = s.id", []),
        ("t.a = 'x and t.id = s.id and y'", []),
        ("t.id = t.id", []),
    ],
)
def test_keys_are_told_only_from_conditions_that_are_plain(
    text: str, pairs: list[tuple[str, str]]
) -> None:
    from lakebed.spark.writing.merge_plan import MergePlan

    plan = MergePlan(table=None, source=None, condition=text)  # type: ignore[arg-type]
    assert list(key_pairs(plan)) == pairs


def test_only_names_of_the_two_sides_are_shortened() -> None:
    assert shortened("Target.a = SOURCE.b") == "t.a = s.b"
    assert shortened("t.source.x = 'target.y' and `target`.z = a_source.q") == (
        "t.source.x = 'target.y' and `target`.z = a_source.q"
    )


def test_files_outside_of_the_keys_are_never_opened(spark: "SparkSession", table: Table) -> None:
    for file in table.read_plan("id >= 20").files:
        (Path(table.location) / file.path).write_bytes(b"not Parquet at all")
    source = frame(spark, rows_from([3, 12]))
    report = merge(table, source).on("t.id = s.id").when_matched_delete().execute()
    assert report.deleted_rows == 2


# --------------------------------------------------------------------------------- concurrency


def test_an_append_during_a_merge_is_kept(
    spark: "SparkSession", catalog: Catalog, table: Table
) -> None:
    meanwhile = interrupted(catalog, lambda: table.append(rows_from([5, 50])))
    source = frame(spark, [{"id": 5, "site": "new", "value": 5.5}])
    merge(meanwhile.table("t"), source).on(["id"]).when_matched_update().execute()
    found = content(table)
    assert found[5, "new", 5.5] == 1
    assert found[5, "s2", 5.0] == 1, "the appended row counts as coming later"
    assert found[50, "s2", 50.0] == 1
    assert sum(found.values()) == 32


def test_a_delete_of_what_a_merge_has_read_is_a_conflict(
    spark: "SparkSession", catalog: Catalog, table: Table
) -> None:
    meanwhile = interrupted(catalog, lambda: table.delete("id = 5"))
    source = frame(spark, [{"id": 5, "site": "new", "value": 5.5}])
    with pytest.raises(CommitConflictError):
        merge(meanwhile.table("t"), source).on(["id"]).when_matched_update().execute()
    assert 5 not in values(table)


def test_of_two_merges_that_insert_one_key_the_second_finds_out(
    spark: "SparkSession", catalog: Catalog, table: Table
) -> None:
    source = frame(spark, rows_from([70]))

    def insert(target: Table) -> None:
        merge(target, source).on(["id"]).when_not_matched_insert().execute()

    with pytest.raises(CommitConflictError):
        insert(interrupted(catalog, lambda: insert(table)).table("t"))
    assert table.scan("id = 70").count() == 1


def test_a_token_merges_once(spark: "SparkSession", table: Table) -> None:
    source = frame(spark, rows_from([100]))
    twice = merge(table, source).on("false").when_not_matched_insert()
    first = twice.execute(txn=("job", 1), properties={"why": "test"})
    again = twice.execute(txn=("job", 1))
    assert first.commit is not None
    assert again.commit is not None
    assert again.commit.repeated
    assert table.current_snapshot().parameters["why"] == "test"
    assert sum(content(table).values()) == 31


# -------------------------------------------------------------------------------------- oracle

NAN = float("nan")
KEYS = [None, 0, 1, 2, 3, 4, 5, 6]
VALUES = [None, -1.0, 0.0, 1.5, NAN]


def draw(random: Random, count: int, *, unique: bool) -> list[dict[str, Any]]:
    keys = random.sample(KEYS[1:], k=min(count, 7)) if unique else random.choices(KEYS, k=count)
    return [
        {"id": key, "site": random.choice(["a", "b", None]), "value": random.choice(VALUES)}
        for key in keys
    ]


def is_above(one: float | None, other: float | None) -> bool | None:
    """Spark's order: NaN is above all numbers."""
    if one is None or other is None:
        return None
    if math.isnan(one):
        return not math.isnan(other)
    return not math.isnan(other) and one > other


def oracle(old: list[dict[str, Any]], source: list[dict[str, Any]]) -> Counter[Row]:
    """delete if s.site = 'a'; update value if s.value > t.value; insert if s.site is not null."""
    found: list[Row] = []
    for row in old:
        new = [s for s in source if s["id"] is not None and s["id"] == row["id"]]
        match new:
            case [s] if s["site"] == "a":
                continue
            case [s] if is_above(s["value"], row["value"]):
                found.append((row["id"], row["site"], s["value"]))
            case _:
                found.append((row["id"], row["site"], row["value"]))
    there = {row["id"] for row in old} - {None}
    found += [
        (s["id"], s["site"], s["value"])
        for s in source
        if s["id"] not in there and s["site"] is not None
    ]
    return Counter(tuple(map(plain, row)) for row in found)


@pytest.mark.parametrize("seed", range(4))
def test_a_random_merge_is_what_the_oracle_says(
    spark: "SparkSession", catalog: Catalog, seed: int
) -> None:
    random = Random(f"merge {seed}")
    table = catalog.create_table("t", COLUMNS, partition_by=random.choice([[], ["site"]]))
    old: list[dict[str, Any]] = []
    for _ in range(random.randint(1, 3)):
        some = draw(random, random.randint(1, 8), unique=False)
        table.append(pa.Table.from_pylist(some, COLUMNS))
        old += some
    source = draw(random, random.randint(1, 7), unique=True)
    source.append({"id": None, "site": "b", "value": 9.0})
    via = random.choice(["driver", "executors"])
    (
        merge(table, frame(spark, source))
        .on("t.id = s.id")
        .when_matched_delete("s.site = 'a'")
        .when_matched_update({"value": "s.value"}, condition="s.value > t.value")
        .when_not_matched_insert(condition="s.site is not null")
        .execute(via=via)
    )
    assert content(table) == oracle(old, source)
