"""Rows from files and pipes: Parquet, CSV, JSON lines and Arrow, as one stream of one schema.

Text has no types of its own, so columns that the table knows are read as the table's types and
only new ones are guessed.
"""

import io
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from lakebed.cli.patience import wait_for
from lakebed.cli.spelling import as_meant, as_spelled, meant
from lakebed.errors import RequestError

if TYPE_CHECKING:
    import pyarrow as pa

STDIN = "-"
BATCH_ROW_COUNT = 65_536
_ARROW_STREAM, _ARROW_FILE, _PARQUET = b"\xff\xff\xff\xff", b"ARROW1", b"PAR1"
_COMPRESSIONS = (".gz", ".bz2", ".zst", ".lz4")


class FileFormat(StrEnum):
    """What rows can be read from."""

    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"
    ARROW = "arrow"


_SUFFIXES = {
    ".parquet": FileFormat.PARQUET,
    ".pq": FileFormat.PARQUET,
    ".csv": FileFormat.CSV,
    ".json": FileFormat.JSON,
    ".jsonl": FileFormat.JSON,
    ".ndjson": FileFormat.JSON,
    ".arrow": FileFormat.ARROW,
    ".arrows": FileFormat.ARROW,
    ".feather": FileFormat.ARROW,
    ".ipc": FileFormat.ARROW,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How to read: the types a table wants, and what text means null in CSV."""

    wanted: "pa.Schema | None" = None
    batch_rows: int = BATCH_ROW_COUNT
    file_format: FileFormat | None = None
    null_texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Opened:
    """A source that is being read; `position` counts the bytes done so far."""

    schema: "pa.Schema"
    batches: Iterator["pa.RecordBatch"]
    position: Callable[[], int]
    close: Callable[[], None]  # for a source that is not read to its end


class Counted(io.RawIOBase):
    """A file that knows how much of it was read; of what is unpacked, `packed` knows it."""

    def __init__(self, file: IO[bytes], packed: "Counted | None" = None) -> None:
        super().__init__()
        self.file = file
        self.packed = packed
        self.done_bytes = 0
        self.is_pipe = _is_pipe(file)

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what is at hand and count it."""
        if self.is_pipe:
            wait_for(self.file)
        data = self.file.read(len(buffer))
        buffer[: len(data)] = data
        self.done_bytes += len(data)
        return len(data)

    def close(self) -> None:
        """Close the file below too, but for the one that is not ours."""
        if self.file is not _stdin():
            self.file.close()
        super().close()


def _is_pipe(file: IO[bytes]) -> bool:
    try:
        return not stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    except (OSError, AttributeError):
        return False  # in memory, or inside of another file


def _stdin() -> Any:
    """Standard input without a buffer, so that a pipe can be waited for."""
    buffer = sys.stdin.buffer
    return getattr(buffer, "raw", buffer)


Stream: TypeAlias = "io.BufferedReader[Counted]"


def open_source(path: str, reading: Reading) -> Opened:
    """Begin to read a file, or standard input for `-`."""
    if path == STDIN:
        stream = io.BufferedReader(Counted(_stdin()), 1 << 16)
        return _open_stream(stream, reading.file_format or _sniff(stream), reading, path)
    kind = reading.file_format or file_format(path)
    with naming(path):
        if kind is FileFormat.PARQUET:
            return _open_parquet(path, reading)
        stream = _open_file(path)
        if stream.peek(8).startswith(_ARROW_FILE) and stream.raw.packed is None:
            stream.close()
            return _open_arrow_file(path, reading)
        return _open_stream(stream, kind, reading, path)


def file_format(path: str) -> FileFormat:
    """Tell the format by the name."""
    suffixes = [suffix.lower() for suffix in PurePath(path).suffixes]
    if suffixes and suffixes[-1] in _COMPRESSIONS:
        suffixes.pop()
    if not suffixes or suffixes[-1] not in _SUFFIXES:
        raise RequestError(
            f"the name {path!r} does not tell a format that can be read",
            hint=f"Use --format with one of: {', '.join(FileFormat)}",
        )
    return _SUFFIXES[suffixes[-1]]


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Turn what readers raise into an error that names the file."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, EOFError, ValueError, RecursionError) as error:
        if isinstance(error, FileNotFoundError):
            raise RequestError(f"there is no file {path!r}") from error
        shown = "standard input" if path == STDIN else repr(path)
        reason = getattr(error, "strerror", None) or str(error)
        zone = "expected a zone offset" in reason
        hint = "A timestamptz wants a zone, as in 2026-01-01T00:00:00Z" if zone else ""
        raise RequestError(f"{shown} cannot be read: {reason}", hint=hint) from error


def _open_file(path: str) -> Stream:
    if PurePath(path).suffix.lower() not in _COMPRESSIONS:
        return io.BufferedReader(Counted(open(path, "rb", buffering=0)), 1 << 20)
    import pyarrow as pa

    packed = Counted(open(path, "rb", buffering=0))  # noqa: SIM115 (closed by its reader)
    stream = pa.CompressedInputStream(pa.PythonFile(packed), pa.Codec.detect(path).name)
    return io.BufferedReader(Counted(stream, packed), 1 << 20)


def _position(stream: Stream) -> Callable[[], int]:
    counted = stream.raw.packed or stream.raw
    return lambda: counted.done_bytes


def _sniff(stream: Stream) -> FileFormat:
    start = stream.peek(8)[:8]
    if start.startswith((_ARROW_STREAM, _ARROW_FILE)):
        return FileFormat.ARROW
    if start.lstrip()[:1] in (b"{", b"["):
        return FileFormat.JSON
    if start.startswith(_PARQUET):
        raise RequestError(
            "Parquet cannot be read from a pipe", hint="Give the path of the file instead"
        )
    raise RequestError(
        "standard input is neither an Arrow stream nor JSON lines",
        hint="Use --format csv for CSV" if start else "It is empty: nothing was changed",
    )


def _open_stream(stream: Stream, kind: FileFormat, reading: Reading, path: str) -> Opened:
    with naming(path), ExitStack() as on_error:
        on_error.callback(stream.close)
        match kind:
            case FileFormat.CSV:
                reader = _open_csv(stream, reading)
            case FileFormat.JSON:
                reader = _open_json(stream, reading)
            case FileFormat.ARROW:
                reader = _open_arrow(stream)
            case _:
                raise RequestError("Parquet cannot be read from a pipe", hint="Give its path")
        on_error.pop_all()
    schema = reader.schema
    batches = _drained(reader, path, stream)
    if kind in (FileFormat.CSV, FileFormat.JSON):
        schema = as_meant(schema, reading.wanted)
        batches = _drained(meant(reader, schema), path, stream)

    def close() -> None:
        reader.close()  # first, because it may be reading ahead
        stream.close()

    sliced = _sliced(batches, reading.batch_rows)
    return Opened(schema, sliced, _position(stream), close)


def _drained(reader: Any, path: str, stream: Any) -> Iterator["pa.RecordBatch"]:
    with naming(path), stream:
        yield from reader


def _sliced(batches: Iterable["pa.RecordBatch"], row_count: int) -> Iterator["pa.RecordBatch"]:
    for batch in batches:
        for start in range(0, batch.num_rows, row_count):
            yield batch.slice(start, row_count)


def _open_parquet(path: str, reading: Reading) -> Opened:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    size_bytes, row_count = max(1, os.path.getsize(path)), max(1, file.metadata.num_rows)
    done = [0]

    def batches() -> Iterator["pa.RecordBatch"]:
        with naming(path), file:
            for batch in file.iter_batches(batch_size=reading.batch_rows):
                done[0] += batch.num_rows
                yield batch

    position = lambda: size_bytes * done[0] // row_count  # noqa: E731
    return Opened(file.schema_arrow, batches(), position, file.close)


def _open_arrow_file(path: str, reading: Reading) -> Opened:
    """Arrow's file format, mapped instead of read; batches are as large as the file has them."""
    import pyarrow as pa

    mapped = pa.memory_map(path)
    file = pa.ipc.open_file(mapped)
    size_bytes, batch_count = os.path.getsize(path), max(1, file.num_record_batches)
    done = [0]

    def batches() -> Iterator["pa.RecordBatch"]:
        with naming(path), mapped:
            for place in range(file.num_record_batches):
                yield file.get_batch(place)
                done[0] = place + 1

    sliced = _sliced(batches(), reading.batch_rows)
    position = lambda: size_bytes * done[0] // batch_count  # noqa: E731
    return Opened(file.schema, sliced, position, mapped.close)


def _open_csv(stream: Stream, reading: Reading) -> Any:
    import pyarrow as pa
    import pyarrow.csv as csv

    convert = csv.ConvertOptions(
        column_types=as_spelled(reading.wanted or pa.schema([]), knows_times=True),
        null_values=["", *reading.null_texts],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    # In a file of one column an empty line is a null; elsewhere it is nothing.
    is_single = b"," not in stream.peek(1 << 16).partition(b"\n")[0]
    parse = csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=not is_single)
    return csv.open_csv(pa.PythonFile(stream), parse_options=parse, convert_options=convert)


def _open_json(stream: Stream, reading: Reading) -> Any:
    import pyarrow as pa
    import pyarrow.json as json

    parse = json.ParseOptions(
        explicit_schema=as_spelled(reading.wanted, knows_times=False) if reading.wanted else None,
        unexpected_field_behavior="infer",
    )
    lines: Any = pa.PythonFile(stream)
    if stream.peek(64).lstrip()[:1] == b"[":
        lines = io.BytesIO(_lines_of_array(stream.read()))
    return json.open_json(lines, parse_options=parse)


def _lines_of_array(document: bytes) -> bytes:
    """A JSON array as JSON lines, which is what Arrow's reader takes."""
    import json

    rows = json.loads(document)
    return "\n".join(json.dumps(row) for row in rows).encode()


def _open_arrow(stream: Stream) -> Any:
    import pyarrow as pa

    if stream.peek(8).startswith(_ARROW_FILE):
        file = pa.ipc.open_file(pa.py_buffer(stream.read()))
        return pa.RecordBatchReader.from_batches(
            file.schema, (file.get_batch(i) for i in range(file.num_record_batches))
        )
    return pa.ipc.open_stream(pa.PythonFile(stream))
