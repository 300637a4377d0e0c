"""Manifests: one row per data file, statistics as typed columns, so that pruning is vectorised.

    path  row_count  size_bytes  schema_id  added_version  removed_version
    part_<id>                        value of a partition field
    null_<id>  nan_<id>  lower_<id>  upper_<id>      statistics of a column

An inline manifest of a snapshot becomes the same Arrow table when it is read: there is one form
in memory and one evaluator. A version of -1 stands for the version that first listed the
manifest, which is not known while the manifest is being written.
"""

import io
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakebed.errors import BadMetadataError, LimitExceededError
from lakebed.expr.arrow import primitive_arrow_type
from lakebed.format.datafile import LIVE, ColumnStats, DataFile, Entry
from lakebed.format.metadata import TableMetadata
from lakebed.format.partition import PartitionSpec, result_type
from lakebed.format.paths import check_path
from lakebed.format.snapshot import ManifestRef
from lakebed.format.types import FLOATS, Primitive
from lakebed.format.values import storage_value
from lakebed.limits import MANIFEST_EXPANDED_BYTES_MAX

INHERIT = -1

_FIXED: tuple[tuple[str, Any], ...] = (
    ("path", pa.string()),
    ("row_count", pa.int64()),
    ("size_bytes", pa.int64()),
    ("schema_id", pa.int32()),
    ("added_version", pa.int64()),
    ("removed_version", pa.int64()),
)


def partition_types(spec: PartitionSpec, metadata: TableMetadata) -> list[tuple[int, Primitive]]:
    """(partition field id, type of its values) for each field of a spec."""
    found = []
    for field in spec.fields:
        source = metadata.field_type(field.source_id)
        if source is None:
            raise BadMetadataError(f"partition field {field.name} has no source column")
        found.append((field.id, result_type(field, source)))
    return found


def to_table(entries: Sequence[Entry], spec: PartitionSpec, metadata: TableMetadata) -> Any:
    """Lay entries out as an Arrow table."""
    files = [entry.file for entry in entries]
    columns: dict[str, Any] = {
        "path": pa.array([file.path for file in files], pa.string()),
        "row_count": pa.array([file.row_count for file in files], pa.int64()),
        "size_bytes": pa.array([file.size_bytes for file in files], pa.int64()),
        "schema_id": pa.array([file.schema_id for file in files], pa.int32()),
        "added_version": pa.array([entry.added_version for entry in entries], pa.int64()),
        "removed_version": pa.array([entry.removed_version for entry in entries], pa.int64()),
    }
    for place, (field_id, kind) in enumerate(partition_types(spec, metadata)):
        values = [_partition_value(file, place, kind) for file in files]
        columns[f"part_{field_id}"] = typed_array(values, kind)
    for field_id in sorted({field_id for file in files for field_id in file.stats}):
        kind_or_none = metadata.field_type(field_id)
        if kind_or_none is not None:
            columns |= _stats_columns(files, field_id, kind_or_none)
    return pa.table(columns)


def _partition_value(file: DataFile, place: int, kind: Primitive) -> Any:
    if place >= len(file.partition):
        raise BadMetadataError(f"{file.path} does not have the partition values of its spec")
    value = file.partition[place]
    known = storage_value(value, kind)
    if known is None and value is not None:
        raise BadMetadataError(f"{file.path} has {value!r} as a partition value of type {kind}")
    return known


def _stats_columns(files: list[DataFile], field_id: int, kind: Primitive) -> dict[str, Any]:
    none = ColumnStats()
    stats = [file.stats.get(field_id, none) for file in files]
    columns = {f"null_{field_id}": pa.array([s.null_count for s in stats], pa.int64())}
    if kind.kind in FLOATS:
        columns[f"nan_{field_id}"] = pa.array([s.nan_count for s in stats], pa.int64())
    columns[f"lower_{field_id}"] = typed_array([storage_value(s.lower, kind) for s in stats], kind)
    columns[f"upper_{field_id}"] = typed_array([storage_value(s.upper, kind) for s in stats], kind)
    return columns


def typed_array(values: list[Any], kind: Primitive) -> Any:
    """Storage values as an Arrow array of the column's type."""
    target = primitive_arrow_type(kind)
    if pa.types.is_temporal(target):
        width = pa.int32() if pa.types.is_date32(target) else pa.int64()
        return pa.array(values, width).view(target)
    return pa.array(values, target)


