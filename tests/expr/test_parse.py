"""Law: text reads as one tree, a tree's text reads back as that tree, and a flaw is pointed at."""

from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.expr.samples import column_names, predicates

from lakebed.errors import PredicateError
from lakebed.expr.literals import Moment, TimeOfDay
from lakebed.expr.nodes import (
    And,
    Compare,
    Constant,
    In,
    IsNan,
    IsNull,
    Like,
    Node,
    Not,
    Op,
    Or,
    col,
)
from lakebed.expr.parse import as_predicate, parse_predicate
from lakebed.limits import PREDICATE_DEPTH_MAX, PREDICATE_LENGTH_MAX

A, B, C = (Compare(name, Op.EQ, 1) for name in "abc")


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("a = 1", A),
        ("a == 1", A),
        ("1 = a", A),
        ("(a=1)", A),
        ("a <> 1", Compare("a", Op.NE, 1)),
        ("a != 1", Compare("a", Op.NE, 1)),
        ("1 < a", Compare("a", Op.GT, 1)),
        ("1 >= a", Compare("a", Op.LE, 1)),
        ("a = 1 AND b = 1 OR c = 1", Or((And((A, B)), C))),
        ("a = 1 or b = 1 and c = 1", Or((A, And((B, C))))),
        ("a = 1 AND (b = 1 OR c = 1)", And((A, Or((B, C))))),
        ("NOT a = 1 AND b = 1", And((Not(A), B))),
        ("NOT (a = 1 AND b = 1)", Not(And((A, B)))),
        ("NOT NOT a = 1", Not(Not(A))),
        ("a = 1 AND b = 1 AND c = 1", And((A, B, C))),
        ("a IN (1, 'x', NULL)", In("a", (1, "x", None))),
        ("a NOT IN (1)", Not(In("a", (1,)))),
        ("a BETWEEN 1 AND 2 AND b = 1", And((Compare("a", Op.GE, 1), Compare("a", Op.LE, 2), B))),
        ("a NOT BETWEEN 1 AND 2", Not(And((Compare("a", Op.GE, 1), Compare("a", Op.LE, 2))))),
        ("a LIKE 'x%'", Like("a", "x%")),
        ("a not like 'x!%' escape '!'", Not(Like("a", "x!%", "!"))),
        ("a IS NULL", IsNull("a")),
        ("a IS NOT NULL", Not(IsNull("a"))),
        ("a IS NAN", IsNan("a")),
        ("isnan(a)", IsNan("a")),
        ("starts_with(a, '5%')", Like("a", "5\\%%", "\\")),
        ("flag", Compare("flag", Op.EQ, value=True)),
        ("NOT flag", Not(Compare("flag", Op.EQ, value=True))),
        ("TRUE", Constant(value=True)),
        ("null", Constant(None)),
        ('"a b" = 1', Compare("a b", Op.EQ, 1)),
        ('"a""b" = 1', Compare('a"b', Op.EQ, 1)),
        ("`and` = 1", Compare("and", Op.EQ, 1)),
        ("größe = 1", Compare("größe", Op.EQ, 1)),
        ("starts_with = 1", Compare("starts_with", Op.EQ, 1)),
        ("date = 1", Compare("date", Op.EQ, 1)),
    ],
)
def test_text_reads_as_the_tree(text: str, node: Node) -> None:
    assert parse_predicate(text) == node


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-5", -5),
        ("- 5", -5),
        ("+5", 5),
        ("1.50", Decimal("1.50")),
        (".5", Decimal("0.5")),
        ("1e3", 1000.0),
        ("-inf", float("-inf")),
        ("'it''s'", "it's"),
        ("''", ""),
        ("X'00fF'", b"\x00\xff"),
        ("TRUE", True),
        ("DATE '2026-01-31'", date(2026, 1, 31)),
        ("TIME '05:06'", TimeOfDay(18_360 * 10**9)),
        ("TIMESTAMP '1970-01-01 00:00:01'", Moment(10**9, zoned=False)),
        ("timestamp '1970-01-01T00:00:01.000000001Z'", Moment(10**9 + 1, zoned=True)),
    ],
)
def test_constant_reads_as_the_value(text: str, value: Any) -> None:
    node = parse_predicate(f"a = {text}")
    assert isinstance(node, Compare)
    assert node.value == value
    assert type(node.value) is type(value)


