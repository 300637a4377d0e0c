"""A driver on `local-cluster`, with executors whose Python does not have the package."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.spark.driving import FOR_WORKERS, Report, makers

import lakebed
from lakebed.spark.reading.read import read
from lakebed.spark.sessions import session
from lakebed.spark.ship import ship
from lakebed.spark.writing.write import write

COLUMNS = pa.schema([("ts", pa.timestamp("us", "UTC")), ("v", pa.int64())])
ROWS = 1_000


def origin(batches: Iterable[Any]) -> Iterator[Any]:
    """Where an executor has the package from, and which executor it is."""
    import os

    try:
        import lakebed

        found = str(lakebed.__file__)
    except ModuleNotFoundError as error:
        found = str(error)
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"found": [found], "daemon": [os.getppid()]})


def origins(spark: Any) -> tuple[list[str], int]:
    rows = spark.range(0, 8, 1, 8).mapInArrow(origin, "found string, daemon long").collect()
    return sorted({row.found for row in rows}), len({row.daemon for row in rows})


def main() -> None:
    report = Report()
    given = report.argument
    Path(given["scratch"]).mkdir(exist_ok=True)
    spark = session(given["master"], **given["settings"])
    catalog = lakebed.connect(given["catalog"])
    table = catalog.create_table("plant.readings", COLUMNS)
    times = pa.array(range(ROWS), COLUMNS.field("ts").type)
    table.append(pa.table([times, pa.array(range(ROWS))], schema=COLUMNS))

    with report.part("before") as found:
        found["origins"], found["executors"] = origins(spark)

    with report.part("ship"):
        ship(spark)

    with report.part("after") as found:
        found["origins"], _ = origins(spark)
        ship(spark)  # a second time changes nothing
        found["again"], _ = origins(spark)

    with report.part("read") as found:
        frame = read(spark, table, where="v >= 500", via="workers")
        found["rows"] = sorted(row.v for row in frame.collect())

    with report.part("write") as found:
        target = catalog.create_table("plant.written", COLUMNS, properties=FOR_WORKERS)
        write(spark.range(ROWS).selectExpr("id as v"), target, via="executors")
        found["makers"] = makers(target)
        found["rows"] = sorted(target.scan(columns=["v"]).to_arrow().column("v").to_pylist())

    with report.part("format") as found:
        loaded = spark.read.format("lakebed").option("catalog", given["catalog"])
        found["count"] = loaded.load("plant.readings").count()
    spark.stop()


if __name__ == "__main__":
    main()
