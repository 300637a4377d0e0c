"""Hidden partitioning: which transform of which column splits the rows into files.

A partition field has an id of its own from 1000 up, never reused, so that files written under an
old spec stay readable beside files of the new one.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from lakebed.errors import BadMetadataError, RequestError
from lakebed.format.schema import Schema
from lakebed.format.types import (
    FLOATS,
    INTEGERS,
    TIMESTAMPS,
    Kind,
    Primitive,
)

PARTITION_FIELD_ID_FIRST = 1000
_TRANSFORM = re.compile(r"(\w+)\(\s*(?:(\d{1,10})\s*,\s*)?(.+?)(?:\s*,\s*(\d{1,10}))?\s*\)")


class TransformName(StrEnum):
    """What is done to a value; the values are on disk and never change."""

    IDENTITY = "identity"
    YEAR = "year"
    MONTH = "month"
    DAY = "day"
    HOUR = "hour"
    BUCKET = "bucket"
    TRUNCATE = "truncate"


_NAMES = {
    **{name.value: name for name in TransformName},
    "years": TransformName.YEAR,
    "months": TransformName.MONTH,
    "days": TransformName.DAY,
    "hours": TransformName.HOUR,
    "date": TransformName.DAY,
}
_WITH_WIDTH = frozenset({TransformName.BUCKET, TransformName.TRUNCATE})
_WIDTH_MAX = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One transform of one column; `width` is the bucket count or the truncation width."""

    id: int
    source_id: int
    transform: TransformName
    name: str
    width: int = 0


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """The ordered partition fields that files of one era share; id 0 is the table's first."""

    id: int
    fields: tuple[PartitionField, ...] = ()

    def describe(self, schema: Schema) -> list[str]:
        """Text that `parse_spec` reads back: ["day(ts)"]."""
        return [_describe(field, schema) for field in self.fields]


def parse_spec(
    texts: list[str], schema: Schema, *, spec_id: int, first_field_id: int
) -> PartitionSpec:
    """Read `["day(ts)", "bucket(16, sensor_id)", "site"]` against a schema."""
    fields = tuple(
        _parse_field(text, schema, field_id=first_field_id + i) for i, text in enumerate(texts)
    )
    names = [field.name for field in fields]
    if len(set(names)) != len(names):
        raise RequestError(f"the partition fields {', '.join(texts)} are not all different")
    return PartitionSpec(spec_id, fields)


def check_transform(transform: TransformName, kind: Primitive, width: int) -> None:
    """Raise unless the transform is defined for the type."""
    allowed = {
        TransformName.IDENTITY: kind.kind not in FLOATS,
        TransformName.BUCKET: kind.kind not in FLOATS | {Kind.BOOLEAN} and width > 0,
        # A cut value of a fixed length would not be a value of its type.
        TransformName.TRUNCATE: width > 0
        and kind.kind in INTEGERS | {Kind.STRING, Kind.BINARY, Kind.DECIMAL},
        TransformName.HOUR: kind.kind in TIMESTAMPS,
    }.get(transform, kind.kind in TIMESTAMPS | {Kind.DATE})
    if width and transform not in _WITH_WIDTH:
        raise RequestError(f"{transform.value} takes a column and no number")
    if width > _WIDTH_MAX:
        raise RequestError(f"{transform.value}: the width {width} is more than {_WIDTH_MAX}")
    if not allowed:
        raise RequestError(
            f"{transform.value} is not defined for a column of type {kind}",
            hint="day, month, year and hour take times; truncate takes text and integers, and like "
            "bucket a number above 0; floating point columns cannot partition a table",
        )


def result_type(field: PartitionField, source: Primitive) -> Primitive:
    """The type of a partition value."""
    if field.transform in (TransformName.IDENTITY, TransformName.TRUNCATE):
        return source
    if field.transform is TransformName.DAY:
        return Primitive(Kind.DATE)
    return Primitive(Kind.INT)


def _parse_field(text: str, schema: Schema, *, field_id: int) -> PartitionField:
    transform, column, width = TransformName.IDENTITY, text.strip(), 0
    if column not in schema.by_name and (match := _TRANSFORM.fullmatch(column)):
        if match[1].lower() not in _NAMES:
            raise RequestError(
                f"{match[1]!r} is not a partition transform",
                hint=f"Use one of: {', '.join(TransformName)}",
            )
        transform, column = _NAMES[match[1].lower()], match[3]
        width = int(match[2] or match[4] or 0)
    source = schema.field(column)
    if not isinstance(source.type, Primitive):
        raise RequestError(f"the nested column {column!r} cannot partition a table")
    check_transform(transform, source.type, width)
    suffix = "" if transform is TransformName.IDENTITY else f"_{transform.value}"
    return PartitionField(field_id, source.id, transform, f"{column}{suffix}", width)


def check_spec(spec: PartitionSpec, schemas: tuple[Schema, ...]) -> None:
    """Raise unless each field transforms a column that was in the table, and as it can be."""
    ids = [field.id for field in spec.fields]
    if len(set(ids)) != len(ids) or any(i < PARTITION_FIELD_ID_FIRST for i in ids):
        raise BadMetadataError(f"partition spec {spec.id} has ids that repeat or are too low")
    for field in spec.fields:
        source = next(
            (s.by_id[field.source_id] for s in schemas if field.source_id in s.by_id), None
        )
        if source is None or not isinstance(source.type, Primitive):
            raise BadMetadataError(
                f"partition spec {spec.id} uses field {field.source_id}, which is no column"
            )
        # The first type decides: a widened column keeps the transforms it had.
        check_transform(field.transform, source.type, field.width)


def _describe(field: PartitionField, schema: Schema) -> str:
    source = schema.by_id.get(field.source_id)
    column = source.name if source else f"#{field.source_id}"
    if field.transform is TransformName.IDENTITY:
        return column
    width = f"{field.width}, " if field.transform in _WITH_WIDTH else ""
    return f"{field.transform.value}({width}{column})"
