"""Rows into Parquet files in memory: split by partition, cut to size, encoded.

The common append is a batch that falls into one partition and one file; it is recognised from
its statistics, and its rows are encoded where they lie.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakebed.errors import RequestError
from lakebed.expr.transform import apply_transform, partition_text
from lakebed.files.arrow_schema import leaf_places, to_arrow_schema
from lakebed.files.column_stats import footer_stats, nan_count, stats_fields, stats_of
from lakebed.files.manifest import storage_list, typed_array
from lakebed.format.datafile import ColumnStats, DataFile
from lakebed.format.partition import PartitionField, PartitionSpec, TransformName
from lakebed.format.paths import data_path, path_segment
from lakebed.format.schema import Schema
from lakebed.format.types import (
    FLOATS,
    INTEGERS,
    TIMESTAMPS,
    Field,
    Kind,
    ListOf,
    MapOf,
    Primitive,
    Struct,
)
from lakebed.ids import Ids
from lakebed.limits import DATA_FILE_ROW_COUNT_MAX, ROW_GROUP_ROW_COUNT_MAX

AUTO = "auto"
_CODECS = ("zstd", "snappy", "gzip", "lz4", "brotli", "none")
_LEVEL_DEFAULT = {"zstd": 1}  # the other codecs choose their own
# A small file is read little and rewritten soon: lz4 halves the time to make it, and costs an
# eighth more room.
_SMALL_SIZE_BYTES_MAX = 1 << 20  # of Arrow
_CODEC, _LEVEL = "write.parquet.compression-codec", "write.parquet.compression-level"
_TARGET_BYTES_MAX = 1 << 40
_COMPRESSION_RATIO = 4  # Arrow bytes per Parquet byte, guessed low: files end below the target
_PARTITION_DIRECTORY_COUNT_MAX = 8

_SCHEMAS_KEPT = 64
_SAMPLE_ROWS = 256
_DELTA = "DELTA_BINARY_PACKED"
_DELTA_KINDS = INTEGERS | TIMESTAMPS | {Kind.DATE, Kind.TIME}

_Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterOptions:
    """How data files are written; a level of None leaves the choice to the codec."""

    compression: str = AUTO  # lz4 for small files, zstd for others
    compression_level: int | None = None
    row_group_rows: int = ROW_GROUP_ROW_COUNT_MAX
    target_file_bytes: int = 128 << 20

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> "WriterOptions":
        """Read the `write.*` properties of a table; the names are Iceberg's."""
        is_level_given = _LEVEL in properties
        codec = properties.get(_CODEC, "zstd" if is_level_given else AUTO).lower()
        codec = "none" if codec == "uncompressed" else codec
        if codec not in (AUTO, *_CODECS):
            raise RequestError(
                f"{_CODEC} is {codec!r}", hint=f"Use one of: {AUTO}, {', '.join(_CODECS)}"
            )
        rows = _whole(properties, "write.parquet.row-group-limit", 1, DATA_FILE_ROW_COUNT_MAX)
        target = _whole(properties, "write.target-file-size-bytes", 1, _TARGET_BYTES_MAX)
        return cls(
            compression=codec,
            compression_level=_level(properties, codec),
            row_group_rows=rows or ROW_GROUP_ROW_COUNT_MAX,
            target_file_bytes=target or 128 << 20,
        )

    def codec(self, size_bytes: int) -> tuple[str, int | None]:
        """Codec and level for rows of that many bytes in memory."""
        if self.compression != AUTO:
            return self.compression, self.compression_level
        name = "lz4" if size_bytes <= _SMALL_SIZE_BYTES_MAX else "zstd"
        return name, _LEVEL_DEFAULT.get(name)


def _level(properties: Mapping[str, str], codec: str) -> int | None:
    if _LEVEL not in properties:
        return _LEVEL_DEFAULT.get(codec)
    if codec in (AUTO, "none") or not pa.Codec.supports_compression_level(codec):
        raise RequestError(f"{_LEVEL} is set, and the codec {codec} has no levels")
    low, high = pa.Codec.minimum_compression_level(codec), pa.Codec.maximum_compression_level(codec)
    return _whole(properties, _LEVEL, low, high)


def _whole(properties: Mapping[str, str], name: str, low: int, high: int) -> int | None:
    text = properties.get(name)
    if text is None:
        return None
    try:
        number = int(text)
    except ValueError as error:
        raise RequestError(f"{name} is {text!r}, which is not a whole number") from error
    if not low <= number <= high:
        raise RequestError(f"{name} is {number}", hint=f"Use a number from {low} to {high}")
    return number


