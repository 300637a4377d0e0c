"""The systems beside each other: each makes one durable append of the same rows.

`plain` is the limit of "one Parquet file per append": pyarrow with its own settings and zstd, the
file synced, its directory synced. Peers do as they do by default, which is not to sync.
"""

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from _rows import SCHEMA

import lakebed

Append = Callable[[pa.Table], object]


def plain(directory: Path) -> Append:
    directory.mkdir()
    names = (directory / f"{number:06d}.parquet" for number in range(1_000_000))

    def append(table: pa.Table) -> None:
        with next(names).open("wb") as file:
            pq.write_table(table, file, compression="zstd")
            file.flush()
            os.fsync(file.fileno())
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    return append


def open_table(directory: Path, partition_by: list[str] | None = None) -> Any:
    """A table of ours in SQLite, made if it is not there; fsync is on."""
    catalog = lakebed.connect(f"sqlite:///{directory}/catalog.db")
    if "bench.readings" in catalog.tables():
        return catalog.table("bench.readings")
    return catalog.create_table("bench.readings", SCHEMA, partition_by=partition_by or [])


def ours(directory: Path) -> Append:
    append: Append = open_table(directory).append
    return append


def delta(directory: Path) -> Append:
    from deltalake import DeltaTable, write_deltalake

    table = DeltaTable.create(str(directory), schema=pa_schema_of_delta())

    def append(rows: pa.Table) -> None:
        write_deltalake(table, rows, mode="append")

    return append


def pa_schema_of_delta() -> Any:
    from deltalake import Schema

    return Schema.from_arrow(SCHEMA)


def iceberg(directory: Path) -> Append:
    from pyiceberg.catalog.sql import SqlCatalog

    directory.mkdir()
    warnings.filterwarnings("ignore", module="pyiceberg")
    catalog = SqlCatalog(
        "bench", uri=f"sqlite:///{directory}/catalog.db", warehouse=f"file://{directory}/warehouse"
    )
    catalog.create_namespace("bench")
    append: Append = catalog.create_table("bench.readings", SCHEMA).append
    return append
