"""A client of a Spark Connect server whose Python does not have the package."""

from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.spark.driving import FOR_WORKERS, Report, makers

import lakebed
from lakebed.errors import LakebedError
from lakebed.spark.places import is_connect
from lakebed.spark.reading.read import read
from lakebed.spark.sessions import session
from lakebed.spark.ship import ship
from lakebed.spark.streaming.sink import foreach_batch
from lakebed.spark.writing.write import write

COLUMNS = pa.schema([("ts", pa.timestamp("us", "UTC")), ("v", pa.int64())])
ROWS = 2_000


def values(table: Any) -> list[int]:
    return sorted(table.scan(columns=["v"]).to_arrow().column("v").to_pylist())


class OverConnect:
    """One client, and the parts that it goes through."""

    def __init__(self, report: Report) -> None:
        given = report.argument
        self._part = report.part
        self._uri = given["catalog"]
        self._scratch = Path(given["scratch"])
        self._installed = Path(given["installed"])
        self._spark = session(given["url"])
        self._catalog = lakebed.connect(self._uri)
        self._frame = self._spark.range(0, ROWS, 1, 2).selectExpr(
            "timestamp_micros(id * 86400000) as ts", "id as v"
        )

    def run(self) -> None:
        with self._part("session") as found:
            found["is connect"] = is_connect(self._spark)
            found["has a JVM"] = hasattr(self._spark, "_jvm")
        table = self._catalog.create_table("plant.readings", COLUMNS, ["day(ts)"])
        times = pa.array(range(0, ROWS * 86_400_000, 86_400_000), COLUMNS.field("ts").type)
        table.append(pa.table([times, pa.array(range(ROWS))], schema=COLUMNS))
        self._without_the_package(table)
        self._with_the_package(table)
        with self._part("attach") as found:
            from lakebed.spark.reading.attach import attach

            try:
                attach(self._spark, self._catalog, name="lakebed")
            except LakebedError as error:
                found["error type"], found["message"] = type(error).__name__, str(error)

    def _without_the_package(self, table: Any) -> None:
        with self._part("read native") as found:
            frame = read(self._spark, table, where="v >= 1500 AND ts < '1970-01-03'", via="native")
            found["values"] = sorted(row.v for row in frame.collect())
        with self._part("read workers before") as found:
            try:
                read(self._spark, table, via="workers").collect()
            except Exception as error:  # noqa: BLE001 - what Spark raises is to be seen
                found["message"] = str(error)
        for way, via in {"native": "executors", "driver": "driver"}.items():
            with self._part(f"write {way}") as found:
                target = self._catalog.create_table(f"plant.by_{way}", COLUMNS, ["day(ts)"])
                write(self._frame, target, via=via)
                found["values"], found["makers"] = values(target), makers(target)

    def _with_the_package(self, table: Any) -> None:
        with self._part("ship"):
            ship(self._spark)
        with self._part("read workers") as found:
            found["count"] = read(self._spark, table, via="workers").count()
        with self._part("write workers") as found:
            target = self._catalog.create_table(
                "plant.by_workers", COLUMNS, ["day(ts)"], properties=FOR_WORKERS
            )
            write(self._frame, target, via="executors")
            found["values"], found["makers"] = values(target), makers(target)
        with self._part("format") as found:
            target = self._catalog.create_table("plant.by_format", COLUMNS)
            options = {"catalog": self._uri}
            self._frame.write.format("lakebed").options(**options).mode("append").save(target.name)
            found["values"] = values(target)
            loaded = self._spark.read.format("lakebed").options(**options).load(target.name)
            found["count"] = loaded.count()
        with self._part("stream") as found:
            # Spark 4.1 starts the process that calls foreachBatch without what was shipped to the
            # session: there the package must be installed, and from now on it is.
            self._installed.touch()
            self._stream(found)

    def _stream(self, found: dict[str, Any]) -> None:
        target = self._catalog.create_table("plant.by_stream", COLUMNS)
        arrivals = str(self._scratch / "arrivals")
        self._frame.repartition(2).write.json(arrivals)
        source = self._spark.readStream.schema(self._frame.schema)
        stream = source.option("maxFilesPerTrigger", 1).json(arrivals)
        writer = stream.writeStream.option("checkpointLocation", str(self._scratch / "checkpoint"))
        query = writer.foreachBatch(foreach_batch(target)).trigger(availableNow=True).start()
        query.awaitTermination()
        found["values"] = values(target)
        found["version"] = target.version


if __name__ == "__main__":
    OverConnect(Report()).run()
