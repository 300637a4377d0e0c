"""Law: a partition value proves about its column what the transform says, and nothing more."""

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.expr.groups import UNKNOWN, Groups, Split, verdict
from tests.expr.samples import IDS, KINDS, SCHEMA

from lakebed.expr.bind import bind
from lakebed.expr.bound import BoundCompare
from lakebed.expr.nodes import Op
from lakebed.expr.parse import parse_predicate
from lakebed.expr.prune import PartitionEvidence, may_match, must_match
from lakebed.format.partition import TransformName

_NEW_YEAR_US = 1_767_225_600 * 10**6  # 2026-01-01


def _verdict(text: str, values: list[Any], split: Split) -> str:
    """The verdict on rows of which the partition is all that is known."""
    name = split.name
    return verdict(text, Groups([[{name: v} for v in values]], [{name: UNKNOWN}], [split]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("timestamptz >= '2026-01-01'", "all"),
        ("timestamptz >= '2026-01-01T00:00:00.000001'", "some"),
        ("timestamptz < '2026-01-02'", "all"),
        ("timestamptz <= '2026-01-01T23:59:59.999999'", "all"),
        ("timestamptz < '2026-01-01'", "none"),
        ("timestamptz >= '2026-01-02'", "none"),
        ("timestamptz = '2026-01-01 12:00'", "some"),
        ("timestamptz != '2026-01-02'", "all"),
        ("timestamptz IN ('2026-01-03', '2025-12-31 23:59:59')", "none"),
        ("timestamptz IS NULL", "none"),
        ("timestamptz IS NOT NULL", "all"),
    ],
)
def test_day_of_a_timestamp_prunes_the_timestamp(text: str, expected: str) -> None:
    split = Split("timestamptz", TransformName.DAY)
    assert _verdict(text, [_NEW_YEAR_US + 5 * 3_600_000_000], split) == expected


@pytest.mark.parametrize(
    ("transform", "inside", "outside"),
    [
        ("year", "1969-01-01", "1968-12-31 23:59:59.999999"),
        ("month", "1969-12-01", "1969-11-30 23:59:59.999999"),
        ("day", "1969-12-31", "1969-12-30 23:59:59.999999"),
        ("hour", "1969-12-31 23:00", "1969-12-31 22:59:59.999999"),
    ],
)
def test_calendar_partitions_before_1970_begin_where_they_should(
    transform: str, inside: str, outside: str
) -> None:
    split = Split("timestamp", TransformName(transform))
    assert _verdict(f"timestamp >= '{inside}'", [-1], split) == "all"
    assert _verdict(f"timestamp <= '{inside}'", [-1], split) == "some"
    assert _verdict(f"timestamp <= '{outside}'", [-1], split) == "none"
    assert _verdict("timestamp < '1970-01-01'", [-1], split) == "all"


def test_month_of_a_date_prunes_the_date() -> None:
    split = Split("date", TransformName.MONTH)
    assert _verdict("date BETWEEN '2026-01-01' AND '2026-01-31'", [20_454 + 9], split) == "all"
    assert _verdict("date > '2026-01-31'", [20_454 + 9], split) == "none"
    assert _verdict("date > '2026-01-30'", [20_454 + 9], split) == "some"


def test_bucket_prunes_equality_and_lists_and_nothing_else() -> None:
    split = Split("string", TransformName.BUCKET, 1 << 20)
    assert _verdict("string = 'a'", ["a"], split) == "some"
    assert _verdict("string = 'b'", ["a"], split) == "none"
    assert _verdict("string IN ('b', 'c')", ["a"], split) == "none"
    assert _verdict("string IN ('a', 'c')", ["a"], split) == "some"
    assert _verdict("string != 'a'", ["a"], split) == "some"
    assert _verdict("string > 'zzz'", ["a"], split) == "some"


