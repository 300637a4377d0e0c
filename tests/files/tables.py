"""A table of a few rows with its schema, for tests that write and read data files."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from tests.format import build

from lakebed.expr.bind import bind
from lakebed.expr.bound import Bound
from lakebed.expr.parse import parse_predicate
from lakebed.files.data_writer import WriterOptions, write_data_files
from lakebed.files.intake import conform
from lakebed.format.datafile import DataFile
from lakebed.format.partition import PartitionSpec
from lakebed.format.schema import Schema
from lakebed.format.types import Field, Kind, ListOf, Primitive
from lakebed.ids import SystemIds
from lakebed.storage.store import Store

SCHEMA = Schema(
    0,
    (
        Field(1, "ts", Primitive(Kind.TIMESTAMPTZ), required=True),
        Field(2, "sensor_id", Primitive(Kind.STRING)),
        Field(3, "value", Primitive(Kind.DOUBLE)),
        Field(4, "status", Primitive(Kind.INT)),
        Field(5, "price", Primitive(Kind.DECIMAL, 9, 2)),
        Field(6, "tags", ListOf(Field(7, "element", Primitive(Kind.STRING)))),
    ),
)
METADATA = build.metadata(schemas=(SCHEMA,), specs=(PartitionSpec(0),), last_field_id=7)
ROW_COUNT = 40


def rows() -> Any:
    """Forty rows with some nulls, NaN and repeats."""
    data = {
        "ts": pa.array(
            [1_700_000_000_000_000 + i for i in range(ROW_COUNT)], pa.timestamp("us", "UTC")
        ),
        "sensor_id": pa.array([None if i % 7 == 3 else f"s{i % 5}" for i in range(ROW_COUNT)]),
        "value": pa.array([float("nan") if i % 11 == 5 else i * 0.5 for i in range(ROW_COUNT)]),
        "status": pa.array([i % 3 for i in range(ROW_COUNT)], pa.int32()),
        "price": pa.array([Decimal(i) / 4 for i in range(ROW_COUNT)], pa.decimal128(9, 2)),
        "tags": pa.array(
            [["a", None, "b"][: i % 4] for i in range(ROW_COUNT)], pa.list_(pa.string())
        ),
    }
    return conform(pa.table(data), SCHEMA)


def bound(text: str, schema: Schema = SCHEMA) -> Bound:
    """A predicate fitted to the schema."""
    return bind(parse_predicate(text), schema)


def written(
    table: Any = None,
    *,
    schema: Schema = SCHEMA,
    spec: PartitionSpec | None = None,
    options: WriterOptions | None = None,
) -> list[tuple[DataFile, bytes]]:
    """The files that a table is written as."""
    found = write_data_files(
        rows() if table is None else table,
        schema=schema,
        spec=spec or PartitionSpec(0),
        ids=SystemIds(),
        options=options or WriterOptions(),
    )
    return [(file, data.to_pybytes()) for file, data in found]


def stored(store: Store, *tables: Any, schema: Schema = SCHEMA) -> list[DataFile]:
    """Write each table as one file into a store."""
    files = []
    for table in tables:
        for file, data in written(table, schema=schema):
            store.create(file.path, data)
            files.append(file)
    return files


def is_other(batches: Sequence[Any]) -> bool:
    """Whether these are not exactly the forty rows; NaN is itself here."""
    found = pa.Table.from_batches(batches) if batches else None
    return found is None or repr(found.to_pylist()) != repr(rows().to_pylist())
