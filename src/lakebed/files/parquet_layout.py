"""What a Parquet footer says, read by ourselves because pyarrow trusts footers too much.

pyarrow 26 ends the whole process, with no exception to catch, when it looks at statistics of the
wrong length or of an encrypted column in `row_group(i).column(j)`; a dataset scan with a filter
then waits for ever. So statistics of files that others may have written are taken from here, and
pyarrow is never asked for them. Each step over the footer is bounded.

    FileMetaData    2 schema [SchemaElement: 1 type, 2 type_length, 4 name, 5 num_children]
                    3 num_rows, 4 row_groups [RowGroup], 7 column_orders
    RowGroup        1 columns [ColumnChunk], 3 num_rows
    ColumnChunk     1 file_path, 3 meta_data, 8, 9 encryption
    meta_data       5 num_values, 7 total_compressed_size, 9 data_page_offset,
                    11 dictionary_page_offset, 12 statistics
    statistics      1 max, 2 min, 3 null_count, 5 max_value, 6 min_value
"""

from dataclasses import dataclass, field
from typing import Any

from lakebed.errors import BadDataFileError
from lakebed.files.thrift import BINARY, I32, I64, LIST, STRUCT, Cursor
from lakebed.limits import COLUMN_COUNT_MAX, FOOTER_SIZE_BYTES_MAX

BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY, FIXED_LENGTH = range(8)

_MAGIC, _ENCRYPTED_MAGIC = b"PAR1", b"PARE"
_TAIL_SIZE_BYTES = 8  # the footer's length in 4 bytes, then the magic
_FILE_SIZE_BYTES_MIN = 12
_ELEMENT_COUNT_MAX = 4 * COLUMN_COUNT_MAX  # of the schema, nested ones included
_GROUP_COUNT_MAX = 32_767  # Parquet numbers them with 16 bits
_CHUNK_COUNT_MAX = 100_000
_WIDTHS = {BOOLEAN: 1, INT32: 4, INT64: 8, INT96: 12, FLOAT: 4, DOUBLE: 8}
_MAX_OLD, _MIN_OLD, _MAX, _MIN = 1, 2, 5, 6


@dataclass(slots=True)
class Leaf:
    """A column that holds values; `name` is empty for a part of a nested one."""

    name: str
    kind: int  # the physical type
    width: int | None  # of a value in bytes; None: values have any length


@dataclass(slots=True)
class Chunk:
    """One column of one row group; what its statistics do not hold is None."""

    size_bytes: int = 0
    data_offset: int = 0
    dictionary_offset: int = 0
    value_count: int = 0
    null_count: int | None = None
    bounds: dict[int, bytes] = field(default_factory=dict)  # by number of the field

    @property
    def start(self) -> int:
        """The offset of the first page."""
        dictionary = self.dictionary_offset
        return dictionary if 0 < dictionary < self.data_offset else self.data_offset

    @property
    def lower(self) -> bytes | None:
        """The least value as Parquet lays it out."""
        return self.bounds.get(_MIN, self.bounds.get(_MIN_OLD))

    @property
    def upper(self) -> bytes | None:
        """The greatest value as Parquet lays it out."""
        return self.bounds.get(_MAX, self.bounds.get(_MAX_OLD))

    @property
    def is_old(self) -> bool:
        """Whether the bounds are those of old writers, who compared bytes as signed numbers."""
        return not self.bounds.keys() & {_MIN, _MAX}


@dataclass(slots=True)
class Group:
    """A row group; its chunks are in the order of the leaves."""

    row_count: int = 0
    chunks: list[Chunk] = field(default_factory=list)


@dataclass(slots=True)
class Layout:
    """A footer."""

    row_count: int = 0
    leaves: list[Leaf] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    is_flat: bool = True  # no column is nested
    is_ordered: bool = False  # bounds of text and bytes are in the order that the format defines


def read_layout(source: Any, path: str, size_bytes: int) -> Layout:
    """Read the footer of a file, or raise BadDataFileError if it makes no sense.

    `source` is an open file with `read_at`; only its end is read.
    """
    if size_bytes < _FILE_SIZE_BYTES_MIN:
        raise BadDataFileError(f"{path} has {size_bytes} bytes, too few for Parquet", path=path)
    tail = source.read_at(_TAIL_SIZE_BYTES, size_bytes - _TAIL_SIZE_BYTES)
    if tail[4:] == _ENCRYPTED_MAGIC:
        raise _encrypted(path)
    if tail[4:] != _MAGIC:
        raise BadDataFileError(f"{path} is no Parquet file, or its end is missing", path=path)
    length = int.from_bytes(tail[:4], "little")
    if length > min(FOOTER_SIZE_BYTES_MAX, size_bytes - _FILE_SIZE_BYTES_MIN):
        raise BadDataFileError(
            f"{path} claims a footer of {length} bytes in a file of {size_bytes}, where at most "
            f"{FOOTER_SIZE_BYTES_MAX} are allowed",
            path=path,
        )
    return _Walk(source.read_at(length, size_bytes - _TAIL_SIZE_BYTES - length), path).layout()


def _encrypted(path: str) -> BadDataFileError:
    return BadDataFileError(f"{path} is encrypted", hint="Decrypt it first", path=path)


