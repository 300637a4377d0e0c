"""Each Arrow type has one place in a table or none, and each of our types one Arrow type."""

from typing import Any

import pyarrow as pa
import pytest
from tests.files.manifests import KINDS

from lakebed.errors import IdentifierError, SchemaMismatchError
from lakebed.files.arrow_schema import (
    FIELD_ID,
    INFERRED,
    arrow_type,
    differences,
    from_arrow,
    leaf_places,
    to_arrow_schema,
    type_name,
)
from lakebed.format.schema import Schema
from lakebed.format.types import Field, Kind, ListOf, MapOf, Primitive, Struct

STORED = {
    "boolean": [pa.bool_()],
    "int": [pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16()],
    "long": [pa.int64(), pa.uint32()],
    "float": [pa.float16(), pa.float32()],
    "double": [pa.float64()],
    "decimal(9,2)": [pa.decimal32(9, 2), pa.decimal64(9, 2), pa.decimal128(9, 2)],
    "date": [pa.date32(), pa.date64()],
    "time": [pa.time32("s"), pa.time32("ms"), pa.time64("us")],
    "timestamp": [pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us")],
    "timestamptz": [pa.timestamp("us", "UTC"), pa.timestamp("s", "Europe/Berlin")],
    "timestamp_ns": [pa.timestamp("ns")],
    "timestamptz_ns": [pa.timestamp("ns", "+02:00")],
    "string": [pa.string(), pa.large_string(), pa.string_view()],
    "string ": [pa.dictionary(pa.int8(), pa.string())],
    "binary": [pa.binary(), pa.large_binary(), pa.binary_view()],
    "fixed[16]": [pa.binary(16), pa.uuid()],
    "list<int>": [
        *(pa.list_(pa.int32()), pa.large_list(pa.int32()), pa.list_(pa.int32(), 3)),
        *(pa.list_view(pa.int32()), pa.large_list_view(pa.int32())),
    ],
    "map<string, long>": [pa.map_(pa.string(), pa.int64())],
    "struct<x: int, y: string>": [pa.struct([("x", pa.int32()), ("y", pa.large_string())])],
    "double ": [pa.run_end_encoded(pa.int32(), pa.float64())],
}  # fmt: skip


PAIRS = [(name, kind) for name, kinds in STORED.items() for kind in kinds]


@pytest.mark.parametrize(("ours", "kind"), PAIRS, ids=str)
def test_an_arrow_type_maps_to_the_narrowest_of_ours_that_keeps_every_value(
    ours: str, kind: Any
) -> None:
    (field,) = from_arrow(pa.schema([pa.field("c", kind)])).fields
    assert str(field.type) == ours.strip() == type_name(kind)


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.uint64(), pa.null(), pa.duration("us"), pa.month_day_nano_interval(), pa.time64("ns")),
        *(pa.decimal256(50, 2), pa.decimal128(5, -2), pa.dense_union([pa.field("a", pa.int8())])),
        *(pa.list_(pa.uint64()), pa.struct([("x", pa.null())])),
    ],
    ids=str,
)
def test_an_arrow_type_without_a_place_is_refused_with_a_way_out(kind: Any) -> None:
    with pytest.raises(SchemaMismatchError, match="which a table cannot hold") as caught:
        from_arrow(pa.schema([pa.field("c", kind)]))
    assert caught.value.hint


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_our_types_survive_a_trip_through_arrow(kind: Primitive) -> None:
    schema = from_arrow(pa.schema([pa.field("c", arrow_type(kind))]))
    assert schema.fields[0].type == kind


NESTED = Schema(
    3,
    (
        Field(
            1,
            "s",
            Struct(
                (
                    Field(2, "x", Primitive(Kind.INT), required=True),
                    Field(3, "l", ListOf(Field(4, "element", Primitive(Kind.DATE)))),
                )
            ),
        ),
        Field(
            5,
            "m",
            MapOf(
                Field(6, "key", Primitive(Kind.STRING), required=True),
                Field(7, "value", Primitive(Kind.DOUBLE)),
            ),
            required=True,
        ),
    ),
)


def test_a_nested_schema_survives_with_ids_parents_first() -> None:
    assert from_arrow(to_arrow_schema(NESTED), schema_id=3) == NESTED
    assert from_arrow(to_arrow_schema(NESTED), first_id=11).last_id == 17


def test_every_field_carries_its_id_for_parquet_nested_ones_too() -> None:
    arrow = to_arrow_schema(NESTED)
    found = {}

    def collect(field: Any) -> None:
        found[field.name] = field.metadata[FIELD_ID].decode()
        kind = field.type
        if pa.types.is_struct(kind):
            for part in kind:
                collect(part)
        elif pa.types.is_list(kind):
            collect(kind.value_field)
        elif pa.types.is_map(kind):
            collect(kind.key_field)
            collect(kind.item_field)

    for field in arrow:
        collect(field)
    assert found == {
        "s": "1",
        "x": "2",
        "l": "3",
        "element": "4",
        "m": "5",
        "key": "6",
        "value": "7",
    }
    assert all(field.metadata is None for field in to_arrow_schema(NESTED, field_ids=False))


