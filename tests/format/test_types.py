"""A type's name is read back as that type, and only what keeps every value is a widening."""

import pytest

from lakebed.errors import BadMetadataError, LimitExceededError
from lakebed.format.types import (
    Field,
    Kind,
    ListOf,
    MapOf,
    Primitive,
    Struct,
    Type,
    can_widen,
    parse_primitive,
    parts,
    walk,
)
from lakebed.limits import TYPE_DEPTH_MAX

SIMPLE = [Primitive(kind) for kind in Kind if kind not in (Kind.DECIMAL, Kind.FIXED)]
SOME = [
    *SIMPLE,
    Primitive(Kind.DECIMAL, 9, 2),
    Primitive(Kind.DECIMAL, 10, 2),
    Primitive(Kind.DECIMAL, 10, 3),
    Primitive(Kind.FIXED, length=4),
    Primitive(Kind.FIXED, length=5),
]


@pytest.mark.parametrize("kind", SOME, ids=str)
def test_a_name_is_read_back_as_its_type(kind: Primitive) -> None:
    assert parse_primitive(str(kind)) == kind


def test_a_space_after_the_comma_of_a_decimal_is_allowed() -> None:
    assert parse_primitive("decimal(10, 2)") == Primitive(Kind.DECIMAL, 10, 2)


@pytest.mark.parametrize(
    "text",
    [
        *("", "Int", "INT", "varchar", "decimal", "fixed", "decimal(39,1)", "decimal(0,0)"),
        *("decimal(2,3)", "decimal(-1,0)", "fixed[0]", "fixed[2147483648]", "fixed[-1]", "int "),
        *("decimal(\u0663,\u0661)", "fixed[4", "decimal(9999,1)", "fixed[99999999999]", "long\n"),
    ],
)
def test_what_is_not_a_type_is_refused(text: str) -> None:
    with pytest.raises(BadMetadataError):
        parse_primitive(text)


def test_exactly_these_pairs_widen() -> None:
    allowed = {
        (str(old), str(new)) for old in SOME for new in SOME if old != new and can_widen(old, new)
    }
    assert allowed == {
        ("int", "long"),
        ("int", "double"),
        ("float", "double"),
        ("decimal(9,2)", "decimal(10,2)"),
    }


@pytest.mark.parametrize("kind", SOME, ids=str)
def test_every_type_widens_to_itself(kind: Primitive) -> None:
    assert can_widen(kind, kind)


def test_a_nested_type_widens_to_itself_only() -> None:
    of_int = ListOf(Field(2, "element", Primitive(Kind.INT)))
    of_long = ListOf(Field(2, "element", Primitive(Kind.LONG)))
    assert can_widen(of_int, of_int)
    assert not can_widen(of_int, of_long)
    assert not can_widen(of_int, Primitive(Kind.INT))
    assert not can_widen(Primitive(Kind.INT), of_int)


def test_walking_gives_every_part_once_parents_first() -> None:
    inner = Struct((Field(3, "x", Primitive(Kind.INT)), Field(4, "y", Primitive(Kind.DATE))))
    kind = MapOf(
        Field(2, "key", Primitive(Kind.STRING)), Field(5, "value", ListOf(Field(6, "e", inner)))
    )
    top = (Field(1, "m", kind), Field(7, "z", Primitive(Kind.TIME)))
    assert [field.id for field in walk(top)] == [1, 2, 5, 6, 3, 4, 7]
    assert parts(Primitive(Kind.INT)) == ()
    assert str(kind) == "map<string, list<struct<x: int, y: date>>>"


def test_walking_stops_at_the_depth_limit() -> None:
    kind: Type = Primitive(Kind.INT)
    for number in range(TYPE_DEPTH_MAX + 1):
        kind = ListOf(Field(number + 2, "element", kind))
    with pytest.raises(LimitExceededError):
        walk((Field(1, "deep", kind),))
