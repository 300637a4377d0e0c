"""Law: Spark reads what the embedded reader reads, on random tables of every type and history.

A table is drawn from a seed with its evolution, deletes and rollbacks, and made once by the
library and once as a plain list of rows (`tests.property`). Predicates are many to a Spark job:
each is a read of its own, planned and pruned by itself, and the job is their union.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.property.drawing import draw_recipe
from tests.property.predicates import Drawing, sql_of, truth
from tests.property.recipes import ROW, Built, build

import lakebed
from lakebed.spark.reading.attach import attach
from lakebed.spark.reading.read import read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

TABLE_COUNT = 12
PREDICATES_PER_TABLE = 12


def build_in(directory: Path, seed: str) -> Built:
    recipe = draw_recipe(seed)
    with recipe.limits():
        return build(recipe, lakebed.connect(directory / seed))


def as_text(table: pa.Table, columns: Any) -> dict[int, tuple[str, ...]]:
    """Rows by number as text, which tells -0.0 from 0.0; times are numbers of their unit."""
    assert table.column_names == [column.name for column in columns.values()]
    found = []
    for column in columns.values():
        values = table.column(column.name)
        if pa.types.is_timestamp(values.type):
            values = values.cast(pa.int64())
        elif pa.types.is_date(values.type):
            values = values.cast(pa.int32())
        found.append([repr(value) for value in values.to_pylist()])
    numbers = table.column(columns[ROW].name).to_pylist()
    assert len(set(numbers)) == len(numbers), "a row came twice"
    return {number: row for number, *row in zip(numbers, *found, strict=True)}  # type: ignore[misc]


def wanted_text(rows: Any, columns: Any) -> dict[int, list[str]]:
    return {n: [repr(row[key]) for key in columns] for n, row in rows.items()}


def predicate_problems(
    spark: "SparkSession", built: Built, chance: Random, *, via: str | None, count: int
) -> list[str]:
    """The predicates for which Spark gives other rows than the plain table has."""
    from pyspark.sql import functions as F  # noqa: N812

    drawing = Drawing(chance, list(built.columns.values()), built.values())
    drawn = [drawing.predicate() for _ in range(count)]
    texts = [sql_of(each, built.columns) for each in drawn]
    name = built.columns[ROW].name
    frames = [
        read(spark, built.table, where=text, columns=[name], via=via)
        .toDF("row")
        .select(F.lit(place).alias("place"), "row")
        for place, text in enumerate(texts)
    ]
    union: DataFrame = reduce(lambda one, other: one.union(other), frames)
    answer = union.toArrow()
    found: dict[int, Counter[int]] = {place: Counter() for place in range(count)}
    for place, row in zip(*(answer.column(i).to_pylist() for i in (0, 1)), strict=True):
        found[place][row] += 1
    problems = []
    for place, (predicate, text) in enumerate(zip(drawn, texts, strict=True)):
        wanted = Counter(built.matching(predicate))
        if found[place] != wanted:
            lost, extra = wanted - found[place], found[place] - wanted
            problems.append(f"where {text}: lost {dict(lost)}, extra {dict(extra)}")
    return problems


@contextmanager
def setting(spark: "SparkSession", name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name)
    spark.conf.set(name, value)
    yield
    spark.conf.set(name, before or "")


@pytest.mark.parametrize("chunk", range(2))
def test_spark_reads_random_tables_as_they_are(
    spark: "SparkSession", tmp_path: Path, chunk: int
) -> None:
    for number in range(chunk, TABLE_COUNT, 2):
        seed = f"spark-{number}"
        built = build_in(tmp_path, seed)
        found = as_text(read(spark, built.table, nanoseconds="long").toArrow(), built.columns)
        assert {n: list(row) for n, row in found.items()} == wanted_text(
            built.rows, built.columns
        ), seed
        chance = Random(seed)
        problems = predicate_problems(spark, built, chance, via=None, count=PREDICATES_PER_TABLE)
        assert not problems, f"{seed}: " + "\n".join(problems)


def test_each_version_of_a_random_table_reads_as_it_was(
    spark: "SparkSession", tmp_path: Path
) -> None:
    for seed in ("past-1", "past-4"):
        built = build_in(tmp_path, seed)
        for version, columns, rows in built.past:
            frame = read(spark, built.table, as_of=version, nanoseconds="long")
            found = as_text(frame.toArrow(), columns)
            assert {n: list(row) for n, row in found.items()} == wanted_text(rows, columns), (
                seed,
                version,
            )


def test_our_reader_in_workers_gives_the_same(spark: "SparkSession", tmp_path: Path) -> None:
    for seed in ("workers-1", "workers-2"):
        built = build_in(tmp_path, seed)
        frame = read(spark, built.table, via="workers", nanoseconds="long")
        found = as_text(frame.toArrow(), built.columns)
        assert {n: list(row) for n, row in found.items()} == wanted_text(
            built.rows, built.columns
        ), seed
        assert not predicate_problems(spark, built, Random(seed), via="workers", count=4), seed


def test_sparks_reader_of_single_rows_gives_the_same(spark: "SparkSession", tmp_path: Path) -> None:
    with setting(spark, "spark.sql.parquet.enableVectorizedReader", "false"):
        for seed in ("rows-1", "rows-2", "rows-3"):
            built = build_in(tmp_path, seed)
            frame = read(spark, built.table, nanoseconds="long")
            found = as_text(frame.toArrow(), built.columns)
            assert {n: list(row) for n, row in found.items()} == wanted_text(
                built.rows, built.columns
            ), seed
            assert not predicate_problems(spark, built, Random(seed), via=None, count=8), seed


def test_names_in_sql_give_each_version_as_it_was_or_refuse_it(
    spark: "SparkSession", tmp_path: Path
) -> None:
    from pyspark.errors import IllegalArgumentException

    outcomes: Counter[str] = Counter()
    for number in range(6):
        seed = f"names-{number}"
        recipe = draw_recipe(seed)
        with recipe.limits(), lakebed.connect(tmp_path / seed) as catalog:
            built = build(recipe, catalog)
            attached = attach(spark, catalog, "drawn", nanoseconds="long")
            for version, columns, rows in built.past[-3:]:
                frame = f"SELECT * FROM drawn.t VERSION AS OF {version}"
                try:
                    found = as_text(spark.sql(frame).toArrow(), columns)
                except IllegalArgumentException as error:
                    assert "is another column than today" in str(error)
                    outcomes["refused"] += 1
                    continue
                outcomes["read"] += 1
                wanted = wanted_text(rows, columns)
                assert {n: list(row) for n, row in found.items()} == wanted, (seed, version)
            attached.detach()
    assert outcomes["read"] > outcomes["refused"]


def test_the_plain_model_itself_is_what_the_embedded_reader_gives(tmp_path: Path) -> None:
    """Else the tests above could agree on something wrong."""
    built = build_in(tmp_path, "spark-0")
    name = built.columns[ROW].name
    assert set(built.table.scan(columns=[name]).to_arrow()[name].to_pylist()) == set(built.rows)
    chance = Random("model")
    drawing = Drawing(chance, list(built.columns.values()), built.values())
    predicate = drawing.predicate()
    wanted = {n for n, row in built.rows.items() if truth(predicate, row, built.columns) is True}
    scan = built.table.scan(sql_of(predicate, built.columns), columns=[name])
    assert set(scan.to_arrow()[name].to_pylist()) == wanted