def test_truncate_prunes_ranges_and_prefixes() -> None:
    split = Split("string", TransformName.TRUNCATE, 2)
    assert _verdict("string LIKE 'ab%'", ["abc"], split) == "some"
    assert _verdict("string LIKE 'ax%'", ["abc"], split) == "none"
    assert _verdict("string < 'ab'", ["abc"], split) == "none"
    assert _verdict("string >= 'ab'", ["abc"], split) == "all"
    assert _verdict("string > 'ac'", ["abc"], split) == "none"
    assert _verdict("string = 'a'", ["a"], split) == "all"
    tens = Split("int", TransformName.TRUNCATE, 10)
    assert _verdict("int BETWEEN -10 AND -1", [-3], tens) == "all"
    assert _verdict("int > -1", [-3], tens) == "none"
    assert _verdict("int > -2", [-3], tens) == "some"
    cents = Split("decimal", TransformName.TRUNCATE, 10)
    assert _verdict("decimal BETWEEN 0.10 AND 0.19", [Decimal("0.12")], cents) == "all"
    assert _verdict("decimal > 0.18", [Decimal("0.12")], cents) == "some"
    assert _verdict("decimal > 0.19", [Decimal("0.12")], cents) == "none"


@pytest.mark.parametrize(("name", "bits"), [("int", 31), ("long", 63)])
def test_last_truncated_range_of_a_type_ends_where_the_type_does(name: str, bits: int) -> None:
    tens, last = Split(name, TransformName.TRUNCATE, 10), (1 << bits) - 1
    assert _verdict(f"{name} > 5", [last], tens) == "all"
    assert _verdict(f"{name} = {last}", [last], tens) == "some"
    assert _verdict(f"{name} <= {-last}", [-last - 1], tens) == "some"


@pytest.mark.parametrize("transform", ["year", "month", "day", "hour"])
def test_first_and_last_partition_of_a_type_end_where_the_type_does(transform: str) -> None:
    split = Split("timestamp_ns", TransformName(transform))
    first, last = [-(1 << 63)], [(1 << 63) - 1]
    assert _verdict("timestamp_ns > '2000-01-01'", last, split) == "all"
    assert _verdict("timestamp_ns >= '2262-04-11T23:47:16.854775807'", last, split) == "some"
    assert _verdict("timestamp_ns < '2000-01-01'", last, split) == "none"
    assert _verdict("timestamp_ns < '2000-01-01'", first, split) == "all"
    assert _verdict("timestamp_ns <= '1677-09-21T00:12:43.145224192'", first, split) == "some"
    assert _verdict("timestamp_ns > '2000-01-01'", first, split) == "none"


def test_hours_beyond_the_type_of_hours_are_in_its_last_partition() -> None:
    hour = Split("timestamp", TransformName.HOUR)
    for value, op in [((1 << 63) - 1, Op.GE), (-(1 << 63), Op.LE)]:
        bound = BoundCompare(IDS["timestamp"], KINDS["timestamp"], op, value)
        groups = Groups([[{"timestamp": value}]], [{"timestamp": UNKNOWN}], [hour])
        assert may_match(bound, groups).tolist() == [True]
        assert must_match(bound, groups).tolist() == [False]


def test_partition_from_before_a_column_was_floating_point_proves_nulls_only() -> None:
    class Widened(Groups):
        def partitions(self, field_id: int) -> list[PartitionEvidence]:
            values, nothing = pa.array([1.0, None]), np.array([False, True])
            kind, identity = KINDS["double"], TransformName.IDENTITY
            return [PartitionEvidence(identity, 0, kind, values, values, nothing, nothing)]

    vague = [{"double": UNKNOWN}] * 2
    groups = Widened([[{"double": 1.0}], [{"double": None}]], vague)
    for text, may, must in [
        ("double = 2", [True, False], [False, False]),
        ("double = 1", [True, False], [False, False]),
        ("double IS NULL", [False, True], [False, True]),
    ]:
        bound = bind(parse_predicate(text), SCHEMA)
        assert may_match(bound, groups).tolist() == may
        assert must_match(bound, groups).tolist() == must
