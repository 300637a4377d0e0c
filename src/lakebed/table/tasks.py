"""Work that another process does for us: values that can be pickled and say all it needs.

    driver   plan -> ReadTask  ──►  executor  .batches()  rows
             stage -> WriteTask ──► executor  .write()    DataFile values ──► driver commits

A task opens the table's directory by its address; it needs no catalog, and commits nothing.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from lakebed.expr.bind import Bound
from lakebed.files.data_reader import output_schema, read_files
from lakebed.files.data_writer import WriterOptions
from lakebed.format.datafile import DataFile
from lakebed.format.metadata import TableMetadata
from lakebed.format.partition import PartitionSpec
from lakebed.format.schema import Schema
from lakebed.ids import SystemIds
from lakebed.table.rows import RowWriter, chunks_of
from lakebed.table.services import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTask:
    """Some files of one version, to be read at the columns of one schema."""

    place: Place
    metadata: TableMetadata
    schema: Schema
    files: tuple[DataFile, ...]
    columns: tuple[str, ...] | None = None
    where: Bound | None = None

    @property
    def arrow_schema(self) -> Any:
        """The Arrow schema of the batches."""
        return output_schema(self.schema, self._columns)

    def batches(self, batch_rows: int | None = None) -> Iterator[Any]:
        """The matching rows as record batches."""
        return read_files(
            self.place.open(),
            self.files,
            metadata=self.metadata,
            schema=self.schema,
            columns=self._columns,
            where=self.where,
            batch_rows=batch_rows,
        )

    @property
    def _columns(self) -> list[str] | None:
        return None if self.columns is None else list(self.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTask:
    """How rows become data files of a table."""

    place: Place
    schema: Schema
    spec: PartitionSpec
    options: WriterOptions

    def write(self, incoming: Any, batches: Iterable[Any]) -> tuple[DataFile, ...]:
        """Store rows of the Arrow schema `incoming` durably; they are in no version yet."""
        writer = RowWriter(
            self.place.open(),
            schema=self.schema,
            spec=self.spec,
            ids=SystemIds(),
            options=self.options,
        )
        for rows in chunks_of(incoming, batches):
            writer.write(rows)
        writer.flush()
        return writer.files
