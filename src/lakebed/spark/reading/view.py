"""A version of a table under a name in SQL.

    readings = view(spark, table)             SELECT … FROM readings
    readings.refresh()                        the same name, the newest version

A view stays at its version: each query sees the same rows until `refresh`.
"""

from typing import TYPE_CHECKING, Any

from lakebed.errors import IdentifierError
from lakebed.spark.reading.read import frame_of_scan
from lakebed.table.point import Point
from lakebed.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def view(
    spark: "SparkSession",
    table: Table,
    name: str | None = None,
    where: object = None,
    as_of: Point | None = None,
    **how: Any,
) -> "View":
    """Register a temporary view of a table, in place of one of the same name.

    Args:
        spark: any session, of Spark Connect too.
        table: of `catalog.table`.
        name: the last word of the table's name if None.
        where: only these rows, as in `Table.scan`.
        as_of: version, snapshot id, datetime, ISO text or tag; the newest if None.
        how: `columns`, `via` and `nanoseconds`, as in `lakebed.spark.read`.
    """
    made = View(spark, table, name or table.name.rpartition(".")[2], where, how)
    made.refresh(as_of)
    return made


class View:
    """A temporary view of one version of a table; made by `view`."""

    def __init__(
        self, spark: "SparkSession", table: Table, name: str, where: object, how: dict[str, Any]
    ) -> None:
        if not name or "." in name or "`" in name:
            # Spark parses the name, and a view has but one part.
            raise IdentifierError(
                f"{name!r} cannot be the name of a view", hint="Use one word, without dots"
            )
        self._spark = spark
        self._table = table
        self._where = where
        self._how = how
        self.name = name
        self.version = -1

    def __repr__(self) -> str:
        return f"View({self.name!r} of {self._table.name} version {self.version})"

    @property
    def frame(self) -> "DataFrame":
        """The view as a DataFrame."""
        return self._spark.table(self._quoted)

    def refresh(self, as_of: Point | None = None) -> "View":
        """Let the name stand for the newest version, or for the one at `as_of`."""
        how = dict(self._how)
        scan = self._table.scan(self._where, how.pop("columns", None), as_of)
        frame = frame_of_scan(self._spark, scan, **how)
        frame.createOrReplaceTempView(self._quoted)
        self.version = scan.head.pointer.version
        return self

    def drop(self) -> None:
        """Take the name back; the table is not touched."""
        self._spark.catalog.dropTempView(self.name)

    @property
    def _quoted(self) -> str:
        return f"`{self.name}`"


__all__ = ["View", "view"]