@given(column_names().flatmap(predicates))
@settings(max_examples=150, derandomize=True, database=None)
def test_text_of_a_tree_reads_back_as_the_tree(node: Node) -> None:
    again = parse_predicate(str(node))
    assert again == node
    assert str(again) == str(node)
    assert hash(again) == hash(node)


@pytest.mark.parametrize(
    ("text", "message", "position"),
    [
        ("", "expected a column", 0),
        ("a =", "expected a constant", 3),
        ("a = b", "expected a constant", 4),
        ("a > 1 AND", "expected a column", 9),
        ("a > 1 b", "expected AND, OR or the end", 6),
        ("(a > 1", "never closed", 0),
        ("a > 1)", "expected AND, OR or the end", 5),
        ("a = 'x", "never closed", 4),
        ('"a = 1', "empty or never closed", 0),
        ("a IN ()", "expected a constant", 6),
        ("a IN (1", "expected '\\)'", 7),
        ("a IS 5", "expected NULL or NAN", 5),
        ("a BETWEEN 1 OR 2", "expected AND", 12),
        ("a LIKE 5", "expected text", 7),
        ("a LIKE 'x!' ESCAPE '!'", "escapes only", 7),
        ("1 = 2", "expected a column", 4),
        ("5", "expected a comparison", 1),
        ("a.b = 1", "expected a comparison", 1),
        ("a = 5x", "not a number", 4),
        ("a ; DROP", "has no meaning", 2),
        ("a = X'0'", "pairs of hex digits", 4),
        ("a = TIMESTAMP '2026-13-01'", "is not a date", 14),
        ("a = DATE 'x'", "is not a date", 9),
        ("a = 1e999", "too large for a double", 4),
        ("and = 1", "expected a column", 0),
        ("a = '\ud800'", "not Unicode", 4),
    ],
)
def test_flaw_is_pointed_at(text: str, message: str, position: int) -> None:
    with pytest.raises(PredicateError, match=message) as caught:
        parse_predicate(text)
    assert caught.value.fields["position"] == position
    assert caught.value.hint
    line, pointer = str(caught.value).splitlines()[1:3]
    assert pointer.index("^") - 2 == position
    assert line[2:] == text.replace("\ud800", " ")  # a space for what cannot be printed


def test_number_of_too_many_digits_is_refused() -> None:
    with pytest.raises(PredicateError, match="more than 1000 digits"):
        parse_predicate(f"a = {'9' * 1001}")


def test_pointer_of_a_long_text_stands_below_its_place() -> None:
    text = "a = 1 AND " * 50 + "b ? 2" + " OR c = 3" * 50
    with pytest.raises(PredicateError) as caught:
        parse_predicate(text)
    line, pointer = str(caught.value).splitlines()[1:3]
    assert line[pointer.index("^")] == "?"
    assert len(line) < 120


@pytest.mark.parametrize("opening", ["(", "NOT "])
def test_text_nested_too_deep_is_refused_and_never_exhausts_the_stack(opening: str) -> None:
    closing = ")" if opening == "(" else ""
    deepest = PREDICATE_DEPTH_MAX - 1
    assert str(parse_predicate(f"{opening * deepest}a = 1{closing * deepest}")).endswith("a = 1")
    with pytest.raises(PredicateError, match="deep"):
        parse_predicate(opening * (PREDICATE_LENGTH_MAX // 8) + "a = 1")


def test_long_chain_is_one_flat_node() -> None:
    node = parse_predicate(" OR ".join(f"a = {n}" for n in range(5000)))
    assert isinstance(node, Or)
    assert len(node.children) == 5000


def test_text_that_is_too_long_is_refused_with_the_limit() -> None:
    with pytest.raises(PredicateError, match="characters") as caught:
        parse_predicate(" " * (PREDICATE_LENGTH_MAX + 1))
    assert str(PREDICATE_LENGTH_MAX) in caught.value.hint


@given(st.text(st.sampled_from("ab1'\"`().,=<>! -+eEXnotNULLinlkandr\n\x00é"), max_size=40))
@settings(max_examples=150, derandomize=True, database=None)
def test_garbage_is_a_tree_or_a_predicate_error(text: str) -> None:
    try:
        node = parse_predicate(text)
    except PredicateError:
        return
    assert parse_predicate(str(node)) == node


def test_where_is_text_a_tree_or_nothing() -> None:
    node = col("a") == 1
    assert as_predicate(None) is None
    assert as_predicate(node) is node
    assert as_predicate("a = 1") == A
    for wrong in (True, 5, col("a")):
        with pytest.raises(PredicateError, match="a predicate is SQL text"):
            as_predicate(wrong)
