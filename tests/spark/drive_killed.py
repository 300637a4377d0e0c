"""A driver that runs many streams at once, and holds each at a point of its own to be killed there.

`python drive_killed.py <directory>` with `argument` inside: {"queries": [...], "holds": bool,
"settings": {...}}. A query that has come to its point says so by a file `reached/<name>` and stays
there. Without "holds" the queries go on until each has written as many batches as it should.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.spark.driving import Report

import lakebed
from lakebed.spark.sessions import session
from lakebed.spark.source.source import LakebedSource
from lakebed.spark.source.stream_write import LakebedStreamWriter
from lakebed.spark.streaming.sink import foreach_batch

AT_BATCH = 1  # the one that is held
BATCH_ROWS = 10
WAIT_S_MAX = 240


class Hold:
    """A point at which one query stays until the process is killed."""

    def __init__(self, directory: str, point: str) -> None:
        self.file = Path(directory)
        self.point = point

    def at(self, point: str, batch: int) -> bool:
        return self.point == point and batch == AT_BATCH

    def here(self) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.touch()
        time.sleep(WAIT_S_MAX)
        os._exit(1)  # nobody came: better dead than a zombie that goes on

    def swap_of(self, table: Any, *, is_done: bool) -> None:
        """Hold the commit of a table at the one step that counts, before or after it."""
        backend = table._services.backend
        swap = backend.swap

        def held(moves: Any) -> bool:
            if not is_done:
                self.here()
            done: bool = swap(moves)
            self.here()
            return done

        backend.swap = held


# ------------------------------------------------------------------------------- foreach_batch


def held_task(hold: Hold) -> Callable[[Iterable[Any]], Iterator[Any]]:
    def pass_on(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            yield batch
            hold.here()

    return pass_on


def held_sink(table: Any, hold: Hold, via: str) -> Callable[[Any, int], None]:
    inner = foreach_batch(table, via=via)

    def write(frame: Any, number: int) -> None:
        if hold.at("begun", number):
            hold.here()
        if hold.at("task", number):
            frame = frame.mapInArrow(held_task(hold), frame.schema)
        if hold.at("stored", number):
            hold.swap_of(table, is_done=False)
        if hold.at("swapped", number):
            hold.swap_of(table, is_done=True)
        inner(frame, number)
        if hold.at("ended", number):
            hold.here()

    return write


# ---------------------------------------------------------------------------------- the format


class HeldWriter(LakebedStreamWriter):
    def __init__(self, plan: Any, hold: Hold) -> None:
        super().__init__(plan)
        self.hold = hold

    def write(self, iterator: Iterator[Any]) -> Any:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        number = int(context.getLocalProperty("streaming.sql.batchId") or -1)
        message = super().write(iterator)
        if self.hold.at("task", number):
            self.hold.here()
        return message

    def commit(self, messages: Any, batchId: int) -> None:  # noqa: N803
        if self.hold.at("begun", batchId):
            self.hold.here()
        for point, is_done in (("stored", False), ("swapped", True)):
            if self.hold.at(point, batchId):
                self.hold.swap_of(self._plan.write.place.open(), is_done=is_done)
        super().commit(messages, batchId)
        if self.hold.at("ended", batchId):
            self.hold.here()


class HeldSource(LakebedSource):
    """The format, with a point to be held at among its options."""

    def __init__(self, options: Any) -> None:
        self.hold = Hold(options.pop("holdfile"), options.pop("holdpoint"))
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        return "lakebed_held"

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        made: Any = super().streamWriter(schema, overwrite)
        # A table is opened once in a process: all of its users see one backend.
        return HeldWriter(made._plan, self.hold)


# --------------------------------------------------------------------------------- all of them


def noted_batches(checkpoint: str) -> int:
    """How many batches Spark knows to have ended; old notes are deleted in time."""
    names = [path.name for path in Path(checkpoint, "commits").glob("[0-9]*")]
    return max((int(name) + 1 for name in names if name.isdigit()), default=0)


class Streams:
    """The queries of one life of the driver."""

    def __init__(self, report: Report) -> None:
        self.given = report.argument
        self.spark = session("local[12]", **self.given["settings"])
        self.spark.dataSource.register(HeldSource)

    def start(self, query: dict[str, Any]) -> Any:
        source = self.spark.readStream.format("rate-micro-batch").options(
            rowsPerBatch=BATCH_ROWS, numPartitions=2, startTimestamp=0, advanceMillisPerBatch=1000
        )
        writer = source.load().selectExpr("timestamp as ts", "value").writeStream
        writer = writer.option("checkpointLocation", query["checkpoint"])
        writer = writer.trigger(processingTime=query["pace"])
        point = query["point"] if self.given["holds"] else ""
        if query["sink"] == "format":
            writer = writer.format("lakebed_held").options(
                catalog=query["catalog"], holdfile=query["reached"], holdpoint=point
            )
            return writer.start("plant.readings")
        table = lakebed.connect(query["catalog"]).table("plant.readings")
        sink = held_sink(table, Hold(query["reached"], point), query["sink"])
        return writer.foreachBatch(sink).start()

    def run(self) -> None:
        running = {query["name"]: self.start(query) for query in self.given["queries"]}
        target = {query["name"]: query for query in self.given["queries"]}
        while running:
            time.sleep(0.1)
            for name, query in list(running.items()):
                if not query.isActive:
                    raise AssertionError(f"{name} has ended: {query.exception()}")
                wanted = target[name]["batches"]
                if wanted is not None and noted_batches(target[name]["checkpoint"]) >= wanted:
                    query.stop()
                    del running[name]


if __name__ == "__main__":
    seen = Report()
    with seen.part("life"):
        Streams(seen).run()
    os._exit(0)  # A held thread would keep the process for ever.
