"""Bounds hold each value that is neither null nor NaN, however odd, and counts are exact."""

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.files.manifests import KINDS, VALUES

from lakebed.files.column_stats import (
    column_stats,
    cut_lower,
    cut_upper,
    footer_stats,
    stats_fields,
    stats_of,
)
from lakebed.files.manifest import typed_array
from lakebed.format.datafile import ColumnStats
from lakebed.format.schema import Schema
from lakebed.format.types import Field, Kind, ListOf, Primitive
from lakebed.limits import BOUND_LENGTH_MAX, STATS_COLUMN_COUNT_MAX

DOUBLE, TEXT, BINARY = Primitive(Kind.DOUBLE), Primitive(Kind.STRING), Primitive(Kind.BINARY)
NAN, INF = float("nan"), float("inf")

# Characters around the gap of the surrogates and at the end of all, which are hard to raise.
odd_text = st.text(
    st.sampled_from("a\x00\x7f\x80é\ud7ff\ue000\uffff\U00010000\U0010ffff"), max_size=12
)
odd_bytes = st.binary(max_size=6) | st.lists(
    st.sampled_from([0, 0x7F, 0xFE, 0xFF]), max_size=8
).map(bytes)


@given(odd_text | odd_bytes, st.integers(1, 8))
def test_a_cut_value_is_an_outer_bound(value: Any, length: int) -> None:
    lower, upper = cut_lower(value, length), cut_upper(value, length)
    assert lower <= value
    assert len(lower) <= length
    assert upper is None or (value <= upper and len(upper) <= length)
    if len(value) <= length:
        assert lower == upper == value


@pytest.mark.parametrize(
    ("value", "upper"),
    [
        ("abc", "ac"),
        ("a\U0010ffffc", "b"),
        ("\U0010ffff\U0010ffffx", None),
        ("a\ud7ffc", "a\ue000"),
        ("\ud7ff\U0010ffffc", "\ue000"),
        ("a\uffffc", "a\U00010000"),
        (b"a\xffc", b"b"),
        (b"\xff\xff\xff", None),
        (b"\x00\x00\x00", b"\x00\x01"),
    ],
)
def test_the_last_character_that_can_be_raised_is_raised(value: Any, upper: Any) -> None:
    assert cut_upper(value, 2) == upper
    if isinstance(upper, str):
        assert upper.encode() > value.encode()  # in the order of bytes too


def test_unknown_stays_unknown() -> None:
    assert cut_lower(None, 4) is None
    assert cut_upper(None, 4) is None


@given(st.lists(st.none() | st.floats() | st.sampled_from([0.0, -0.0, NAN, INF, -INF]), max_size=8))
def test_floats_lie_between_their_bounds_and_are_counted(values: list[float | None]) -> None:
    stats = stats_of(pa.chunked_array([pa.array(values, pa.float64())]), DOUBLE)
    assert stats.null_count == sum(value is None for value in values)
    assert stats.nan_count == sum(value is not None and math.isnan(value) for value in values)
    numbers = [value for value in values if value is not None and not math.isnan(value)]
    if not numbers:
        assert (stats.lower, stats.upper) == (None, None)
        return
    assert (stats.lower, stats.upper) == (min(numbers), max(numbers))
    if stats.lower == 0:
        assert math.copysign(1, stats.lower) == -1
    if stats.upper == 0:
        assert math.copysign(1, stats.upper) == 1


@given(st.lists(st.none() | odd_text | st.text(min_size=60, max_size=70), max_size=5))
def test_text_lies_between_its_bounds_in_the_order_of_code_points(values: list[str | None]) -> None:
    stats = stats_of(pa.array(values, pa.string()), TEXT)
    for value in values:
        if value is not None:
            assert stats.lower <= value
            assert stats.upper is None or value <= stats.upper
    assert len(stats.lower or "") <= BOUND_LENGTH_MAX
    assert len(stats.upper or "") <= BOUND_LENGTH_MAX


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_type_has_exact_counts_and_bounds_in_storage_form(kind: Primitive) -> None:
    low, high = VALUES[kind.kind]
    column = typed_array([high, None, low, None], kind)
    for shape in (column, pa.chunked_array([column[:1], column[1:]])):
        stats = stats_of(shape, kind)
        assert stats.null_count == 2
        assert repr((stats.lower, stats.upper)) == repr((low, high))
    assert stats_of(typed_array([None], kind), kind).lower is None
    assert stats_of(typed_array([], kind), kind).null_count == 0


