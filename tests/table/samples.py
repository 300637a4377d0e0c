"""Sensor readings for tests of tables: few rows, each of them told apart by its time."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from lakebed.files.data_writer import WriterOptions, write_data_files
from lakebed.files.intake import conform
from lakebed.format.datafile import DataFile
from lakebed.ids import SystemIds
from lakebed.table.catalog import Catalog
from lakebed.table.table import Table

START = datetime(2026, 1, 1, tzinfo=UTC)
NAME = "plant.readings"
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("sensor_id", pa.string()),
        ("value", pa.float64()),
        ("status", pa.int32()),
    ]
)
IDS = SystemIds()


def readings(day: int = 0, count: int = 4, first: int = 0) -> Any:
    """Rows of one day, a minute apart, that begin with number `first` of the day."""
    numbers = range(first, first + count)
    return pa.table(
        {
            "ts": [START + timedelta(days=day, minutes=n) for n in numbers],
            "sensor_id": [f"s{n % 3}" for n in numbers],
            "value": [day + n / 10 for n in numbers],
            "status": [n % 2 for n in numbers],
        },
        schema=SCHEMA,
    )


def create(catalog: Catalog, name: str = NAME, *, by: Iterable[str] = ("day(ts)",)) -> Table:
    """A table of readings, empty, with one partition per day unless told otherwise."""
    return catalog.create_table(name, SCHEMA, partition_by=list(by))


def put(table: Table, rows: Any) -> DataFile:
    """Store rows as one data file that no version lists, and describe it."""
    head = table.head()
    schema = head.metadata.schema(head.snapshot.schema_id)
    written = write_data_files(
        conform(rows, schema),
        schema=schema,
        spec=head.metadata.spec(head.snapshot.spec_id),
        ids=IDS,
        options=WriterOptions(),
    )
    ((file, data),) = written
    table.files.store.create(file.path, data)
    return file


def paths(table: Table, point: Any = None) -> set[str]:
    """The effective file set of a version."""
    return {file.path for file in table.read_plan(snapshot_id=point).files}


def minutes(source: Any) -> list[int]:
    """Which rows there are, as minutes since the start, in order."""
    column = pa.table(source).column("ts")
    return sorted(int((ts - START).total_seconds()) // 60 for ts in column.to_pylist())