class _Walk:
    """One pass over the bytes of a footer."""

    def __init__(self, data: bytes, path: str) -> None:
        self._path = path
        self._cursor = Cursor(data, self._damaged)
        self._chunks = 0

    def layout(self) -> Layout:
        """Walk the footer and compare what it holds with what it says it holds."""
        cursor, layout = self._cursor, Layout()
        try:
            for number, kind in cursor.fields():
                if (number, kind) == (2, LIST):
                    layout.leaves, layout.is_flat = self._schema()
                elif (number, kind) == (3, I64):
                    layout.row_count = cursor.signed()
                elif (number, kind) == (4, LIST):
                    few = self._few(cursor.structs(), _GROUP_COUNT_MAX, "row groups")
                    layout.groups = [self._row_group() for _ in few]
                elif (number, kind) == (7, LIST):
                    layout.is_ordered = cursor.skip_list() > 0
                else:
                    cursor.skip(kind)
        except IndexError as error:
            raise self._damaged("it ends too early") from error
        self._check(layout)
        return layout

    def _check(self, layout: Layout) -> None:
        row_counts = [group.row_count for group in layout.groups]
        if any(count < 0 for count in row_counts) or sum(row_counts) != layout.row_count:
            raise self._damaged(
                f"it says {layout.row_count} rows and its row groups {sum(row_counts)}"
            )
        for group in layout.groups:
            if len(group.chunks) != len(layout.leaves):
                raise self._damaged("a row group does not have the columns of the schema")
            for leaf, chunk in zip(layout.leaves, group.chunks, strict=True):
                lengths = [len(value) for value in chunk.bounds.values()]
                if leaf.width is not None and any(length != leaf.width for length in lengths):
                    raise self._damaged("statistics do not have the length of their type")
                if min(chunk.size_bytes, chunk.data_offset, chunk.dictionary_offset) < 0:
                    raise self._damaged("a column chunk has a negative place or size")

    def _schema(self) -> tuple[list[Leaf], bool]:
        """The columns that hold values, and whether there is no other."""
        leaves: list[Leaf] = []
        is_flat = True
        open_groups = [1]  # for each group that is not complete, the elements still to come
        for place in self._few(self._cursor.structs(), _ELEMENT_COUNT_MAX, "schema elements"):
            kind, length, children, name = self._element()
            while open_groups and not open_groups[-1]:
                open_groups.pop()
            if children < 0 or not open_groups:
                raise self._damaged("its schema is not a tree")
            depth = len(open_groups) - 1
            open_groups[-1] -= 1
            if kind is not None and not children:
                leaves.append(Leaf(name if depth == 1 else "", kind, self._width(kind, length)))
            else:
                is_flat = is_flat and not place
                open_groups.append(children)
        if any(open_groups):
            raise self._damaged("its schema is not a tree")
        return leaves, is_flat

    def _element(self) -> tuple[int | None, int, int, str]:
        """The physical type, length, number of children and name of an element of the schema."""
        cursor, name = self._cursor, b""
        found: dict[int, int] = {}
        for number, wire in cursor.fields():
            if wire == I32 and number in (1, 2, 5):
                found[number] = cursor.signed()
            elif (number, wire) == (4, BINARY):
                name = cursor.binary()
            else:
                cursor.skip(wire)
        try:
            return found.get(1), found.get(2, 0), found.get(5, 0), name.decode()
        except UnicodeDecodeError as error:
            raise self._damaged("a column has a name that is no text") from error

    def _width(self, kind: int, length: int) -> int | None:
        if kind == BYTE_ARRAY:
            return None
        if kind == FIXED_LENGTH and length > 0:
            return length
        if kind not in _WIDTHS:
            raise self._damaged(f"its schema has the unknown type {kind}")
        return _WIDTHS[kind]

    def _row_group(self) -> Group:
        cursor, group = self._cursor, Group()
        for number, kind in cursor.fields():
            if (number, kind) == (1, LIST):
                few = self._few(cursor.structs(), _CHUNK_COUNT_MAX - self._chunks, "column chunks")
                self._chunks += len(few)
                group.chunks = [self._column_chunk() for _ in few]
            elif (number, kind) == (3, I64):
                group.row_count = cursor.signed()
            else:
                cursor.skip(kind)
        return group

    def _column_chunk(self) -> Chunk:
        cursor = self._cursor
        chunk: Chunk | None = None
        for number, kind in cursor.fields():
            if number in (8, 9) and kind in (STRUCT, BINARY):
                raise _encrypted(self._path)
            if (number, kind) == (1, BINARY):
                if cursor.binary():
                    raise self._damaged("a column lies in another file")
            elif (number, kind) == (3, STRUCT):
                chunk = self._column_metadata()
            else:
                cursor.skip(kind)
        if chunk is None:
            raise self._damaged("a column chunk is not described")
        return chunk

    def _column_metadata(self) -> Chunk:
        cursor, chunk = self._cursor, Chunk()
        found: dict[int, int] = {}
        for number, kind in cursor.fields():
            if kind == I64 and number in (5, 7, 9, 11):
                found[number] = cursor.signed()
            elif (number, kind) == (12, STRUCT):
                self._statistics(chunk)
            else:
                cursor.skip(kind)
        chunk.value_count, chunk.size_bytes = found.get(5, 0), found.get(7, 0)
        chunk.data_offset, chunk.dictionary_offset = found.get(9, 0), found.get(11, 0)
        return chunk

    def _statistics(self, chunk: Chunk) -> None:
        cursor = self._cursor
        for place, kind in cursor.fields():
            if place in (_MAX_OLD, _MIN_OLD, _MAX, _MIN) and kind == BINARY:
                chunk.bounds[place] = cursor.binary()
            elif (place, kind) == (3, I64):
                chunk.null_count = cursor.signed()
            else:
                cursor.skip(kind)

    def _few(self, places: range, count_max: int, what: str) -> range:
        if len(places) > count_max:
            raise self._damaged(f"it has too many {what}")
        return places

    def _damaged(self, why: str) -> BadDataFileError:
        return BadDataFileError(f"the footer of {self._path} is damaged: {why}", path=self._path)
