"""Law: a predicate keeps the same rows in Spark, and Spark prunes row groups by it where it may.

Each row group holds one odd value, or one beside NaN, so whatever is pruned wrongly is missed.
The random tables of test_read_differential try the rest.
"""

import math
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakebed
from lakebed.spark.reading.read import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakebed.table.table import Table

pytestmark = pytest.mark.spark

REALS = [0.0, -0.0, math.nan, 1.0, 5.0, math.inf, -math.inf, None]
BESIDE_NAN = [value for real in REALS for value in (real, math.nan)]


def real_table(directory: Path, values: list[float | None], group_rows: int) -> "Table":
    """As pyarrow writes it by itself: with dictionaries, which Spark prunes by too."""
    schema = pa.schema([("n", pa.int64()), ("d", pa.float64()), ("f", pa.float32())])
    table = lakebed.connect(directory).create_table("t", schema)
    columns = {"n": range(len(values)), "d": values, "f": values}
    path = Path(table.location) / "data" / "adopted.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table(columns, schema), path, row_group_size=group_rows)
    table.add_files(["data/adopted.parquet"])
    return table


@pytest.mark.parametrize(("name", "values", "group_rows"), [("f", REALS, 1), ("d", BESIDE_NAN, 2)])
def test_floats_compare_as_ours_do_and_no_row_group_is_lost(
    spark: "SparkSession",
    tmp_path: Path,
    name: str,
    values: list[float | None],
    group_rows: int,
) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    table = real_table(tmp_path, values, group_rows)
    wheres = [
        f"{negation} {name} {op} {value}"
        for op in ("=", "!=", "<", "<=", ">", ">=")
        for value in ("0", "5")
        for negation in ("", "not")
    ]
    wheres += [f"{name} in (0, 5)", f"{name} not in (0, 5)", f"{name} is nan"]
    wheres += [f"{name} is not nan", f"{name} in ({', '.join(map(str, range(20)))})"]
    frames = [
        read(spark, table, where, ["n"]).select(F.lit(place).alias("place"), "n")
        for place, where in enumerate(wheres)
    ]
    answer = reduce(lambda one, other: one.union(other), frames).toArrow().to_pylist()
    for place, where in enumerate(wheres):
        found = sorted(row["n"] for row in answer if row["place"] == place)
        assert found == sorted(table.scan(where).to_arrow()["n"].to_pylist()), where


def test_simple_comparisons_reach_parquet(spark: "SparkSession", tmp_path: Path) -> None:
    rows = pa.table(
        {
            "ts": pa.array([1_767_225_600_000_000, 1_767_312_000_000_000], pa.int64()).cast(
                pa.timestamp("us", "UTC")
            ),
            "day": pa.array([20_454, 20_455], pa.int32()).cast(pa.date32()),
            "name": ["s1", "s2"],
            "value": [1.0, 2.0],
            "price": pa.array([1, 2]).cast(pa.decimal128(21, 2)).cast(pa.decimal128(9, 2)),
            "count": pa.array([1, 2], pa.int32()),
            "blob": [b"x", b"y"],
        }
    )
    table = lakebed.connect(tmp_path).create_table("t", rows.schema)
    table.append(rows)
    wanted = {
        "ts >= '2026-01-01 12:00'": "GreaterThanOrEqual(ts,",
        "day = '2026-01-02'": "EqualTo(day,2026-01-02)",
        "name > 's1'": "GreaterThan(name,s1)",
        "name like 's%' and name != 's1'": "StringStartsWith(name,s)",
        "value > 1.5": "GreaterThan(value,1.5)",
        "price < 1.505": "LessThanOrEqual(price,1.50)",
        "count in (1, 7)": "In(count, [1,7])",
        "blob >= X'79'": "GreaterThanOrEqual(blob,",
        "count != 1": "Not(EqualTo(count,1))",
    }
    for where, pushed in wanted.items():
        frame = read(spark, table, where)
        plan = frame._jdf.queryExecution().executedPlan().toString()
        assert pushed in plan, (where, plan)
        assert "Batched: true" in plan
        assert frame.count() == 1, where


def test_a_very_long_predicate_does_not_overflow_sparks_stack(
    spark: "SparkSession", tmp_path: Path
) -> None:
    table = lakebed.connect(tmp_path).create_table("t", pa.schema([("a", pa.int64())]))
    table.append(pa.table({"a": range(1000)}))
    where = " or ".join(f"(a >= {i} and a < {i + 1})" for i in range(0, 1000, 5))
    assert read(spark, table, where).count() == 200
