"""Law: a row is kept if and only if the predicate is TRUE for it, whatever the column's type."""

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.expr.oracle import Row, truth
from tests.expr.samples import (
    KINDS,
    NAMES,
    SCHEMA,
    VALUES,
    column_names,
    predicates,
    rows,
    table,
    typed,
)

from lakebed.expr.arrow import filter_mask, primitive_arrow_type
from lakebed.expr.bind import bind
from lakebed.expr.nodes import Node
from lakebed.expr.parse import parse_predicate
from lakebed.format.schema import Schema
from lakebed.format.types import Field, Kind, ListOf, Primitive

Case = tuple[list[str], list[Row], Node]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    names = draw(column_names())
    return names, draw(st.lists(rows(names), max_size=8)), draw(predicates(names))


def _check_mask(case: Case) -> None:
    names, found, node = case
    mask = filter_mask(bind(node, SCHEMA), table(found, names), NAMES)
    assert mask.null_count == 0
    assert mask.to_pylist() == [truth(node, row, KINDS) is True for row in found]


@given(cases())
@settings(max_examples=80, derandomize=True, database=None)
def test_mask_is_the_oracle_row_by_row(case: Case) -> None:
    _check_mask(case)


@pytest.mark.slow
@given(cases())
@settings(max_examples=2000, database=None)
def test_mask_is_the_oracle_row_by_row_for_thousands(case: Case) -> None:
    _check_mask(case)


def _bound(text: str) -> Any:
    return bind(parse_predicate(text), SCHEMA)


@pytest.mark.parametrize(
    ("text", "name", "values", "kept"),
    [
        ("long NOT IN (1, 2)", "long", [None, 1, 3], [2]),
        ("double IS NAN", "double", [1.0, math.nan, None], [1]),
        ("double IS NOT NAN", "double", [1.0, math.nan, None], [0]),
        ("long IN (1, NULL)", "long", [None, 1, 3], [1]),
        ("long NOT IN (1, NULL)", "long", [None, 1, 3], []),
        ("string LIKE 'a_c'", "string", ["a\nc", "abc", "ac", "a\U0010ffffc"], [0, 1, 3]),
        ("string LIKE '_%c%_'", "string", ["\nc\n", "c", "acb"], [0, 2]),
        ("string LIKE 'a.c_'", "string", ["a.cd", "abcd"], [0]),
        ("string LIKE '%(_'", "string", ["x(y", "x(", "(\n"], [0, 2]),
        ("string LIKE '%b%'", "string", ["b", "abc", "", "B"], [0, 1]),
        ("string LIKE '%b'", "string", ["b", "ab", "ba"], [0, 1]),
        ("string NOT LIKE 'a_'", "string", [None, "ab", "abc"], [2]),
    ],
)
def test_rows_kept_are(text: str, name: str, values: list[Any], kept: list[Any]) -> None:
    mask = filter_mask(_bound(text), table([{name: v} for v in values], [name]), NAMES).to_pylist()
    chosen = [place for place, keep in enumerate(mask) if keep]
    assert chosen == kept


@pytest.mark.parametrize("name", KINDS)
def test_every_type_has_an_arrow_type_that_holds_its_values(name: str) -> None:
    found = typed(VALUES[name], KINDS[name])
    assert found.type == primitive_arrow_type(KINDS[name])
    assert len(found) == len(VALUES[name])


def test_instants_are_utc_and_wall_clocks_have_no_zone() -> None:
    assert primitive_arrow_type(Primitive(Kind.TIMESTAMPTZ)) == pa.timestamp("us", "UTC")
    assert primitive_arrow_type(Primitive(Kind.TIMESTAMPTZ_NS)) == pa.timestamp("ns", "UTC")
    assert primitive_arrow_type(Primitive(Kind.TIMESTAMP)) == pa.timestamp("us")
    assert primitive_arrow_type(Primitive(Kind.FIXED, length=3)) == pa.binary(3)


def test_column_of_a_narrower_or_wider_representation_is_compared_by_value() -> None:
    batch = pa.table({"string": pa.array(["a", "b", None], pa.large_string())})
    assert filter_mask(_bound("string = 'b'"), batch, NAMES).to_pylist() == [False, True, False]


def test_nested_column_takes_is_null() -> None:
    nested = Field(1, "points", ListOf(Field(2, "element", Primitive(Kind.DOUBLE))))
    bound = bind(parse_predicate("points IS NULL"), Schema(0, (nested,)))
    batch = pa.table({"points": pa.array([[1.0], None, [None]], pa.list_(pa.float64()))})
    assert filter_mask(bound, batch, {1: "points"}).to_pylist() == [False, True, False]


def test_table_of_several_chunks_gives_one_mask() -> None:
    parts = pa.chunked_array([[1, 2], [], [3]], pa.int64())
    mask = filter_mask(_bound("long >= 2"), pa.table({"long": parts}), NAMES)
    assert mask.to_pylist() == [False, True, True]
    assert (
        filter_mask(_bound("long >= 2"), pa.table({"long": parts}).slice(3), NAMES).to_pylist()
        == []
    )


def test_longest_like_pattern_is_matched() -> None:
    batch = pa.table({"string": ["é" * 4096, "é" * 4095]})
    bound = bind(parse_predicate(f"string LIKE '{'_' * 4096}'"), SCHEMA)
    assert filter_mask(bound, batch, NAMES).to_pylist() == [True, False]


def test_zeros_are_equal_and_nan_is_not() -> None:
    batch = pa.table({"double": [0.0, -0.0, math.nan, None]})
    for text in ("double = 0", "double IN (0, 7)", "double >= 0e0 AND double <= -0e0"):
        assert filter_mask(_bound(text), batch, NAMES).to_pylist() == [True, True, False, False]
    assert filter_mask(_bound("double != 0"), batch, NAMES).to_pylist() == [False] * 2 + [
        True,
        False,
    ]
