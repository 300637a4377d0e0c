"""Entries come back from a manifest as they went in, whatever their types, and join as they are."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.files import manifests
from tests.format import build

from lakebed.errors import BadMetadataError
from lakebed.files.manifest import (
    INHERIT,
    concat,
    encode_manifest,
    inherit,
    live,
    partition_types,
    storage_list,
    to_entries,
    to_table,
    typed_array,
)
from lakebed.files.manifest_read import decode_manifest
from lakebed.format.datafile import ColumnStats, Entry
from lakebed.format.partition import PartitionField, PartitionSpec, TransformName
from lakebed.format.schema import Schema
from lakebed.format.types import Field, Kind, Primitive

WIDE = manifests.wide_metadata()
INT, LONG, DOUBLE = Primitive(Kind.INT), Primitive(Kind.LONG), Primitive(Kind.DOUBLE)


def round_trip(entries: list[Entry]) -> list[Entry]:
    table = to_table(entries, WIDE.spec(0), WIDE)
    data = encode_manifest(table)
    back = decode_manifest(data, manifests.ref_of(table, data), WIDE.spec(0), WIDE)
    assert back.equals(table)
    return to_entries(back, WIDE.spec(0))


def test_values_of_every_type_come_back_exactly() -> None:
    entries = [
        manifests.wide_entry("low", side=0),
        manifests.wide_entry("high", side=1, removed_version=3),
        manifests.wide_entry("unknown", side=0, known=False),
    ]
    back = round_trip(entries)
    assert back == entries
    assert repr(back) == repr(entries)  # also the sign of zero, and the digits of decimals


def test_a_manifest_of_no_files_comes_back() -> None:
    assert round_trip([]) == []


@pytest.mark.parametrize("kind", manifests.KINDS, ids=str)
def test_storage_values_survive_an_arrow_array(kind: Primitive) -> None:
    values = [*manifests.VALUES[kind.kind], None]
    assert repr(storage_list(typed_array(values, kind))) == repr(values)
    chunked = pa.chunked_array([typed_array(values, kind), typed_array([None], kind)])
    assert repr(storage_list(chunked)) == repr([*values, None])


counts = st.none() | st.integers(0, 5)
number = st.none() | st.floats(allow_nan=False)
text = st.none() | st.text(max_size=5)


@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(-(1 << 31), (1 << 31) - 1),
            st.dictionaries(st.just(3), st.builds(ColumnStats, counts, counts, number, number)),
            st.dictionaries(st.just(2), st.builds(ColumnStats, counts, st.none(), text, text)),
            st.integers(0, 7),
            st.integers(0, 7),
        ),
        max_size=4,
    )
)
def test_any_entries_come_back(rows: list[Any]) -> None:
    metadata = build.metadata()
    entries = [
        Entry(
            file=build.data_file(
                f"f{place}",
                partition=(day,),
                stats={k: v for k, v in (floats | texts).items() if v != ColumnStats()},
            ),
            added_version=added,
            removed_version=removed,
        )
        for place, (day, floats, texts, added, removed) in enumerate(rows)
    ]
    table = to_table(entries, metadata.spec(0), metadata)
    back = manifests.decoded(table)
    assert to_entries(back, metadata.spec(0)) == entries


def test_json_forms_of_values_are_read_as_the_values() -> None:
    metadata = WIDE
    entry = manifests.wide_entry("json", side=0)
    plain = {"decimal": "-12345678901234567.890", "binary": "", "fixed": "AAAAAA=="}
    partition = list(entry.file.partition)
    for place, field in enumerate(metadata.spec(0).fields):
        partition[place] = plain.get(field.name, partition[place])
    listed = build.data_file("json", partition=tuple(partition), stats=entry.file.stats)
    table = to_table([Entry(file=listed, added_version=1)], metadata.spec(0), metadata)
    assert to_entries(table, metadata.spec(0)) == [entry]


def test_a_bound_that_is_no_value_of_its_type_is_unknown() -> None:
    metadata = build.metadata()
    odd = {1: ColumnStats(0, None, "text", 1 << 70), 4: ColumnStats(1, None, 5, 2.5)}
    entry = Entry(file=build.data_file(stats=odd), added_version=1)
    (back,) = to_entries(to_table([entry], metadata.spec(0), metadata), metadata.spec(0))
    assert back.file.stats == {1: ColumnStats(0), 4: ColumnStats(1, None, 5, None)}


def test_statistics_of_nested_and_unknown_columns_are_left_out() -> None:
    metadata = build.metadata()
    entry = Entry(
        file=build.data_file(stats={5: ColumnStats(0), 99: ColumnStats(0)}), added_version=1
    )
    assert not [
        name
        for name in to_table([entry], metadata.spec(0), metadata).column_names
        if name.startswith("null_")
    ]


@pytest.mark.parametrize("partition", [(), ("today",), (1 << 40,), (1.5,)])
def test_a_partition_value_that_is_none_of_its_type_is_refused(partition: tuple[Any, ...]) -> None:
    metadata = build.metadata()
    entry = Entry(file=build.data_file(partition=partition), added_version=1)
    with pytest.raises(BadMetadataError, match="partition value"):
        to_table([entry], metadata.spec(0), metadata)


def test_a_spec_whose_column_was_never_there_is_refused() -> None:
    spec = PartitionSpec(0, (PartitionField(1000, 99, TransformName.IDENTITY, "gone"),))
    with pytest.raises(BadMetadataError, match="no source column"):
        partition_types(spec, build.metadata())


# -------------------------------------------------------------------------------------- joining


def test_manifests_with_other_statistics_join_and_what_is_missing_is_unknown() -> None:
    metadata = build.metadata()
    spec = metadata.spec(0)
    one = Entry(file=build.data_file("a", stats={1: ColumnStats(0, None, 1, 2)}), added_version=1)
    other = Entry(
        file=build.data_file("b", stats={3: ColumnStats(0, 1, 0.5, 2.5)}), added_version=2
    )
    none = Entry(file=build.data_file("c", stats={}), added_version=3, removed_version=4)
    tables = [to_table([entry], spec, metadata) for entry in (one, other, none)]
    assert to_entries(concat(tables, spec, metadata), spec) == [one, other, none]


def test_manifests_from_before_and_after_a_widening_join_at_the_new_type() -> None:
    old = Schema(0, (Field(1, "a", INT), Field(2, "b", INT), Field(3, "c", Primitive(Kind.FLOAT)),
                     Field(4, "d", Primitive(Kind.DECIMAL, 5, 2))))  # fmt: skip
    new = Schema(1, (Field(1, "a", LONG), Field(2, "b", DOUBLE), Field(3, "c", DOUBLE),
                     Field(4, "d", Primitive(Kind.DECIMAL, 9, 2))))  # fmt: skip
    spec = PartitionSpec(
        0,
        (
            PartitionField(1000, 1, TransformName.IDENTITY, "a"),
            PartitionField(1001, 4, TransformName.TRUNCATE, "d_truncate", 10),
        ),
    )
    before = build.metadata(schemas=(old,), specs=(spec,), last_partition_field_id=1001)
    after = build.metadata(schemas=(old, new), specs=(spec,), last_partition_field_id=1001)

    def entry(name: str, a: int, b: float, c: float, d: str) -> Entry:
        stats = {
            1: ColumnStats(0, None, a, a),
            2: ColumnStats(0, None, b, b),
            3: ColumnStats(0, 0, c, c),
            4: ColumnStats(0, None, Decimal(d), Decimal(d)),
        }
        file = build.data_file(name, partition=(a, Decimal(d)), stats=stats)
        return Entry(file=file, added_version=1)

    small = to_table([entry("old", 1 << 30, 7, 0.5, "999.99")], spec, before)
    large = to_table([entry("new", 1 << 60, 0.25, 1e300, "1234567.89")], spec, after)
    for data, table in ((encode_manifest(small), small), (encode_manifest(large), large)):
        assert decode_manifest(data, manifests.ref_of(table, data), spec, after).num_rows == 1
    found = to_entries(concat([small, large], spec, after), spec)
    assert [e.file.partition[0] for e in found] == [1 << 30, 1 << 60]
    assert [repr(e.file.stats[2].lower) for e in found] == ["7.0", "0.25"]
    assert [e.file.stats[3].upper for e in found] == [0.5, 1e300]
    assert [str(e.file.stats[4].lower) for e in found] == ["999.99", "1234567.89"]


def test_only_rows_that_were_not_removed_are_live() -> None:
    metadata = build.metadata()
    entries = [
        Entry(file=build.data_file("a"), added_version=1),
        Entry(file=build.data_file("b"), added_version=1, removed_version=2),
    ]
    table = to_table(entries, metadata.spec(0), metadata)
    assert live(table).column("path").to_pylist() == ["data/a.parquet"]


def test_entries_that_inherit_get_the_version_that_listed_them() -> None:
    metadata = build.metadata()
    entries = [
        Entry(file=build.data_file("a"), added_version=INHERIT),
        Entry(file=build.data_file("b"), added_version=2, removed_version=INHERIT),
        Entry(file=build.data_file("c"), added_version=3),
    ]
    table = to_table(entries, metadata.spec(0), metadata)
    for filled in (inherit(table, 7), manifests.decoded(table, written_version=7)):
        assert filled.column("added_version").to_pylist() == [7, 2, 3]
        assert filled.column("removed_version").to_pylist() == [0, 7, 0]
