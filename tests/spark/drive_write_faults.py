"""A driver whose tasks fail and die while they write; each is tried three times."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from tests.spark.driving import FOR_WORKERS, Report

import lakebed
from lakebed.errors import RequestError
from lakebed.spark.sessions import session
from lakebed.spark.writing.write import write
from lakebed.table.table import Table

COLUMNS = pa.schema([("id", pa.int64()), ("part", pa.int64())])
ROWS, PARTS = 4_000, 4


def is_first_try_of(part: int) -> bool:
    context = TaskContext.get()
    assert context is not None
    return context.partitionId() == part and context.attemptNumber() == 0


def trouble_once(number: int) -> int:
    """The first try of one task fails, and the worker of another one dies."""
    if number % 1000 == 700:
        if is_first_try_of(1):
            raise OSError("the disk went away")
        if is_first_try_of(2):
            os._exit(9)
    return number


def fail(number: int) -> int:
    if number % 1000 == 700:
        raise OSError("the disk is gone for good")
    return number


def frame(spark: Any, trouble: Callable[[int], int]) -> Any:
    def troubled(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                trouble(number)
            yield batch

    rows = spark.range(0, ROWS, 1, PARTS).selectExpr("id", "id % 3 as part")
    return rows.mapInArrow(troubled, rows.schema)


def on_disk(table: Table) -> int:
    return sum(path.is_file() for path in (Path(table.location) / "data").rglob("*"))


def attempt(spark: Any, table: Table, trouble: Callable[[int], int]) -> dict[str, Any]:
    error = ""
    try:
        write(frame(spark, trouble), table, via="executors")
    except RequestError as failure:
        error = str(failure)
    ids = table.scan().to_arrow().column("id").to_pylist()
    return {
        "rows": len(ids),
        "distinct": len(set(ids)),
        "version": table.version,
        "listed": len(table.read_plan().files),
        "on_disk": on_disk(table),
        "says": error,
    }


def main() -> None:
    report = Report()
    spark = session(report.argument["master"], **report.argument["settings"])
    catalog = lakebed.connect(report.argument["catalog"])
    for way, properties in (("native", {}), ("workers", FOR_WORKERS)):
        for name, trouble in (("once", trouble_once), ("always", fail)):
            with report.part(f"{way} {name}") as found:
                table = catalog.create_table(
                    f"{way}.{name}", COLUMNS, ["part"], properties=properties
                )
                found |= attempt(spark, table, trouble)
    spark.stop()


if __name__ == "__main__":
    main()
