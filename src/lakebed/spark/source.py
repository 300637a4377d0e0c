"""`format("lakebed")`: Lakebed as a data source of Spark's.

    spark.read.format("lakebed").option("catalog", "sqlite:////lake/catalog.db").load("plant.readings")

Spark makes an object of this class for each frame and pickles it from process to process: all it
knows is its options, and the version that `schema()` has found.
"""

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter

from lakebed.errors import RequestError
from lakebed.spark.options import READ, STREAM_READ, given, place_of
from lakebed.spark.source_read import LakebedReader, Pinned, ReadRequest
from lakebed.spark.source_write import LakebedWriter, plan_write

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class LakebedSource(DataSource):
    """What Spark finds under the name "lakebed"."""

    _pinned: Pinned | None = None

    @classmethod
    def name(cls) -> str:
        """The name that `format()` takes."""
        return "lakebed"

    def schema(self) -> "StructType":
        """The columns; called once for each frame, before it is pickled."""
        # Spark does not say yet whether it is for a stream: either kind of option may be there.
        self._pinned, schema = self._read_request((*READ, *STREAM_READ)).pin()
        return schema

    def reader(self, schema: "StructType") -> DataSourceReader:  # noqa: ARG002
        """The batch reader; made anew for each plan of a frame."""
        if self._pinned is None:
            raise RequestError(
                "a table has its own schema and takes none to read",
                hint='Leave .schema(…) out; choose columns with .option("columns", "ts, value")',
            )
        return LakebedReader(self._read_request(READ), self._pinned)

    def writer(self, schema: "StructType", overwrite: bool) -> DataSourceWriter:  # noqa: FBT001
        """The batch writer; made once for each write."""
        return LakebedWriter(plan_write(self.options, schema, overwrite=overwrite))

    def _read_request(self, known: tuple[str, ...]) -> ReadRequest:
        said = given(self.options, known, purpose="read")
        return ReadRequest(place=place_of(self.options), said=said)


__all__ = ["LakebedSource"]