def write_data_files(
    table: Any, *, schema: Schema, spec: PartitionSpec, ids: Ids, options: WriterOptions
) -> list[tuple[DataFile, Any]]:
    """Encode conformed rows as Parquet files in memory, each with its description.

    Each file holds rows of one partition, in their order in `table`. No rows make no files.
    """
    if not table.num_rows:
        return []
    wanted = to_arrow_schema(schema)
    if not table.schema.equals(wanted, check_metadata=True):
        table = pa.Table.from_arrays(table.columns, schema=wanted)
    partition = one_partition(_source_stats(table, schema, spec), table.num_rows, schema, spec)
    split = [(partition, table)] if partition is not None else _split(table, schema, spec)
    written = []
    for values, rows in split:
        directory = _directory(values, schema, spec)
        for piece in _pieces(rows, options):
            data, footer = _encode(piece, schema, options)
            file = DataFile(
                path=data_path(ids.new(), directory),
                row_count=piece.num_rows,
                size_bytes=data.size,
                schema_id=schema.id,
                spec_id=spec.id,
                partition=values,
                stats=_stats(piece, footer, schema),
            )
            written.append((file, data))
    return written


# ---------------------------------------------------------------------------------- partitions


def one_partition(
    stats: Mapping[int, ColumnStats], row_count: int, schema: Schema, spec: PartitionSpec
) -> _Row | None:
    """The partition that all rows are in, if the statistics alone show it."""
    values: list[Any] = []
    for field in spec.fields:
        source = _source(field, schema)
        if source is None:
            values.append(None)
            continue
        found = _one_value(field, source, stats.get(field.source_id), row_count)
        if found is None:
            return None
        values.append(found[0])
    return tuple(values)


def _one_value(
    field: PartitionField, source: Primitive, stats: ColumnStats | None, row_count: int
) -> tuple[Any] | None:
    """The one partition value of rows with these statistics; None if there may be several."""
    if stats is None or stats.null_count is None:
        return None
    if stats.null_count == row_count:
        return (None,)
    if stats.null_count or stats.lower is None or stats.upper is None:
        return None
    if field.transform is TransformName.BUCKET and stats.lower != stats.upper:
        return None  # The only transform that does not keep the order of values.
    ends = apply_transform(field, typed_array([stats.lower, stats.upper], source), source)
    low, high = storage_list(ends)
    return (low,) if low == high else None


def _source_stats(table: Any, schema: Schema, spec: PartitionSpec) -> dict[int, ColumnStats]:
    found = {}
    for field in spec.fields:
        source = _source(field, schema)
        if source is not None:
            column = table.column(schema.by_id[field.source_id].name)
            found[field.source_id] = stats_of(column, source)
    return found


def _source(field: PartitionField, schema: Schema) -> Primitive | None:
    """The type of the column a partition field is made of; None if it was dropped."""
    source = schema.by_id.get(field.source_id)
    if source is None:
        return None
    assert isinstance(source.type, Primitive), "nested columns cannot partition a table"
    return source.type


def _split(table: Any, schema: Schema, spec: PartitionSpec) -> Iterator[tuple[_Row, Any]]:
    """Rows by partition, in order of first appearance, without a loop over rows."""
    codes, keys = _group(table, schema, spec)
    if not pc.all(pc.less_equal(codes[:-1], codes[1:])).as_py():
        # The sort is stable, so rows keep their order inside a partition.
        table = table.combine_chunks().take(pc.array_sort_indices(codes))
    start = 0
    for code, count in zip(*pc.value_counts(codes).flatten(), strict=True):
        yield keys[code.as_py()], table.slice(start, count.as_py())
        start += count.as_py()
    assert start == table.num_rows, "each row is in one partition"


def _group(table: Any, schema: Schema, spec: PartitionSpec) -> tuple[Any, list[_Row]]:
    """Number each row's partition from 0 by first appearance; `keys` are their values."""
    codes = pa.repeat(pa.scalar(0, pa.int64()), table.num_rows)
    keys: list[_Row] = [()]
    for field in spec.fields:
        source = _source(field, schema)
        if source is None:
            keys = [(*key, None) for key in keys]
            continue
        column = table.column(schema.by_id[field.source_id].name)
        values = apply_transform(field, column.combine_chunks(), source)
        encoded = values.dictionary_encode(null_encoding="encode")
        distinct = storage_list(encoded.dictionary)
        mixed = pc.add(pc.multiply(codes, len(distinct)), encoded.indices.cast(pa.int64()))
        groups = mixed.dictionary_encode()
        pairs = [divmod(number, len(distinct)) for number in groups.dictionary.to_pylist()]
        keys = [(*keys[key], distinct[value]) for key, value in pairs]
        codes = groups.indices.cast(pa.int64())
    return codes, keys


