"""Rows on their way into a table: conformed, encoded, stored, described.

Few rows stay in memory and are stored together with the commit's metadata, so that their fsyncs
overlap. Many are written as they come: memory is bounded whatever the size of the append.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from lakebed.errors import SchemaMismatchError
from lakebed.files.arrow_schema import differences, from_arrow
from lakebed.files.data_writer import WriterOptions, write_data_files
from lakebed.files.intake import conform
from lakebed.format.datafile import DataFile
from lakebed.format.partition import PartitionSpec
from lakebed.format.schema import Schema
from lakebed.ids import Ids
from lakebed.storage.store import Store

CHUNK_SIZE_BYTES = 512 << 20  # Arrow bytes that are encoded at a time
PENDING_SIZE_BYTES_MAX = 32 << 20  # encoded bytes that wait in memory for the commit
_PENDING_COUNT_MAX = 64


class RowWriter:
    """Turns rows into data files of one schema and spec."""

    def __init__(
        self, store: Store, *, schema: Schema, spec: PartitionSpec, ids: Ids, options: WriterOptions
    ) -> None:
        self._store = store
        self._schema = schema
        self._spec = spec
        self._ids = ids
        self._options = options
        self._files: list[DataFile] = []
        self._pending: list[tuple[str, Any]] = []
        self._pending_bytes = 0

    def write(self, rows: Any) -> None:
        """Encode a table of rows that fit the schema."""
        written = write_data_files(
            conform(rows, self._schema),
            schema=self._schema,
            spec=self._spec,
            ids=self._ids,
            options=self._options,
        )
        for file, data in written:
            self._files.append(file)
            self._pending.append((file.path, memoryview(data)))
            self._pending_bytes += file.size_bytes
        if self._pending_bytes > PENDING_SIZE_BYTES_MAX or len(self._pending) > _PENDING_COUNT_MAX:
            self.flush()

    def flush(self) -> None:
        """Store what is pending, for writers that do not commit by themselves."""
        self._store.create_all(self._pending)
        self._pending, self._pending_bytes = [], 0

    @property
    def files(self) -> tuple[DataFile, ...]:
        """All files so far."""
        return tuple(self._files)

    @property
    def pending(self) -> tuple[tuple[str, Any], ...]:
        """Those of them that are not stored yet."""
        return tuple(self._pending)


def chunks_of(schema: Any, batches: Iterable[Any]) -> Iterator[Any]:
    """Gather batches into tables of a bounded size."""
    gathered: list[Any] = []
    size_bytes = 0
    for batch in batches:
        gathered.append(batch)
        size_bytes += batch.nbytes
        if size_bytes >= CHUNK_SIZE_BYTES:
            yield pa.Table.from_batches(gathered, schema)
            gathered, size_bytes = [], 0
    if gathered:
        yield pa.Table.from_batches(gathered, schema)


def widened_schema(schema: Schema, incoming: Any, *, new_id: int, last_field_id: int) -> Schema:
    """The table's schema with the columns that rows bring along; the same object if none.

    Raises:
        SchemaMismatchError: the rows cannot be taken, with each difference.
    """
    found = differences(schema, incoming)
    if found.problems:
        raise SchemaMismatchError(
            f"the rows do not fit the table: {'; '.join(found.problems)}",
            hint="Nothing was changed. Rename, cast or drop columns, or evolve the table first",
            problems=list(found.problems),
        )
    if not found.extra:
        return schema
    extra = from_arrow(pa.schema(list(found.extra)), first_id=last_field_id + 1)
    return Schema(new_id, (*schema.fields, *extra.fields))
