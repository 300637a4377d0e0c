"""Law: pruning never drops a row that matches, and never vouches for a row that does not."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.expr.groups import EXACT, UNKNOWN, Groups, Split, Vague, splits_of, verdict
from tests.expr.oracle import Row, truth
from tests.expr.samples import (
    IDS,
    KINDS,
    NAMES,
    SCHEMA,
    column_names,
    predicates,
    rows,
)

from lakebed.expr.bind import bind
from lakebed.expr.nodes import Node
from lakebed.expr.parse import parse_predicate
from lakebed.expr.prune import explain_drop, may_match, must_match
from lakebed.format.partition import TransformName
from lakebed.format.schema import Schema
from lakebed.format.types import Field, Kind, ListOf, Primitive

Case = tuple[Node, Groups]

_VAGUE = st.builds(
    Vague,
    nulls=st.booleans(),
    nans=st.booleans(),
    lower=st.booleans(),
    upper=st.booleans(),
    wider=st.booleans(),
    cut=st.sampled_from([0, 1, 2, 16]),
)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    names = draw(column_names())
    groups = draw(st.lists(st.lists(rows(names), min_size=1, max_size=4), min_size=1, max_size=5))
    vague = [
        {name: draw(st.just(EXACT) | st.just(EXACT) | _VAGUE) for name in names} for _ in groups
    ]
    splits = [split for name in names for split in splits_of(name)]
    chosen = draw(st.lists(st.sampled_from(splits), max_size=2)) if splits else []
    is_file = draw(st.booleans())  # of one partition, unlike a manifest
    if chosen and is_file:
        groups = [_alike(group, chosen) for group in groups]
    if draw(st.integers(0, 3)) == 0:
        _drop_column(groups[0], vague[0], names[0])
    return draw(predicates(names)), Groups(groups, vague, chosen)


def _alike(group: list[Row], splits: list[Split]) -> list[Row]:
    """The rows that would be in one file: those of the first row's partition."""
    key = [split.value(group[0]) for split in splits]
    return [row for row in group if [split.value(row) for split in splits] == key]


def _drop_column(group: list[Row], vague: dict[str, Vague], name: str) -> None:
    for row in group:
        row[name] = None
    vague[name] = Vague(nulls=True, nans=True, missing=True)


def _check(case: Case) -> None:
    node, groups = case
    bound = bind(node, SCHEMA)
    may, must = may_match(bound, groups), must_match(bound, groups)
    assert may.dtype == must.dtype == bool
    assert len(may) == len(must) == groups.length
    for place, group in enumerate(groups.rows):
        found = [truth(node, row, KINDS) is True for row in group]
        assert may[place] or not any(found), f"a matching row of {group} is lost"
        assert not must[place] or all(found), f"a row of {group} does not match"
        assert bool(explain_drop(bound, groups, place, NAMES)) is not bool(may[place])


@given(cases())
@settings(max_examples=100, derandomize=True, database=None)
def test_no_match_is_dropped_and_no_stranger_is_vouched_for(case: Case) -> None:
    _check(case)


@pytest.mark.slow
@given(cases())
@settings(max_examples=3000, database=None)
def test_no_match_is_dropped_and_no_stranger_is_vouched_for_in_thousands(case: Case) -> None:
    _check(case)


@st.composite
def single_rows(draw: st.DrawFn) -> Case:
    names = draw(column_names())
    groups = [[row] for row in draw(st.lists(rows(names), min_size=1, max_size=8))]
    return draw(predicates(names)), Groups(groups)


@given(single_rows())
@settings(max_examples=80, derandomize=True, database=None)
def test_exact_evidence_about_one_row_gives_the_exact_answer(case: Case) -> None:
    node, groups = case
    bound = bind(node, SCHEMA)
    exact = [truth(node, group[0], KINDS) is True for group in groups.rows]
    assert may_match(bound, groups).tolist() == exact
    assert must_match(bound, groups).tolist() == exact


@st.composite
def identity_rows(draw: st.DrawFn) -> Case:
    name = draw(st.sampled_from([name for name in KINDS if name not in ("float", "double")]))
    groups = [[row] for row in draw(st.lists(rows([name]), min_size=1, max_size=8))]
    vague = [{name: UNKNOWN}] * len(groups)
    return draw(predicates([name])), Groups(groups, vague, [Split(name, TransformName.IDENTITY)])


@given(identity_rows())
@settings(max_examples=80, derandomize=True, database=None)
def test_identity_partition_alone_gives_the_exact_answer(case: Case) -> None:
    node, groups = case
    bound = bind(node, SCHEMA)
    exact = [truth(node, group[0], KINDS) is True for group in groups.rows]
    assert may_match(bound, groups).tolist() == exact
    assert must_match(bound, groups).tolist() == exact