def _directory(values: _Row, schema: Schema, spec: PartitionSpec) -> str:
    named = []
    for field, value in zip(spec.fields, values, strict=True):
        source = _source(field, schema)
        if source is not None:
            named.append(path_segment(f"{field.name}={partition_text(field, value, source)}"))
    return "/".join(named[:_PARTITION_DIRECTORY_COUNT_MAX])


def _pieces(rows: Any, options: WriterOptions) -> Iterator[Any]:
    by_size = ceil(rows.nbytes / (options.target_file_bytes * _COMPRESSION_RATIO))
    count = min(max(by_size, ceil(rows.num_rows / DATA_FILE_ROW_COUNT_MAX)), rows.num_rows)
    if count == 1:
        yield rows
        return
    length = ceil(rows.num_rows / count)
    for start in range(0, rows.num_rows, length):
        yield rows.slice(start, length)


# ------------------------------------------------------------------------------------ encoding


def _encode(rows: Any, schema: Schema, options: WriterOptions) -> tuple[Any, Any]:
    """The file's bytes and its footer, which is at hand and need not be parsed."""
    footers: list[Any] = []
    repeating, encodings = _encodings(rows, schema)
    codec, level = options.codec(rows.nbytes)
    sink = pa.BufferOutputStream()
    pq.write_table(
        rows,
        sink,
        version="2.6",
        compression=codec,
        compression_level=level,
        row_group_size=options.row_group_rows,
        use_dictionary=repeating,
        column_encoding=encodings or None,
        store_schema=False,
        store_decimal_as_integer=True,
        write_page_index=True,
        write_page_checksum=True,
        write_statistics=True,
        metadata_collector=footers,
    )
    return sink.getvalue(), footers[0]


def _stats(rows: Any, footer: Any, schema: Schema) -> dict[int, ColumnStats]:
    """Statistics of written rows: the encoder has found most of them on its way."""
    fields, places = _described(schema)
    found = footer_stats(footer, fields, places)
    for field, kind in fields:
        stats, is_float = found[field.id], kind.kind in FLOATS
        # Parquet has no counts of NaN, and no bounds of values that are too long.
        if stats.lower is None and stats.null_count != rows.num_rows:
            found[field.id] = stats_of(rows.column(field.name), kind)
        elif is_float:
            nans = nan_count(rows.column(field.name))
            found[field.id] = ColumnStats(stats.null_count, nans, stats.lower, stats.upper)
    return found


@lru_cache(maxsize=_SCHEMAS_KEPT)
def _described(schema: Schema) -> tuple[list[tuple[Field, Primitive]], dict[str, int]]:
    """The columns that have statistics, and where a footer has theirs."""
    return stats_fields(schema), leaf_places(to_arrow_schema(schema))


def _encodings(rows: Any, schema: Schema) -> tuple[list[str], dict[str, str]]:
    """The columns worth a dictionary, and how to encode those of the others that matter."""
    repeating: list[str] = []
    encodings: dict[str, str] = {}
    for field in schema.fields:
        kind = field.type
        if not isinstance(kind, Primitive):
            repeating.extend(_text_leaves(field, field.name))
        elif kind.kind is Kind.BOOLEAN:
            continue
        elif kind.kind not in TIMESTAMPS and _repeats(rows.column(field.name)):
            repeating.append(field.name)
        elif kind.kind in _DELTA_KINDS:
            encodings[field.name] = _DELTA
    return repeating, encodings


def _repeats(column: Any) -> bool:
    """Guess from a sample whether distinct values are at most a quarter of the rows.

    A sample of n values with d distinct ones suggests n² / 2(n - d) distinct values in all: the
    birthday problem, read backwards.
    """
    length = len(column)
    sample = column.slice(max(length - _SAMPLE_ROWS, 0) // 2, _SAMPLE_ROWS)
    distinct = pc.count_distinct(sample, mode="all").as_py()
    if len(sample) == length:
        return bool(distinct * 4 <= length)
    return bool(len(sample) ** 2 * 2 <= (len(sample) - distinct) * length)


def _text_leaves(field: Field, path: str) -> list[str]:
    """Paths, as Parquet spells them, of the strings inside a nested column."""
    match field.type:
        case Struct(fields=fields):
            return [leaf for part in fields for leaf in _text_leaves(part, f"{path}.{part.name}")]
        case ListOf(element=element):
            return _text_leaves(element, f"{path}.list.element")
        case MapOf(key=key, value=value):
            inside = f"{path}.key_value"
            return [*_text_leaves(key, f"{inside}.key"), *_text_leaves(value, f"{inside}.value")]
        case Primitive(kind=kind):
            return [path] if kind is Kind.STRING else []
