"""Changes of columns, partitioning and properties; no data file is rewritten.

Each step is applied to the table as it is when the commit lands, so evolutions of two people
follow each other, or one of them learns that its column is gone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import pyarrow as pa

from lakebed.commit.change import Commit, Definition
from lakebed.errors import BadMetadataError, RequestError
from lakebed.files.arrow_schema import from_arrow
from lakebed.format.metadata import TableMetadata
from lakebed.format.partition import PartitionSpec, check_transform, parse_spec
from lakebed.format.schema import Schema, check_column_name, check_tag_name
from lakebed.format.types import (
    Field,
    Primitive,
    Type,
    can_widen,
    parse_primitive,
)
from lakebed.limits import TAG_COUNT_MAX
from lakebed.table.properties import check_properties

Define = Callable[[Definition], Definition]
Step = Callable[[Definition], Definition]


class Evolution:
    """Steps that are made together: `table.evolve().add_column(…).drop_column(…).commit()`."""

    def __init__(self, make: Callable[[Define, dict[str, str]], Commit]) -> None:
        self._make = make
        self._steps: list[Step] = []
        self._texts: list[str] = []

    def add_column(self, name: str, type: object, *, doc: str = "") -> Self:
        """Add a column at the end; rows that are there have null in it.

        `type` is a pyarrow type, or a name such as `double` or `decimal(10,2)`.
        """
        return self._then(
            f"add {name}", lambda now: _with_schema(now, _added(now, name, type, doc))
        )

    def rename_column(self, old: str, new: str) -> Self:
        """Rename a column; it keeps its field id, so its rows stay."""

        def step(now: Definition) -> Definition:
            schema = _schema(now)
            field = replace(schema.field(old), name=check_column_name(new))
            return _with_schema(now, _replaced(schema, field))

        return self._then(f"rename {old} to {new}", step)

    def drop_column(self, name: str) -> Self:
        """Drop a column; older versions still have it, and its field id is never given again."""

        def step(now: Definition) -> Definition:
            schema = _schema(now)
            gone = schema.field(name)
            if len(schema.fields) == 1:
                raise RequestError(f"{name!r} is the only column", hint="Drop the table instead")
            spec = now.metadata.spec(now.spec_id)
            if any(field.source_id == gone.id for field in spec.fields):
                raise RequestError(
                    f"the table is partitioned by {name!r}",
                    hint="Change the partitioning first: evolve().partition_by([…])",
                )
            return _with_schema(now, tuple(f for f in schema.fields if f.id != gone.id))

        return self._then(f"drop {name}", step)

    def widen_column(self, name: str, type: object) -> Self:
        """Give a column a type that holds every value of the old one: int to long and so on."""

        def step(now: Definition) -> Definition:
            schema = _schema(now)
            field = schema.field(name)
            wider = _type_of(type, name)
            if not can_widen(field.type, wider):
                raise RequestError(
                    f"{name!r} cannot go from {field.type} to {wider} without changing values",
                    hint="int goes to long or double, float to double, decimals to more digits",
                )
            assert isinstance(wider, Primitive), "only primitive types widen"
            widest = now.metadata.field_type(field.id)
            had = [s.by_id[field.id].type for s in now.metadata.schemas if field.id in s.by_id]
            if widest is not None and wider not in had and not can_widen(widest, wider):
                raise RequestError(
                    f"{name!r} was {widest} before a rollback, and {wider} does not hold every "
                    "value of that",
                    hint=f"Widen it to {widest}, or add another column",
                )
            for spec in now.metadata.specs:
                for each in spec.fields:
                    if each.source_id == field.id:
                        check_transform(each.transform, wider, each.width)
            return _with_schema(now, _replaced(schema, replace(field, type=wider)))

        return self._then(f"widen {name}", step)

    def partition_by(self, transforms: Sequence[str]) -> Self:
        """Split new rows in another way; files that are there stay as they are."""
        texts = [transforms] if isinstance(transforms, str) else list(transforms)
        return self._then(
            f"partition by {', '.join(texts) or 'nothing'}", lambda now: _repartitioned(now, texts)
        )

    def set_properties(self, properties: Mapping[str, str | None]) -> Self:
        """Set properties; None removes one."""

        def step(now: Definition) -> Definition:
            merged = {**now.metadata.properties, **properties}
            kept = {key: value for key, value in merged.items() if value is not None}
            metadata = replace(now.metadata, properties=check_properties(kept))
            return replace(now, metadata=metadata)

        return self._then("set properties", step)

    def commit(self) -> Commit:
        """Make all steps in one commit."""
        if not self._steps:
            raise RequestError("nothing to change", hint="Call add_column and the like first")
        steps = tuple(self._steps)

        def define(now: Definition) -> Definition:
            for step in steps:
                now = step(now)
            return now

        return self._make(define, {"changes": "; ".join(self._texts)})

    def _then(self, text: str, step: Step) -> Self:
        self._steps.append(step)
        self._texts.append(text)
        return self


def tagging(name: str, version: int) -> Define:
    """Give a version a name."""
    check_tag_name(name)

    def define(now: Definition) -> Definition:
        tags = {**now.metadata.tags, name: version}
        if len(tags) > TAG_COUNT_MAX:
            raise RequestError(f"a table has at most {TAG_COUNT_MAX} tags")
        return replace(now, metadata=replace(now.metadata, tags=tags))

    return define


def _schema(now: Definition) -> Schema:
    return now.metadata.schema(now.schema_id)


def _added(now: Definition, name: str, kind: object, doc: str) -> tuple[Field, ...]:
    schema = _schema(now)
    if name in schema.by_name:
        raise RequestError(f"there is a column {name!r} already")
    field = replace(_field(name, kind, now.metadata.last_field_id + 1), doc=doc)
    return (*schema.fields, field)


def _field(name: str, kind: object, first_id: int) -> Field:
    check_column_name(name)
    if isinstance(kind, pa.DataType):
        return from_arrow(pa.schema([pa.field(name, kind)]), first_id=first_id).fields[0]
    return Field(first_id, name, _type_of(kind, name))


def _type_of(kind: object, name: str) -> Type:
    if isinstance(kind, pa.DataType):
        return from_arrow(pa.schema([pa.field(name, kind)])).fields[0].type
    if isinstance(kind, Primitive):
        return kind
    if isinstance(kind, str):
        try:
            return parse_primitive(kind)
        except BadMetadataError as error:  # The text is the user's here, not a file's.
            raise RequestError(error.message, hint=error.hint) from error
    raise RequestError(
        f"{kind!r} is not a type", hint='Use a pyarrow type, or a name such as "double"'
    )


def _replaced(schema: Schema, field: Field) -> tuple[Field, ...]:
    return tuple(field if each.id == field.id else each for each in schema.fields)


def _with_schema(now: Definition, fields: tuple[Field, ...]) -> Definition:
    """Make `fields` the columns; a schema that the table had before is taken up again."""
    metadata = now.metadata
    known = next((s for s in metadata.schemas if s.fields == fields), None)
    if known is not None:
        return replace(now, schema_id=known.id)
    schema = _checked(len(metadata.schemas), fields)
    grown = replace(
        metadata,
        schemas=(*metadata.schemas, schema),
        last_field_id=max(metadata.last_field_id, schema.last_id),
    )
    return replace(now, metadata=grown, schema_id=schema.id)


def _checked(schema_id: int, fields: tuple[Field, ...]) -> Schema:
    folded = [field.name.casefold() for field in fields]
    twice = next((f.name for f in fields if folded.count(f.name.casefold()) > 1), None)
    if twice is not None:
        raise RequestError(f"two columns would be named {twice!r}, but for case")
    return Schema(schema_id, fields)


def _repartitioned(now: Definition, texts: list[str]) -> Definition:
    metadata: TableMetadata = now.metadata
    spec = parse_spec(
        texts,
        _schema(now),
        spec_id=len(metadata.specs),
        first_field_id=metadata.last_partition_field_id + 1,
    )
    known = next((old for old in metadata.specs if _alike(old, spec)), None)
    if known is not None:
        return replace(now, spec_id=known.id)
    grown = replace(
        metadata,
        specs=(*metadata.specs, spec),
        last_partition_field_id=metadata.last_partition_field_id + len(spec.fields),
    )
    return replace(now, metadata=grown, spec_id=spec.id)


def _alike(old: PartitionSpec, new: PartitionSpec) -> bool:
    def essence(spec: PartitionSpec) -> list[Any]:
        return [(f.source_id, f.transform, f.width) for f in spec.fields]

    return essence(old) == essence(new)