def test_a_long_value_of_fixed_length_has_no_bounds_because_a_cut_one_would_be_none() -> None:
    for length, known in ((BOUND_LENGTH_MAX, True), (BOUND_LENGTH_MAX + 1, False)):
        kind = Primitive(Kind.FIXED, length=length)
        stats = stats_of(typed_array([b"\x01" * length], kind), kind)
        assert (stats.lower is not None) is known


def test_only_the_leading_primitive_columns_have_statistics() -> None:
    nested = Field(900, "n", ListOf(Field(901, "element", DOUBLE)))
    many = tuple(Field(i + 1, f"c{i}", Primitive(Kind.INT)) for i in range(80))
    fields = stats_fields(Schema(0, (nested, *many)))
    assert [field.id for field, _ in fields] == list(range(1, STATS_COLUMN_COUNT_MAX + 1))


def test_columns_of_a_table_are_found_by_name_and_kept_by_id() -> None:
    schema = Schema(0, (Field(7, "b", DOUBLE), Field(3, "a", TEXT)))
    table = pa.table({"a": ["x", None], "b": [1.5, NAN]})
    assert column_stats(table, schema) == {
        7: ColumnStats(0, 1, 1.5, 1.5),
        3: ColumnStats(1, None, "x", "x"),
    }


# -------------------------------------------------------------------------------------- footers


def footer_of(column: Any, **options: Any) -> Any:
    footers: list[Any] = []
    sink = pa.BufferOutputStream()
    table = pa.table({"c": column})
    pq.write_table(table, sink, metadata_collector=footers, **options)
    return footers[0]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("options", [{}, {"store_decimal_as_integer": True}, {"row_group_size": 1}])
def test_a_footer_tells_the_same_as_the_rows(kind: Primitive, options: dict[str, Any]) -> None:
    low, high = VALUES[kind.kind]
    column = typed_array([high, None, low], kind)
    found = footer_stats(footer_of(column, **options), [(Field(1, "c", kind), kind)], {"c": 0})
    stats = stats_of(column, kind)
    assert repr(found[1]) == repr(ColumnStats(stats.null_count, None, stats.lower, stats.upper))


def test_a_footer_without_statistics_knows_nothing() -> None:
    footer = footer_of(pa.array([1.5]), write_statistics=False)
    assert footer_stats(footer, [(Field(1, "c", DOUBLE), DOUBLE)], {"c": 0}) == {1: ColumnStats()}


def test_one_row_group_of_nan_makes_the_bounds_unknown() -> None:
    footer = footer_of(pa.array([1.5, NAN]), row_group_size=1)
    found = footer_stats(footer, [(Field(1, "c", DOUBLE), DOUBLE)], {"c": 0})
    assert found == {1: ColumnStats(0)}


def test_a_row_group_of_nulls_does_not_make_the_bounds_unknown() -> None:
    footer = footer_of(pa.array([1.5, None, 2.5]), row_group_size=1)
    found = footer_stats(footer, [(Field(1, "c", DOUBLE), DOUBLE)], {"c": 0})
    assert found == {1: ColumnStats(1, None, 1.5, 2.5)}


@given(st.lists(st.none() | odd_text, min_size=1, max_size=6))
def test_bounds_from_a_footer_hold_every_text(values: list[str | None]) -> None:
    footer = footer_of(pa.array(values, pa.string()), row_group_size=2)
    found = footer_stats(footer, [(Field(1, "c", TEXT), TEXT)], {"c": 0})[1]
    for value in values:
        if value is not None:
            assert found.lower is None or found.lower <= value
            assert found.upper is None or found.upper >= value


def test_decimals_of_38_digits_are_exact() -> None:
    kind = Primitive(Kind.DECIMAL, 38, 2)
    value = Decimal("-" + "9" * 36 + ".99")
    footer = footer_of(typed_array([value], kind))
    assert footer_stats(footer, [(Field(1, "c", kind), kind)], {"c": 0})[1].lower == value
