"""A schema can be typed by hand, and what is shown as a type can be typed again."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.errors import LakebedError, RequestError
from lakebed.format.schema_text import parse_column, parse_schema, schema_text


def shown(text: Any) -> Any:
    return [(f.id, f.name, str(f.type), f.required) for f in parse_schema(text).fields]


def test_columns_are_numbered_from_one_in_order() -> None:
    assert shown("ts timestamptz not null, sensor_id string, value DOUBLE") == [
        (1, "ts", "timestamptz", True),
        (2, "sensor_id", "string", False),
        (3, "value", "double", False),
    ]


def test_parents_are_numbered_before_their_parts() -> None:
    assert shown("a list<struct<x: int, y: map<string, double>>>, b long")[1][0] == 7


@pytest.mark.parametrize(
    "kind",
    [
        *("decimal(10,2)", "fixed[16]", "list<long>", "timestamptz_ns"),
        *("map<string, list<double>>", "struct<a: int, b: struct<c: date>>"),
    ],
)
def test_a_type_as_info_shows_it_can_be_read(kind: Any) -> None:
    assert str(parse_column(f"c {kind}").type) == kind


def test_familiar_names_of_types_are_understood() -> None:
    assert [kind for _, _, kind, _ in shown("a bigint, b TEXT, c bool, d float64")] == [
        "long",
        "string",
        "boolean",
        "double",
    ]


def test_odd_names_stand_in_quotes() -> None:
    assert shown('"the ""value"", °C" double, "list" int')[0][1] == 'the "value", °C'


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            ",",
            "a",
            "a int,",
            "a int b",
            "a int not",
            "a wibble",
            "a decimal",
            "a decimal(0,0)",
        ),
        *(
            "a list<int",
            "a list<>",
            "a struct<x int>",
            "a int;",
            "(a int)",
            "a int, A long",
            "a fixed[x]",
        ),
        *("a decimal(10)", '"" int', "a " + "list<" * 40 + "int" + ">" * 40),
    ],
)
def test_what_cannot_be_read_is_a_request_error(text: Any) -> None:
    with pytest.raises(RequestError):
        parse_schema(text)


@given(st.text(alphabet='ab ,<>()[]:"1intlsr\n\x00', max_size=40))
def test_any_text_is_a_schema_or_a_typed_error(text: Any) -> None:
    with contextlib.suppress(LakebedError):
        parse_schema(text)


@pytest.mark.parametrize(
    "text",
    [
        "ts timestamptz not null, sensor_id string, value double",
        '"odd ""name""" map<string, list<struct<"a b": decimal(9,2), c: fixed[4]>>>, not int',
    ],
)
def test_a_schema_written_as_text_is_read_back_the_same(text: str) -> None:
    schema = parse_schema(text)
    assert parse_schema(schema_text(schema)) == schema
