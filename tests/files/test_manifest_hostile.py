"""A manifest that lies, or would fill the memory, is a typed error before anything is opened."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.files import manifests, raw_parquet
from tests.files.confined import confined
from tests.files.manifests import decoded, decoded_bytes, parquet, small_table
from tests.files.raw_parquet import BYTE_ARRAY, INT32, Column, longs, page, texts

from lakebed.errors import BadMetadataError, LimitExceededError, UnsafePathError
from lakebed.files.manifest import encode_manifest, to_table
from lakebed.files.manifest_read import _check_paths, decode_manifest
from lakebed.format.paths import check_path


def test_the_table_that_the_others_change_is_sound() -> None:
    assert decoded(small_table()).equals(small_table())


def with_column(name: str, values: list[Any], kind: Any = None) -> Any:
    """The sound manifest with another column, or another one in its place."""
    table = small_table()
    column = pa.array(values, kind or table.schema.field(name).type)
    place = table.schema.get_field_index(name)
    if place < 0:
        return table.append_column(name, column)
    return table.set_column(place, name, column)


UNTRUE: dict[str, dict[str, Any]] = {
    "fewer files": {"file_count": 2},
    "more files": {"file_count": 4},
    "some deleted": {"file_count": 2, "deleted_count": 1},
    "all deleted": {"file_count": 0, "deleted_count": 3},
    "other rows": {"row_count": 31},
    "other bytes": {"data_size_bytes": 0},
    "written before its files": {"written_version": 1},
}


@pytest.mark.parametrize("changes", UNTRUE.values(), ids=UNTRUE)
def test_a_manifest_that_is_not_what_the_snapshot_says_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(BadMetadataError):
        decoded(small_table(), **changes)


NEGATIVE = -3
UNSOUND = {
    "negative rows": with_column("row_count", [1, NEGATIVE, 1]),
    "huge rows": with_column("row_count", [1, 1 << 60, 1]),
    "negative size": with_column("size_bytes", [NEGATIVE, 1, 1]),
    "negative schema": with_column("schema_id", [0, 0, NEGATIVE]),
    "added before all": with_column("added_version", [NEGATIVE, 1, 1]),
    "added later": with_column("added_version", [1, 8, 1]),
    "removed before all": with_column("removed_version", [0, NEGATIVE, 0]),
    "removed later": with_column("removed_version", [0, 8, 0]),
    "a file twice": with_column("path", ["a", "b", "a"]),
    "negative nulls": with_column("null_1", [0, NEGATIVE, 0]),
    "more nulls than rows": with_column("null_3", [0, 11, 0]),
    "more NaN than rows": with_column("nan_3", [11, 0, 0]),
    "rows unknown": with_column("row_count", [1, None, 1]),
    "path unknown": with_column("path", ["a", None, "c"]),
    "rows as text": with_column("row_count", ["1", "2", "3"], pa.string()),
    "path as bytes": with_column("path", [b"a", b"b", b"c"], pa.binary()),
    "versions of 32 bits": with_column("added_version", [1, 1, 1], pa.int32()),
    "partition as text": with_column("part_1000", ["a", "b", "c"], pa.string()),
    "partition as timestamp": with_column("part_1000", [1, 2, 3], pa.timestamp("us")),
    "bounds of another type": with_column("lower_1", ["a", "b", "c"], pa.string()),
    "bounds without zone": with_column("upper_1", [1, 2, 3], pa.timestamp("us")),
    "nulls as floats": with_column("null_1", [0.0, 0.0, 0.0], pa.float64()),
    "NaN counts as text": with_column("nan_3", ["0", "0", "0"], pa.string()),
    "nested": with_column("more", [[1], [2], [3]], pa.list_(pa.int64())),
    **{f"no {name}": small_table().drop_columns([name]) for name in small_table().column_names[:7]},
}


def told(table: Any) -> dict[str, Any]:
    """What a snapshot says of a manifest, true where the manifest makes sense."""
    plain = {"file_count": 3, "row_count": 30, "data_size_bytes": 3000, "deleted_count": 0}
    names = ("row_count", "size_bytes", "removed_version")
    numbers = [table.column(name).to_pylist() for name in names if name in table.column_names]
    if len(numbers) < len(names) or any(
        not isinstance(n, int) for column in numbers for n in column
    ):
        return plain
    living = [row for row in zip(*numbers, strict=True) if row[2] == 0]
    return {
        "file_count": len(living),
        "deleted_count": 3 - len(living),
        "row_count": sum(row[0] for row in living),
        "data_size_bytes": sum(row[1] for row in living),
    }


@pytest.mark.parametrize("table", UNSOUND.values(), ids=UNSOUND)
def test_a_manifest_that_contradicts_itself_is_refused(table: Any) -> None:
    data = encode_manifest(table)
    with pytest.raises(BadMetadataError):
        decoded_bytes(data, small_table(), **told(table))


def test_a_file_that_was_removed_and_came_back_is_listed_once() -> None:
    table = with_column("path", ["a", "b", "a"])
    table = table.set_column(5, "removed_version", pa.array([6, 0, 0], pa.int64()))
    assert decoded(table).num_rows == 3


def test_two_columns_of_one_name_are_refused() -> None:
    table = small_table()
    data = encode_manifest(table.append_column("path", table.column("path")))
    with pytest.raises(BadMetadataError, match="two columns of one name"):
        decoded_bytes(data, table)


@pytest.mark.parametrize(
    "name",
    [
        *("null_x", "null_", "null_99", "null_5", "null_-1", "null_01"),
        *("null_2", "lower_99", "part_7", "more"),
    ],
)
def test_a_column_that_means_nothing_is_left_out(name: str) -> None:
    table = with_column(name, ["a", "b", "c"], pa.string())
    assert decoded_bytes(encode_manifest(table), small_table()).equals(small_table())


OUTSIDE = [
    "../x",
    "/etc/passwd",
    "a/../../x",
    "s3://bucket/x",
    "a//b",
    "",
    "a\\b",
    "a/%2e%2e/b",
    "x" * 2000,
]


@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.parametrize("removed", [0, 5])
def test_a_path_out_of_the_table_is_refused_in_live_and_in_removed_entries(
    path: str, removed: int
) -> None:
    table = with_column("path", ["data/a", path, "data/c"])
    table = table.set_column(5, "removed_version", pa.array([0, removed, 0], pa.int64()))
    with pytest.raises(UnsafePathError):
        decoded(table)


@given(st.lists(st.text(st.sampled_from("a./\\%2eE:\n\x00\x7f é~"), max_size=8), max_size=4))
def test_a_column_of_paths_passes_if_each_of_them_does(paths: list[str]) -> None:
    def passes(check: Any, value: Any) -> bool:
        try:
            check(value)
        except UnsafePathError:
            return False
        return True

    column = pa.chunked_array([pa.array(paths, pa.string())])
    assert passes(_check_paths, column) == all(passes(check_path, path) for path in paths)


@pytest.mark.parametrize("name", ["path", "lower_2"])
def test_text_that_is_not_utf_8_is_refused(name: str) -> None:
    table = with_column("null_2", [0, 0, 0], pa.int64())
    for bound in ("lower_2", "upper_2"):
        table = table.append_column(bound, pa.array(["a", "b", "c"]))
    assert decoded(table).num_rows == 3
    broken = pa.array([b"a", b"\xff\xfe", b"c"]).view(pa.string())
    place = table.schema.get_field_index(name)
    with pytest.raises(BadMetadataError):
        decoded(table.set_column(place, name, broken))


# ---------------------------------------------------------------------------------------- bombs


def by_hand(*, rows: int = 3, paths: bytes | None = None, **options: Any) -> bytes:
    """A manifest made byte by byte; `paths` are the pages of its first column."""
    many = {"value_count": rows, **options.pop("column", {})}
    zeros = page(longs(*[0] * min(rows, 3)), count=rows)
    small = page(b"\0" * 4 * min(rows, 3), count=rows)
    return raw_parquet.file(
        [
            Column(
                name="path",
                physical=BYTE_ARRAY,
                converted=0,
                pages=page(texts("a", "b", "c")) if paths is None else paths,
                **many,
            ),
            Column(name="row_count", pages=zeros, value_count=rows),
            Column(name="size_bytes", pages=zeros, value_count=rows),
            Column(name="schema_id", physical=INT32, pages=small, value_count=rows),
            Column(name="added_version", pages=zeros, value_count=rows),
            Column(name="removed_version", pages=zeros, value_count=rows),
            Column(name="part_1000", physical=INT32, converted=6, pages=small, value_count=rows),
        ],
        row_count=rows,
        **options,
    )


NO_ROWS = {"row_count": 0, "data_size_bytes": 0}


def test_the_file_that_the_others_change_is_sound() -> None:
    assert decoded_bytes(by_hand(), small_table(), **NO_ROWS).num_rows == 3


def test_a_page_that_claims_two_gigabytes_is_refused_before_they_are_taken() -> None:
    data = by_hand(paths=page(texts("a", "b", "c"), unpacked=(1 << 31) - 1))
    with pytest.raises(LimitExceededError, match="in memory"):
        decoded_bytes(data, small_table(), **NO_ROWS)


def test_a_billion_rows_in_a_run_of_eight_bytes_are_refused_before_they_are_taken() -> None:
    data = by_hand(rows=10**9)
    with pytest.raises(LimitExceededError, match="in memory"):
        decoded_bytes(data, small_table(), file_count=10**9, **NO_ROWS)
    with pytest.raises(BadMetadataError, match="1000000000 entries where the snapshot says 3"):
        decoded_bytes(data, small_table(), **NO_ROWS)


def test_row_groups_that_do_not_add_up_are_refused() -> None:
    with pytest.raises(BadMetadataError, match="row groups"):
        decoded_bytes(by_hand(group_rows=10**9), small_table(), **NO_ROWS)


def test_a_negative_size_of_a_page_is_refused() -> None:
    with pytest.raises(BadMetadataError, match="makes no sense"):
        decoded_bytes(by_hand(paths=page(b"", unpacked=-1)), small_table(), **NO_ROWS)


@pytest.mark.parametrize("size", [1 << 40, (1 << 63) - 1])
def test_a_column_that_lies_outside_of_the_file_is_refused(size: int) -> None:
    with pytest.raises(BadMetadataError, match="outside"):
        decoded_bytes(by_hand(column={"size": size}), small_table(), **NO_ROWS)


def test_text_in_a_dictionary_or_with_shared_beginnings_is_refused() -> None:
    # A megabyte in a dictionary, or as a shared prefix, could stand in each of a million rows.
    prefixes = {"use_dictionary": False, "column_encoding": {"path": "DELTA_BYTE_ARRAY"}}
    for options in ({"use_dictionary": ["path"]}, prefixes):
        data = parquet(small_table(), **options)
        with pytest.raises(BadMetadataError, match="not laid out plainly"):
            decoded_bytes(data, small_table())


def test_numbers_may_be_laid_out_in_any_way() -> None:
    names = [name for name in small_table().column_names if name != "path"]
    data = parquet(small_table(), use_dictionary=names, data_page_version="2.0", compression="gzip")
    assert decoded_bytes(data, small_table()).equals(small_table())


@pytest.mark.slow
def test_each_cut_and_many_flips_of_a_manifest_end_in_a_typed_error_or_a_table(
    tmp_path: Path,
) -> None:
    data = encode_manifest(small_table())
    cuts = [data[:length] for length in range(0, len(data), 97)]
    flips = []
    for place in range(0, len(data), 5):
        changed = bytearray(data)
        changed[place] ^= 1 << place % 8
        flips.append(bytes(changed))
    ends = confined("manifest", [*cuts, *flips], tmp_path)
    assert set(ends[: len(cuts)]) == {"BadMetadataError"}
    assert "BadMetadataError" in ends[len(cuts) :]


@pytest.mark.slow
def test_bombs_stay_within_a_small_memory(tmp_path: Path) -> None:
    zeros = b"\0" * (32 << 20)
    bombs = [
        by_hand(paths=page(texts("a", "b", "c"), unpacked=(1 << 31) - 1)),
        by_hand(rows=10**9),
        by_hand(rows=(1 << 62)),
        by_hand(column={"dictionary": True}),
        by_hand(more=[(5, [[(1, "k"), (2, zeros)]])]),
        by_hand(more=[(5, [[(1, "k")]] * 300_000)]),
        by_hand(paths=page(b"", count=0) * 200_000),
    ]
    ends = confined("manifest", bombs, tmp_path, memory_bytes=512 << 20)
    assert set(ends) <= {"BadMetadataError", "LimitExceededError"}


def test_a_wide_manifest_is_not_taken_for_a_bomb() -> None:
    metadata = manifests.wide_metadata()
    entries = [manifests.wide_entry(f"f{i}", side=i % 2) for i in range(50)]
    table = to_table(entries, metadata.spec(0), metadata)
    data = encode_manifest(table)
    ref = manifests.ref_of(table, data)
    assert decode_manifest(data, ref, metadata.spec(0), metadata).num_rows == 50
