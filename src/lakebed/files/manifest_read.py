"""Reading manifest files: whatever is inside, what comes out has the form that planning expects.

    footer -> row count as in the snapshot? -> pages -> small enough in memory? -> the columns
    that mean something -> right types, versions, counts and paths?

A file may take far more memory than its size or its footer says: so the header of each page is
looked at before pyarrow unpacks it, and text that is not laid out plainly is refused.
"""

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakebed.errors import BadDataFileError, BadMetadataError, LimitExceededError
from lakebed.expr.arrow import primitive_arrow_type
from lakebed.files.manifest import FIXED, INHERIT, inherit, live, partition_types
from lakebed.files.parquet_layout import BYTE_ARRAY, Chunk, Layout, read_layout
from lakebed.files.summary import total
from lakebed.files.thrift import I32, STRUCT, Cursor
from lakebed.format.metadata import TableMetadata
from lakebed.format.partition import PartitionSpec
from lakebed.format.paths import UNSAFE_PATTERN, check_path
from lakebed.format.snapshot import ManifestRef
from lakebed.format.types import FLOATS, Kind, Primitive, can_widen
from lakebed.limits import COUNT_MAX, MANIFEST_EXPANDED_BYTES_MAX, PATH_LENGTH_BYTES_MAX

_PLAIN = 0
_DATA_PAGES = (0, 3)  # the other kinds hold dictionaries and indexes
_OFFSET_WIDTH = 4
_NUMBER = re.compile(r"[1-9][0-9]{0,9}")


def decode_manifest(
    data: bytes, ref: ManifestRef, spec: PartitionSpec, metadata: TableMetadata
) -> Any:
    """Read and check a manifest file whose checksum has been verified.

    Raises:
        BadMetadataError: it is not what the snapshot says, or contradicts itself.
        LimitExceededError: it would take more memory than any sound manifest; nothing was taken.
        UnsafePathError: a path in it leads out of the table.
    """
    source = pa.BufferReader(data)
    try:
        layout = read_layout(source, ref.path, len(data))
        _check_row_count(layout, ref)
        _check_expanded_size(layout, data, ref.path)
        file = pq.ParquetFile(source)
        wanted = _wanted(file.schema_arrow, ref, spec, metadata)
        table = file.read(columns=wanted, use_threads=False)
        table.validate(full=True)  # above all, that text is UTF-8
    except (pa.ArrowException, OSError, ValueError, BadDataFileError) as error:
        raise BadMetadataError(
            f"{ref.path} is not a readable manifest: {error}", path=ref.path
        ) from error
    _check_paths(table.column("path"))
    for complaint in _complaints(table, ref):
        raise BadMetadataError(f"{ref.path}: {complaint}", path=ref.path)
    return inherit(table, ref.written_version)


# --------------------------------------------------------------------------------------- memory


def _check_row_count(layout: Layout, ref: ManifestRef) -> None:
    if layout.row_count != ref.file_count + ref.deleted_count:
        raise BadMetadataError(
            f"{ref.path} has {layout.row_count} entries where the snapshot says "
            f"{ref.file_count} and {ref.deleted_count} deleted",
            path=ref.path,
        )


def _check_expanded_size(layout: Layout, data: bytes, path: str) -> None:
    """Compare what the file would take in memory with the limit, before any of it is taken."""
    if not layout.is_flat:
        raise BadMetadataError(f"{path} has nested columns", path=path)
    expanded = layout.row_count * sum(leaf.width or _OFFSET_WIDTH for leaf in layout.leaves)
    pages = _Pages(data, path)
    for group in layout.groups:
        for leaf, chunk in zip(layout.leaves, group.chunks, strict=True):
            expanded += pages.size(chunk, is_text=leaf.kind == BYTE_ARRAY)
    if expanded > MANIFEST_EXPANDED_BYTES_MAX:
        raise LimitExceededError(
            f"{path} would take {expanded} bytes in memory, more than "
            f"{MANIFEST_EXPANDED_BYTES_MAX}",
            path=path,
        )


class _Pages:
    """A walk over the headers of a file's pages."""

    def __init__(self, data: bytes, path: str) -> None:
        self._length = len(data)
        self._path = path
        self._cursor = Cursor(data, self._damaged)

    def size(self, chunk: Chunk, *, is_text: bool) -> int:
        """The bytes that the pages of a column have when they are unpacked."""
        cursor, unpacked_sum = self._cursor, 0
        cursor.at, end = chunk.start, chunk.start + chunk.size_bytes
        if not chunk.start:
            return 0  # No page can be where the file begins: a column without values.
        if end > self._length:
            raise self._damaged("it lies outside of the file")
        while cursor.at < end:
            try:
                packed, unpacked, is_plain = _page_header(cursor)
            except IndexError as error:
                raise self._damaged("it ends too early") from error
            if packed < 0 or unpacked < 0 or packed > end - cursor.at:
                raise self._damaged("its size makes no sense")
            if is_text and not is_plain:
                raise self._damaged("text is not laid out plainly")
            cursor.at += packed
            unpacked_sum += unpacked
        return unpacked_sum

    def _damaged(self, why: str) -> BadMetadataError:
        return BadMetadataError(f"a page of {self._path} is damaged: {why}", path=self._path)


