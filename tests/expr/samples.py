"""Columns of every type, their awkward values, and random predicates over them."""

import math
import struct
from datetime import date, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from tests.expr.oracle import Row

from lakebed.errors import PredicateError
from lakebed.expr.arrow import primitive_arrow_type
from lakebed.expr.literals import Moment, TimeOfDay
from lakebed.expr.nodes import And, Compare, Constant, In, IsNan, IsNull, Like, Node, Not, Op, Or
from lakebed.format.schema import Schema
from lakebed.format.types import FLOATS, INSTANTS, TIMESTAMPS, Field, Kind, Primitive

DAY_US = 86_400 * 10**6
_2026_US = 1_767_225_600 * 10**6
_INT64 = [-(1 << 63), -(1 << 63) + 1, (1 << 63) - 2, (1 << 63) - 1]
_LONG_TEXT = "sensor/" * 12

_US = [
    *_INT64,
    *(-62_135_596_800 * 10**6, -DAY_US - 1, -DAY_US, -DAY_US + 1, -3_600_000_000, -1, 0, 1),
    *(DAY_US - 1, DAY_US, _2026_US - 1, _2026_US, _2026_US + 1, _2026_US + 31 * DAY_US),
    _2026_US + 13 * 3_600_000_000,
]
_NS = [*_INT64, *(n for us in _US if abs(us) < 1 << 52 for n in (us * 1000, us * 1000 + 1))]


def _float32(value: float) -> float:
    found: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return found


KINDS: dict[str, Primitive] = {
    **{kind.value: Primitive(kind) for kind in Kind if kind not in (Kind.DECIMAL, Kind.FIXED)},
    "decimal": Primitive(Kind.DECIMAL, precision=9, scale=2),
    "wide": Primitive(Kind.DECIMAL, precision=38, scale=0),
    "fixed": Primitive(Kind.FIXED, length=2),
}
VALUES: dict[str, list[Any]] = {
    "boolean": [False, True],
    "int": [-(1 << 31), 1 - (1 << 31), -11, -10, -1, 0, 1, 5, 9, 10, (1 << 31) - 1],
    "long": [*_INT64, -(1 << 53) - 1, -11, -10, -1, 0, 1, 9, 10, 1 << 53, (1 << 53) + 1],
    "float": [
        *(math.nan, math.inf, -math.inf, -0.0, 0.0, 1.5, -1.5, 16777216.0),
        *(_float32(0.1), _float32(1e-45), _float32(3.4028234e38)),
    ],
    "double": [
        *(math.nan, math.inf, -math.inf, -0.0, 0.0, 0.1, 1.5, -1.5, 5e-324, 1.7e308),
        *(2.0**53, math.nextafter(0.1, 1)),
    ],
    "decimal": [Decimal(t) for t in ("-9999999.99", "-0.11", "-0.01", "0.00", "0.01", "0.10")]
    + [Decimal("1.50"), Decimal("9999999.99")],
    "wide": [Decimal(n) for n in ("-" + "9" * 38, "-256", "-129", "-1", "0", "128", "9" * 38)],
    "date": [-(1 << 31), -719_162, -366, -365, -1, 0, 1, 30, 31, 20_454, (1 << 31) - 1],
    "time": [0, 1, 43_200_000_000, DAY_US - 1],
    "timestamp": _US,
    "timestamptz": _US,
    "timestamp_ns": _NS,
    "timestamptz_ns": _NS,
    "string": [
        *("", "\x00", "Z", "a", "ab", "abc", "abd", "abc\n", "a%b", "a_b", "a\\b", "b", "é"),
        *("\ud7ff", "\ue000", "\U0010ffff", "\U0010ffff" * 2, "a\U0010ffff", "ab\ud7ff"),
        *(_LONG_TEXT + "a", _LONG_TEXT + "b", "ab" + "\U0010ffff" * 40),
    ],
    "binary": [b"", b"\0", b"a", b"ab", b"ab\xff", b"b", b"\xff", b"\xff\xff", b"\xff" * 70],
    "fixed": [b"\0\0", b"ab", b"a\xff", b"\xff\0", b"\xff\xff"],
}
SCHEMA = Schema(
    0, tuple(Field(number, name, kind) for number, (name, kind) in enumerate(KINDS.items(), 1))
)
NAMES = {field.id: field.name for field in SCHEMA.fields}
IDS = {field.name: field.id for field in SCHEMA.fields}

