"""A driver on a cluster with speculation on, whose tasks fail, die and lag while streams write."""

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.spark.driving import Report

import lakebed
from lakebed.spark.sessions import session
from lakebed.spark.streaming.sink import foreach_batch

ROWS = 400
COLUMNS = pa.schema([("n", pa.int64())])
LAG_S = 6.0


def faulty(fault: str, directory: str) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Rows as they are; the first attempt at the row 0 goes wrong after it has given them."""

    def pass_on(batches: Iterable[Any]) -> Iterator[Any]:
        import os
        import signal
        import time
        from pathlib import Path

        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        meets = False
        for batch in batches:
            meets = meets or 0 in batch.column("n").to_pylist()
            yield batch
        if not meets:
            return
        attempt = context.attemptNumber()
        Path(directory, f"attempt-{attempt}").touch()
        if attempt:
            return
        if fault == "raises":
            raise RuntimeError("this attempt was to fail")
        if fault == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "lags":
            time.sleep(LAG_S)
            Path(directory, "attempt-0-ended").touch()

    return pass_on


def main() -> None:
    report = Report()
    given = report.argument
    place = Path(given["scratch"])
    spark = session(given["master"], **given["settings"])
    arrivals = str(place / "arrivals")
    spark.range(0, ROWS, 1, 2).selectExpr("id as n").write.json(arrivals)
    for fault in ("raises", "dies", "lags"):
        for sink in ("driver", "executors", "format"):
            name = f"{fault}_{sink}"
            with report.part(name) as found:
                marks = place / name
                marks.mkdir()
                uri = f"sqlite:///{place}/{name}/lake/catalog.db"
                table = lakebed.connect(uri).create_table("plant.readings", COLUMNS)
                stream = spark.readStream.schema("n long").json(arrivals)
                stream = stream.mapInArrow(faulty(fault, str(marks)), "n long")
                checkpoint = str(place / name / "checkpoint")
                writer = stream.writeStream.option("checkpointLocation", checkpoint)
                if sink == "format":
                    writer = writer.format("lakebed").option("catalog", uri)
                    writer = writer.option("path", "plant.readings")
                else:
                    writer = writer.foreachBatch(foreach_batch(table, via=sink))
                writer.trigger(availableNow=True).start().awaitTermination()
                found["attempts"] = sorted(mark.name for mark in marks.glob("attempt-*"))
                found["values"] = table.scan().to_arrow().column("n").to_pylist()
                found["version"] = table.version
    with report.part("later"):
        time.sleep(LAG_S)  # Attempts that lag behind have ended: nothing of them may show up.
    for name in report.argument["parts"]:
        with report.part(f"{name} later") as found:
            table = lakebed.connect(f"sqlite:///{place}/{name}/lake/catalog.db").table(
                "plant.readings"
            )
            found["version"] = table.version
    spark.stop()


if __name__ == "__main__":
    main()
