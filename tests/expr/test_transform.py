"""Law: a partition value is what Iceberg's specification says, rounded down, NULL for NULL."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.expr.groups import Split, splits_of
from tests.expr.oracle import hashed_bytes, murmur3, transformed
from tests.expr.samples import KINDS, VALUES, typed

from lakebed.errors import RequestError
from lakebed.expr.transform import apply_transform, partition_text
from lakebed.expr.value_text import value_text
from lakebed.format.partition import PartitionField, TransformName, result_type
from lakebed.format.types import Kind, Primitive, parse_primitive

_LARGEST_WIDTH = (1 << 31) - 1
_SPLITS = [split for name in KINDS for split in splits_of(name)]


def _field(transform: str, width: int = 0) -> PartitionField:
    return PartitionField(1000, 1, TransformName(transform), "p", width)


def _storage(array: Any) -> list[Any]:
    if pa.types.is_temporal(array.type):
        array = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    found: list[Any] = array.to_pylist()
    return found


@pytest.mark.parametrize(
    ("kind", "value", "hashed"),
    [
        # Appendix B of Iceberg's specification.
        ("int", 34, 2017239379),
        ("long", 34, 2017239379),
        ("decimal(9,2)", Decimal("14.20"), -500754589),
        ("date", 17_486, -653330422),  # 2017-11-16
        ("time", 81_068_000_000, -662762989),  # 22:31:08
        ("timestamp", 1_510_871_468_000_000, -2047944441),  # 2017-11-16T22:31:08
        ("timestamp", 1_510_871_468_000_001, -1207196810),
        ("timestamptz", 1_510_871_468_000_000, -2047944441),
        ("timestamp_ns", 1_510_871_468_000_000_000, -2047944441),
        ("timestamp_ns", 1_510_871_468_000_001_001, -1207196810),
        ("timestamptz_ns", 1_510_871_468_000_000_000, -2047944441),
        ("string", "iceberg", 1210000089),
        ("fixed[4]", b"\x00\x01\x02\x03", -188683207),
        ("binary", b"\x00\x01\x02\x03", -188683207),
    ],
)
def test_bucket_hash_is_that_of_the_specification(kind: str, value: Any, hashed: int) -> None:
    source = parse_primitive(kind)
    assert murmur3(hashed_bytes(value, source)) == hashed & 0xFFFFFFFF
    for width in (_LARGEST_WIDTH, 16):
        found = apply_transform(_field("bucket", width), typed([value, None], source), source)
        assert found.to_pylist() == [(hashed & 0x7FFFFFFF) % width, None]


@pytest.mark.parametrize("split", _SPLITS, ids=lambda s: f"{s.transform}-{s.width}-{s.name}")
def test_transform_of_every_awkward_value_is_the_oracles(split: Split) -> None:
    source = KINDS[split.name]
    field = _field(split.transform, split.width)
    values = [None, *VALUES[split.name], *reversed(VALUES[split.name]), None]
    found = apply_transform(field, typed(values, source), source)
    assert found.type == typed([], result_type(field, source)).type
    expected = [transformed(v, split.transform, split.width, source) for v in values]
    assert _storage(found) == expected


@given(st.lists(st.none() | st.binary(max_size=24) | st.binary(min_size=60, max_size=70)))
@settings(max_examples=60, derandomize=True, database=None)
def test_bytes_of_any_length_are_hashed_as_the_oracle_hashes_them(
    values: list[bytes | None],
) -> None:
    found = apply_transform(
        _field("bucket", _LARGEST_WIDTH), pa.array(values, pa.binary()), Primitive(Kind.BINARY)
    )
    assert found.to_pylist() == [
        None if v is None else (murmur3(v) & 0x7FFFFFFF) % _LARGEST_WIDTH for v in values
    ]


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1), st.sampled_from(_SPLITS))
@settings(max_examples=80, derandomize=True, database=None)
def test_transforms_of_any_number_are_the_oracles(values: list[int], split: Split) -> None:
    kind = KINDS[split.name]
    if not (split.name.startswith("timestamp") or split.name == "long"):
        kind, split = KINDS["timestamp"], Split("timestamp", TransformName.MONTH)
    found = apply_transform(_field(split.transform, split.width), typed(values, kind), kind)
    assert _storage(found) == [transformed(v, split.transform, split.width, kind) for v in values]


@pytest.mark.parametrize(
    "split", [s for s in _SPLITS if s.transform is not TransformName.BUCKET], ids=str
)
def test_all_but_bucket_keep_the_order_of_values(split: Split) -> None:
    source = KINDS[split.name]
    ordered = sorted(VALUES[split.name])
    found = _storage(
        apply_transform(_field(split.transform, split.width), typed(ordered, source), source)
    )
    assert found == sorted(found)


def test_narrower_values_are_transformed_at_the_type_of_the_column() -> None:
    found = apply_transform(_field("truncate", 10), pa.array([-1], pa.int32()), KINDS["long"])
    assert found.equals(pa.array([-10], pa.int64()))


def test_slice_of_an_array_is_transformed_as_its_copy() -> None:
    texts = pa.array(["x", None, "abc", "é", "abc"])
    for field in (_field("bucket", 97), _field("truncate", 1)):
        whole = apply_transform(field, texts, Primitive(Kind.STRING))
        part = apply_transform(field, texts.slice(1, 3), Primitive(Kind.STRING))
        assert part.to_pylist() == whole.to_pylist()[1:4]


@pytest.mark.parametrize("transform", list(TransformName))
def test_no_values_give_no_partition_values(transform: TransformName) -> None:
    width = 4 if transform in ("bucket", "truncate") else 0
    source = Primitive(Kind.STRING if width else Kind.TIMESTAMP)
    for values in ([], [None, None]):
        found = apply_transform(_field(transform, width), typed(values, source), source)
        assert found.to_pylist() == values


def test_column_that_became_floating_point_can_no_longer_be_split_by() -> None:
    for field in (_field("identity"), _field("bucket", 4), _field("truncate", 4)):
        with pytest.raises(RequestError, match="not defined for a column of type double"):
            apply_transform(field, pa.array([1.0]), Primitive(Kind.DOUBLE))


@pytest.mark.parametrize(
    ("transform", "kind", "value", "text"),
    [
        ("year", "date", 56, "2026"),
        ("year", "date", -1, "1969"),
        ("month", "timestamptz", 672, "2026-01"),
        ("month", "timestamptz", -1, "1969-12"),
        ("day", "timestamp", 20_454, "2026-01-01"),
        ("day", "timestamp", 1 << 30, "day+1073741824"),
        ("hour", "timestamp", 20_454 * 24 + 13, "2026-01-01-13"),
        ("hour", "timestamp", -1, "1969-12-31-23"),
        ("bucket", "string", 7, "7"),
        ("truncate", "decimal(9,2)", Decimal("1.50"), "1.50"),
        ("truncate", "binary", b"\x00\xff", "00ff"),
        ("identity", "boolean", True, "true"),
        ("identity", "int", 1, "1"),
        ("identity", "date", 20_454, "2026-01-01"),
        ("identity", "time", 1_500_000, "00:00:01.5"),
        ("identity", "timestamptz", 1, "1970-01-01T00:00:00.000001Z"),
        ("identity", "timestamp_ns", -1, "1969-12-31T23:59:59.999999999"),
        ("identity", "string", "a b", "a b"),
        ("identity", "string", "", ""),
    ],
)
def test_partition_text_is_what_people_would_write(
    transform: str, kind: str, value: Any, text: str
) -> None:
    width = 4 if transform in ("bucket", "truncate") else 0
    assert partition_text(_field(transform, width), value, parse_primitive(kind)) == text


def test_null_and_the_text_that_looks_like_it_have_different_names() -> None:
    kind = Primitive(Kind.STRING)
    values = [None, "__null__", "___null__", "____null__", "null", "_"]
    names = [partition_text(_field("identity"), value, kind) for value in values]
    assert len(set(names)) == len(values)
    assert names[0] == "__null__"


def test_floats_are_written_so_that_they_read_back() -> None:
    for value in (0.1, -0.0, 1e300, float("inf")):
        assert float(value_text(value, Primitive(Kind.DOUBLE))) == value