_EXTRA: dict[str, list[Any]] = {
    "int": [5.5, Decimal("-10.5"), 1 << 40, -(1 << 40), math.inf, math.nan, 1e300],
    "long": [5.5, Decimal("9.99"), 1 << 70, -math.inf, math.nan, float(1 << 63)],
    "float": [0.1, Decimal("0.1"), 16777217, 10**400, 0, Decimal("1.50"), -(10**40)],
    "double": [Decimal("0.1"), (1 << 53) + 1, 10**400, -(10**400), 0, Decimal("-1.50")],
    "decimal": [Decimal("0.005"), 1.5, 0.1, 10**9, -(10**12), math.inf, 0],
    "wide": [10**38, -(10**39), 0.5, 127],
    "date": ["1969-12-31 12:00", "2026-01-01", Moment(1, zoned=False)],
    "time": ["12:00", TimeOfDay(1), TimeOfDay(86_399_999_999_999)],
    "timestamp": ["2026-01-01", "1969-12-31T23:59:59.999999500", date(2026, 1, 1)],
    "timestamptz": ["2026-01-01T01:00+01:00", "2025-12-31 23:00:00.5-01", date(1969, 12, 31)],
    "timestamp_ns": ["2026-01-01", date(9999, 12, 31), date(1, 1, 1)],
    "timestamptz_ns": ["2026-01-01T00:00:00.000000001Z", date(1, 1, 1)],
    "string": ["A", "abcd", "\U0010fffe"],
    "binary": [b"\xfe", b"a\xff\xff"],
    "fixed": [b"", b"a", b"abc", b"\xff\xff\xff"],
}
PATTERNS = ["%", "_", "a%", "ab%", "%b", "%b%", "a_", "a\\%b", "a!%b", "", "abc", "__", "_%_"]
PATTERNS += ["\U0010ffff%", "\ud7ff%", "%\n", "a%%", "a.c", "(%", "sensor/%a", "é", "%\\%%"]


def constants(name: str) -> list[Any]:
    """What a column is compared with: its own values as literals, and others between them."""
    found = [_literal(value, KINDS[name]) for value in VALUES[name]]
    return [value for value in found if value is not None] + _EXTRA.get(name, [])


def _literal(value: Any, kind: Primitive) -> Any:
    try:
        if kind.kind is Kind.DATE:
            return date(1970, 1, 1) + timedelta(days=value)
        if kind.kind is Kind.TIME:
            return TimeOfDay(value * 1000)
        if kind.kind in TIMESTAMPS:
            ns = value if kind.kind in (Kind.TIMESTAMP_NS, Kind.TIMESTAMPTZ_NS) else value * 1000
            return Moment(ns, zoned=kind.kind in INSTANTS and value % 2 == 0)
    except (OverflowError, PredicateError):
        return None  # no constant can be written outside of the years 1 to 9999
    return value


@cache
def _leaves(name: str) -> st.SearchStrategy[Node]:
    constant = st.sampled_from(constants(name))
    found: list[st.SearchStrategy[Node]] = [
        st.builds(Compare, st.just(name), st.sampled_from(list(Op)), constant),
        st.builds(Compare, st.just(name), st.sampled_from(list(Op)), constant),
        st.builds(
            In,
            st.just(name),
            st.lists(constant | constant | constant | st.none(), min_size=1, max_size=4).map(tuple),
        ),
        st.just(IsNull(name)),
    ]
    if KINDS[name].kind in FLOATS:
        found.append(st.just(IsNan(name)))
    if KINDS[name].kind is Kind.STRING:
        found += [
            st.builds(Like, st.just(name), st.sampled_from(PATTERNS)),
            st.sampled_from(["a!%%", "!_", "a!%b", "%!!"]).map(lambda p: Like(name, p, "!")),
        ]
    return st.one_of(found)


def predicates(names: list[str]) -> st.SearchStrategy[Node]:
    """Random predicates over these columns."""
    return _predicates(tuple(names))


@cache
def _predicates(names: tuple[str, ...]) -> st.SearchStrategy[Node]:
    leaves = st.one_of([_leaves(name) for name in names])
    leaves = leaves | leaves | leaves | st.builds(Constant, st.sampled_from([True, False, None]))
    return st.recursive(leaves, _joined, max_leaves=5)


def _joined(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    children = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.builds(And, children) | st.builds(Or, children) | st.builds(Not, inner)


def rows(names: list[str]) -> st.SearchStrategy[Row]:
    """Random rows of these columns, a null in one of five values."""
    return st.fixed_dictionaries({name: _cells(name) for name in names})


@cache
def _cells(name: str) -> st.SearchStrategy[Any]:
    return st.sampled_from([*VALUES[name], *[None] * (1 + len(VALUES[name]) // 4)])


def column_names() -> st.SearchStrategy[list[str]]:
    """One or two columns."""
    return st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=2, unique=True)


def typed(values: list[Any], kind: Primitive) -> Any:
    """Storage values as an Arrow array; unlike pyarrow, it takes every integer for a time."""
    target = primitive_arrow_type(kind)
    if not pa.types.is_temporal(target):
        return pa.array(values, target)
    width = pa.int32() if kind.kind is Kind.DATE else pa.int64()
    return pa.array(values, width).view(target)


def table(found: list[Row], names: list[str]) -> Any:
    """Rows as an Arrow table."""
    return pa.table({name: typed([row[name] for row in found], KINDS[name]) for name in names})


def is_number(value: Any) -> bool:
    """Whether a value has a place between bounds: it is neither null nor NaN."""
    return value is not None and not (isinstance(value, float) and math.isnan(value))
