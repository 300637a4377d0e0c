"""Law: Python's operators build the tree that the text would, and misuse is an error at once."""

import math
import pickle
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from lakebed.errors import PredicateError
from lakebed.expr.literals import Moment, TimeOfDay, literal, literal_text
from lakebed.expr.nodes import And, Constant, In, Like, Node, Not, Or, col, starts_with
from lakebed.limits import PREDICATE_DEPTH_MAX

x = col("x")


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (x == 1, "x = 1"),
        (x != 1, "x != 1"),
        (x < 1, "x < 1"),
        (x <= 1, "x <= 1"),
        (x > 1, "x > 1"),
        (x >= 1, "x >= 1"),
        (x.is_in([1, 2]), "x IN (1, 2)"),
        (x.is_in([]), "FALSE"),
        (~x.is_in([1]), "x NOT IN (1)"),
        (x.is_null(), "x IS NULL"),
        (x.is_not_null(), "x IS NOT NULL"),
        (x.is_nan(), "x IS NAN"),
        (x.like("a%"), "x LIKE 'a%'"),
        (x.like("a!%", escape="!"), "x LIKE 'a!%' ESCAPE '!'"),
        (x.starts_with("a"), "x LIKE 'a%'"),
        (x.starts_with("5%_\\"), r"x LIKE '5\%\_\\%' ESCAPE '\'"),
        (x.between(1, 2), "x >= 1 AND x <= 2"),
        ((x == 1) & (x == 2) & (x == 3), "x = 1 AND x = 2 AND x = 3"),
        ((x == 1) | (x == 2) & (x == 3), "x = 1 OR x = 2 AND x = 3"),
        (((x == 1) | (x == 2)) & (x == 3), "(x = 1 OR x = 2) AND x = 3"),
        (~((x == 1) | (x == 2)), "NOT (x = 1 OR x = 2)"),
        (col("a b") == 1, '"a b" = 1'),
        (col('a"b') == 1, '"a""b" = 1'),
        (col("and") == 1, '"and" = 1'),
    ],
)
def test_operators_build_the_tree_of_the_text(node: Node, text: str) -> None:
    assert str(node) == text


def test_chains_are_flat() -> None:
    parts = [x == n for n in range(4)]
    assert (parts[0] & parts[1] & (parts[2] & parts[3])).parts() == tuple(parts)


def test_trees_are_equal_if_their_texts_are() -> None:
    assert (x == 1) == (col("x") == 1)
    assert (x == 1) != (x == Decimal("1.0"))
    assert len({x == 1, col("x") == 1, x == 2}) == 2


def test_tree_survives_pickling() -> None:
    node = (x == 1) & ~x.like("a%") | x.is_in([1.5, b"x", Moment(1, zoned=True)])
    assert pickle.loads(pickle.dumps(node)) == node


@pytest.mark.parametrize(
    "misuse",
    [
        lambda: bool(x == 1),
        lambda: bool(x),
        lambda: (x == 1) and (x == 2),
        lambda: (x == 1) & True,  # type: ignore[operator]
        lambda: ~(x == 1) | 5,  # type: ignore[operator]
        lambda: And((x == 1,)),
        lambda: Or(()),
        lambda: Not(5),  # type: ignore[arg-type]
        lambda: In("x", ()),
        lambda: x.is_in("abc"),
        lambda: Like("x", 5),  # type: ignore[arg-type]
        lambda: Like("x", "a", "!!"),
        lambda: Like("x", "a!", "!"),
        lambda: starts_with("x", 5),  # type: ignore[arg-type]
        lambda: Constant(5),  # type: ignore[arg-type]
        lambda: col(""),
        lambda: col("a\ud800"),
        lambda: object() == x,
        lambda: x == [1],
        lambda: x == "\ud800",
        lambda: Decimal("sNaN") == x,
        lambda: Decimal("1E+2000") == x,
        lambda: x == 10**1001,
        lambda: time(1, tzinfo=UTC) == x,
    ],
)
def test_misuse_is_refused_when_it_is_written(misuse: Any) -> None:
    with pytest.raises(PredicateError):
        misuse()


def test_deepest_tree_works_and_one_deeper_is_refused() -> None:
    node: Node = x == 1
    for _ in range(PREDICATE_DEPTH_MAX - 1):
        node = Not(node)
    assert str(node).count("NOT") == PREDICATE_DEPTH_MAX - 1
    with pytest.raises(PredicateError, match="deep"):
        Not(node)


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        (np.int32(5), 5),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.datetime64("1970-01-01T00:00:00.000000001"), Moment(1, zoned=False)),
        (np.datetime64("NaT"), None),
        (pa.scalar(5), 5),
        (pa.scalar(None, pa.int64()), None),
        (pd.Timestamp(1, tz="UTC"), Moment(1, zoned=True)),
        (pd.NaT, None),
        (bytearray(b"x"), b"x"),
        (memoryview(b"x"), b"x"),
        (datetime(1970, 1, 1), Moment(0, zoned=False)),  # noqa: DTZ001 - a wall clock's time
        (datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), Moment(0, zoned=True)),
        (datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), Moment(-1000, zoned=True)),
        (date(2026, 1, 1), date(2026, 1, 1)),
        (time(0, 0, 1), TimeOfDay(10**9)),
        (Decimal("Infinity"), math.inf),
        (Decimal("1E+2"), Decimal(100)),
    ],
)
def test_foreign_scalars_become_plain_values(given: Any, plain: Any) -> None:
    found = literal(given)
    assert found == plain
    assert type(found) is type(plain)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (0.5, "0.5e0"),
        (1e300, "1e+300"),
        (-math.inf, "-inf"),
        (math.nan, "nan"),
        (Decimal(5), "5.0"),
        (Decimal("-1.50"), "-1.50"),
        ("it's", "'it''s'"),
        (b"\x00\xff", "X'00ff'"),
        (Moment(-1, zoned=True), "TIMESTAMP '1969-12-31 23:59:59.999999999Z'"),
        (Moment(0, zoned=False), "TIMESTAMP '1970-01-01 00:00:00'"),
        (TimeOfDay(1_500_000_000), "TIME '00:00:01.5'"),
        (date(2026, 1, 31), "DATE '2026-01-31'"),
    ],
)
def test_literals_are_written_as_sql(value: Any, text: str) -> None:
    assert literal_text(value) == text


def test_moments_end_with_the_calendar() -> None:
    Moment(-62_135_596_800 * 10**9, zoned=True)
    with pytest.raises(PredicateError, match="years 1 to 9999"):
        Moment(-62_135_596_800 * 10**9 - 1, zoned=True)
    with pytest.raises(PredicateError, match="time of day"):
        TimeOfDay(86_400 * 10**9)
