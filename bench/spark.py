"""Lakebed on Spark beside Spark's own Parquet and Delta: all the bounds in one run.

    python bench/spark.py [--quick] [--only scan|write|append|stream|history] [--directory DIR]

One session serves all systems, and they take turns. Delta's connector comes from Maven the first
time. Only ratios within one run count.
"""

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _report import Report, arguments, workplace
from _spark import DELTA_PACKAGE, frame, start, stream_batches_ms

import lakebed
from lakebed import spark as lake

PARTS = ("scan", "write", "append", "stream", "history")
TOTALS = ("sum(value)", "max(ts)", "sum(status)", "max(sensor_id)")


def main() -> int:
    options = arguments(__doc__ or "", PARTS)
    report = Report("-".join(["spark", *(options.only or ())]), quick=options.quick)
    work = {
        "scan": scan,
        "write": write,
        "append": append,
        "stream": stream,
        "history": history,
    }
    spark = start()
    try:
        for part in options.only or PARTS:
            with workplace(options.directory) as directory:
                work[part](report, directory, spark)
    finally:
        spark.stop()
    return report.finish()


def in_turn(tasks: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The median time of each task in ms; which goes first changes from round to round."""
    names = list(tasks)
    spent: dict[str, list[float]] = {name: [] for name in names}
    for task in tasks.values():
        task()  # once to warm up
    for number in range(rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            started = time.perf_counter()
            tasks[name]()
            spent[name].append((time.perf_counter() - started) * 1000)
    return {name: statistics.median(each) for name, each in spent.items()}


def catalog_at(directory: Path) -> lakebed.Catalog:
    return lakebed.connect(f"sqlite:///{directory}/catalog.db")


# ---------------------------------------------------------------------------------------- scan


def scan(report: Report, directory: Path, spark: Any) -> None:
    """The same files, by our plan and by their directory."""
    count = 2_000_000 if report.quick else 20_000_000
    report.heading(f"Scan of {count:,} rows in 20 days: lakebed.spark.read, spark.read.parquet")
    rows = frame(spark, count, days=20)
    lake.write(
        rows,
        "plant.readings",
        catalog=catalog_at(directory),
        partition_by=["day(ts)"],
        via="executors",
    )
    opened = catalog_at(directory).table("plant.readings")
    paths = [f"{opened.location}/{file.path}" for file in opened.read_plan().files]
    report.add("files", len(paths))
    schema = spark.read.parquet(paths[0]).schema

    def native() -> Any:
        return spark.read.schema(schema).parquet(*paths)

    tasks: dict[str, Callable[[], object]] = {
        "parquet": lambda: native().selectExpr(*TOTALS).collect(),
        "lakebed": lambda: lake.read(spark, opened).selectExpr(*TOTALS).collect(),
    }
    found = in_turn(tasks, 5 if report.quick else 9)
    report.add("spark.read.parquet, sum and max", found["parquet"], "ms")
    report.add("lakebed.spark.read, sum and max", found["lakebed"], "ms")
    report.add(
        "lakebed against spark.read.parquet", found["lakebed"] / found["parquet"], "x", at_most=1.1
    )
    hour = "ts >= '2026-01-07 10:00:00' and ts < '2026-01-07 11:00:00'"
    selective: dict[str, Callable[[], object]] = {
        "parquet": lambda: native().where(hour).selectExpr("sum(value)").collect(),
        "lakebed": lambda: lake.read(spark, opened, where=hour).selectExpr("sum(value)").collect(),
    }
    found = in_turn(selective, 5 if report.quick else 9)
    report.add("spark.read.parquet, one hour", found["parquet"], "ms")
    report.add("lakebed.spark.read, one hour", found["lakebed"], "ms")
    ratio = found["parquet"] / found["lakebed"]
    report.add("spark.read.parquet against lakebed, one hour", ratio, "x", at_least=1)


# --------------------------------------------------------------------------------------- write


def write(report: Report, directory: Path, spark: Any) -> None:
    """The same rows and encodings, with and without a commit."""
    count = 2_000_000 if report.quick else 20_000_000
    report.heading(f"Write of {count:,} rows: lakebed.spark.write, df.write.parquet")
    rows = frame(spark, count, days=20)
    catalog = catalog_at(directory)
    table = catalog.create_table("plant.readings", _schema(rows))
    numbers = iter(range(1_000_000))

    def plain() -> None:
        writer = rows.write.option("compression", "zstd").option("parquet.writer.version", "v2")
        writer = writer.option("parquet.compression.codec.zstd.level", "1")
        writer.parquet(f"{directory}/plain/{next(numbers)}")

    found = in_turn(
        {"parquet": plain, "lakebed": lambda: lake.write(rows, table, via="executors")},
        3 if report.quick else 5,
    )
    report.add("df.write.parquet, zstd-1, v2", found["parquet"], "ms")
    report.add("lakebed.spark.write, synced and committed", found["lakebed"], "ms")
    ratio = found["lakebed"] / found["parquet"]
    report.add("lakebed against df.write.parquet", ratio, "x", at_most=1.1)


def _schema(rows: Any) -> Any:
    return rows.limit(0).toArrow().schema


# -------------------------------------------------------------------------------------- append


def append(report: Report, directory: Path, spark: Any) -> None:
    """Small appends by one session into a Lakebed table and a Delta table."""
    count = 20 if report.quick else 100
    report.heading(f"{count} appends of 1,000 rows: lakebed.spark.write, {DELTA_PACKAGE}")
    rows = frame(spark, 1_000, days=1)
    table = catalog_at(directory).create_table("plant.readings", _schema(rows))
    delta = f"{directory}/delta"
    found = in_turn(
        {
            "delta": lambda: rows.write.format("delta").mode("append").save(delta),
            "lakebed": lambda: lake.write(rows, table),
            "foreach_batch": lambda: table.append(rows.toArrow()),
        },
        count,
    )
    assert table.scan().count() == 2 * (count + 1) * 1_000, "every append is there"
    report.add("Delta + Spark, not synced", found["delta"], "ms")
    report.add("lakebed.spark.write, synced", found["lakebed"], "ms")
    report.add("toArrow and table.append, synced", found["foreach_batch"], "ms")
    report.add("Delta against lakebed", found["delta"] / found["lakebed"], "x", at_least=4)


# -------------------------------------------------------------------------------------- stream


def stream(report: Report, directory: Path, spark: Any) -> None:
    """Micro-batches of 1,000 rows: our sink and Spark's own file sink, with the same source."""
    count = 20 if report.quick else 60
    report.heading(f"{count} micro-batches of 1,000 rows: foreach_batch, the Parquet file sink")
    rows = frame(spark, 1_000, days=1)
    table = catalog_at(directory).create_table("plant.readings", _schema(rows))
    found: dict[str, list[float]] = {"parquet": [], "lakebed": []}
    for turn in range(2):
        place = directory / str(turn)
        sinks: dict[str, Callable[[Any], Any]] = {
            "parquet": lambda writer, place=place: writer.format("parquet").option(
                "path", f"{place}/files"
            ),
            "lakebed": lambda writer: writer.foreachBatch(lake.foreach_batch(table)),
        }
        for name in list(sinks)[:: 1 if turn else -1]:
            found[name] += stream_batches_ms(
                spark, sinks[name], str(place / f"checkpoint-{name}"), count
            )
    medians = {name: statistics.median(each) for name, each in found.items()}
    report.add("Parquet file sink: addBatch", medians["parquet"], "ms")
    report.add("lakebed.spark.foreach_batch: addBatch", medians["lakebed"], "ms")
    ratio = medians["lakebed"] / medians["parquet"]
    report.add("lakebed against the Parquet file sink", ratio, "x", at_most=1)


# ------------------------------------------------------------------------------------- history


def history(report: Report, directory: Path, spark: Any) -> None:
    """Planning a read of the last hour: a table of many commits beside a young one."""
    count = 200 if report.quick else 2_000
    report.heading(f"Planning by Spark's reader at {count:,} commits, against 20")
    catalog = catalog_at(directory)
    rows = frame(spark, 1_000, days=1).toArrow()
    tables = {}
    for name, commits in (("young", 20), ("old", count)):
        tables[name] = catalog.create_table(f"plant.{name}", rows.schema)
        for _ in range(commits):
            tables[name].append(rows)
    # A file that only the filter's hour has, so that both plans keep one file.
    late = rows.set_column(0, "ts", _shifted(rows["ts"]))
    for table in tables.values():
        table.append(late)
    where = "ts >= '2027-01-01'"
    found = in_turn(
        {
            name: lambda table=table: lake.read(spark, table, where=where).schema
            for name, table in tables.items()
        },
        20,
    )
    report.add("20 commits", found["young"], "ms")
    report.add(f"{count:,} commits", found["old"], "ms")
    report.add("old against young", found["old"] / found["young"], "x", at_most=1.5)


def _shifted(column: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    year = pa.scalar(2 * 365 * 86_400_000_000, pa.duration("us"))
    return pc.add(column, year)


if __name__ == "__main__":
    sys.exit(main())
