"""A driver that has hadoop-aws: the JVM reads and writes a table on S3 by itself."""

from typing import Any

import pyarrow as pa
from tests.spark.driving import Report, makers

import lakebed
from lakebed.spark.places import jvm_place
from lakebed.spark.reading.read import read
from lakebed.spark.sessions import session
from lakebed.spark.writing.write import write

COLUMNS = pa.schema([("ts", pa.timestamp("us", "UTC")), ("v", pa.int64())])
ROWS = 3_000
STEP_US = 86_400_000  # a thousand rows a day


def main() -> None:
    report = Report()
    given = report.argument
    spark = session("local[2]", **given["settings"])
    catalog = lakebed.connect(given["catalog"], storage_options=given["storage options"])
    table = catalog.create_table("plant.readings", COLUMNS, ["day(ts)"])
    frame = spark.range(0, ROWS, 1, 2).selectExpr(
        f"timestamp_micros(id * {STEP_US}) as ts", "id as v"
    )

    with report.part("place") as found:
        place = jvm_place(spark, table.place)
        found["prefix"] = place.prefix if place else ""

    with report.part("write") as found:
        commit = write(frame, table, via="executors")
        found["rows"] = commit.added_rows
        found["values"] = sorted(table.scan(columns=["v"]).to_arrow().column("v").to_pylist())
        found["makers"] = makers(table)

    with report.part("read") as found:
        back = read(spark, table, where="ts >= '1970-01-02' AND v < 2500")
        found["values"] = sorted(row.v for row in back.collect())
        execution: Any = back._jdf.queryExecution()
        found["shown"] = "\n".join([execution.toString(), execution.analyzed().toJSON()])
    spark.stop()


if __name__ == "__main__":
    main()
