"""Names and ids of columns are unique, and names are text that people can type and read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.errors import BadMetadataError, IdentifierError, LimitExceededError, NotFoundError
from lakebed.format.schema import Schema, check_column_name, check_table_name, check_tag_name
from lakebed.format.types import Field, Kind, ListOf, Primitive

INT = Primitive(Kind.INT)


def test_columns_are_found_by_id_and_by_name() -> None:
    nested = ListOf(Field(9, "element", INT))
    schema = Schema(0, (Field(1, "a", INT), Field(4, "b", nested)))
    assert schema.by_id[4] is schema.by_name["b"] is schema.field("b")
    assert schema.last_id == 9
    assert 9 not in schema.by_id
    with pytest.raises(NotFoundError, match="The columns are: a, b"):
        schema.field("A")


def test_an_empty_schema_has_no_columns_and_last_id_0() -> None:
    assert Schema(0, ()).last_id == 0
    with pytest.raises(NotFoundError, match="The columns are: none"):
        Schema(0, ()).field("a")


@pytest.mark.parametrize(
    "fields",
    [
        (Field(1, "a", INT), Field(1, "b", INT)),
        (Field(1, "a", INT), Field(2, "b", ListOf(Field(1, "element", INT)))),
        (Field(0, "a", INT),),
        (Field(-3, "a", INT),),
        (Field(1, "a", INT), Field(2, "a", INT)),
        (Field(1, "straße", INT), Field(2, "STRASSE", INT)),
    ],
)
def test_ids_and_names_that_repeat_are_refused(fields: tuple[Field, ...]) -> None:
    with pytest.raises(BadMetadataError):
        Schema(0, fields)


def test_more_columns_than_the_limit_are_refused() -> None:
    assert Schema(0, tuple(Field(i + 1, f"c{i}", INT) for i in range(5000))).last_id == 5000
    with pytest.raises(LimitExceededError):
        Schema(0, tuple(Field(i + 1, f"c{i}", INT) for i in range(5001)))


@pytest.mark.parametrize(
    "name", ["a", "Temperatur °C", "a.b", "select", "日本", "a" * 255, "1", "x y"]
)
def test_readable_text_can_name_a_column(name: str) -> None:
    assert check_column_name(name) == name


@pytest.mark.parametrize(
    "name",
    ["", " a", "a ", "a\n", "a\tb", "\x00", "\x7f", "a\u202eb", "\ud800", "a" * 256, "\u2028"],
)
def test_odd_text_cannot_name_a_column(name: str) -> None:
    with pytest.raises(IdentifierError):
        check_column_name(name)


@pytest.mark.parametrize("name", ["t", "plant.readings", "a.b.c", "a-b.c_d", "_x", "größe", "a1"])
def test_words_joined_by_dots_can_name_a_table(name: str) -> None:
    assert check_table_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "a.", ".a", "a..b", "1a", "a b", "a/b", "../a", "a-", "-a", "a--b", "a\n"),
        *("\ud800", "a.b\n", "a%2e", "~", "a:b", "a\\b", "a" * 256, "é" * 128),
    ],
)  # fmt: skip
def test_what_could_not_be_a_directory_cannot_name_a_table(name: str) -> None:
    with pytest.raises(IdentifierError):
        check_table_name(name)


@given(st.text(max_size=12))
def test_a_table_name_that_passes_is_one_plain_path_segment(name: str) -> None:
    try:
        check_table_name(name)
    except IdentifierError:
        return
    assert name.strip("./\\ \n") == name
    assert not set(name) & set("/\\:%~\x00\n ")
    assert len(name.encode()) <= 255


@pytest.mark.parametrize("name", ["v1", "release-2026.1", "a", "été", "2026-Q1"])
def test_a_tag_has_a_letter(name: str) -> None:
    assert check_tag_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "1", "2026-01-01", "-", "1.5", "a b", "a/b", "a\n", "x" * 256]
)
def test_what_looks_like_a_number_or_date_is_no_tag(name: str) -> None:
    with pytest.raises(IdentifierError):
        check_tag_name(name)
