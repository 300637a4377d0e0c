"""Several files as one stream of batches with one schema, so that they become one commit."""

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakebed.cli.progress import Advance
from lakebed.cli.readers import STDIN, Opened, Reading, naming, open_source
from lakebed.errors import RequestError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Incoming:
    """Rows that shall go into a table."""

    paths: tuple[str, ...]
    schema: "pa.Schema"
    reading: Reading
    size_bytes: int  # 0: unknown
    kept_open: Mapping[str, Opened]  # pipes: what was read of them is gone

    def batches(self, advance: Advance) -> Iterator["pa.RecordBatch"]:
        """All rows, each batch brought to the common schema; can be read once.

        An iterator and not an Arrow reader, in which an error would lose its class and its words.
        The first batch is empty, so that files without rows have columns too.
        """
        import pyarrow as pa

        yield pa.RecordBatch.from_pylist([], schema=self.schema)
        before_bytes = row_count = 0
        for path in self.paths:
            opened = self.kept_open.get(path) or open_source(path, self.reading)
            for batch in opened.batches:
                row_count += batch.num_rows
                yield self._conform(batch, path)
                advance(before_bytes + opened.position(), row_count)
            before_bytes += 0 if path in self.kept_open else os.path.getsize(path)

    def _conform(self, batch: "pa.RecordBatch", path: str) -> "pa.RecordBatch":
        import pyarrow as pa

        if batch.schema.equals(self.schema, check_metadata=True):
            return batch
        columns = []
        with naming(path):
            for field in self.schema:
                place = batch.schema.get_field_index(field.name)
                columns.append(
                    pa.nulls(batch.num_rows, field.type)
                    if place < 0
                    else batch.column(place).cast(field.type)
                )
            return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def incoming(paths: Sequence[str], reading: Reading) -> Incoming:
    """Look into each file for its columns, and find the schema that has room for all."""
    pipes = [path for path in paths if path == STDIN or _is_pipe(path)]
    if len(set(pipes)) < len(pipes):
        shown = "standard input" if STDIN in pipes else "a pipe"
        raise RequestError(f"{shown} was named more than once", hint="It can be read once only")
    kept_open = {}
    schemas = []
    for path in paths:
        opened = open_source(path, reading)
        schemas.append(undressed(opened.schema, path))
        if path in pipes:
            kept_open[path] = opened
        else:
            opened.close()
    size_bytes = 0 if pipes else sum(os.path.getsize(path) for path in paths)
    return Incoming(tuple(paths), _common(schemas, paths), reading, size_bytes, kept_open)


def _is_pipe(path: str) -> bool:
    """Whether it is there and is no file, as in `lakebed append t <(zcat rows.csv.gz)`."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False  # its reader says so in better words


def undressed(schema: "pa.Schema", path: str) -> "pa.Schema":
    """Without metadata: ids and notes of other programs mean nothing here."""
    import pyarrow as pa

    if len(set(schema.names)) != len(schema.names):
        twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
        raise RequestError(f"{path!r} names {', '.join(twice)} more than once")
    return pa.schema([field.remove_metadata() for field in schema])


def _common(schemas: list["pa.Schema"], paths: Sequence[str]) -> "pa.Schema":
    import pyarrow as pa

    try:
        return pa.unify_schemas(schemas, promote_options="permissive")
    except pa.ArrowException as error:
        raise RequestError(
            f"the files {', '.join(paths[:3])}{' …' if len(paths) > 3 else ''} "
            f"do not fit together: {error}",
            hint="Append them one by one to see which of them does not fit the table",
        ) from error
