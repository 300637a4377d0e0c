"""Parquet files made by hand, byte by byte, so that they can say whatever a test wants.

A struct is a list of `(field number, value)`; the Python type of a value tells its Thrift type:
an int has 32 bits and a Long 64, lists hold values of one type, text and bytes are binary.
"""

from dataclasses import dataclass
from typing import Any

I32, I64, BINARY, LIST, STRUCT = 5, 6, 8, 9, 12
INT32, INT64, INT96, BYTE_ARRAY, FIXED = 1, 2, 3, 6, 7
PLAIN, RLE, RLE_DICTIONARY, DELTA_BYTE_ARRAY = 0, 3, 8, 7

Fields = list[tuple[int, Any]]


@dataclass(frozen=True)
class Long:
    """A 64-bit number; a plain int is one of 32 bits."""

    value: int


@dataclass(frozen=True)
class Raw:
    """Bytes that stand for themselves, of the given Thrift kind."""

    kind: int
    data: bytes


def varint(value: int) -> bytes:
    """A number, seven bits a byte."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def zigzag(value: int) -> bytes:
    """A signed number."""
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def struct(fields: Fields) -> bytes:
    """A struct in the compact protocol."""
    out, last = b"", 0
    for number, value in fields:
        kind, data = encoded(value)
        step = number - last
        out += bytes([step << 4 | kind]) if 0 < step < 16 else bytes([kind]) + zigzag(number)
        out += data
        last = number
    return out + b"\x00"


def encoded(value: Any) -> tuple[int, bytes]:
    """The kind of a value and its bytes."""
    match value:
        case Raw(kind=kind, data=data):
            return kind, data
        case bool():
            return (1 if value else 2), b""
        case int():
            return I32, zigzag(value)
        case Long(value=number):
            return I64, zigzag(number)
        case str():
            return encoded(value.encode())
        case bytes():
            return BINARY, varint(len(value)) + value
        case list() if value and isinstance(value[0], tuple):
            return STRUCT, struct(value)
        case list():
            return LIST, listed(value)
    raise AssertionError(value)


def listed(values: list[Any]) -> bytes:
    """A list; its elements are of one kind."""
    items = [encoded(value) for value in values]
    kind = items[0][0] if items else STRUCT
    size = len(items)
    head = bytes([size << 4 | kind]) if size < 15 else bytes([0xF0 | kind]) + varint(size)
    return head + b"".join(data for _, data in items)


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of one row group with one data page, all of it as told."""

    name: str
    physical: int = INT64
    converted: int | None = None  # 0: UTF8
    length: int = 0
    pages: bytes = b""
    value_count: int = 3
    statistics: Fields | None = None
    chunk: tuple[tuple[int, Any], ...] = ()  # more fields of the column chunk
    meta: tuple[tuple[int, Any], ...] = ()  # more fields of its metadata, above 12
    size: int | None = None
    dictionary: bool = False  # the pages begin with a dictionary


def page(
    data: bytes,
    *,
    count: int = 3,
    encoding: int = PLAIN,
    unpacked: int | None = None,
    kind: int = 0,
) -> bytes:
    """A page that is not compressed: a data page, or a dictionary page of kind 2."""
    inner: Fields = [(1, count), (2, encoding)]
    if kind == 0:
        inner += [(3, RLE), (4, RLE)]
    size = len(data) if unpacked is None else unpacked
    header: Fields = [(1, kind), (2, size), (3, len(data)), (5 if kind == 0 else 7, inner)]
    return struct(header) + data


def footer(columns: list[Column], offsets: list[int], **options: Any) -> bytes:
    """The footer of a file; options: row_count, group_rows, schema, more."""
    row_count = options.get("row_count", 3)
    schema = options.get("schema") or [
        [(4, "schema"), (5, len(columns))],
        *(_element(column) for column in columns),
    ]
    chunks = [_chunk(column, at) for column, at in zip(columns, offsets, strict=True)]
    group: Fields = [
        (1, chunks),
        (2, Long(sum(len(column.pages) for column in columns))),
        (3, Long(options.get("group_rows", row_count))),
    ]
    groups = options.get("groups", [group])
    fields: Fields = [(1, 2), (2, schema), (3, Long(row_count)), (4, groups)]
    return struct([*fields, *options.get("more", [])])


def _element(column: Column) -> Fields:
    fields: Fields = [(1, column.physical)]
    if column.length:
        fields.append((2, column.length))
    fields += [(3, 0), (4, column.name)]
    return fields if column.converted is None else [*fields, (6, column.converted)]


def _chunk(column: Column, at: int) -> Fields:
    size = len(column.pages) if column.size is None else column.size
    meta: Fields = [
        (1, column.physical),
        (2, [PLAIN]),
        (3, [column.name]),
        (4, 0),
        (5, Long(column.value_count)),
        (6, Long(size)),
        (7, Long(size)),
        (9, Long(at + 1 if column.dictionary else at)),
    ]
    if column.dictionary:
        meta.append((11, Long(at)))
    if column.statistics is not None:
        meta.append((12, column.statistics))
    return [(2, Long(at)), (3, [*meta, *column.meta]), *column.chunk]


def file(columns: list[Column], **options: Any) -> bytes:
    """A whole file; options as for `footer`."""
    data, offsets = b"PAR1", []
    for column in columns:
        offsets.append(len(data))
        data += column.pages
    tail = footer(columns, offsets, **options)
    return data + closed(tail)


def closed(tail: bytes, magic: bytes = b"PAR1") -> bytes:
    """A footer with its length and the magic."""
    return tail + len(tail).to_bytes(4, "little") + magic


def longs(*values: int) -> bytes:
    """Values of an int64 column, laid out plainly."""
    return b"".join(value.to_bytes(8, "little", signed=True) for value in values)


def texts(*values: str | bytes) -> bytes:
    """Values of a text column, laid out plainly."""
    raw = [value.encode() if isinstance(value, str) else value for value in values]
    return b"".join(len(value).to_bytes(4, "little") + value for value in raw)
