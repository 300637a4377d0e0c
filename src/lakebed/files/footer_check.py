"""A look at a Parquet footer before pyarrow gets it, because pyarrow trusts footers too much.

pyarrow 26 ends the whole process, with no exception to catch, when the statistics of a column
chunk have the wrong length or its metadata is encrypted, both in `row_group(i).column(j)` and in
a dataset scan with a filter. So the footer is walked here first: Thrift's compact protocol, each
step bounded, nothing kept but what those calls will look at.

    FileMetaData    2 schema [SchemaElement: 1 type, 2 type_length, 5 num_children]
                    4 row_groups [RowGroup: 1 columns [ColumnChunk]]
    ColumnChunk     3 meta_data [12 statistics: 1 max, 2 min, 5 max_value, 6 min_value]
                    8, 9 encryption
"""

from collections.abc import Iterator
from typing import Any

from lakebed.errors import BadDataFileError
from lakebed.limits import FOOTER_SIZE_BYTES_MAX

_MAGIC, _ENCRYPTED_MAGIC = b"PAR1", b"PARE"
_TAIL_SIZE_BYTES = 8  # the footer's length in 4 bytes, then the magic
_FILE_SIZE_BYTES_MIN = 12
_STEP_COUNT_MAX = 4_000_000  # a hundred thousand column chunks; a few seconds
_DEPTH_MAX = 16

_TRUE, _FALSE, _BYTE, _I32, _I64, _DOUBLE = 1, 2, 3, 5, 6, 7
_BINARY, _LIST, _SET, _MAP, _STRUCT, _UUID = 8, 9, 10, 11, 12, 13
_FIXED_SIZES = {_BYTE: 1, _DOUBLE: 8, _UUID: 16}
_VARINT_LENGTH_MAX = 10

# By physical type: boolean, int32, int64, int96, float, double; byte arrays have any length.
_STATISTICS_LENGTHS = {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8}
_BYTE_ARRAY, _FIXED_LENGTH = 6, 7