def _page_header(cursor: Cursor) -> tuple[int, int, bool]:
    """The sizes of a page, packed and unpacked, and whether its values are laid out plainly.

    PageHeader    1 type, 2 uncompressed size, 3 compressed size,
                  5 data_page_header [2 encoding], 8 data_page_header_v2 [4 encoding]
    """
    kind, packed, unpacked, encoding = -1, -1, -1, -1
    for number, wire in cursor.fields():
        if wire == I32 and number in (1, 2, 3):
            value = cursor.signed()
            if number == 1:
                kind = value
            elif number == 2:
                unpacked = value
            else:
                packed = value
        elif wire == STRUCT and number in (5, 8):
            for place, inner in cursor.fields():
                if inner == I32 and place == (2 if number == 5 else 4):
                    encoding = cursor.signed()
                else:
                    cursor.skip(inner)
        else:
            cursor.skip(wire)
    return packed, unpacked, kind in _DATA_PAGES and encoding == _PLAIN


# --------------------------------------------------------------------------------------- content


def _wanted(
    schema: Any, ref: ManifestRef, spec: PartitionSpec, metadata: TableMetadata
) -> list[str]:
    """The columns to read, all of the right type; what else is in the file does not matter."""
    found = dict(zip(schema.names, schema.types, strict=True))
    if len(found) != len(schema.names):
        raise BadMetadataError(f"{ref.path} has two columns of one name", path=ref.path)
    types: dict[str, tuple[Any, ...]] = {name: (kind,) for name, kind in FIXED}
    for number, kind in partition_types(spec, metadata):
        types[f"part_{number}"] = _readable_types(kind)
    for name in found:
        stats_kind = _stats_kind(name, found, metadata)
        if stats_kind is not None:
            types |= _stats_types(name.removeprefix("null_"), stats_kind, found)
    for name, allowed in types.items():
        if found.get(name) not in allowed:
            raise BadMetadataError(
                f"{ref.path}: column {name} is missing or not {allowed[0]}", path=ref.path
            )
    return list(types)


def _stats_kind(name: str, found: dict[str, Any], metadata: TableMetadata) -> Primitive | None:
    """The type of the column whose nulls a column counts; None if it is no such column."""
    number = name.removeprefix("null_")
    if number == name or not _NUMBER.fullmatch(number):
        return None
    is_whole = f"lower_{number}" in found and f"upper_{number}" in found
    return metadata.field_type(int(number)) if is_whole else None


def _stats_types(number: str, kind: Primitive, found: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    types: dict[str, tuple[Any, ...]] = {f"null_{number}": (pa.int64(),)}
    if kind.kind in FLOATS and f"nan_{number}" in found:
        types[f"nan_{number}"] = (pa.int64(),)
    bound = _readable_types(kind)
    return types | {f"lower_{number}": bound, f"upper_{number}": bound}


def _readable_types(kind: Primitive) -> tuple[Any, ...]:
    """The Arrow types that bounds of a column can have: its own, and those before a widening."""
    older = [Primitive(Kind.INT), Primitive(Kind.FLOAT)]
    if kind.kind is Kind.DECIMAL:
        precisions = range(max(kind.scale, 1), kind.precision)
        older = [Primitive(Kind.DECIMAL, precision, kind.scale) for precision in precisions]
    return tuple(primitive_arrow_type(k) for k in (kind, *older) if can_widen(k, kind))


def _complaints(table: Any, ref: ManifestRef) -> Iterator[str]:
    """What contradicts itself in a manifest, or the snapshot that lists it."""
    yield from (f"column {name} has nulls" for name, _ in FIXED if table.column(name).null_count)
    limits = {
        "row_count": (0, COUNT_MAX),
        "size_bytes": (0, COUNT_MAX),
        "schema_id": (0, COUNT_MAX),
        "added_version": (INHERIT, ref.written_version),
        "removed_version": (INHERIT, ref.written_version),
    }
    for name, (low, high) in limits.items():
        if not _is_within(table.column(name), low, high):
            yield f"column {name} has a number that is not from {low} to {high}"
    living = live(table)
    found = (living.num_rows, total(living, "row_count"), total(living, "size_bytes"))
    told = (ref.file_count, ref.row_count, ref.data_size_bytes)
    if found != told:
        yield f"it has {found} live files, rows and bytes where the snapshot says {told}"
    if pc.count_distinct(living.column("path")).as_py() != living.num_rows:
        yield "it lists a file twice"
    row_count = table.column("row_count")
    for name in table.column_names:
        if name.startswith(("null_", "nan_")) and not _are_parts(table.column(name), row_count):
            yield f"column {name} counts more values than there are rows, or fewer than none"


def _is_within(column: Any, low: int, high: int) -> bool:
    ends = pc.min_max(column)
    return not len(column) or bool(low <= ends["min"].as_py() and ends["max"].as_py() <= high)


def _are_parts(counts: Any, whole: Any) -> bool:
    sound = pc.and_(pc.greater_equal(counts, 0), pc.less_equal(counts, whole))
    return pc.all(sound).as_py() is not False  # NULL: all counts are unknown


def _check_paths(paths: Any) -> None:
    """Raise unless every path stays inside the table; `check_path` for a whole column at once."""
    is_long = pc.greater(pc.binary_length(paths), PATH_LENGTH_BYTES_MAX)
    place = pc.index(is_long, True).as_py()
    if place < 0:  # Only then it is cheap to look inside.
        place = pc.index(pc.match_substring_regex(paths, UNSAFE_PATTERN), True).as_py()
    if place >= 0:
        check_path(paths[place].as_py())
        raise AssertionError("what one check refuses, the other does too")
