"""A driver on a cluster: reads, writes and streams, and loses executors on the way."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.spark.driving import FOR_WORKERS, Report, listening, makers

import lakebed
from lakebed.spark.reading.read import read
from lakebed.spark.sessions import session
from lakebed.spark.streaming.sink import foreach_batch
from lakebed.spark.writing.write import write

ROWS = 20_000
COLUMNS = pa.schema([("ts", pa.timestamp("us", "UTC")), ("sensor", pa.string()), ("v", pa.int64())])
FRAME = (
    "timestamp_micros(id * 17280000) as ts",
    "concat('s', id % 7) as sensor",
    "cast(id as long) as v",
)


def rows(first: int, last: int) -> pa.Table:
    numbers = range(first, last)
    return pa.table(
        [
            pa.array([n * 17_280_000 for n in numbers], COLUMNS.field("ts").type),
            pa.array([f"s{n % 7}" for n in numbers]),
            pa.array(numbers, pa.int64()),
        ],
        schema=COLUMNS,
    )


def sums(frame: Any) -> list[int]:
    found = frame.selectExpr("count(*)", "sum(v)", "count(distinct sensor)").collect()[0]
    return list(found)


def held(table: Any) -> list[int]:
    """What our own reader finds: how many rows, how many values, the sum of them."""
    values = table.scan(columns=["v"]).to_arrow().column("v").to_pylist()
    return [len(values), len(set(values)), sum(values)]


def parent(batches: Iterable[Any]) -> Iterator[Any]:
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"pid": [os.getppid()]})


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])


def bomb(directory: str, at: int) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Rows as they are, and kill -9 for the executor that first meets the value `at`."""

    def pass_on(batches: Iterable[Any]) -> Iterator[Any]:
        import os
        import signal
        from pathlib import Path

        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        for batch in batches:
            if at in batch.column("v").to_pylist():
                note = Path(directory, f"attempt-{context.attemptNumber()}")
                note.write_text(str(os.getpid()))
                if context.attemptNumber() == 0:
                    # We are the child of pyspark's daemon, which is the child of the executor.
                    stat = Path(f"/proc/{os.getppid()}/stat").read_text()
                    os.kill(int(stat.rpartition(") ")[2].split()[1]), signal.SIGKILL)
                    signal.pause()
            yield batch

    return pass_on


def write_by_executors(frame: Any, table: Any) -> None:
    write(frame, table, via="executors")


def write_over_driver(frame: Any, table: Any) -> None:
    write(frame, table, via="driver")


def write_by_format(frame: Any, table: Any) -> None:
    writer = frame.write.format("lakebed").option("catalog", table.connection.uri)
    writer.mode("append").save(table.name)


WAYS = {
    "native": write_by_executors,
    "driver": write_over_driver,
    "workers": write_by_executors,
    "format": write_by_format,
}


class OnCluster:
    """One session, and the parts that it goes through."""

    def __init__(self, report: Report) -> None:
        given = report.argument
        self._part = report.part
        self._uri = given["catalog"]
        self._scratch = Path(given["scratch"])
        self._spark = session(given["master"], **given["settings"])
        self._catalog = lakebed.connect(self._uri)
        self._frame = self._spark.range(0, ROWS, 1, 4).selectExpr(*FRAME)

    def run(self) -> None:
        with self._part("executors") as found:
            # Each executor has a daemon of its own, which its Python workers are children of.
            rows = self._spark.range(0, 8, 1, 8).mapInArrow(parent, "pid long").collect()
            daemons = {row.pid for row in rows}
            found["daemons"] = len(daemons)
            found["master"] = self._spark.sparkContext.master
            machines = [parent_of(daemon) for daemon in daemons]
            machines.append(self._driver_jvm())
            found["listen at"] = sorted({place for pid in machines for place in listening(pid)})
        with self._part("read") as found:
            self._read(found)
        for way, writes in WAYS.items():
            with self._part(f"write {way}") as found:
                target = self._table(f"plant.by_{way}", way, ["day(ts)"])
                writes(self._frame, target)
                found["held"], found["makers"] = held(target), makers(target)
        with self._part("format") as found:
            reader = self._spark.read.format("lakebed").option("catalog", self._uri)
            found["read"] = sums(reader.load("plant.readings"))
        with self._part("stream") as found:
            self._stream(found)
        self._spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "500")
        for way in ("native", "workers", "format"):
            with self._part(f"killed {way}") as found:
                self._kill(way, found)
        self._spark.stop()

    def _table(self, name: str, way: str, partition_by: Sequence[str] = ()) -> Any:
        properties = FOR_WORKERS if way == "workers" else {}
        return self._catalog.create_table(name, COLUMNS, partition_by, properties=properties)

    def _driver_jvm(self) -> int:
        gateway: Any = self._spark.sparkContext._gateway
        return int(gateway.proc.pid)

    def _read(self, found: dict[str, Any]) -> None:
        table = self._catalog.create_table("plant.readings", COLUMNS, ["day(ts)"])
        table.append(rows(0, 6_000))
        table.append(rows(6_000, ROWS))
        where = "v >= 9000 AND ts < '1970-01-03'"
        for via in ("native", "workers"):
            found[via] = sums(read(self._spark, table, via=via))
            found[f"{via} filter"] = sums(read(self._spark, table, where=where, via=via))
        embedded = table.scan(where=where).to_arrow()
        found["embedded filter"] = [embedded.num_rows, sum(embedded.column("v").to_pylist())]

    def _stream(self, found: dict[str, Any]) -> None:
        target = self._catalog.create_table("plant.by_stream", COLUMNS)
        arrivals = str(self._scratch / "arrivals")
        self._frame.repartition(3).write.json(arrivals)
        source = self._spark.readStream.schema(self._frame.schema)
        stream = source.option("maxFilesPerTrigger", 1).json(arrivals)
        writer = stream.writeStream.option("checkpointLocation", str(self._scratch / "checkpoint"))
        query = writer.foreachBatch(foreach_batch(target)).trigger(availableNow=True).start()
        query.awaitTermination()
        found["held"] = held(target)
        found["version"] = target.version

    def _kill(self, way: str, found: dict[str, Any]) -> None:
        target = self._table(f"plant.killed_{way}", way)
        marks = self._scratch / f"killed-{way}"
        marks.mkdir()
        # The third of four tasks, after some batches of its own.
        at = ROWS * 5 // 8
        WAYS[way](self._frame.mapInArrow(bomb(str(marks), at), self._frame.schema), target)
        found["attempts"] = sorted(mark.name for mark in marks.iterdir())
        found["held"] = held(target)
        found["version"] = target.version


if __name__ == "__main__":
    OnCluster(Report()).run()
