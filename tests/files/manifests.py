"""Manifests of every type of column, for tests to take apart."""

from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from tests.format import build

from lakebed.files.manifest import encode_manifest, to_table
from lakebed.files.manifest_read import decode_manifest
from lakebed.format.datafile import ColumnStats, Entry
from lakebed.format.document import checksum
from lakebed.format.metadata import TableMetadata
from lakebed.format.partition import PartitionField, PartitionSpec, TransformName
from lakebed.format.schema import Schema
from lakebed.format.snapshot import ManifestRef
from lakebed.format.types import Field, Kind, Primitive

PATH = "metadata/manifest-1.parquet"
KINDS = [
    Primitive(
        kind,
        precision=20 if kind is Kind.DECIMAL else 0,
        scale=3 if kind is Kind.DECIMAL else 0,
        length=4 if kind is Kind.FIXED else 0,
    )
    for kind in Kind
]
# A low and a high value of each type in storage form, near the ends of the type where it has ends.
VALUES: dict[Kind, tuple[Any, Any]] = {
    Kind.BOOLEAN: (False, True),
    Kind.INT: (-(1 << 31), (1 << 31) - 1),
    Kind.LONG: (-(1 << 63), (1 << 63) - 1),
    Kind.FLOAT: (-1.5, 3.4028234663852886e38),
    Kind.DOUBLE: (-0.0, float("inf")),
    Kind.DECIMAL: (Decimal("-12345678901234567.890"), Decimal("0.001")),
    Kind.DATE: (-800_000, 2_900_000),
    Kind.TIME: (0, 86_399_999_999),
    Kind.TIMESTAMP: (-62_135_596_800_000_000, 253_402_300_799_999_999),
    Kind.TIMESTAMPTZ: (-1, 1),
    Kind.TIMESTAMP_NS: (-(1 << 63), (1 << 63) - 1),
    Kind.TIMESTAMPTZ_NS: (-1, 1_700_000_000_123_456_789),
    Kind.STRING: ("", "\ud7ff\U0010ffff"),
    Kind.BINARY: (b"", b"\xff\x00\xff"),
    Kind.FIXED: (b"\x00\x00\x00\x00", b"\xff\xff\xff\xff"),
}


def wide_metadata() -> TableMetadata:
    """A table with a column of each primitive type, partitioned by each that can be."""
    fields = tuple(Field(i, kind.kind.value, kind) for i, kind in enumerate(KINDS, start=1))
    parts = tuple(
        PartitionField(1000 + field.id, field.id, TransformName.IDENTITY, field.name)
        for field in fields
        if str(field.type) not in ("float", "double")
    )
    return build.metadata(
        schemas=(Schema(0, fields),),
        specs=(PartitionSpec(0, parts),),
        last_field_id=len(KINDS),
        last_partition_field_id=1100,
    )


def wide_entry(name: str, *, side: int, known: bool = True, **changes: Any) -> Entry:
    """An entry with a value in each partition field and statistics of each column."""
    partition = tuple(
        VALUES[kind.kind][side] for kind in KINDS if kind.kind not in (Kind.FLOAT, Kind.DOUBLE)
    )
    stats = {
        number: ColumnStats(
            number % 3,
            number % 2 if kind.kind in (Kind.FLOAT, Kind.DOUBLE) else None,
            *VALUES[kind.kind],
        )
        for number, kind in enumerate(KINDS, start=1)
    }
    file = build.data_file(
        name,
        partition=partition if known else (None,) * len(partition),
        stats=stats if known else {},
    )
    return msgspec.structs.replace(Entry(file=file, added_version=1), **changes)


def ref_of(table: Any, data: bytes, **changes: Any) -> ManifestRef:
    """A true description of a manifest file."""
    told = table.select(["row_count", "size_bytes", "removed_version"]).to_pylist()
    living = [row for row in told if not row["removed_version"]]
    sound: dict[str, Any] = {
        "spec_id": 0,
        "written_version": 7,
        "file_count": len(living),
        "row_count": sum(row["row_count"] for row in living),
        "data_size_bytes": sum(row["size_bytes"] for row in living),
        "deleted_count": table.num_rows - len(living),
        "path": PATH,
        "size_bytes": len(data),
        "checksum": checksum(data),
    }
    return ManifestRef(**(sound | changes))


def small_table(count: int = 3) -> Any:
    """A manifest table of a few files of the table of readings."""
    metadata = build.metadata()
    entries = [Entry(file=build.data_file(f"f{i}"), added_version=i) for i in range(count)]
    return to_table(entries, metadata.spec(0), metadata)


def decoded(table: Any, **changes: Any) -> Any:
    """What reading gives of the table of readings' manifest with this content."""
    data = encode_manifest(table)
    metadata = build.metadata()
    return decode_manifest(data, ref_of(table, data, **changes), metadata.spec(0), metadata)


def decoded_bytes(data: bytes, table: Any, **changes: Any) -> Any:
    """The same for a file that was not written by us."""
    metadata = build.metadata()
    return decode_manifest(data, ref_of(table, data, **changes), metadata.spec(0), metadata)


def parquet(table: Any, **options: Any) -> bytes:
    """A Parquet file as anybody would write it."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **({"store_schema": False} | options))
    return bytes(sink.getvalue())
