"""A version of a table as a Spark DataFrame: planned here, read where it is best read.

    scan ─► our plan: the files that can match ─► native    Spark's own Parquet reader
                                               ─► workers   our reader in Python workers
                                               ─► driver    our reader here, for small tables

However it is read, the frame ends with a projection: Spark writes into files only where a frame
is nothing but those files, so it can never write into ours.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakebed.errors import RequestError
from lakebed.spark.places import JvmPlace, is_memory, jvm_place
from lakebed.spark.reading.native import native_frame
from lakebed.spark.reading.workers import worker_frame
from lakebed.spark.schema import as_frame_rows, frame_arrow_schema, spark_schema
from lakebed.table.point import Point
from lakebed.table.scan import Scan
from lakebed.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_VIAS = ("native", "workers", "driver")


def read(
    spark: "SparkSession",
    table: Table,
    where: object = None,
    columns: Sequence[str] | None = None,
    as_of: Point | None = None,
    via: str | None = None,
    *,
    nanoseconds: str = "refuse",
) -> "DataFrame":
    """Read a version of a table; the frame stays at it, whatever is committed later.

    Args:
        spark: any session, of Spark Connect too.
        table: of `catalog.table`.
        where: SQL text or an expression, as in `Table.scan`; prunes files before Spark sees them.
        columns: names in the order wanted; all if None.
        as_of: version, snapshot id, datetime, ISO text or tag; the newest if None.
        via: `"native"` (Spark's own Parquet reader), `"workers"` (ours, in Python workers) or
            `"driver"` (ours, here); the first of them that can reach the files if None.
        nanoseconds: what columns of nanoseconds shall be: `"refuse"`, `"long"` (exact) or
            `"truncate"` (to microseconds).

    Raises:
        NotFoundError: there is no such column or version.
        PredicateError: `where` cannot be read.
        ObjectMissingError: a file is not there.
    """
    scan = table.scan(where, columns, as_of)
    return frame_of_scan(spark, scan, via=via, nanoseconds=nanoseconds)


def frame_of_scan(
    spark: "SparkSession", scan: Scan, *, via: str | None = None, nanoseconds: str = "refuse"
) -> "DataFrame":
    """The rows of a scan as a DataFrame; see `read`."""
    schema = spark_schema(
        scan.table_schema, columns=scan.columns, nanoseconds=nanoseconds, field_ids=False
    )
    place = jvm_place(spark, scan.place)
    way = _way(scan, via, place)
    files = [] if scan.limit == 0 else scan.plan.readable_files(scan.limit)
    if not files:
        return empty_frame(spark, schema)
    if way == "driver":
        return _over_driver(spark, scan, nanoseconds)
    if way == "workers":
        frame = worker_frame(spark, scan, files, nanoseconds)
    else:
        assert place is not None, "decided by _way"
        frame = native_frame(spark, scan, files, place, nanoseconds)
    return frame if scan.limit is None else frame.limit(scan.limit)


def empty_frame(spark: "SparkSession", schema: "StructType") -> "DataFrame":
    """A frame without rows; Spark's own way to one starts a Python worker each time it is read."""
    from pyspark.sql import functions as F  # noqa: N812

    nulls = [F.lit(None).cast(field.dataType) for field in schema.fields]
    frame = spark.range(0).where(F.lit(False)).select(*nulls)  # noqa: FBT003
    return frame.toDF(*schema.names) if schema.names else frame


def _way(scan: Scan, via: str | None, place: JvmPlace | None) -> str:
    if via is not None and via not in _VIAS:
        raise RequestError(f"via={via!r} is no way to read", hint=f"Use {', '.join(_VIAS)}")
    if via == "driver" or (via is None and is_memory(scan.place)):
        return "driver"
    if is_memory(scan.place):
        raise RequestError(
            "a table in memory is in this process only", hint='Read it with via="driver"'
        )
    if via == "native" and place is None:
        raise RequestError(
            f"Spark's own reader cannot reach {scan.place.location}",
            hint='For S3 give Spark hadoop-aws (spark.jars.packages), or use via="workers"',
        )
    return via or ("workers" if place is None else "native")


def _over_driver(spark: "SparkSession", scan: Scan, nanoseconds: str) -> "DataFrame":
    rows = scan.to_arrow()
    target = frame_arrow_schema(rows.schema, nanoseconds)
    schema = spark_schema(
        scan.table_schema, columns=scan.columns, nanoseconds=nanoseconds, field_ids=False
    )
    if not schema.fields:
        return spark.range(rows.num_rows).select()
    return spark.createDataFrame(as_frame_rows(rows, target), schema).select("*")


__all__ = ["empty_frame", "frame_of_scan", "read"]
