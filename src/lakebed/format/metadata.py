"""What a table has besides files: schemas, partition specs, tags, properties.

It changes seldom, so it lives in a file of its own that snapshots point to; a commit of rows
does not write it again.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

import msgspec

from lakebed.errors import BadMetadataError, LakebedError, NotFoundError
from lakebed.format.document import decode_error, seal, unseal
from lakebed.format.partition import PartitionField, PartitionSpec, TransformName, check_spec
from lakebed.format.schema import Schema, check_column_name
from lakebed.format.types import (
    Field,
    ListOf,
    MapOf,
    Primitive,
    Struct,
    Type,
    can_widen,
    parse_primitive,
)
from lakebed.limits import COUNT_MAX, FORMAT_VERSION, TAG_COUNT_MAX, TIME_MS_MAX


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TableMetadata:
    """The definition of a table; `last_field_id` only grows, so ids are never reused."""

    table_id: str
    name: str
    created_ms: int
    schemas: tuple[Schema, ...]
    specs: tuple[PartitionSpec, ...]
    last_field_id: int
    last_partition_field_id: int
    tags: dict[str, int] = dataclasses.field(default_factory=dict)  # name -> version
    properties: dict[str, str] = dataclasses.field(default_factory=dict)
    description: str = ""

    def schema(self, schema_id: int) -> Schema:
        """One of the table's schemas by id."""
        if not 0 <= schema_id < len(self.schemas):
            raise BadMetadataError(f"table {self.name} has no schema {schema_id}")
        return self.schemas[schema_id]

    def spec(self, spec_id: int) -> PartitionSpec:
        """One of the table's partition specs by id."""
        if not 0 <= spec_id < len(self.specs):
            raise BadMetadataError(f"table {self.name} has no partition spec {spec_id}")
        return self.specs[spec_id]

    def tag(self, name: str) -> int:
        """The version that a tag names."""
        if name not in self.tags:
            known = ", ".join(sorted(self.tags)) or "none"
            raise NotFoundError(f"there is no tag {name!r}", hint=f"The tags are: {known}")
        return self.tags[name]

    def field_type(self, field_id: int) -> Primitive | None:
        """The widest type a column had, also if it was dropped since; None if it is nested.

        It holds every value of every file, also of those that a rollback has taken out of sight.
        """
        widest: Type | None = None
        for schema in self.schemas:
            field = schema.by_id.get(field_id)
            if field is not None and (widest is None or can_widen(widest, field.type)):
                widest = field.type
        return widest if isinstance(widest, Primitive) else None


def encode_metadata(metadata: TableMetadata) -> bytes:
    """Turn the definition into the bytes of its file."""
    document = {
        "format_version": FORMAT_VERSION,
        "table_id": metadata.table_id,
        "name": metadata.name,
        "created_ms": metadata.created_ms,
        "description": metadata.description,
        "schemas": [schema_document(schema) for schema in metadata.schemas],
        "specs": [
            {"id": spec.id, "fields": [dataclasses.asdict(field) for field in spec.fields]}
            for spec in metadata.specs
        ],
        "last_field_id": metadata.last_field_id,
        "last_partition_field_id": metadata.last_partition_field_id,
        "tags": metadata.tags,
        "properties": metadata.properties,
    }
    data = seal(msgspec.json.encode(document))
    assert decode_metadata(data, "new") == metadata, "what we write, we can read"
    return data


def decode_metadata(data: bytes, path: str) -> TableMetadata:
    """Read a definition, or raise BadTableError."""
    try:
        document = msgspec.json.decode(unseal(data, path=path), type=_Document)
        metadata = TableMetadata(
            table_id=document.table_id,
            name=document.name,
            created_ms=document.created_ms,
            description=document.description,
            schemas=tuple(_schema(s) for s in document.schemas),
            specs=tuple(
                PartitionSpec(s.id, tuple(_spec_field(f) for f in s.fields)) for s in document.specs
            ),
            last_field_id=document.last_field_id,
            last_partition_field_id=document.last_partition_field_id,
            tags=document.tags,
            properties=document.properties,
        )
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise decode_error(path, error) from error
    _check(metadata, path)
    return metadata


def schema_document(schema: Schema) -> dict[str, Any]:
    """A schema as plain values for JSON."""
    return {"id": schema.id, "fields": [_field_document(field) for field in schema.fields]}


class _FieldDocument(msgspec.Struct, kw_only=True):
    id: int
    name: str
    type: Any
    required: bool = False
    doc: str = ""


class _SchemaDocument(msgspec.Struct, kw_only=True):
    id: int
    fields: list[_FieldDocument]


