"""A snapshot comes back as it was written, and one that contradicts itself does not come back."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.format import build

from lakebed.errors import BadMetadataError, BadTableError, UnsafePathError
from lakebed.format.datafile import ColumnStats, Entry
from lakebed.format.document import seal
from lakebed.format.pointer import Token
from lakebed.format.snapshot import (
    ManifestRef,
    Operation,
    PartitionRange,
    Snapshot,
    Summary,
    decode_snapshot,
    encode_snapshot,
    make_snapshot_id,
    version_of,
)

HUGE = 10**30


def sealed_as_is(snapshot: Snapshot) -> bytes:
    """The file of a snapshot that the library itself would refuse to write."""
    return seal(msgspec.json.encode(snapshot))


bounds = st.none() | st.integers(-(1 << 63), (1 << 63) - 1) | st.floats(allow_nan=False) | st.text()
plain = st.integers(0, 1 << 40)
files = st.builds(
    build.data_file,
    name=st.text("abc/_=-0é", min_size=1, max_size=9).map(lambda text: text.replace("/", "x")),
    row_count=st.integers(20, 1 << 40),
    size_bytes=plain,
    schema_id=st.integers(0, 9),
    partition=st.tuples(st.none() | st.integers(-(1 << 31), 1 << 31) | st.text()),
    stats=st.dictionaries(
        st.integers(1, 9),
        st.builds(
            ColumnStats,
            st.none() | st.integers(0, 10),
            st.none() | st.integers(0, 10),
            bounds.filter(lambda value: value not in (float("inf"), float("-inf"))),
            bounds.filter(lambda value: value not in (float("inf"), float("-inf"))),
        ),
        max_size=3,
    ),
)


@given(
    st.lists(st.tuples(files, st.integers(0, 4), st.booleans()), max_size=4),
    st.builds(Summary, added_files=plain, removed_rows=plain, total_bytes=plain),
    st.dictionaries(st.text(), st.text(), max_size=2),
    st.none() | st.builds(Token, st.text(), st.integers()),
)
def test_a_snapshot_comes_back_as_it_was(
    listed: list[Any], summary: Summary, parameters: dict[str, str], token: Token | None
) -> None:
    entries = {
        file.path: Entry(file=file, added_version=added, removed_version=4 if gone else 0)
        for file, added, gone in listed
    }
    snapshot = build.snapshot(
        manifest_list=(build.inline(*entries.values()),),
        summary=summary,
        parameters=parameters,
        token=token,
        tokens={"app": (7, 3)},
        tokens_complete=False,
        data_change=False,
    )
    assert decode_snapshot(encode_snapshot(snapshot), "p") == snapshot


def test_a_manifest_comes_back_with_its_ranges() -> None:
    ref = ManifestRef(
        spec_id=1,
        written_version=0,
        file_count=2,
        row_count=3,
        data_size_bytes=4,
        deleted_count=5,
        path="metadata/manifest-x.parquet",
        size_bytes=6,
        checksum="ab",
        partitions=(PartitionRange(has_null=True), PartitionRange(False, 1, "z")),
        stats={7: ColumnStats(None, None, "a", "b")},
    )
    snapshot = build.snapshot(manifest_list=(ref,))
    assert decode_snapshot(encode_snapshot(snapshot), "p").manifest_list == (ref,)


@pytest.mark.parametrize("operation", Operation)
def test_every_operation_comes_back(operation: Operation) -> None:
    first: dict[str, Any] = {"parent_id": None, "parent_path": ""}
    changes = first if operation is Operation.CREATE else {}
    snapshot = build.snapshot(operation=operation, **changes)
    assert decode_snapshot(encode_snapshot(snapshot), "p").operation is operation


@given(st.integers(0, (1 << 32) - 2), st.integers(0, (1 << 31) - 1))
def test_an_id_is_positive_and_tells_its_version(version: int, bits: int) -> None:
    number = make_snapshot_id(version, bits)
    assert 0 < number < 1 << 63
    assert version_of(number) == version


@pytest.mark.parametrize("number", [0, 1, (1 << 31) - 1, -1])
def test_a_number_too_small_to_be_an_id_has_no_version(number: int) -> None:
    assert version_of(number) is None


def entry(**changes: Any) -> Entry:
    return Entry(file=build.data_file(**changes), added_version=4)


UNSOUND: dict[str, dict[str, Any]] = {
    "another version's id": {"snapshot_id": make_snapshot_id(5, 1)},
    "an id too small": {"snapshot_id": 4},
    "a negative version": {"version": -1, "snapshot_id": 0, "parent_id": make_snapshot_id(0, 1)},
    "a version above all": {"version": 1 << 33, "snapshot_id": make_snapshot_id(1 << 33, 1)},
    "no parent": {"parent_id": None},
    "created from a parent": {"operation": Operation.CREATE},
    "a parent too old": {"parent_id": make_snapshot_id(2, 1)},
    "its own parent": {"parent_id": make_snapshot_id(4, 77)},
    "a time before 1970": {"timestamp_ms": -1},
    "a time after all": {"timestamp_ms": HUGE},
    "a negative schema": {"schema_id": -1},
    "a huge spec": {"spec_id": HUGE},
    "a negative total": {"summary": Summary(total_rows=-1)},
    "a huge total": {"summary": Summary(added_bytes=HUGE)},
}
UNSOUND_REFS: dict[str, ManifestRef] = {
    "negative files": build.inline(path="m", file_count=-1),
    "negative rows": build.inline(path="m", row_count=-1),
    "negative data": build.inline(path="m", data_size_bytes=-1),
    "negative deleted": build.inline(path="m", deleted_count=-1),
    "negative size": build.inline(path="m", size_bytes=-1),
    "negative spec": build.inline(path="m", spec_id=-1),
    "huge rows": build.inline(path="m", row_count=HUGE),
    "from the future": build.inline(path="m", written_version=5),
    "from before all": build.inline(path="m", written_version=-1),
    "two places": build.inline(entry(), path="m"),
    "fewer files than said": build.inline(entry(), file_count=2),
    "more rows than said": build.inline(entry(), row_count=9),
    "a file twice": build.inline(entry(), entry()),
    "negative file rows": build.inline(entry(row_count=-10, stats={})),
    "negative file size": build.inline(entry(size_bytes=-10)),
    "huge file rows": build.inline(entry(row_count=HUGE), row_count=1),
    "huge schema": build.inline(entry(schema_id=1 << 31)),
    "another spec": build.inline(entry(spec_id=1)),
    "added later": build.inline(Entry(file=build.data_file(), added_version=5)),
    "added before all": build.inline(Entry(file=build.data_file(), added_version=-1)),
    "removed later": build.inline(
        Entry(file=build.data_file(), added_version=1, removed_version=5)
    ),
    "removed before all": build.inline(
        Entry(file=build.data_file(), added_version=1, removed_version=-1)
    ),
    "more nulls than rows": build.inline(entry(stats={1: ColumnStats(11)})),
    "more nulls and NaN than rows": build.inline(entry(stats={1: ColumnStats(6, 5)})),
    "negative nulls": build.inline(entry(stats={1: ColumnStats(-1)})),
    "huge NaN": build.inline(entry(stats={1: ColumnStats(0, HUGE)})),
}
CASES = UNSOUND | {name: {"manifest_list": (ref,)} for name, ref in UNSOUND_REFS.items()}


@pytest.mark.parametrize("changes", CASES.values(), ids=CASES)
def test_a_snapshot_that_contradicts_itself_is_neither_read_nor_written(
    changes: dict[str, Any],
) -> None:
    snapshot = build.snapshot(**changes)
    with pytest.raises(BadMetadataError):
        encode_snapshot(snapshot)
    with pytest.raises(BadMetadataError) as caught:
        decode_snapshot(sealed_as_is(snapshot), "metadata/snap.json")
    assert caught.value.fields["path"] == "metadata/snap.json"


OUTSIDE = "../other/file"
UNSAFE: dict[str, dict[str, Any]] = {
    "definition": {"metadata_path": OUTSIDE},
    "parent": {"parent_path": "/etc/passwd"},
    "manifest": {"manifest_list": (build.inline(path="s3://elsewhere/m"),)},
    "file": {"manifest_list": (build.inline(entry(path=OUTSIDE)),)},
    "removed file": {
        "manifest_list": (
            build.inline(
                Entry(file=build.data_file(path="a/./b"), added_version=1, removed_version=2)
            ),
        )
    },
}


@pytest.mark.parametrize("changes", UNSAFE.values(), ids=UNSAFE)
def test_a_path_out_of_the_table_is_refused_wherever_it_stands(changes: dict[str, Any]) -> None:
    snapshot = build.snapshot(**changes)
    with pytest.raises(UnsafePathError):
        encode_snapshot(snapshot)
    with pytest.raises(UnsafePathError):
        decode_snapshot(sealed_as_is(snapshot), "p")


def test_a_table_created_after_a_tombstone_has_no_parent_at_any_version() -> None:
    snapshot = build.snapshot(operation=Operation.CREATE, parent_id=None, parent_path="")
    assert decode_snapshot(encode_snapshot(snapshot), "p") == snapshot


def test_a_second_format_version_further_down_is_refused() -> None:
    data = build.resealed_text(
        encode_snapshot(build.snapshot()), '"schema_id":0', '"schema_id":0,"format_version":2'
    )
    with pytest.raises(BadMetadataError, match="two format versions"):
        decode_snapshot(data, "p")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"schema_id":0,', ""),
        ('"version":4', '"version":"4"'),
        ('"version":4', '"version":4.5'),
        ('"operation":"append"', '"operation":"explode"'),
        ('"manifest_list":[', '"manifest_list":[null,'),
        ('"commit_id":"', '"commit_id":7,"x":"'),
        ('"partition":[19000]', '"partition":{}'),
        ('"stats":{"1"', '"stats":{"one"'),
        ('"table_id"', '"table_id":{},"x"'),
    ],
)
def test_a_value_of_another_kind_is_a_typed_error(old: str, new: str) -> None:
    data = build.resealed_text(encode_snapshot(build.snapshot()), old, new)
    with pytest.raises(BadMetadataError):
        decode_snapshot(data, "p")


def test_keys_that_this_version_does_not_know_are_passed_over() -> None:
    snapshot = build.snapshot()
    data = build.resealed(encode_snapshot(snapshot), a_later_idea={"x": [1, None]})
    assert decode_snapshot(data, "p") == snapshot


def test_every_cut_of_a_resealed_snapshot_is_a_typed_error() -> None:
    body = encode_snapshot(build.snapshot()).partition(b'","lakebed":')[2][:-2]
    for length in range(0, len(body), 7):
        with pytest.raises(BadTableError):
            decode_snapshot(seal(body[:length]), "p")


def test_an_entry_tells_its_standing() -> None:
    file = build.data_file()
    assert Entry(file=file, added_version=4).status(4) == "added"
    assert Entry(file=file, added_version=3).status(4) == "existing"
    assert Entry(file=file, added_version=3, removed_version=4).status(4) == "deleted"
    assert not Entry(file=file, added_version=3, removed_version=4).is_live


def test_a_manifest_is_inline_if_it_has_no_path() -> None:
    refs = build.snapshot().manifest_list
    assert [ref.is_inline for ref in refs] == [False, True]
