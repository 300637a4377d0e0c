"""A definition comes back as it was written, and one that contradicts itself does not come back."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.format import build

from lakebed.errors import BadMetadataError, BadTableError, NotFoundError
from lakebed.format.metadata import TableMetadata, decode_metadata, encode_metadata
from lakebed.format.partition import PartitionField, PartitionSpec, TransformName
from lakebed.format.schema import Schema
from lakebed.format.types import Field, Kind, ListOf, MapOf, Primitive, Struct, Type
from lakebed.limits import TAG_COUNT_MAX, TYPE_DEPTH_MAX

INT, LONG, TEXT = Primitive(Kind.INT), Primitive(Kind.LONG), Primitive(Kind.STRING)


def test_a_definition_comes_back_as_it_was() -> None:
    metadata = build.metadata()
    assert decode_metadata(encode_metadata(metadata), "p") == metadata


primitives = st.one_of(
    st.sampled_from([k for k in Kind if k not in (Kind.DECIMAL, Kind.FIXED)]).map(Primitive),
    st.integers(1, 38).flatmap(
        lambda p: st.integers(0, p).map(lambda s: Primitive(Kind.DECIMAL, p, s))
    ),
    st.integers(1, 1 << 20).map(lambda n: Primitive(Kind.FIXED, length=n)),
)


def nested(inside: st.SearchStrategy[Type]) -> st.SearchStrategy[Type]:
    field = st.builds(Field, st.just(0), st.text("ab", min_size=1, max_size=3), inside)
    return st.one_of(
        st.lists(field, min_size=1, max_size=3).map(lambda fields: Struct(tuple(fields))),
        field.map(ListOf),
        st.builds(MapOf, field, field),
    )


def numbered(kind: Type, ids: Any) -> Type:
    """The type again, with an id of its own for each part."""

    def fresh(field: Field) -> Field:
        return dataclasses.replace(field, id=next(ids), type=numbered(field.type, ids))

    match kind:
        case Struct(fields=fields):
            return Struct(tuple(map(fresh, fields)))
        case ListOf(element=element):
            return ListOf(fresh(element))
        case MapOf(key=key, value=value):
            return MapOf(fresh(key), fresh(value))
        case _:
            return kind


@given(st.recursive(primitives, nested, max_leaves=6), st.booleans(), st.text())
def test_every_type_comes_back(kind: Type, required: bool, doc: str) -> None:
    field = Field(1, "c", numbered(kind, iter(range(2, 100))), required, doc)
    metadata = build.metadata(schemas=(Schema(0, (field,)),), specs=(), last_field_id=100)
    assert decode_metadata(encode_metadata(metadata), "p") == metadata


def unchecked(**changes: Any) -> bytes:
    """The file of a definition with other values at its top level."""
    return build.resealed(encode_metadata(build.metadata()), **changes)


def field(number: int = 1, name: str = "c", kind: Any = "int") -> dict[str, Any]:
    return {"id": number, "name": name, "type": kind}


def part(
    number: int = 1000, source: int = 1, transform: str = "day", width: int = 0
) -> dict[str, Any]:
    return {
        "id": number, "source_id": source, "transform": transform, "name": "p", "width": width
    }  # fmt: skip


def schemas(*fields: Any) -> list[dict[str, Any]]:
    return [{"id": place, "fields": each} for place, each in enumerate(fields)]


def specs(*fields: Any) -> list[dict[str, Any]]:
    return [{"id": 0, "fields": list(fields)}]


UNSOUND: dict[str, dict[str, Any]] = {
    "no schema": {"schemas": [], "specs": []},
    "schemas from 1": {"schemas": [{"id": 1, "fields": [field()]}], "specs": []},
    "specs from 1": {"specs": [{"id": 1, "fields": []}]},
    "a field id above the last": {"last_field_id": 9},
    "a partition id above the last": {"last_partition_field_id": 999},
    "created before 1970": {"created_ms": -1},
    "created after all": {"created_ms": 10**30},
    "a negative tag": {"tags": {"a": -1}},
    "a huge tag": {"tags": {"a": 10**30}},
    "too many tags": {"tags": {f"t{i}": 1 for i in range(TAG_COUNT_MAX + 1)}},
    "a tag that is text": {"tags": {"a": "1"}},
    "a property that is a number": {"properties": {"a": 1}},
    "two columns of one id": {"schemas": schemas([field(1, "a"), field(1, "b")]), "specs": []},
    "an id below 1": {"schemas": schemas([field(0)]), "specs": []},
    "two columns of one name": {"schemas": schemas([field(1, "a"), field(2, "A")]), "specs": []},
    "a name with a line break": {"schemas": schemas([field(1, "a\nb")]), "specs": []},
    "an empty name": {"schemas": schemas([field(1, "")]), "specs": []},
    "an unknown type": {"schemas": schemas([field(1, "a", "varchar")]), "specs": []},
    "a decimal of 39 digits": {"schemas": schemas([field(1, "a", "decimal(39,0)")]), "specs": []},
    "a type that is a number": {"schemas": schemas([field(1, "a", 7)]), "specs": []},
    "a map with one part": {"schemas": schemas([field(1, "a", {"map": [field(2)]})]), "specs": []},
    "a struct of numbers": {"schemas": schemas([field(1, "a", {"struct": [1]})]), "specs": []},
    "a list of ids twice": {"schemas": schemas([field(1, "a", {"list": field(1)})]), "specs": []},
    "a column that turned to text": {
        "schemas": schemas([field(1, "a", "int")], [field(1, "a", "string")]), "specs": []
    },
    "a column that became narrow": {
        "schemas": schemas([field(1, "a", "long")], [field(1, "a", "int")]), "specs": []
    },
    "a column that became narrow while it was away": {
        "schemas": schemas([field(1, "a", "long")], [field(2, "b")], [field(1, "a", "int")]),
        "specs": [],
    },
    "a column that became nested": {
        "schemas": schemas([field(1, "a")], [field(1, "a", {"list": field(2)})]), "specs": []
    },
    "a partition by no column": {"specs": specs(part(source=99))},
    "a partition by a nested column": {"specs": specs(part(source=5, transform="identity"))},
    "a bucket of width 0": {"specs": specs(part(source=2, transform="bucket"))},
    "a bucket of negative width": {"specs": specs(part(source=2, transform="bucket", width=-4))},
    "a bucket of huge width": {"specs": specs(part(source=2, transform="bucket", width=1 << 31))},
    "a day of text": {"specs": specs(part(source=2))},
    "a float identity": {"specs": specs(part(source=3, transform="identity"))},
    "a transform unknown": {"specs": specs(part(transform="zorder"))},
    "two partition fields of one id": {"specs": specs(part(), part(transform="hour"))},
    "a partition id too low": {"specs": specs(part(number=1))},
}  # fmt: skip


@pytest.mark.parametrize("changes", UNSOUND.values(), ids=UNSOUND)
def test_a_definition_that_contradicts_itself_is_not_read(changes: dict[str, Any]) -> None:
    with pytest.raises(BadMetadataError):
        decode_metadata(unchecked(**changes), "p")


def test_the_unsound_ones_differ_from_a_sound_one_in_that_only() -> None:
    assert decode_metadata(unchecked(), "p") == build.metadata()
    sound = unchecked(schemas=schemas([field(1, "a")], [field(1, "b", "long")]), specs=specs())
    assert decode_metadata(sound, "p").schema(1).fields == (Field(1, "b", LONG),)


def test_types_nested_too_deep_are_refused() -> None:
    kind: Any = "int"
    for number in range(TYPE_DEPTH_MAX + 2):
        kind = {"list": {"id": number + 2, "name": "element", "type": kind}}
    changes = {"schemas": schemas([field(1, "a", kind)]), "specs": [], "last_field_id": 100}
    with pytest.raises(BadTableError):
        decode_metadata(unchecked(**changes), "p")


def test_too_many_columns_are_refused() -> None:
    fields = [field(number, f"c{number}") for number in range(1, 5002)]
    with pytest.raises(BadTableError, match="5001 columns"):
        decode_metadata(unchecked(schemas=schemas(fields), specs=[], last_field_id=9999), "p")


def test_an_absent_schema_or_spec_is_bad_metadata_and_an_absent_tag_is_not_found() -> None:
    metadata = build.metadata()
    assert metadata.schema(0) is metadata.schemas[0]
    assert metadata.spec(0) is metadata.specs[0]
    assert metadata.tag("release") == 3
    for number in (-1, 1):
        with pytest.raises(BadMetadataError, match="no schema"):
            metadata.schema(number)
        with pytest.raises(BadMetadataError, match="no partition spec"):
            metadata.spec(number)
    with pytest.raises(NotFoundError, match="The tags are: release"):
        metadata.tag("other")
    with pytest.raises(NotFoundError, match="The tags are: none"):
        build.metadata(tags={}).tag("other")


def test_the_type_of_a_field_is_its_newest_also_after_it_was_dropped() -> None:
    metadata = build.metadata(
        schemas=(
            Schema(0, (Field(1, "a", INT), Field(2, "b", TEXT))),
            Schema(1, (Field(1, "a", LONG), Field(3, "n", ListOf(Field(4, "element", INT))))),
        )
    )
    assert metadata.field_type(1) == LONG
    assert metadata.field_type(2) == TEXT
    assert metadata.field_type(3) is None
    assert metadata.field_type(99) is None


def test_a_definition_that_cannot_be_read_back_is_not_written() -> None:
    spec = PartitionSpec(0, (PartitionField(1000, 3, TransformName.IDENTITY, "value"),))
    broken: TableMetadata = build.metadata(specs=(spec,))
    with pytest.raises(BadMetadataError):
        encode_metadata(broken)
