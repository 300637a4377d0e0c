"""Law: a bound predicate means exactly what was written, in field ids and storage values."""

import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.expr.oracle import compared
from tests.expr.samples import IDS, KINDS, SCHEMA, VALUES, column_names, constants, predicates

from lakebed.errors import PredicateError
from lakebed.expr.bind import LIKE_PATTERN_LENGTH_MAX, bind
from lakebed.expr.bound import (
    FALSE,
    TRUE,
    UNKNOWN,
    Bound,
    BoundAnd,
    BoundCompare,
    BoundConstant,
    BoundIn,
    BoundIsNull,
    BoundLike,
    BoundNonNull,
    BoundNot,
    BoundOr,
    all_of,
    any_of,
    negated_leaf,
)
from lakebed.expr.nodes import Compare, Node, Op, col
from lakebed.expr.parse import parse_predicate
from lakebed.expr.tree import fold
from lakebed.format.schema import Schema
from lakebed.format.types import FLOATS, Field, Kind, Primitive, Struct


def _bound(text: str) -> Bound:
    return bind(parse_predicate(text), SCHEMA)


def _compare(name: str, op: str, value: Any) -> BoundCompare:
    return BoundCompare(IDS[name], KINDS[name], Op(op), value)


def _has_value(name: str, truth: bool) -> BoundNonNull:
    return BoundNonNull(IDS[name], KINDS[name], truth)


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("int = 5", _compare("int", "=", 5)),
        ("int = 5.0", _compare("int", "=", 5)),
        ("int = 5.5", _has_value("int", False)),
        ("int != 5.5", _has_value("int", True)),
        ("int < 5.5", _compare("int", "<=", 5)),
        ("int >= -5.5", _compare("int", ">", -6)),
        ("int < 2147483648", _has_value("int", True)),
        ("int > 2147483648", _has_value("int", False)),
        ("int >= -inf", _has_value("int", True)),
        ("int = nan", _has_value("int", False)),
        ("int != nan", _has_value("int", True)),
        ("decimal = 1.5", _compare("decimal", "=", Decimal("1.50"))),
        ("decimal < 0.005", _compare("decimal", "<=", Decimal("0.00"))),
        ("decimal < 10000000", _has_value("decimal", True)),
        ("float = 0.1", _has_value("float", False)),
        ("float > 1e-50", _compare("float", ">=", 2.0**-149)),
        ("float < -1e-50", _compare("float", "<=", -(2.0**-149))),
        ("float = 0.5", _compare("float", "=", 0.5)),
        ("float < 16777217", _compare("float", "<=", 16777216.0)),
        ("float > 16777217", _compare("float", ">=", 16777218.0)),
        ("double = 0.1", _compare("double", "=", 0.1)),
        ("double = -0e0", _compare("double", "=", 0.0)),
        ("double = 9007199254740993", _has_value("double", False)),
        ("double > 9007199254740993", _compare("double", ">=", 9007199254740994.0)),
        ("double < 1e300", _compare("double", "<", 1e300)),
        ("boolean", _compare("boolean", "=", True)),
        ("boolean > FALSE", _compare("boolean", "=", True)),
        ("boolean >= FALSE", _has_value("boolean", True)),
        ("boolean < FALSE", _has_value("boolean", False)),
        ("boolean IN (TRUE, FALSE)", _has_value("boolean", True)),
        ("date = '2026-01-01'", _compare("date", "=", 20_454)),
        ("date < '2026-01-01 12:00'", _compare("date", "<=", 20_454)),
        ("time >= '00:00:01'", _compare("time", ">=", 1_000_000)),
        ("time < '00:00:00.0000005'", _compare("time", "<=", 0)),
        ("timestamp < '1969-12-31T23:59:59.9999995'", _compare("timestamp", "<=", -1)),
        ("timestamptz = '1970-01-01T01:00+01:00'", _compare("timestamptz", "=", 0)),
        ("timestamptz = '1970-01-01T00:00'", _compare("timestamptz", "=", 0)),
        ("timestamp_ns = '1970-01-01T00:00:00.000000001'", _compare("timestamp_ns", "=", 1)),
        ("timestamp_ns < '2300-01-01'", _has_value("timestamp_ns", True)),
        ("fixed > X'61'", _compare("fixed", ">=", b"a\0")),
        ("fixed > X'616263'", _compare("fixed", ">", b"ab")),
        ("fixed = X'61'", _has_value("fixed", False)),
        ("string LIKE 'abc'", _compare("string", "=", "abc")),
        ("string LIKE ''", _compare("string", "=", "")),
        ("string LIKE '%%'", _has_value("string", True)),
        ("string LIKE 'a%'", BoundLike(IDS["string"], KINDS["string"], ("=a", "%"))),
        ("int IN (5)", _compare("int", "=", 5)),
        ("int IN (5.5)", _has_value("int", False)),
        ("int IN (7, 5, 5.0, 6.5)", BoundIn(IDS["int"], KINDS["int"], (5, 7))),
        ("int NOT IN (7, 5)", BoundNot(BoundIn(IDS["int"], KINDS["int"], (5, 7)))),
        ("int = NULL", UNKNOWN),
        ("NOT int = NULL", UNKNOWN),
        ("int = 1 AND FALSE", FALSE),
        ("int = 1 OR TRUE", TRUE),
        ("int = 1 AND TRUE", _compare("int", "=", 1)),
        ("NOT int < 5", _compare("int", ">=", 5)),
        ("NOT double < 5", BoundNot(_compare("double", "<", 5.0))),
        ("NOT double = 5", _compare("double", "!=", 5.0)),
        ("NOT (int = 1 OR int > 2)",
         BoundAnd((_compare("int", "!=", 1), _compare("int", "<=", 2)))),
        ("int IS NOT NULL", BoundNot(BoundIsNull(IDS["int"], KINDS["int"]))),
    ],
)  # fmt: skip
def test_predicate_binds_to(text: str, bound: Bound) -> None:
    assert _bound(text) == bound


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("sring = 'a'", "no column 'sring'", "'string'"),
        ("INT = 1", "no column 'INT'", "'int'"),
        ("qqqq = 1", "no column 'qqqq'", "The columns are"),
        ("int = 'a'", "'int' of type int cannot", "without quotes"),
        ("string = 5", "'string' of type string cannot", "quotes"),
        ("int = TRUE", "'int' of type int cannot", "without quotes"),
        ("boolean = 1", "cannot be compared", "TRUE or FALSE"),
        ("timestamp = 5", "cannot be compared", "not a count of seconds"),
        ("timestamp = '2026-01-01Z'", "cannot be compared", "2026"),
        ("timestamp = '2026-01-01 00:00Z'", "cannot be compared", "no zone"),
        ("date = '2026-01-01 00:00Z'", "cannot be compared", "no zone"),
        ("date = 'x'", "cannot be compared", "2026"),
        ("time = '25:00'", "cannot be compared", "05:06"),
        ("time = 5", "cannot be compared", "05:06"),
        ("binary = 'a'", "cannot be compared", "X'00ff'"),
        ("string = nan", "cannot be compared", "quotes"),
        ("date = nan", "cannot be compared", "date like"),
        ("binary = nan", "cannot be compared", "X'00ff'"),
        ("boolean = nan", "cannot be compared", "TRUE or FALSE"),
        ("time = nan", "cannot be compared", "05:06"),
        ("int IS NAN", "is never NaN", "IS NULL"),
        ("int LIKE 'a%'", "LIKE is for text", ""),
        (f"string = 5 AND int = {'9' * 500}", "cannot be compared", "quotes"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_next_step(text: str, message: str, hint: str) -> None:
    with pytest.raises(PredicateError, match=message) as caught:
        _bound(text)
    assert hint in caught.value.hint


def test_nested_column_takes_is_null_only() -> None:
    schema = Schema(0, (Field(1, "s", Struct((Field(2, "x", Primitive(Kind.INT)),))),))
    assert bind(parse_predicate("s IS NULL"), schema).field_ids() == {1}
    with pytest.raises(PredicateError, match="nested column 's'"):
        bind(parse_predicate("s = 1"), schema)


def test_like_pattern_that_is_too_long_is_refused() -> None:
    longest = "a" * LIKE_PATTERN_LENGTH_MAX
    assert bind(col("string").like(longest), SCHEMA) == _compare("string", "=", longest)
    with pytest.raises(PredicateError, match="characters"):
        bind(col("string").like("_" * (LIKE_PATTERN_LENGTH_MAX + 1)), SCHEMA)


@pytest.mark.parametrize("name", KINDS)
def test_each_comparison_with_each_constant_means_what_the_oracle_says(name: str) -> None:
    ops = {Op.EQ: "==", Op.NE: "!=", Op.LT: "<", Op.LE: "<=", Op.GT: ">", Op.GE: ">="}
    for constant in constants(name):
        for op, python in ops.items():
            bound = bind(Compare(name, op, constant), SCHEMA)
            for value in VALUES[name]:
                if isinstance(bound, BoundCompare):
                    found = eval(f"a {ops[bound.op]} b", {"a": value, "b": bound.value})
                else:
                    assert isinstance(bound, BoundNonNull)
                    found = bound.truth
                expected = compared(value, op, Compare(name, op, constant).value, KINDS[name])
                assert found is expected, (value, python, constant)


def _negations(node: Bound, inner: list[list[Bound]]) -> list[Bound]:
    found = [child for children in inner for child in children]
    return [*found, *node.parts()] if isinstance(node, BoundNot) else found


@given(column_names().flatmap(predicates))
@settings(max_examples=100, derandomize=True, database=None)
def test_not_stands_only_above_leaves_without_an_opposite(node: Node) -> None:
    bound = bind(node, SCHEMA)
    for leaf in fold(bound, _negations):
        assert negated_leaf(leaf) == BoundNot(leaf)
    assert bound.field_ids() <= set(IDS.values())


@given(column_names().flatmap(predicates))
@settings(max_examples=100, derandomize=True, database=None)
def test_double_negation_binds_to_the_same(node: Node) -> None:
    assert bind(~~node, SCHEMA) == bind(node, SCHEMA)


@pytest.mark.parametrize("name", KINDS)
def test_order_is_negated_as_an_order_but_for_floats(name: str) -> None:
    bound = _compare(name, "<", next(v for v in VALUES[name] if v == v))
    opposite = negated_leaf(bound)
    assert isinstance(opposite, BoundNot) is (KINDS[name].kind in FLOATS)
    assert negated_leaf(opposite) == bound


@given(st.lists(st.sampled_from([TRUE, FALSE, UNKNOWN, _compare("int", "=", 1)]), max_size=4))
@settings(max_examples=100, derandomize=True, database=None)
def test_joining_folds_constants_as_sql_does(parts: list[Bound]) -> None:
    conjunction, disjunction = all_of(parts), any_of(parts)
    leaf = parts and _compare("int", "=", 1) in parts
    assert (conjunction == FALSE) is (FALSE in parts)
    assert (disjunction == TRUE) is (TRUE in parts)
    if not leaf and FALSE not in parts:
        assert conjunction == (UNKNOWN if UNKNOWN in parts else TRUE)
    if not leaf and TRUE not in parts:
        assert disjunction == (UNKNOWN if UNKNOWN in parts else FALSE)


def test_joining_splices_and_drops_repetitions() -> None:
    a, b, c = (_compare("int", "=", n) for n in range(3))
    assert all_of([all_of([a, b]), c, a]) == BoundAnd((a, b, c))
    assert any_of([any_of([a, b]), c, b]) == BoundOr((a, b, c))


def test_bound_predicate_is_readable() -> None:
    text = (
        "int > 1 AND (string LIKE 'a_%' OR NOT double IN (1, 2)) AND (double IS NAN OR int = 0.5)"
    )
    assert str(_bound(text)) == (
        "(#2 > 1 AND (#12 LIKE '=a _ %' OR NOT (#5 IN (1.0, 2.0))) AND "
        "(#5 IS NAN OR #2 HAS VALUE AND FALSE))"
    )
    assert str(BoundConstant(None)) == "NULL"
    assert str(_bound("int IS NOT NULL")) == "NOT (#2 IS NULL)"


def test_not_in_with_null_is_never_true() -> None:
    bound = _bound("int NOT IN (1, NULL)")
    assert bound == BoundAnd((_compare("int", "!=", 1), UNKNOWN))


def test_infinite_constant_of_a_float_is_itself() -> None:
    assert _bound("double < inf") == _compare("double", "<", math.inf)
    assert bind(col("float") > 10**40, SCHEMA) == _compare("float", ">=", math.inf)


def test_zero_constant_has_no_sign() -> None:
    for text in ("double = -0e0", "float >= -0e0", "double < -0.0"):
        bound = _bound(text)
        assert isinstance(bound, BoundCompare)
        assert str(bound.value) == "0.0"
