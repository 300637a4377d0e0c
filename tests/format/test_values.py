"""A storage value survives JSON exactly; what is no value of its type becomes unknown."""

import base64
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.format.types import Kind, Primitive
from lakebed.format.values import storage_value

INT, LONG, DATE, TEXT = (
    Primitive(Kind.INT),
    Primitive(Kind.LONG),
    Primitive(Kind.DATE),
    Primitive(Kind.STRING),
)
DOUBLE, BOOL, BINARY = Primitive(Kind.DOUBLE), Primitive(Kind.BOOLEAN), Primitive(Kind.BINARY)
MONEY, TAG = Primitive(Kind.DECIMAL, 9, 2), Primitive(Kind.FIXED, length=2)
KINDS = [INT, LONG, DATE, TEXT, DOUBLE, BOOL, BINARY, MONEY, TAG, Primitive(Kind.TIMESTAMP_NS)]

typed = st.one_of(
    st.tuples(st.just(INT), st.integers(-(1 << 31), (1 << 31) - 1)),
    st.tuples(st.just(LONG), st.integers(-(1 << 63), (1 << 63) - 1)),
    st.tuples(st.just(Primitive(Kind.TIMESTAMPTZ_NS)), st.integers(-(1 << 63), (1 << 63) - 1)),
    st.tuples(st.just(DATE), st.integers(-(1 << 31), (1 << 31) - 1)),
    st.tuples(st.just(TEXT), st.text()),
    st.tuples(st.just(DOUBLE), st.floats(allow_nan=False, allow_infinity=False)),
    st.tuples(st.just(BOOL), st.booleans()),
    st.tuples(st.just(BINARY), st.binary()),
    st.tuples(st.just(TAG), st.binary(min_size=2, max_size=2)),
    st.tuples(
        st.just(MONEY),
        st.integers(-(10**9) + 1, 10**9 - 1).map(lambda number: Decimal(number).scaleb(-2)),
    ),
)


@given(typed)
def test_a_value_is_the_same_after_json(pair: tuple[Primitive, Any]) -> None:
    kind, value = pair
    back = storage_value(msgspec.json.decode(msgspec.json.encode(value)), kind)
    assert back == value
    assert type(back) is type(value)
    assert repr(back) == repr(value)  # also the sign of zero, and the digits of a decimal


@given(typed)
def test_a_value_that_is_in_storage_form_stays_as_it_is(pair: tuple[Primitive, Any]) -> None:
    kind, value = pair
    assert repr(storage_value(value, kind)) == repr(value)


anything = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.decimals(),
    st.lists(st.integers(), max_size=2), st.dictionaries(st.text(), st.integers(), max_size=1),
)  # fmt: skip


@given(st.sampled_from(KINDS), anything)
def test_anything_at_all_is_a_value_of_the_type_or_unknown(kind: Primitive, value: Any) -> None:
    found = storage_value(value, kind)
    types = {
        Kind.STRING: str, Kind.DOUBLE: float, Kind.BOOLEAN: bool, Kind.BINARY: bytes,
        Kind.FIXED: bytes, Kind.DECIMAL: Decimal,
    }  # fmt: skip
    assert found is None or type(found) is types.get(kind.kind, int)
    assert found == found  # never NaN


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1 << 31, INT),
        (-(1 << 31) - 1, DATE),
        (1 << 63, LONG),
        (True, INT),
        (1, BOOL),
        (1.0, INT),
        ("1", LONG),
        (float("nan"), DOUBLE),
        (10**400, DOUBLE),
        (True, DOUBLE),
        ("1.5", DOUBLE),
        ("not base64!", BINARY),
        ("QQ", BINARY),
        (b"a", TAG),
        (base64.b64encode(b"abc").decode(), TAG),
        ("\ud800", TEXT),
        (b"bytes", TEXT),
        ("10000000.00", MONEY),
        ("1.234", MONEY),
        ("NaN", MONEY),
        ("-Infinity", MONEY),
        ("1E+1000000000", MONEY),
        ("one", MONEY),
        (1.5, MONEY),
        ([1], LONG),
        ({}, TEXT),
    ],
    ids=str,
)
def test_what_does_not_fit_is_unknown(value: Any, kind: Primitive) -> None:
    assert storage_value(value, kind) is None


def test_infinities_are_kept_here_and_unknown_after_json() -> None:
    assert storage_value(float("inf"), DOUBLE) == float("inf")
    assert storage_value(msgspec.json.decode(msgspec.json.encode(float("-inf"))), DOUBLE) is None


def test_a_whole_number_is_a_float_where_the_column_was_widened() -> None:
    assert repr(storage_value(-7, DOUBLE)) == "-7.0"
