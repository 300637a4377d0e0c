"""`format("lakebed")`: Lakebed as a data source of Spark's.

    spark.read.format("lakebed").option("catalog", "sqlite:////lake/catalog.db").load("plant.readings")

Spark makes an object of this class for each frame and pickles it from process to process: all it
knows is its options, and the version that `schema()` has found. What differs between the minor
versions of Spark is told apart here and nowhere else.
"""

from typing import TYPE_CHECKING, Any

from pyspark.sql import datasource
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)

from lakebed.errors import RequestError
from lakebed.spark.source.batch_read import LakebedReader, Pinned, ReadRequest
from lakebed.spark.source.batch_write import LakebedWriter, plan_write
from lakebed.spark.source.options import READ, STREAM_READ, given, place_of
from lakebed.spark.source.stream_offset import Offset
from lakebed.spark.source.stream_reader import LakebedStreamReader, StreamRequest
from lakebed.spark.source.stream_tasks import with_fate
from lakebed.spark.source.stream_write import LakebedStreamWriter, plan_stream_write

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

# Since Spark 4.2 a query says where it stands and how much it wants.
HAS_READ_LIMITS = hasattr(datasource, "ReadLimit")


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
        request = self._read_request((*READ, *STREAM_READ))
        self._pinned, schema = request.pin()
        stream = StreamRequest(place=request.place, said=request.said, pinned=self._pinned)
        stream.check()
        _check_limit(stream)
        return with_fate(schema) if stream.manner.feed else schema

    def reader(self, schema: "StructType") -> DataSourceReader:  # noqa: ARG002
        """The batch reader; made anew for each plan of a frame."""
        return LakebedReader(self._read_request(READ), self._version())

    def writer(self, schema: "StructType", overwrite: bool) -> DataSourceWriter:  # noqa: FBT001
        """The batch writer; made once for each write."""
        return LakebedWriter(plan_write(self.options, schema, overwrite=overwrite))

    def streamReader(self, schema: "StructType") -> DataSourceStreamReader:  # noqa: ARG002, N802
        """The reader of a stream; one stays for as long as the query runs."""
        request = self._read_request(STREAM_READ, purpose="read a stream")
        stream = StreamRequest(place=request.place, said=request.said, pinned=self._version())
        return _STREAM_READER(stream)

    def streamWriter(  # noqa: N802
        self,
        schema: "StructType",
        overwrite: bool,  # noqa: FBT001
    ) -> DataSourceStreamWriter:
        """The writer of a stream; made anew for each commit. `overwrite` is complete mode."""
        return LakebedStreamWriter(plan_stream_write(self.options, schema, overwrite=overwrite))

    def _version(self) -> Pinned:
        if self._pinned is None:
            raise RequestError(
                "a table has its own schema and takes none to read",
                hint='Leave .schema(…) out; choose columns with .option("columns", "ts, value")',
            )
        return self._pinned

    def _read_request(self, known: tuple[str, ...], purpose: str = "read") -> ReadRequest:
        said = given(self.options, known, purpose=purpose)
        return ReadRequest(place=place_of(self.options), said=said)


def _check_limit(stream: StreamRequest) -> None:
    """Refuse a limit that this Spark would make a trap of."""
    if HAS_READ_LIMITS or stream.limit is None or stream.said.text("triggerAvailableNow"):
        return
    raise RequestError(
        "with a limit, Spark 4.1 needs to know the trigger: under AvailableNow it stops after one "
        "batch, limited or not",
        hint="Add the option triggerAvailableNow: false for a query that keeps running, true for "
        "one with Trigger.AvailableNow, which then reads everything in one batch",
    )


if HAS_READ_LIMITS:
    from pyspark.sql.streaming import datasource as limits  # type: ignore[attr-defined,unused-ignore]

    class LimitedStreamReader(  # type: ignore[misc,unused-ignore]
        LakebedStreamReader, limits.SupportsTriggerAvailableNow
    ):
        """The reader for Spark 4.2 and later."""

        _ceiling: int | None = None

        def getDefaultReadLimit(self) -> Any:  # noqa: N802
            """What Spark hands back to `latestOffset` unless the trigger says otherwise."""
            limit = self._request.limit
            if limit is None:
                return limits.ReadAllAvailable()
            if limit.files is not None:
                return limits.ReadMaxFiles(limit.files)
            return limits.ReadMaxBytes(limit.size_bytes)

        def latestOffset(  # type: ignore[override] # noqa: N802
            self, start: dict[str, Any], limit: Any
        ) -> dict[str, Any]:
            """How far a batch goes that begins at `start`."""
            place = Offset.of(start)
            if self.begins_at_latest(place):
                return start
            everything = isinstance(limit, limits.ReadAllAvailable)
            until = self.head_version() if self._ceiling is None else self._ceiling
            mine = None if everything else self._request.limit
            return self.next_offset(place, mine, until).to_json()

        def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
            """Read up to the version that is the newest now, and no further."""
            self._ceiling = self.head_version()

        def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
            """The end of the table, for the query's progress."""
            head = self.history.head().pointer
            return Offset(table=head.table_id, version=head.version + 1).to_json()

    _STREAM_READER: type[LakebedStreamReader] = LimitedStreamReader
else:
    _STREAM_READER = LakebedStreamReader


__all__ = ["HAS_READ_LIMITS", "LakebedSource"]
