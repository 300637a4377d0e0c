"""What is written down of a golden table: exact, as plain JSON, and the same for maker and tests.

A value is told by the column's type: floats as Python spells them (`nan`, `-0.0`), decimals as
text, bytes in hex, dates and times as the count of their unit, maps as lists of pairs.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from lakebed.format.snapshot import Snapshot
from lakebed.format.types import walk
from lakebed.table.table import Table

GOLDEN = Path(__file__).parent
SUMS = "SHA256SUMS"
Row = list[Any]

_COUNTED = (pa.TimestampScalar, pa.Date32Scalar, pa.Time64Scalar)
_FLOATS = (pa.FloatScalar, pa.DoubleScalar)
_BYTES = (pa.BinaryScalar, pa.FixedSizeBinaryScalar)


def rows_of(table: pa.Table) -> list[Row]:
    """The rows of an Arrow table as plain JSON, in an order of their own."""
    columns = [[_plain(value) for value in column] for column in table.columns]
    return sorted((list(row) for row in zip(*columns, strict=True)), key=line)


def line(row: Row) -> str:
    """A row as text: what tells two rows apart, and in which order they come."""
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


def differing(before: Iterable[Row], after: Iterable[Row]) -> tuple[list[Row], list[Row]]:
    """The rows that came and the rows that went, each as often as it did."""
    old, new = Counter(map(line, before)), Counter(map(line, after))
    came, went = sorted((new - old).elements()), sorted((old - new).elements())
    return [json.loads(each) for each in came], [json.loads(each) for each in went]


def columns_of(schema: pa.Schema) -> list[Row]:
    """Name and Arrow type of each column."""
    return [[field.name, str(field.type)] for field in schema]


def definition_of(table: Table) -> dict[str, Any]:
    """Everything that the table's definition says, ids included."""
    metadata = table.metadata
    return {
        "name": metadata.name,
        "table_id": metadata.table_id,
        "created_ms": metadata.created_ms,
        "description": metadata.description,
        "properties": metadata.properties,
        "tags": metadata.tags,
        "last_field_id": metadata.last_field_id,
        "last_partition_field_id": metadata.last_partition_field_id,
        "schemas": [
            [[f.id, f.name, str(f.type), f.required, f.doc] for f in walk(schema.fields)]
            for schema in metadata.schemas
        ],
        "specs": [
            [[f.id, f.source_id, f.transform.value, f.width, f.name] for f in spec.fields]
            for spec in metadata.specs
        ],
    }


def snapshot_of(snapshot: Snapshot) -> dict[str, Any]:
    """Everything that a snapshot says, but for its list of files."""
    said: dict[str, Any] = {
        name: msgspec.to_builtins(getattr(snapshot, name))
        for name in snapshot.__struct_fields__
        if name not in ("manifest_list", "summary")
    }
    summary = snapshot.summary
    said["summary"] = {name: getattr(summary, name) for name in summary.__struct_fields__}
    said["manifests"] = [
        [ref.spec_id, ref.file_count, ref.row_count, ref.deleted_count, ref.is_inline]
        for ref in snapshot.manifest_list
    ]
    return json.loads(json.dumps(said))


def sums_of(root: Path) -> dict[str, str]:
    """The SHA-256 of each file below a directory, by path; not of the sums themselves."""
    files = sorted(path for path in root.rglob("*") if path.is_file() and path.name != SUMS)
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def _plain(value: pa.Scalar) -> Any:
    if not value.is_valid:
        return None
    if isinstance(value, _COUNTED):
        return value.value
    if isinstance(value, _FLOATS):
        return repr(value.as_py())
    if isinstance(value, _BYTES) and not isinstance(value, pa.StringScalar):
        return value.as_py().hex()
    if isinstance(value, pa.Decimal128Scalar):
        return format(value.as_py(), "f")
    if isinstance(value, pa.StructScalar):
        return {name: _plain(value[name]) for name in value}
    if isinstance(value, pa.MapScalar):
        return [[_plain(pair["key"]), _plain(pair["value"])] for pair in value.values]
    if isinstance(value, pa.ListScalar):
        return [_plain(element) for element in value.values]
    return value.as_py()