class _SpecFieldDocument(msgspec.Struct, kw_only=True):
    id: int
    source_id: int
    transform: TransformName
    name: str
    width: int = 0


class _SpecDocument(msgspec.Struct, kw_only=True):
    id: int
    fields: list[_SpecFieldDocument]


class _Document(msgspec.Struct, kw_only=True):
    table_id: str
    name: str
    created_ms: int
    schemas: list[_SchemaDocument]
    specs: list[_SpecDocument]
    last_field_id: int
    last_partition_field_id: int
    description: str = ""
    tags: dict[str, int] = {}
    properties: dict[str, str] = {}


def _field_document(field: Field) -> dict[str, Any]:
    document: dict[str, Any] = {"id": field.id, "name": field.name, "type": _type(field.type)}
    if field.required:
        document["required"] = True
    if field.doc:
        document["doc"] = field.doc
    return document


def _type(kind: Type) -> Any:
    match kind:
        case Struct(fields=fields):
            return {"struct": [_field_document(field) for field in fields]}
        case ListOf(element=element):
            return {"list": _field_document(element)}
        case MapOf(key=key, value=value):
            return {"map": [_field_document(key), _field_document(value)]}
        case _:
            return str(kind)


def _schema(document: _SchemaDocument) -> Schema:
    return Schema(document.id, tuple(_field(field) for field in document.fields))


def _field(document: _FieldDocument) -> Field:
    return Field(
        document.id, document.name, _parse_type(document.type), document.required, document.doc
    )


def _parse_type(value: Any) -> Type:
    match value:
        case str():
            return parse_primitive(value)
        case {"struct": list(fields)}:
            return Struct(tuple(_nested(field) for field in fields))
        case {"list": dict(element)}:
            return ListOf(_nested(element))
        case {"map": [dict(key), dict(item)]}:
            return MapOf(_nested(key), _nested(item))
        case _:
            raise BadMetadataError(f"{str(value)[:80]!r} is not a type")


def _nested(value: Any) -> Field:
    return _field(msgspec.convert(value, _FieldDocument))


def _spec_field(document: _SpecFieldDocument) -> PartitionField:
    return PartitionField(
        document.id, document.source_id, document.transform, document.name, document.width
    )


def _check(metadata: TableMetadata, path: str) -> None:
    for complaint in _complaints(metadata):
        raise BadMetadataError(f"{path}: {complaint}", path=path)


def _complaints(metadata: TableMetadata) -> Iterator[str]:
    """What contradicts itself in a definition, or could not have been written by us."""
    ids = [schema.id for schema in metadata.schemas]
    if ids != list(range(len(ids))) or not ids:
        yield "the schemas are not numbered 0, 1, 2 …"
    if [spec.id for spec in metadata.specs] != list(range(len(metadata.specs))):
        yield "the partition specs are not numbered 0, 1, 2 …"
    if max((schema.last_id for schema in metadata.schemas), default=0) > metadata.last_field_id:
        yield "a field id is above last_field_id"
    used = [field.id for spec in metadata.specs for field in spec.fields]
    if max(used, default=0) > metadata.last_partition_field_id:
        yield "a partition field id is above last_partition_field_id"
    if not 0 <= metadata.created_ms <= TIME_MS_MAX:
        yield f"{metadata.created_ms} is not a time"
    if len(metadata.tags) > TAG_COUNT_MAX:
        yield f"more than {TAG_COUNT_MAX} tags"
    if any(not 0 <= version <= COUNT_MAX for version in metadata.tags.values()):
        yield "a tag names no version"
    yield from _changed_types(metadata.schemas)
    try:
        for schema in metadata.schemas:
            for field in schema.fields:
                check_column_name(field.name)
        for spec in metadata.specs:
            check_spec(spec, metadata.schemas)
    except LakebedError as error:
        yield str(error)


def _changed_types(schemas: tuple[Schema, ...]) -> Iterator[str]:
    """Columns whose type became one that does not hold every value of the old one.

    Only a rollback makes a column narrow again, and then it has a type that it had before.
    """
    known: dict[int, list[Type]] = {}  # ever wider
    for schema in schemas:
        for field in schema.fields:
            types = known.setdefault(field.id, [field.type])
            is_nested = not isinstance(types[-1], Primitive)
            if (is_nested and not isinstance(field.type, Primitive)) or field.type in types:
                continue
            if is_nested or not can_widen(types[-1], field.type):
                yield f"column {field.name!r} went from {types[-1]} to {field.type}"
            types.append(field.type)