# ------------------------------------------------------------------------------------ examples


def _verdict(text: str, values: list[Any], *, name: str) -> str:
    return verdict(text, Groups([[{name: value} for value in values]]))


def test_nan_keeps_a_file_for_not_equal_and_for_nothing_else() -> None:
    nan = float("nan")
    assert _verdict("double != 1", [1.0, nan], name="double") == "some"
    assert _verdict("double != 1", [nan], name="double") == "all"
    assert _verdict("NOT double < 1", [nan, 2.0], name="double") == "all"
    assert _verdict("double < 1", [nan, 2.0], name="double") == "none"
    assert _verdict("double >= 2", [nan, 2.0], name="double") == "some"
    assert _verdict("double IS NAN", [nan], name="double") == "all"
    assert _verdict("double IS NAN", [1.0, None], name="double") == "none"


def test_nan_is_told_from_numbers_and_from_null() -> None:
    nan = float("nan")
    assert _verdict("double IS NOT NAN", [1.0], name="double") == "all"
    assert _verdict("double IS NOT NAN", [1.0, nan], name="double") == "some"
    assert _verdict("double IS NOT NAN", [nan], name="double") == "none"
    assert _verdict("NOT double < 1", [2.0, None], name="double") == "some"
    assert _verdict("double != 1", [nan, None], name="double") == "some"
    assert _verdict("double NOT IN (1, 2)", [nan, None, 3.0], name="double") == "some"
    assert _verdict("double NOT IN (1, 2)", [nan, 3.0], name="double") == "all"


def _vaguely(text: str, values: list[Any], name: str, vague: Vague) -> str:
    return verdict(text, Groups([[{name: value} for value in values]], [{name: vague}]))


def test_uncounted_nan_may_be_there() -> None:
    uncounted = Vague(nans=True)
    for text in ("double = 1", "double != 1", "double IS NAN", "double IS NOT NAN", "double < 2"):
        assert _vaguely(text, [1.0], "double", uncounted) == "some", text


def test_uncounted_nulls_may_be_there() -> None:
    uncounted = Vague(nulls=True)
    for text in ("long = 1", "long IS NULL", "long IS NOT NULL", "long NOT IN (2, 3)"):
        assert _vaguely(text, [1], "long", uncounted) == "some", text
    assert _vaguely("long = 2", [1], "long", uncounted) == "none"


@pytest.mark.parametrize("text", ["long IN (1, 7)", "long > 4", "long != 5", "long <= 9"])
def test_unknown_bound_proves_nothing(text: str) -> None:
    assert _vaguely(text, [5], "long", Vague(lower=True, upper=True)) == "some"


def test_one_known_bound_proves_what_it_can() -> None:
    no_upper, no_lower = Vague(upper=True), Vague(lower=True)
    assert _vaguely("long IN (1, 7)", [5], "long", no_upper) == "some"
    assert _vaguely("long IN (1, 4)", [5], "long", no_upper) == "none"
    assert _vaguely("long NOT IN (1, 4)", [5], "long", no_upper) == "all"
    assert _vaguely("long IN (1, 7)", [5], "long", no_lower) == "some"
    assert _vaguely("long IN (6, 7)", [5], "long", no_lower) == "none"
    assert _vaguely("long >= 5", [5], "long", no_upper) == "all"
    assert _vaguely("long <= 5", [5], "long", no_upper) == "some"


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("string LIKE 'ab%'", ["a", "ab"], "some"),
        ("string LIKE 'ab%'", ["ab", "abz"], "all"),
        ("string LIKE 'ab%'", ["ac", "ad"], "none"),
        ("string LIKE 'ab%'", ["aa", "ac"], "some"),
        ("string LIKE 'a_%'", ["a", "ab"], "some"),
        ("string LIKE 'a%b'", ["ac", "ad"], "some"),
        ("string NOT LIKE 'ab%'", ["ab", "abz"], "none"),
        ("string NOT LIKE 'ab%'", ["ac", "ad"], "all"),
        ("string NOT LIKE 'a_%'", ["a", "ab"], "some"),
        ("string LIKE '%x'", ["a", "b"], "some"),
        ("string LIKE '%x'", ["ax"], "all"),
        ("string NOT LIKE '%x'", ["ax", None], "none"),
        ("string LIKE '\ud7ff%'", ["\ue000"], "none"),
        ("string LIKE '\U0010ffff%'", ["a", "b"], "none"),
        ("string LIKE '\U0010ffff%'", ["\U0010ffffa", "\U0010ffffb"], "all"),
    ],
)
def test_like_is_decided_by_its_prefix_or_by_a_single_value(
    text: str, values: list[Any], expected: str
) -> None:
    assert _verdict(text, values, name="string") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("long IS NULL", "all"),
        ("long IS NOT NULL", "none"),
        ("long = 1", "none"),
        ("long != 1", "none"),
        ("long NOT IN (1, 2)", "none"),
        ("long != 5.5", "none"),
    ],
)
def test_column_that_a_file_lacks_is_null_whatever_else_is_said(text: str, expected: str) -> None:
    vague = Vague(nulls=True, missing=True)
    assert _vaguely(text, [None, None], "long", vague) == expected

    class Contradiction(Groups):
        def null_count(self, field_id: int) -> Any:
            return pa.array([0], pa.int64())

    bound = bind(parse_predicate(text), SCHEMA)
    groups = Contradiction([[{"long": None}]], [{"long": Vague(missing=True)}])
    assert must_match(bound, groups).tolist() == [expected == "all"]


