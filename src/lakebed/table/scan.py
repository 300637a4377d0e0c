"""Rows of one snapshot, as any tool likes to have them."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.commit.head import Head
from lakebed.errors import RequestError
from lakebed.expr.bind import Bound
from lakebed.files.data_reader import count_matching, output_schema, read_files
from lakebed.files.metadata_files import MetadataFiles
from lakebed.format.datafile import DataFile
from lakebed.format.schema import Schema
from lakebed.plan.extremes import extreme_from_metadata
from lakebed.plan.planner import make_plan
from lakebed.plan.read_plan import ReadPlan
from lakebed.require import require
from lakebed.table.card import scan_card
from lakebed.table.engines import engine
from lakebed.table.services import Place


class Scan:
    """A question to one version of a table; nothing is read before an answer is asked for.

    It can be answered any number of times, always from the version it was made at.
    """

    def __init__(
        self,
        head: Head,
        files: MetadataFiles,
        *,
        place: Place | None = None,
        where: Bound | None = None,
        where_text: str = "",
        columns: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> None:
        if limit is not None and limit < 0:
            raise RequestError(f"the limit is {limit}", hint="Use a number from 0 up")
        self.head = head
        self.files = files
        self.place = place or Place(location=files.store.uri)
        self.where = where
        self._where_text = where_text
        self.columns = list(columns) if columns is not None else None
        self.limit = limit
        self.table_schema: Schema = head.metadata.schema(head.snapshot.schema_id)
        self.schema: pa.Schema = output_schema(self.table_schema, self.columns)

    def __repr__(self) -> str:
        where = f" where {self._where_text}" if self._where_text else ""
        return f"Scan({self.head.pointer.name} version {self.head.pointer.version}{where})"

    def _repr_html_(self) -> str:
        return scan_card(self.plan, self.schema)

    @cached_property
    def plan(self) -> ReadPlan:
        """Which files have to be read, and why."""
        return make_plan(
            self.files,
            self.head.snapshot,
            schema=self.table_schema,
            where=self.where,
            where_text=self._where_text,
        )

    def explain(self, limit: int = 10) -> str:
        """Tell in words which files are read and why."""
        return self.plan.explain(limit)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as record batches; memory is bounded by a few of them."""
        left = self.limit
        if left == 0:
            return
        for batch in self._read(self.plan.readable_files(self.limit), self.columns):
            if left is None:
                yield batch
                continue
            yield batch.slice(0, left)
            left -= min(left, batch.num_rows)
            if not left:
                return

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as an Arrow stream that can be read once."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def to_arrow(self) -> pa.Table:
        """All rows as an Arrow table."""
        return pa.Table.from_batches(self.to_batches(), self.schema)

    def to_pandas(self, **options: Any) -> Any:
        """All rows as a pandas DataFrame; `options` go to `pyarrow.Table.to_pandas`."""
        require("pandas", extra="pandas")
        return self.to_arrow().to_pandas(**options)

    def to_polars(self) -> Any:
        """All rows as a polars DataFrame."""
        return require("polars", extra="polars").from_arrow(self.to_arrow())

    def to_duckdb(self, connection: Any = None) -> Any:
        """All rows as a DuckDB relation, of `connection` or of the default one."""
        duckdb = require("duckdb", extra="duckdb")
        return (connection or duckdb).from_arrow(self.to_arrow())

    def to_spark(self, spark: Any) -> Any:
        """The rows as a Spark DataFrame: planned here, read by Spark itself where it can.

        `spark` is any session; see `lakebed.spark`.
        """
        return engine("spark")(spark, self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def count(self) -> int:
        """How many rows there are; files of which every row matches are not opened."""
        plan = self.plan
        found = plan.certain_row_count
        if plan.edge_files:
            found += count_matching(
                self.files.store,
                plan.edge_files,
                metadata=self.head.metadata,
                schema=self.table_schema,
                where=self.where,
            )
        return found if self.limit is None else min(found, self.limit)

    def min(self, column: str) -> pa.Scalar:
        """The smallest value of a column that is neither null nor NaN, as an Arrow scalar."""
        return self._extreme(column, "min")

    def max(self, column: str) -> pa.Scalar:
        """The greatest value of a column that is neither null nor NaN, as an Arrow scalar."""
        return self._extreme(column, "max")

    def _extreme(self, column: str, which: str) -> pa.Scalar:
        """From metadata where that is exact, from the rows of the other files."""
        if self.limit is not None:
            raise RequestError("a scan with a limit has no smallest or greatest value")
        field = self.table_schema.field(column)
        known, unread = extreme_from_metadata(self.plan, field, which)
        kind = output_schema(self.table_schema, [column]).field(0).type
        candidates = [known] if known is not None else []
        for batch in self._read(unread, [column]):
            values = batch.column(0)
            if pa.types.is_floating(kind):
                values = values.filter(pc.invert(pc.is_nan(values)))
            found = pc.min_max(values)[which]
            if found.is_valid:
                candidates.append(found)
        # Python's own values would not do: `datetime` ends at microseconds and the year 9999.
        arrays = [pa.repeat(candidate, 1).cast(kind) for candidate in candidates]
        return pc.min_max(pa.chunked_array(arrays, kind))[which]

    def _read(
        self, files: Sequence[DataFile], columns: list[str] | None
    ) -> Iterator[pa.RecordBatch]:
        return read_files(
            self.files.store,
            files,
            metadata=self.head.metadata,
            schema=self.table_schema,
            columns=columns,
            where=self.where,
        )
