"""The range of a manifest holds the ranges of its files, and is unknown if one of them is."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.files.manifests import KINDS, VALUES, wide_entry, wide_metadata
from tests.format import build

from lakebed.files.manifest import to_table
from lakebed.files.summary import column_ranges, partition_ranges, total
from lakebed.format.datafile import ColumnStats, Entry
from lakebed.format.partition import PartitionSpec
from lakebed.format.schema import Schema
from lakebed.format.snapshot import PartitionRange
from lakebed.format.types import Field, Kind, Primitive
from lakebed.limits import SUMMARY_BOUND_LENGTH_MAX, SUMMARY_COLUMN_COUNT_MAX

METADATA = build.metadata()
INF = float("inf")


def ranges_of(*stats: ColumnStats | None, number: int = 3) -> ColumnStats | None:
    """The range over files of ten rows with these statistics of one column."""
    entries = [
        Entry(file=build.data_file(f"f{i}", stats={number: each} if each else {}), added_version=1)
        for i, each in enumerate(stats)
    ]
    return column_ranges(to_table(entries, METADATA.spec(0), METADATA)).get(number)


def test_ranges_are_joined_and_counts_are_added() -> None:
    found = ranges_of(ColumnStats(1, 2, -1.5, 3.0), ColumnStats(0, 0, 2.0, INF))
    assert found == ColumnStats(1, 2, -1.5, INF)


def test_a_file_without_values_does_not_widen_the_range() -> None:
    sound = ColumnStats(0, 0, 1.0, 2.0)
    assert ranges_of(sound, ColumnStats(10, 0)) == ColumnStats(10, 0, 1.0, 2.0)
    assert ranges_of(sound, ColumnStats(0, 10)) == ColumnStats(0, 10, 1.0, 2.0)
    assert ranges_of(sound, ColumnStats(4, 6)) == ColumnStats(4, 6, 1.0, 2.0)
    assert ranges_of(ColumnStats(10, 0)) == ColumnStats(10, 0)


@pytest.mark.parametrize(
    ("unknown", "expected"),
    [
        (None, None),
        (ColumnStats(0, 0), ColumnStats(0, 0)),
        (ColumnStats(9, 0), ColumnStats(9, 0)),
        (ColumnStats(0, 0, 1.5, None), ColumnStats(0, 0)),
        (ColumnStats(None, 0, 1.5, 1.5), ColumnStats(None, 0, 1.0, 2.0)),
        (ColumnStats(0, None, 1.5, 1.5), ColumnStats(0, None, 1.0, 2.0)),
    ],
)
def test_one_unknown_file_makes_the_range_unknown(
    unknown: ColumnStats | None, expected: ColumnStats | None
) -> None:
    assert ranges_of(ColumnStats(0, 0, 1.0, 2.0), unknown) == expected


def test_long_text_is_cut_to_an_outer_bound() -> None:
    long = "m" * 40
    found = ranges_of(ColumnStats(0, None, long, long), number=2)
    assert found is not None
    assert found.lower == "m" * SUMMARY_BOUND_LENGTH_MAX
    assert found.upper == "m" * (SUMMARY_BOUND_LENGTH_MAX - 1) + "n"


@given(st.lists(st.tuples(st.text(max_size=20), st.text(max_size=20)), min_size=1, max_size=4))
def test_every_text_bound_lies_in_the_range(pairs: list[tuple[str, str]]) -> None:
    stats = [ColumnStats(0, None, min(pair), max(pair)) for pair in pairs]
    found = ranges_of(*stats, number=2)
    assert found is not None
    for each in stats:
        assert found.lower <= each.lower
        assert found.upper is None or found.upper >= each.upper


def test_only_the_leading_columns_are_summarised() -> None:
    fields = tuple(Field(i, f"c{i}", Primitive(Kind.INT)) for i in range(1, 12))
    metadata = build.metadata(
        schemas=(Schema(0, fields),), specs=(PartitionSpec(0),), last_field_id=11
    )
    stats = {i: ColumnStats(0, None, i, i) for i in range(1, 12)}
    entry = Entry(file=build.data_file(stats=stats, partition=()), added_version=1)
    found = column_ranges(to_table([entry], metadata.spec(0), metadata))
    assert sorted(found) == list(range(1, SUMMARY_COLUMN_COUNT_MAX + 1))


@pytest.mark.parametrize("length", [SUMMARY_BOUND_LENGTH_MAX, SUMMARY_BOUND_LENGTH_MAX + 1])
def test_bytes_of_fixed_length_are_whole_or_unknown(length: int) -> None:
    schema = Schema(0, (Field(1, "f", Primitive(Kind.FIXED, length=length)),))
    metadata = build.metadata(schemas=(schema,), specs=(PartitionSpec(0),))
    value = b"\xab" * length
    file = build.data_file(stats={1: ColumnStats(0, None, value, value)}, partition=())
    entry = Entry(file=file, added_version=1)
    found = column_ranges(to_table([entry], metadata.spec(0), metadata))[1]
    assert found.lower == found.upper == (value if length == SUMMARY_BOUND_LENGTH_MAX else None)


def test_partitions_of_every_type_have_their_least_and_greatest_value() -> None:
    metadata = wide_metadata()
    entries = [wide_entry("a", side=0), wide_entry("b", side=1)]
    found = partition_ranges(
        to_table(entries, metadata.spec(0), metadata), metadata.spec(0), metadata
    )
    wanted = [
        PartitionRange(False, *VALUES[kind.kind])
        for kind in KINDS
        if kind.kind not in (Kind.FLOAT, Kind.DOUBLE)
    ]
    assert list(found) == wanted


def test_a_partition_without_value_is_told_apart_from_those_with_one() -> None:
    def found(*days: int | None) -> Any:
        entries = [
            Entry(file=build.data_file(f"f{i}", partition=(day,)), added_version=1)
            for i, day in enumerate(days)
        ]
        table = to_table(entries, METADATA.spec(0), METADATA)
        return partition_ranges(table, METADATA.spec(0), METADATA)

    assert found(3, None, -2) == (PartitionRange(True, -2, 3),)
    assert found(None) == (PartitionRange(True),)
    assert found() == (PartitionRange(False),)


def test_totals_are_sums_and_zero_of_nothing() -> None:
    table = to_table([], METADATA.spec(0), METADATA)
    assert total(table, "row_count") == 0
    entries = [Entry(file=build.data_file(f"f{i}"), added_version=1) for i in range(3)]
    assert total(to_table(entries, METADATA.spec(0), METADATA), "row_count") == 30
