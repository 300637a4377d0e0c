"""Law: a dropped file's explanation says what the file has and what was asked for."""

from typing import Any

import pytest
from tests.expr.groups import UNKNOWN, Groups, Split, Vague
from tests.expr.samples import IDS, NAMES, SCHEMA

from lakebed.expr.bind import bind
from lakebed.expr.parse import parse_predicate
from lakebed.expr.prune import explain_drop
from lakebed.format.partition import TransformName

_NEW_YEAR_US = 1_767_225_600 * 10**6  # 2026-01-01


@pytest.mark.parametrize(
    ("text", "values", "reason"),
    [
        ("date >= '2026-01-03'", [20_454, 20_455],
         "date: 2026-01-01..2026-01-02 is outside date >= 2026-01-03"),
        ("timestamptz < '2026-01-01'", [_NEW_YEAR_US], "timestamptz: 2026-01-01T00:00:00Z.."
         "2026-01-01T00:00:00Z is outside timestamptz < 2026-01-01T00:00:00Z"),
        ("timestamptz IS NULL", [0], "timestamptz: no value is null, outside timestamptz IS NULL"),
        ("long > 1", [None], "long: every value is null, outside long > 1"),
        ("double < 1e0", [float("nan")], "double: every value is NaN, outside double < 1.0"),
        ("double IS NAN", [1.0], "double: no value is NaN, outside double IS NAN"),
        ("long = 5.5", [5], "long: no value of the column's type can match"),
        ("int IN (1, 2, 3, 4)", [9], "int: 9..9 is outside int IN (1, 2, 3, …)"),
        ("boolean", [False], "boolean: false..false is outside boolean = true"),
        ("NOT string LIKE 'a%'", ["a\nb"], "string: a?b..a?b is outside NOT string LIKE a%"),
        ("int > 5 AND int < 3", [4], "int: 4..4 is outside int > 5"),
        ("int > 5 OR int < 3", [4], "int: 4..4 is outside int > 5; int: 4..4 is outside int < 3"),
        ("FALSE", [4], "the predicate is never true"),
    ],
)  # fmt: skip
def test_explanation_reads(text: str, values: list[Any], reason: str) -> None:
    bound = bind(parse_predicate(text), SCHEMA)
    name = NAMES[min(bound.field_ids(), default=IDS["int"])]
    groups = Groups([[{name: 1 if name == "int" else None}], [{name: value} for value in values]])
    assert explain_drop(bound, groups, 1, NAMES) == reason


def test_explanation_of_a_bucket_does_not_blame_the_bounds() -> None:
    groups = Groups([[{"string": "a"}, {"string": "a"}]], [{"string": UNKNOWN}])
    groups.splits = [Split("string", TransformName.BUCKET, 1 << 20)]
    bound = bind(parse_predicate("string = 'b'"), SCHEMA)
    assert explain_drop(bound, groups, 0, NAMES) == "string: its bucket is not that of string = b"


def test_column_without_a_name_is_told_by_its_number() -> None:
    bound = bind(parse_predicate("int > 5"), SCHEMA)
    number = IDS["int"]
    assert (
        explain_drop(bound, Groups([[{"int": 1}]]), 0)
        == f"#{number}: 1..1 is outside #{number} > 5"
    )


def test_file_that_may_match_has_no_reason_to_be_dropped() -> None:
    for text in ("int = 1", "int = 1 OR int = 9", "TRUE", "int IS NOT NULL AND int < 2"):
        bound = bind(parse_predicate(text), SCHEMA)
        assert explain_drop(bound, Groups([[{"int": 1}]]), 0, NAMES) == ""


def test_long_lists_of_reasons_and_long_values_are_cut() -> None:
    text = " OR ".join(f"string = '{letter * 99}'" for letter in "bcdef")
    reason = explain_drop(bind(parse_predicate(text), SCHEMA), Groups([[{"string": "a" * 99}]]), 0)
    assert reason.count("; ") == 3
    assert reason.endswith("; …")
    assert len(reason) < 500


def test_unknown_bound_is_left_open() -> None:
    groups = Groups([[{"int": 5}]], [{"int": Vague(upper=True)}])
    reason = explain_drop(bind(parse_predicate("int < 3"), SCHEMA), groups, 0, NAMES)
    assert reason == "int: 5.. is outside int < 3"
