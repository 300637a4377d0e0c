"""Small sound values of the format, for tests to take apart."""

import re
from typing import Any

import msgspec

from lakebed.format.datafile import ColumnStats, DataFile, Entry
from lakebed.format.document import checksum, seal
from lakebed.format.metadata import TableMetadata
from lakebed.format.partition import PartitionField, PartitionSpec, TransformName
from lakebed.format.schema import Schema
from lakebed.format.snapshot import ManifestRef, Operation, Snapshot, make_snapshot_id
from lakebed.format.types import Field, Kind, ListOf, MapOf, Primitive, Struct

TS = Field(1, "ts", Primitive(Kind.TIMESTAMPTZ), required=True)
SENSOR = Field(2, "sensor_id", Primitive(Kind.STRING), doc="serial number")
VALUE = Field(3, "value", Primitive(Kind.DOUBLE))
STATUS = Field(4, "status", Primitive(Kind.INT))
NESTED = Field(
    5,
    "nested",
    Struct(
        (
            Field(6, "list", ListOf(Field(7, "element", Primitive(Kind.DECIMAL, 9, 2)))),
            Field(
                8,
                "map",
                MapOf(
                    Field(9, "key", Primitive(Kind.STRING), required=True),
                    Field(10, "value", Primitive(Kind.FIXED, length=4)),
                ),
            ),
        )
    ),
)
BY_DAY = PartitionField(1000, 1, TransformName.DAY, "ts_day")


def metadata(**changes: Any) -> TableMetadata:
    """A table of readings."""
    sound: dict[str, Any] = {
        "table_id": "0" * 32,
        "name": "plant.readings",
        "created_ms": 1_700_000_000_000,
        "schemas": (Schema(0, (TS, SENSOR, VALUE, STATUS, NESTED)),),
        "specs": (PartitionSpec(0, (BY_DAY,)),),
        "last_field_id": 10,
        "last_partition_field_id": 1000,
        "tags": {"release": 3},
        "properties": {"owner": "plant"},
        "description": "all readings",
    }
    return TableMetadata(**(sound | changes))


def data_file(name: str = "a", **changes: Any) -> DataFile:
    """A file of ten rows."""
    sound: dict[str, Any] = {
        "path": f"data/{name}.parquet",
        "row_count": 10,
        "size_bytes": 1000,
        "partition": (19_000,),
        "stats": {1: ColumnStats(0, None, 5, 9), 3: ColumnStats(1, 2, -0.5, 7.25)},
    }
    return DataFile(**(sound | changes))


def inline(*entries: Entry, **changes: Any) -> ManifestRef:
    """A manifest inside a snapshot."""
    files = [entry.file for entry in entries if entry.is_live]
    sound: dict[str, Any] = {
        "spec_id": 0,
        "written_version": 1,
        "file_count": len(files),
        "row_count": sum(file.row_count for file in files),
        "data_size_bytes": sum(file.size_bytes for file in files),
        "deleted_count": len(entries) - len(files),
        "entries": entries,
    }
    return ManifestRef(**(sound | changes))


def snapshot(version: int = 4, **changes: Any) -> Snapshot:
    """An append of one file."""
    sound: dict[str, Any] = {
        "format_version": 1,
        "version": version,
        "snapshot_id": make_snapshot_id(version, 77),
        "table_id": "0" * 32,
        "table_name": "plant.readings",
        "commit_id": "c" * 32,
        "timestamp_ms": 1_700_000_000_000,
        "operation": Operation.APPEND,
        "metadata_path": "metadata/table-1.json",
        "schema_id": 0,
        "spec_id": 0,
        "parent_id": make_snapshot_id(version - 1, 76),
        "parent_path": "metadata/snap-3.json",
        "manifest_list": (
            ManifestRef(
                spec_id=0,
                written_version=2,
                file_count=16,
                row_count=160,
                data_size_bytes=16_000,
                path="metadata/manifest-1.parquet",
                size_bytes=900,
                checksum="f" * 32,
            ),
            inline(Entry(file=data_file(), added_version=version)),
        ),
    }
    return Snapshot(**(sound | changes))


def resealed(data: bytes, **changes: Any) -> bytes:
    """The file again, with other values at its top level and a right checksum."""
    return seal(msgspec.json.encode(msgspec.json.decode(data)["lakebed"] | changes))


def resealed_text(data: bytes, old: str, new: str) -> bytes:
    """The file again, with some of its text exchanged and a right checksum."""
    body = data.decode().partition('","lakebed":')[2]
    assert old in body, "there is something to exchange"
    rest = b'"lakebed":' + body.replace(old, new).encode()
    head = re.match(rb'\{"checksum":"', data)
    assert head is not None
    return head[0] + checksum(rest).encode() + b'",' + rest
