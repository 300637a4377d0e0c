"""Manifests: one row per data file, statistics as typed columns, so that pruning is vectorised.

    path  row_count  size_bytes  schema_id  added_version  removed_version
    part_<id>                        value of a partition field
    null_<id>  nan_<id>  lower_<id>  upper_<id>      statistics of a column

An inline manifest of a snapshot becomes the same Arrow table when it is read: there is one form
in memory and one evaluator. A version of -1 stands for the version that first listed the
manifest, which is not known while the manifest is being written.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakebed.errors import BadMetadataError
from lakebed.expr.arrow import primitive_arrow_type
from lakebed.format.datafile import LIVE, ColumnStats, DataFile, Entry
from lakebed.format.metadata import TableMetadata
from lakebed.format.partition import PartitionSpec, result_type
from lakebed.format.types import FLOATS, Primitive
from lakebed.format.values import storage_value

INHERIT = -1

FIXED: tuple[tuple[str, Any], ...] = (
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
    kinds = dict(partition_types(spec, metadata))
    for place, name in enumerate(table.column_names):
        prefix, _, number = name.partition("_")
        if prefix in ("part", "lower", "upper"):
            kind = kinds[int(number)] if prefix == "part" else metadata.field_type(int(number))
            assert kind is not None, "only primitive columns have statistics"
            target = primitive_arrow_type(kind)
            if table.column(place).type != target:
                table = table.set_column(place, name, table.column(place).cast(target))
    return table


def to_entries(table: Any, spec: PartitionSpec) -> list[Entry]:
    """The rows of a manifest table as values; for the few, never for a whole large manifest."""
    fixed = {name: storage_list(table.column(name)) for name, _ in FIXED}
    names = set(table.column_names)
    partitions = [storage_list(table.column(f"part_{field.id}")) for field in spec.fields]
    stats: dict[int, tuple[list[Any], ...]] = {}
    for name in table.column_names:
        if name.startswith("null_"):
            number = name.removeprefix("null_")
            places = [f"{prefix}_{number}" for prefix in ("null", "nan", "lower", "upper")]
            stats[int(number)] = tuple(
                storage_list(table.column(place)) if place in names else [None] * table.num_rows
                for place in places
            )
    none = ColumnStats()
    return [
        Entry(
            file=DataFile(
                path=fixed["path"][row],
                row_count=fixed["row_count"][row],
                size_bytes=fixed["size_bytes"][row],
                schema_id=fixed["schema_id"][row],
                spec_id=spec.id,
                partition=tuple(column[row] for column in partitions),
                stats={
                    i: known
                    for i, columns in stats.items()
                    if (known := ColumnStats(*(column[row] for column in columns))) != none
                },
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
    """Turn a manifest table into the bytes of its Parquet file.

    Text and bytes are written plain, without a dictionary: a reader can tell from the pages how
    much memory they take.
    """
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        compression="zstd",
        use_dictionary=[field.name for field in table.schema if _is_number(field.type)],
        store_schema=False,
        write_statistics=False,
        write_page_checksum=True,
    )
    return sink.getvalue().to_pybytes()


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_date(kind))


def inherit(table: Any, written_version: int) -> Any:
    """Fill in the version that was not known while the manifest was written."""
    for name in ("added_version", "removed_version"):
        column = table.column(name)
        inherits = pc.equal(column, INHERIT)
        if pc.any(inherits).as_py():
            filled = pc.if_else(inherits, pa.scalar(written_version, pa.int64()), column)
            table = table.set_column(table.schema.get_field_index(name), name, filled)
    return table
