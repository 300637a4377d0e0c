"""Rows leave with exactly the table's columns and types, each value unchanged, or not at all."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.errors import SchemaMismatchError
from lakebed.files.arrow_schema import INFERRED, arrow_type, to_arrow_schema
from lakebed.files.intake import batches_of, conform
from lakebed.format.schema import Schema
from lakebed.format.types import Field, Kind, ListOf, MapOf, Primitive, Struct, Type

LONG, INT, TEXT, DOUBLE = (Primitive(k) for k in (Kind.LONG, Kind.INT, Kind.STRING, Kind.DOUBLE))
LONGS = ListOf(Field(2, "element", LONG))
MICROS, NANOS = Primitive(Kind.TIMESTAMP), Primitive(Kind.TIMESTAMP_NS)


def schema(kind: Type, *, required: bool = False) -> Schema:
    return Schema(0, (Field(1, "c", kind, required),))


def conformed(values: Any, kind: Type, *, required: bool = False) -> list[Any]:
    """The values after they were brought to the type; an Arrow array or Python values."""
    array = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
    target = schema(kind, required=required)
    result = conform(pa.table({"c": array}), target)
    assert result.schema.equals(to_arrow_schema(target), check_metadata=True)
    result.validate(full=True)
    return list(result.column("c").to_pylist())


def test_rows_of_the_right_types_are_not_copied() -> None:
    column = pa.array([1, None], pa.int64())
    result = conform(pa.table({"c": column}), schema(LONG))
    assert result.column("c").chunk(0).buffers()[1].address == column.buffers()[1].address
    assert conform(pa.record_batch({"c": column}), schema(LONG)).num_rows == 2


def test_columns_are_put_in_order_and_missing_ones_are_null() -> None:
    target = Schema(0, (Field(1, "a", LONG), Field(2, "b", TEXT), Field(3, "c", DOUBLE)))
    result = conform(pa.table({"c": [1.5], "a": [1]}), target)
    assert result.to_pylist() == [{"a": 1, "b": None, "c": 1.5}]


LAYOUTS: dict[str, tuple[Any, Type]] = {
    "large_string": (pa.array(["x", None], pa.large_string()), TEXT),
    "string_view": (pa.array(["x", None], pa.string_view()), TEXT),
    "dictionary": (pa.array(["x", None, "x"]).dictionary_encode(), TEXT),
    "run ends": (pa.RunEndEncodedArray.from_arrays([2, 3], pa.array(["x", None])), TEXT),
    "large_binary": (pa.array([b"x", None], pa.large_binary()), Primitive(Kind.BINARY)),
    "fixed as binary": (pa.array([b"xy"], pa.binary(2)), Primitive(Kind.BINARY)),
    "fixed": (pa.array([b"x" * 16], pa.binary(16)), Primitive(Kind.FIXED, length=16)),
    "int8": (pa.array([1, None], pa.int8()), INT),
    "uint32": (pa.array([1 << 31], pa.uint32()), LONG),
    "int as double": (pa.array([1 << 53], pa.int64()), DOUBLE),
    "float": (pa.array([0.5, None], pa.float32()), DOUBLE),
    "decimal32": (pa.array([Decimal("1.25")], pa.decimal32(5, 2)), Primitive(Kind.DECIMAL, 9, 2)),
    "null": (pa.nulls(2), TEXT),
    "large_list": (pa.array([[1], None, []], pa.large_list(pa.int64())), LONGS),
    "fixed list": (pa.array([[1, 2]], pa.list_(pa.int64(), 2)), LONGS),
    "list of dictionaries": (
        pa.array([["x"]], pa.list_(pa.dictionary(pa.int8(), pa.string()))),
        ListOf(Field(2, "element", TEXT)),
    ),
    "list of nulls": (pa.array([[None]], pa.list_(pa.null())), ListOf(Field(2, "element", TEXT))),
    "list with another name inside": (
        pa.array([[1]], pa.list_(pa.field("item", pa.int64()))),
        LONGS,
    ),
    "list of required": (
        pa.array([[1], []], pa.list_(pa.int64())),
        ListOf(Field(2, "element", LONG, required=True)),
    ),
    "struct of required": (
        pa.array([{"x": 1}, None]),
        Struct((Field(2, "x", LONG, required=True),)),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("array", "kind"), LAYOUTS.values(), ids=LAYOUTS)
def test_values_are_the_same_in_any_layout(array: Any, kind: Type) -> None:
    assert conformed(array, kind) == array.to_pylist()


def test_a_uuid_is_its_sixteen_bytes() -> None:
    array = pa.array([b"x" * 16], pa.binary(16)).cast(pa.uuid())
    assert conformed(array, Primitive(Kind.FIXED, length=16)) == [b"x" * 16]


def test_instants_are_brought_to_utc_and_microseconds_without_change() -> None:
    kind = Primitive(Kind.TIMESTAMPTZ)
    noon = dt.datetime(2026, 7, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    array = pa.array([noon], pa.timestamp("ns", "Europe/Berlin"))
    result = conform(pa.table({"c": array}), schema(kind))
    assert result.schema.field("c").type == pa.timestamp("us", "UTC")
    assert result.column("c").to_pylist() == [noon]
    assert conformed(pa.array([5], pa.timestamp("s", "UTC")), Primitive(Kind.TIMESTAMPTZ_NS)) == [
        dt.datetime(1970, 1, 1, 0, 0, 5, tzinfo=dt.UTC)
    ]


LOSSY: dict[str, tuple[Any, Type, str]] = {
    "nanoseconds": (pa.array([1000, 1001], pa.timestamp("ns")), MICROS, "row 1"),
    "far future": (pa.array([1 << 62], pa.timestamp("us")), NANOS, "timestamp_ns"),
    "large integer": (pa.array([0, (1 << 53) + 1]), DOUBLE, f"{(1 << 53) + 1} in row 1"),
    "milliseconds of a date": (pa.array([1], pa.date64()), Primitive(Kind.DATE), "date"),
    "nanoseconds of a time": (pa.array([1], pa.time64("ns")), Primitive(Kind.TIME), "time"),
}  # fmt: skip


@pytest.mark.parametrize(("array", "kind", "text"), LOSSY.values(), ids=LOSSY)
def test_a_value_that_would_change_is_refused_and_shown(array: Any, kind: Type, text: str) -> None:
    with pytest.raises(SchemaMismatchError, match="without changing it") as caught:
        conformed(array, kind)
    assert text in caught.value.message
    assert caught.value.fields["column"] == "c"


@given(st.lists(st.none() | st.integers(-(1 << 62), 1 << 62), max_size=5))
def test_guessed_integers_fit_a_narrow_column_or_are_refused(values: list[int | None]) -> None:
    table = pa.table({"c": pa.array(values, pa.int64())}).replace_schema_metadata(
        {INFERRED: b"true"}
    )
    fits = all(value is None or -(1 << 31) <= value < 1 << 31 for value in values)
    try:
        assert conform(table, schema(INT)).column("c").to_pylist() == values
        assert fits
    except SchemaMismatchError:
        assert not fits


def test_python_values_find_their_place() -> None:
    target = Schema(
        0,
        (
            Field(1, "n", INT),
            Field(2, "f", Primitive(Kind.FLOAT)),
            Field(3, "d", Primitive(Kind.DECIMAL, 9, 2)),
            Field(4, "u", Primitive(Kind.FIXED, length=2)),
        ),
    )
    data = [
        {"n": 1, "f": 1, "d": Decimal("1.5"), "u": b"ab"},
        {"n": None, "f": 2, "d": None, "u": None},
    ]
    got, batches = batches_of(data)
    rows = conform(pa.Table.from_batches(list(batches), got), target)
    assert rows.to_pylist()[0] == {"n": 1, "f": 1.0, "d": Decimal("1.50"), "u": b"ab"}


def test_the_difference_is_told_exactly_and_whole() -> None:
    target = Schema(0, (Field(1, "a", INT), Field(2, "b", TEXT, required=True)))
    with pytest.raises(SchemaMismatchError) as caught:
        conform(pa.table({"a": ["x"], "new": [1]}), target)
    assert caught.value.fields["problems"] == [
        "column 'a': table has int, data has string",
        "column 'b' is required and missing",
        "column 'new' (long) is not in the table",
    ]


def test_a_null_in_a_required_column_is_counted_and_placed() -> None:
    with pytest.raises(SchemaMismatchError, match="has 2 nulls, the first in row 1 counted from 0"):
        conformed([1, None, None], LONG, required=True)
    with pytest.raises(SchemaMismatchError, match="has 2 nulls"):
        conformed(pa.nulls(2), LONG, required=True)
    assert conformed([1], LONG, required=True) == [1]


REQUIRED = Field(3, "x", LONG, required=True)
HOLES: dict[str, tuple[Any, Type]] = {
    "struct": (pa.array([{"x": 1}, {"x": None}]), Struct((REQUIRED,))),
    "list": (pa.array([[1], None, [2, None]]), ListOf(Field(3, "element", LONG, required=True))),
    "list of structs": (
        pa.array([[{"x": None}]]),
        ListOf(Field(2, "element", Struct((REQUIRED,)))),
    ),
    "map": (
        pa.array([[("k", None)]], pa.map_(pa.string(), pa.int64())),
        MapOf(Field(2, "key", TEXT, required=True), Field(3, "value", LONG, required=True)),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("array", "kind"), HOLES.values(), ids=HOLES)
def test_a_null_in_a_required_part_is_refused(array: Any, kind: Type) -> None:
    with pytest.raises(SchemaMismatchError, match="required and has 1 nulls"):
        conformed(array.cast(nullable(arrow_type(kind))), kind)


def nullable(kind: Any) -> Any:
    """An Arrow type whose parts may be null."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, nullable(f.type)) for f in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", nullable(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, nullable(kind.item_type))
    return kind


def test_a_hole_under_a_null_parent_is_no_null() -> None:
    inner = pa.array([1, None], pa.int64())
    array = pa.StructArray.from_arrays([inner], ["x"], mask=pa.array([False, True]))
    assert conformed(array, Struct((REQUIRED,))) == [{"x": 1}, None]


def test_sliced_nested_rows_are_checked_within_their_slice() -> None:
    kind = MapOf(Field(2, "key", TEXT, required=True), Field(3, "value", LONG, required=True))
    maps = pa.array([[("k", None)], [("k", 1)], [("l", 2)]], pa.map_(pa.string(), pa.int64()))
    assert conformed(maps[1:], kind) == [[("k", 1)], [("l", 2)]]
    lists = pa.array([[None], [1], [2]])
    assert conformed(lists[1:], ListOf(Field(2, "element", LONG, required=True))) == [[1], [2]]
