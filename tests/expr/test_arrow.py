"""Law: a row is kept if and only if the predicate is TRUE for it, whatever the column's type."""

import io
import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
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

from lakebed.expr.arrow import filter_mask, primitive_arrow_type, pushable
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
@settings(max_examples=3000, database=None)
def test_mask_is_the_oracle_row_by_row_for_thousands(case: Case) -> None:
    _check_mask(case)


def _check_pushed(case: Case) -> None:
    names, found, node = case
    bound, whole = bind(node, SCHEMA), table(found, names)
    pushed = pushable(bound, {i: name for i, name in NAMES.items() if name in names})
    sink = io.BytesIO()
    pq.write_table(whole, sink, row_group_size=2, store_schema=False)
    fragment = ds.ParquetFileFormat().make_fragment(pa.BufferReader(sink.getvalue()))
    kept = fragment.to_table(schema=whole.schema, filter=pushed)
    again = kept.filter(filter_mask(bound, kept, NAMES))
    expected = whole.filter(filter_mask(bound, whole, NAMES))
    assert repr(again.to_pydict()) == repr(
        expected.to_pydict()
    )  # repr: NaN and -0.0 are told apart


_PUSHED_NAMES = [name for name in KINDS if name != "date"]


@st.composite
def pushed_cases(draw: st.DrawFn) -> Case:
    names = draw(st.lists(st.sampled_from(_PUSHED_NAMES), min_size=1, max_size=2, unique=True))
    found = draw(st.lists(rows(names), min_size=1, max_size=8))
    known = [row for row in found if _printable(row)]
    return names, known or [dict.fromkeys(names)], draw(predicates(names))


def _printable(row: Row) -> bool:
    """Whether Python has the row's times: its calendar is shorter than Arrow's."""
    return all(
        not isinstance(v, int) or isinstance(v, bool) or abs(v) < 1 << 55 for v in row.values()
    )


@given(pushed_cases())
@settings(max_examples=40, derandomize=True, database=None)
def test_no_matching_row_is_lost_by_what_is_pushed_to_parquet(case: Case) -> None:
    _check_pushed(case)


@pytest.mark.slow
@given(pushed_cases())
@settings(max_examples=1500, database=None)
def test_no_matching_row_is_lost_by_what_is_pushed_for_thousands(case: Case) -> None:
    _check_pushed(case)


def _bound(text: str) -> Any:
    return bind(parse_predicate(text), SCHEMA)


@pytest.mark.parametrize(
    "text",
    [
        "double != 1e0",
        "NOT double < 1e0",
        "double IS NAN",
        "double IS NULL",
        "long IS NULL",
        "long = 1 OR double IS NAN",
        "string LIKE '%a'",
        "TRUE",
    ],
)
def test_what_nan_or_null_can_satisfy_is_not_pushed(text: str) -> None:
    assert pushable(_bound(text), NAMES) is None


def test_conjunct_on_unnamed_column_is_dropped_and_the_rest_is_pushed() -> None:
    only_long = {i: name for i, name in NAMES.items() if name == "long"}
    pushed = pushable(_bound("long > 5 AND int = 3"), only_long)
    assert pushed is not None
    assert pushed.equals(pc.field("long") > pa.scalar(5, pa.int64()))
    assert pushable(_bound("long > 5 OR int = 3"), only_long) is None


def test_pushed_predicate_lets_arrow_skip_row_groups() -> None:
    values = table(
        [{"string": text, "long": n} for n, text in enumerate("abcdefgh")], ["string", "long"]
    )
    sink = io.BytesIO()
    pq.write_table(values, sink, row_group_size=2)
    fragment = ds.ParquetFileFormat().make_fragment(pa.BufferReader(sink.getvalue()))
    for text, groups in [
        ("string LIKE 'c%'", 1),
        ("long IN (0, 7)", 2),
        ("long >= 6", 1),
        ("string = 'zz'", 0),
        ("long > 1 AND string LIKE '%x'", 3),
    ]:
        pushed = pushable(_bound(text), NAMES)
        assert len(fragment.split_by_row_group(pushed, values.schema)) == groups, text


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
