"""A path that passes the check leads to one place inside the table, and nowhere else."""

import posixpath
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.errors import UnsafePathError
from lakebed.format.paths import (
    check_path,
    data_path,
    manifest_path,
    path_segment,
    snapshot_path,
    table_path,
)

BAD = [
    *("", ".", "..", "/", "/etc/passwd", "//host/share", "../x", "a/../b", "a/..", "./a", "a/."),
    *("a/", "a//b", "a\\b", "..\\x", "C:/x", "c:x", "file://x", "s3://b", "\x00", "a\nb", "\x1f"),
    *("a/%2e%2e/b", "%2E%2E/x", "a/.%2e/b", "\ud800", "x" * 1025, "é" * 513, "a/../../b"),
]  # fmt: skip
GOOD = [
    *("a", "data/x.parquet", "data/ts_day=2026-01-01/a.parquet", "...", "a/...", ".hidden", "a..b"),
    *("data/a:b", "a b", "é/ü", "x" * 1024, "a/..b/c", "data/x=%20y", "-", "~", "a/~root", "$HOME"),
]


@pytest.mark.parametrize("path", BAD, ids=ascii)
def test_a_path_that_could_leave_the_table_is_refused(path: str) -> None:
    with pytest.raises(UnsafePathError):
        check_path(path)


@pytest.mark.parametrize("path", GOOD, ids=ascii)
def test_a_path_inside_the_table_is_returned(path: str) -> None:
    assert check_path(path) == path


@given(st.text(st.sampled_from("a./\\%2eE:\n é~"), max_size=12))
def test_what_passes_resolves_below_the_root_in_every_reading(path: str) -> None:
    try:
        check_path(path)
    except UnsafePathError:
        return
    for reading in (path, unquote(path), path.replace("\\", "/")):
        place = posixpath.normpath(posixpath.join("/root", reading))
        assert place.startswith("/root/")
    assert posixpath.normpath(path) == path  # one place has one name


@given(st.text(max_size=100))
def test_a_directory_made_of_any_partition_value_is_safe(value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        return
    segment = path_segment(f"site={value}")
    assert "/" not in segment
    assert len(segment) <= 64
    check_path(data_path("id", segment))


def test_names_of_files_are_safe_and_sort_by_version() -> None:
    names = [snapshot_path(version) for version in (0, 9, 10, 10**9)]
    assert names == sorted(names)
    assert snapshot_path(7, "x") == "metadata/snap-00000000000000000007-x.json"
    for path in (*names, manifest_path("1"), table_path("2"), data_path("3")):
        assert check_path(path) == path
    assert data_path("3") == "data/3.parquet"