def check_footer(source: Any, path: str, size_bytes: int) -> None:
    """Raise BadDataFileError unless the file's footer is safe to hand to pyarrow.

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
    _Walk(source.read_at(length, size_bytes - _TAIL_SIZE_BYTES - length), path).check()


def _encrypted(path: str) -> BadDataFileError:
    return BadDataFileError(f"{path} is encrypted", hint="Decrypt it first", path=path)


class _Walk:
    """One pass over the bytes of a footer."""

    def __init__(self, data: bytes, path: str) -> None:
        self._data = data
        self._path = path
        self._at = 0
        self._steps = 0
        self._leaves: list[int | None] = []  # the length that statistics of a column must have
        self._chunks: list[list[list[int]]] = []  # lengths found: row group, column, value

    def check(self) -> None:
        """Walk the footer and compare what it holds with what it says it holds."""
        try:
            for number, kind in self._fields():
                if (number, kind) == (2, _LIST):
                    self._leaves = self._schema()
                elif (number, kind) == (4, _LIST):
                    self._chunks = [self._row_group() for _ in self._structs()]
                else:
                    self._skip(kind)
        except IndexError as error:
            raise self._damaged("it ends too early") from error
        for columns in self._chunks:
            if len(columns) != len(self._leaves):
                raise self._damaged("a row group does not have the columns of the schema")
            for wanted, lengths in zip(self._leaves, columns, strict=True):
                if wanted is not None and any(length != wanted for length in lengths):
                    raise self._damaged("statistics do not have the length of their type")

    def _schema(self) -> list[int | None]:
        """The length of statistics for each leaf column, in order."""
        leaves: list[int | None] = []
        expected = 1  # elements that those read so far still announce
        for _ in self._structs():
            kind, length, children = None, 0, 0
            for number, wire in self._fields():
                if (number, wire) == (1, _I32):
                    kind = self._signed()
                elif (number, wire) == (2, _I32):
                    length = self._signed()
                elif (number, wire) == (5, _I32):
                    children = self._signed()
                else:
                    self._skip(wire)
            if children < 0 or expected < 1:
                raise self._damaged("its schema is not a tree")
            expected += children - 1
            if kind is not None and not children:
                leaves.append(self._statistics_length(kind, length))
        if expected:
            raise self._damaged("its schema is not a tree")
        return leaves

    def _statistics_length(self, kind: int, length: int) -> int | None:
        if kind == _BYTE_ARRAY:
            return None
        if kind == _FIXED_LENGTH:
            return length
        if kind not in _STATISTICS_LENGTHS:
            raise self._damaged(f"its schema has the unknown type {kind}")
        return _STATISTICS_LENGTHS[kind]

    def _row_group(self) -> list[list[int]]:
        columns: list[list[int]] = []
        for number, kind in self._fields():
            if (number, kind) == (1, _LIST):
                columns = [self._column_chunk() for _ in self._structs()]
            else:
                self._skip(kind)
        return columns

    def _column_chunk(self) -> list[int]:
        lengths: list[int] | None = None
        for number, kind in self._fields():
            if number in (8, 9) and kind in (_STRUCT, _BINARY):
                raise _encrypted(self._path)
            if (number, kind) == (3, _STRUCT):
                lengths = [*(lengths or ()), *self._column_metadata()]
            else:
                self._skip(kind)
        if lengths is None:
            raise self._damaged("a column chunk is not described")
        return lengths

    def _column_metadata(self) -> list[int]:
        lengths: list[int] = []
        for number, kind in self._fields():
            if (number, kind) != (12, _STRUCT):
                self._skip(kind)
                continue
            for place, inner in self._fields():
                if place in (1, 2, 5, 6) and inner == _BINARY:
                    lengths.append(self._binary())
                else:
                    self._skip(inner)
        return lengths

    # The compact protocol: variable-length integers, fields by distance from the one before.

    def _fields(self) -> Iterator[tuple[int, int]]:
        number = 0
        while True:
            self._count()
            head = self._data[self._at]
            self._at += 1
            if not head & 0x0F:
                return
            number = number + (head >> 4) if head >> 4 else self._signed()
            yield number, head & 0x0F

    def _structs(self) -> range:
        """One step for each struct of a list; the caller reads them."""
        length, kind = self._list_head()
        if length and kind != _STRUCT:
            raise self._damaged("a list does not hold what it should")
        return range(length)

    def _list_head(self) -> tuple[int, int]:
        head = self._data[self._at]
        self._at += 1
        length = head >> 4
        if length == 0x0F:
            length = self._varint()
        if length > len(self._data) - self._at:
            raise self._damaged("a list is longer than the footer")
        return length, head & 0x0F

    def _skip(self, kind: int, depth: int = 0) -> None:
        self._count()
        if depth > _DEPTH_MAX:
            raise self._damaged("it is nested too deep")
        if kind in (_TRUE, _FALSE):
            return
        if kind in _FIXED_SIZES:
            self._at += _FIXED_SIZES[kind]
        elif kind < _DOUBLE:
            self._varint()
        elif kind == _BINARY:
            self._binary()
        elif kind == _STRUCT:
            for _, inner in self._fields():
                self._skip(inner, depth + 1)
        elif kind in (_LIST, _SET):
            length, inner = self._list_head()
            for _ in range(length):
                self._skip_element(inner, depth)
        elif kind == _MAP:
            self._skip_map(depth)
        else:
            raise self._damaged(f"it holds a value of the unknown kind {kind}")

    def _skip_map(self, depth: int) -> None:
        length = self._varint()
        if not length:
            return
        kinds = self._data[self._at]
        self._at += 1
        for _ in range(length):
            self._skip_element(kinds >> 4, depth)
            self._skip_element(kinds & 0x0F, depth)

    def _skip_element(self, kind: int, depth: int) -> None:
        if kind in (_TRUE, _FALSE):
            self._at += 1  # unlike a field's, an element's truth is not in its kind
            self._count()
        else:
            self._skip(kind, depth + 1)

    def _binary(self) -> int:
        length = self._varint()
        self._at += length
        if self._at > len(self._data):
            raise self._damaged("a value is longer than the footer")
        return length

    def _signed(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _varint(self) -> int:
        value = 0
        for place in range(_VARINT_LENGTH_MAX):
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                return value
        raise self._damaged("a number is too long")

    def _count(self) -> None:
        self._steps += 1
        if self._steps > _STEP_COUNT_MAX:
            raise self._damaged(f"it has more than {_STEP_COUNT_MAX} values")

    def _damaged(self, why: str) -> BadDataFileError:
        return BadDataFileError(f"the footer of {self._path} is damaged: {why}", path=self._path)