@pytest.mark.parametrize("names", [("a", "A"), ("a", "a"), ("straße", "STRASSE")])
def test_names_that_differ_in_case_only_are_refused(names: tuple[str, str]) -> None:
    with pytest.raises(SchemaMismatchError, match="have the same name"):
        from_arrow(pa.schema([(name, pa.int32()) for name in names]))
    with pytest.raises(SchemaMismatchError, match="have the same name"):
        from_arrow(pa.schema([("s", pa.struct([(name, pa.int32()) for name in names]))]))


@pytest.mark.parametrize("name", ["", " a", "a\n"])
def test_names_that_no_column_can_have_are_refused(name: str) -> None:
    with pytest.raises(IdentifierError):
        from_arrow(pa.schema([(name, pa.int32())]))


def test_types_nested_too_deep_are_refused() -> None:
    kind = pa.int32()
    for _ in range(40):
        kind = pa.list_(kind)
    with pytest.raises(SchemaMismatchError, match="nested more than"):
        from_arrow(pa.schema([("c", kind)]))


def test_leaves_are_counted_as_parquet_lays_them_out() -> None:
    schema = pa.schema(
        [
            ("m", pa.map_(pa.string(), pa.int32())),
            ("d", pa.dictionary(pa.int8(), pa.string())),
            ("s", pa.struct([("x", pa.list_(pa.struct([("y", pa.int8()), ("z", pa.int8())])))])),
            ("e", pa.int8()),
        ]
    )
    assert leaf_places(schema) == {"m": 0, "d": 2, "s": 3, "e": 5}


# ---------------------------------------------------------------------------------- differences

TABLE = Schema(
    0,
    (
        Field(1, "ts", Primitive(Kind.TIMESTAMPTZ), required=True),
        Field(2, "n", Primitive(Kind.INT)),
        Field(3, "x", Primitive(Kind.DOUBLE)),
        Field(4, "l", ListOf(Field(5, "element", Primitive(Kind.STRING)))),
        Field(6, "d", Primitive(Kind.DECIMAL, 9, 2)),
    ),
)
TS = ("ts", pa.timestamp("us", "UTC"))


def problems(*fields: Any, guessed: bool = False) -> list[str]:
    schema = pa.schema([*fields], metadata={INFERRED: b"true"} if guessed else None)
    return list(differences(TABLE, schema).problems)


def test_columns_in_any_order_and_missing_nullable_ones_fit() -> None:
    assert problems(("x", pa.float32()), TS) == []
    assert problems(TS, ("n", pa.int16()), ("x", pa.int32())) == []
    assert problems(("ts", pa.timestamp("ns", "Asia/Tokyo")), ("n", pa.null())) == []


@pytest.mark.parametrize(
    ("field", "sentence"),
    [
        (("n", pa.int64()), "column 'n': table has int, data has long"),
        (("n", pa.uint32()), "column 'n': table has int, data has long"),
        (("n", pa.float64()), "column 'n': table has int, data has double"),
        (("n", pa.bool_()), "column 'n': table has int, data has boolean"),
        (("x", pa.string()), "column 'x': table has double, data has string"),
        (("l", pa.string()), "column 'l': table has list<string>, data has string"),
        (("l", pa.list_(pa.int8())), "column 'l.element': table has string, data has int"),
        (("d", pa.decimal128(9, 3)), "column 'd': table has decimal(9,2), data has decimal(9,3)"),
        (("d", pa.decimal128(10, 2)), "column 'd': table has decimal(9,2), data has decimal(10,2)"),
        (("d", pa.float64()), "column 'd': table has decimal(9,2), data has double"),
        (("N", pa.int32()), "column 'N' differs only in case from the table's 'n'"),
        (pa.field("new", pa.int32(), nullable=False), "column 'new' is new and not nullable"),
        (("new", pa.uint64()), "which a table cannot hold"),
        (("new\n", pa.int8()), "cannot be a column name"),
    ],
    ids=str,
)
def test_a_column_that_does_not_fit_is_told_exactly(field: Any, sentence: str) -> None:
    (found,) = problems(TS, field)
    assert sentence in found


def test_a_zone_cannot_be_invented_or_dropped() -> None:
    (found,) = problems(("ts", pa.timestamp("us")))
    assert found == "column 'ts': table has timestamptz, data has timestamp"


def test_a_required_column_that_is_missing_and_a_column_given_twice_are_told() -> None:
    assert problems(("n", pa.int32())) == ["column 'ts' is required and missing"]
    assert problems(TS, TS) == ["column 'ts' appears more than once"]


def test_guessed_types_are_taken_more_freely() -> None:
    fields = (TS, ("n", pa.int64()), ("x", pa.int64()), ("d", pa.decimal128(3, 1)))
    assert len(problems(*fields)) == 2
    assert problems(*fields, guessed=True) == []
    assert problems(TS, ("n", pa.float64()), guessed=True)
    assert problems(TS, ("d", pa.decimal128(4, 3)), guessed=True)


def test_new_nullable_columns_are_what_the_table_could_gain() -> None:
    found = differences(TABLE, pa.schema([TS, ("new", pa.list_(pa.int8()))]))
    assert [field.name for field in found.extra] == ["new"]
    assert found.problems == ()