def test_null_is_never_vouched_for() -> None:
    assert _verdict("long >= 0", [1, None], name="long") == "some"
    assert _verdict("long = 5.5", [5], name="long") == "none"
    assert _verdict("long != 5.5", [5], name="long") == "all"
    assert _verdict("long != 5.5", [5, None], name="long") == "some"
    assert _verdict("long != 5.5", [None], name="long") == "none"


def test_either_zero_is_found_by_the_other() -> None:
    assert _verdict("double = 0", [-0.0], name="double") == "all"
    assert _verdict("double = -0e0", [0.0], name="double") == "all"
    assert _verdict("double < 0", [-0.0], name="double") == "none"


def test_bounds_of_a_column_widened_since_are_compared_exactly() -> None:
    narrow, wide = (
        bind(parse_predicate("int IN (1, 7) OR int > 9"), SCHEMA),
        Groups([[{"long": 7}]]),
    )

    class Widened(Groups):
        def lower(self, field_id: int) -> Any:
            return wide.lower(IDS["long"])

        def upper(self, field_id: int) -> Any:
            return wide.upper(IDS["long"])

    assert must_match(narrow, Widened([[{"int": 7}]])).tolist() == [True]
    no = bind(parse_predicate("int IN (1, 8) OR int > 9"), SCHEMA)
    assert may_match(no, Widened([[{"int": 7}]])).tolist() == [False]


@given(cases())
@settings(max_examples=20, derandomize=True, database=None)
def test_nothing_known_keeps_every_file_unless_no_row_at_all_could_match(case: Case) -> None:
    class Nothing(Groups):
        def lower(self, field_id: int) -> None:
            return None

        upper = null_count = nan_count = missing = lower

    node, known = case
    bound, groups = bind(node, SCHEMA), Nothing(known.rows)
    may, must = may_match(bound, groups), must_match(bound, groups)
    assert len(set(may.tolist())) == len(set(must.tolist())) == 1
    found = [truth(node, row, KINDS) is True for group in known.rows for row in group]
    assert may[0] or not any(found)
    assert not must[0] or all(found)


def test_nothing_known_of_a_column_vouches_for_nothing() -> None:
    class Nothing(Groups):
        def null_count(self, field_id: int) -> None:
            return None

        nan_count = null_count

    for text in ("double != 5", "double IS NOT NULL", "double IS NOT NAN", "double < 5"):
        bound, groups = bind(parse_predicate(text), SCHEMA), Nothing([[{"double": 1.0}]])
        assert must_match(bound, groups).tolist() == [False], text
        assert may_match(bound, groups).tolist() == [True], text


def test_nested_column_is_pruned_by_its_nulls_alone() -> None:
    points = Field(1, "points", ListOf(Field(99, "element", Primitive(Kind.LONG))))
    bound = bind(parse_predicate("points IS NULL"), Schema(0, (points,)))

    class Nested(Groups):
        def null_count(self, field_id: int) -> Any:
            return pa.array([0, 1, 2, None], pa.int64())

        def lower(self, field_id: int) -> None:
            raise AssertionError("a nested column has no bounds")

        upper = lower

    groups = Nested([[{}, {}]] * 4)
    assert may_match(bound, groups).tolist() == [False, True, True, True]
    assert must_match(bound, groups).tolist() == [False, False, True, False]


def test_no_groups_give_no_answers() -> None:
    bound = bind(parse_predicate("string LIKE 'a%' AND long IN (1, 2) AND TRUE"), SCHEMA)
    assert may_match(bound, Groups([])).tolist() == must_match(bound, Groups([])).tolist() == []
