"""Whether one Parquet scan of Spark's can serve a whole version of a table, and how.

Spark finds columns in a file by name or by field id, in one way for all files. By name is right if
each file calls today's columns what they are called today, or lacks them. By field id is right for
renamed columns too, but Spark prunes row groups by name all the same: if a file uses one of
today's names for another column, rows would be lost.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakebed.errors import RequestError
from lakebed.format.schema import Schema
from lakebed.spark.places import jvm_place
from lakebed.spark.reading.native import check_files, is_hidden
from lakebed.spark.schema import spark_schema
from lakebed.table.point import Point
from lakebed.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_BY_FIELD_ID = "spark.sql.parquet.fieldId.read.enabled"
_VIEW = "Read it with lakebed.spark.read, or register it with lakebed.spark.view"


@dataclass(frozen=True, kw_only=True)
class SqlPlan:
    """The files of one version and how Spark's Parquet scan reads them."""

    table_id: str
    version: int
    location: str
    schema: "StructType"
    uris: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


def sql_plan(spark: "SparkSession", table: Table, as_of: Point | None, nanoseconds: str) -> SqlPlan:
    """Plan a version of a table for one scan.

    Raises:
        NotFoundError: there is no such version.
        RequestError: one native scan cannot read it; the message says what can.
    """
    scan = table.scan(as_of=as_of)
    place = jvm_place(spark, scan.place)
    if place is None:
        raise RequestError(
            f"Spark's own reader cannot reach {scan.place.location}, where {table.name} is",
            hint=_VIEW,
        )
    files = scan.plan.readable_files()
    if any(is_hidden(file) for file in files):
        raise RequestError(
            f"{table.name} has files whose names begin with '_' or '.', which Spark passes over",
            hint=_VIEW,
        )
    if place.is_local:
        check_files(scan.files.store, files)
    metadata = scan.head.metadata
    written = [metadata.schema(number) for number in sorted({f.schema_id for f in files})]
    by_id = needs_field_ids(table.name, scan.table_schema, written)
    return SqlPlan(
        table_id=scan.head.pointer.table_id,
        version=scan.head.pointer.version,
        location=scan.place.location,
        schema=spark_schema(scan.table_schema, nanoseconds=nanoseconds, field_ids=by_id),
        uris=tuple(place.uri(file.path) for file in files),
        options={**place.options, _BY_FIELD_ID: str(by_id).lower()},
    )


def needs_field_ids(name: str, today: Schema, written: Iterable[Schema]) -> bool:
    """Whether columns have to be found by field id; refuses what would lose rows."""
    found = False
    for schema in written:
        inside = {each.name.casefold(): each for each in schema.fields}
        for column in today.fields:
            other = inside.get(column.name.casefold())
            if other is not None and other.id != column.id:
                raise RequestError(
                    f"{name} has files in which {other.name!r} is another column than today",
                    hint=_VIEW,
                    column=column.name,
                )
            was = schema.by_id.get(column.id)
            found |= was is not None and was.name != column.name
    return found


__all__ = ["SqlPlan", "needs_field_ids", "sql_plan"]