def storage_list(array: Any) -> list[Any]:
    """An Arrow array as storage values."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_temporal(array.type):
        array = array.view(pa.int32() if pa.types.is_date32(array.type) else pa.int64())
    return list(array.to_pylist())


def concat(tables: Iterable[Any], spec: PartitionSpec, metadata: TableMetadata) -> Any:
    """Join manifest tables whose statistics differ in columns or in the width of their types."""
    tables = [_at_newest_types(table, metadata, spec) for table in tables]
    return pa.concat_tables(tables, promote_options="default").combine_chunks()


def _at_newest_types(table: Any, metadata: TableMetadata, spec: PartitionSpec) -> Any:
    """Widen bounds and partition values that were written before their column was widened."""
    targets = {f"part_{i}": primitive_arrow_type(kind) for i, kind in partition_types(spec, metadata)}
    for name in table.column_names:
        prefix, _, number = name.partition("_")
        if prefix in ("lower", "upper") and number.isdecimal():
            kind = metadata.field_type(int(number))
            if kind is not None:
                targets[name] = primitive_arrow_type(kind)
    for place, field in enumerate(table.schema):
        target = targets.get(field.name)
        if target is not None and field.type != target:
            table = table.set_column(place, field.name, table.column(place).cast(target))
    return table


def to_entries(table: Any, spec: PartitionSpec) -> list[Entry]:
    """The rows of a manifest table as values; for the few, never for a whole large manifest."""
    fixed = {name: storage_list(table.column(name)) for name, _ in _FIXED}
    names = set(table.column_names)
    partitions = [storage_list(table.column(f"part_{field.id}")) for field in spec.fields]
    stats: dict[int, tuple[list[Any], ...]] = {}
    for name in table.column_names:
        if name.startswith("null_"):
            number = name.removeprefix("null_")
            columns = [f"{prefix}_{number}" for prefix in ("null", "nan", "lower", "upper")]
            stats[int(number)] = tuple(
                storage_list(table.column(c)) if c in names else [None] * table.num_rows
                for c in columns
            )
    return [
        Entry(
            file=DataFile(
                path=fixed["path"][row],
                row_count=fixed["row_count"][row],
                size_bytes=fixed["size_bytes"][row],
                schema_id=fixed["schema_id"][row],
                spec_id=spec.id,
                partition=tuple(column[row] for column in partitions),
                stats={i: ColumnStats(*(column[row] for column in c)) for i, c in stats.items()},
            ),
            added_version=fixed["added_version"][row],
            removed_version=fixed["removed_version"][row],
        )
        for row in range(table.num_rows)
    ]


def live(table: Any) -> Any:
    """The rows that readers see."""
    return table.filter(pc.equal(table.column("removed_version"), LIVE))


def encode_manifest(table: Any) -> bytes:
    """Turn a manifest table into the bytes of its Parquet file."""
    sink = io.BytesIO()
    bounds = [n for n in table.column_names if n.startswith(("lower_", "upper_", "path"))]
    pq.write_table(
        table,
        sink,
        compression="zstd",
        use_dictionary=[n for n in table.column_names if n not in bounds],
        store_schema=False,
        write_statistics=False,
        write_page_checksum=True,
    )
    return sink.getvalue()


def decode_manifest(data: bytes, ref: ManifestRef, spec: PartitionSpec) -> Any:
    """Read and check a manifest file whose checksum has been verified."""
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        _check_expanded_size(file.metadata, ref.path)
        table = file.read()
    except (pa.ArrowException, OSError) as error:
        raise BadMetadataError(f"{ref.path} is not a readable manifest: {error}") from error
    _check_columns(table, ref, spec)
    return _inherit(table, ref.written_version)


def _check_expanded_size(footer: Any, path: str) -> None:
    total = sum(footer.row_group(i).total_byte_size for i in range(footer.num_row_groups))
    if total > MANIFEST_EXPANDED_BYTES_MAX:
        raise LimitExceededError(
            f"{path} would take {total} bytes in memory, more than {MANIFEST_EXPANDED_BYTES_MAX}"
        )


def _check_columns(table: Any, ref: ManifestRef, spec: PartitionSpec) -> None:
    types = {field.name: field.type for field in table.schema}
    for name, kind in _FIXED:
        if types.get(name) != kind or table.column(name).null_count:
            raise BadMetadataError(f"{ref.path}: column {name} is missing or not {kind}")
    for field in spec.fields:
        if f"part_{field.id}" not in types:
            raise BadMetadataError(f"{ref.path} lacks the partition column of {field.name}")
    live_count = pc.sum(pc.equal(table.column("removed_version"), LIVE)).as_py() or 0
    if live_count != ref.file_count:
        raise BadMetadataError(
            f"{ref.path} has {live_count} live files where the snapshot says {ref.file_count}"
        )
    for column in ("row_count", "size_bytes"):
        if table.num_rows and pc.min(table.column(column)).as_py() < 0:
            raise BadMetadataError(f"{ref.path}: {column} is negative")


def _inherit(table: Any, written_version: int) -> Any:
    for name in ("added_version", "removed_version"):
        column = table.column(name)
        inherits = pc.equal(column, INHERIT)
        if pc.any(inherits).as_py():
            filled = pc.if_else(inherits, pa.scalar(written_version, pa.int64()), column)
            table = table.set_column(table.schema.get_field_index(name), name, filled)
    return table


def check_paths(paths: Iterable[str]) -> None:
    """Raise unless every path stays inside the table."""
    for path in paths:
        check_path(path)
