"""Faults of the disk: told as what they are, and no object is ever there in part."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from tests.storage.disk import failing, files_below

from lakebed.errors import (
    LakebedError,
    ObjectMissingError,
    StorageError,
    UnavailableError,
    UnsafeStoreError,
)
from lakebed.ids import SystemIds
from lakebed.storage.local import LocalStore
from lakebed.storage.store import Store


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("step", ["write", "fsync"])
def test_a_full_disk_is_told_and_leaves_nothing(
    store: Store, root: Path, monkeypatch: pytest.MonkeyPatch, step: str, number: int
) -> None:
    store.create("dir/first", b"x")
    with monkeypatch.context() as patch:
        patch.setattr(os, step, failing(getattr(os, step), number))
        with pytest.raises(UnavailableError, match="no room left on"):
            store.create("dir/a", b"x")
    assert files_below(root) == ["dir/first"]
    store.create("dir/a", b"x")


def test_a_failed_fsync_is_not_repeated(
    store: Store, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create("first", b"x")
    calls = []

    def broken(descriptor: int) -> None:
        calls.append(os.fstat(descriptor).st_ino)
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", broken)
        with pytest.raises(UnavailableError, match="Input/output error"):
            store.create_all([("a", b"1"), ("b", b"2")])
    assert len(calls) == len(set(calls)) == 2
    assert files_below(root) == ["first"]


def test_a_failed_fsync_of_the_directory_leaves_it_in_doubt(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create("first", b"x")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing(os.fsync, errno.EIO, at=2))
        with pytest.raises(UnavailableError):
            store.create("a", b"1")
    assert store.read("a", size_bytes_max=1) == b"1"


def test_a_directory_without_fsync_is_taken_as_durable(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create("first", b"x")
    monkeypatch.setattr(os, "fsync", failing(os.fsync, errno.EINVAL, at=2))
    store.create("a", b"1")
    assert store.exists("a")


@pytest.mark.parametrize("number", [errno.EPERM, errno.EOPNOTSUPP])
def test_a_file_system_without_hard_links_is_unsafe(
    store: Store, root: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(os, "link", failing(os.link, number))
    with pytest.raises(UnsafeStoreError, match="hard links"):
        store.create("a", b"x")
    assert files_below(root) == []


def test_a_link_whose_answer_got_lost_was_made(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.link

    def lossy(*args: Any, **kwargs: Any) -> None:
        real(*args, **kwargs)
        raise FileExistsError(errno.EEXIST, "the repeated request found the first one's link")

    monkeypatch.setattr(os, "link", lossy)
    store.create("a", b"x")
    assert store.read("a", size_bytes_max=1) == b"x"


def test_short_writes_are_continued(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, memoryview(data).cast("B")[:1000]))
    content = os.urandom(10_500)
    store.create("a", content)
    store.create("b", memoryview(content).cast("H"))
    assert store.read("a", size_bytes_max=20_000) == content
    assert store.read("b", size_bytes_max=20_000) == content


def test_short_reads_are_continued(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    content = os.urandom(10_500)
    store.create("a", content)
    real = os.read
    monkeypatch.setattr(os, "read", lambda fd, count: real(fd, min(count, 1000)))
    assert store.read("a", size_bytes_max=20_000) == content
    monkeypatch.setattr(os, "read", lambda _fd, _count: b"")
    with pytest.raises(UnavailableError, match="shorter"):
        store.read("a", size_bytes_max=20_000)


def test_a_write_that_takes_nothing_is_an_error(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "write", lambda _fd, _data: 0)
    with pytest.raises(UnavailableError):
        store.create("a", b"x")


def test_a_removed_directory_is_made_again(store: Store, root: Path) -> None:
    store.create("a/b/c", b"x")
    store.delete("a/b/c")
    (root / "a" / "b").rmdir()
    (root / "a").rmdir()
    store.create("a/b/c", b"y")
    assert store.read("a/b/c", size_bytes_max=1) == b"y"


def test_an_error_while_listing_is_not_a_short_list(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create_all([("a/x", b"1"), ("b/x", b"1")])
    monkeypatch.setattr(os, "scandir", failing(os.scandir, errno.EIO, at=3))
    listing = store.list()
    assert next(listing).path == "a/x"
    with pytest.raises(UnavailableError):
        next(listing)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_missing_permission_is_told_and_not_retryable(
    store: Store, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    store.create("dir/a", b"x")
    monkeypatch.setattr(os, "open", failing(os.open, number))
    with pytest.raises(StorageError, match="not allowed to write") as caught:
        store.create("dir/b", b"x")
    assert not caught.value.retryable
    monkeypatch.undo()
    monkeypatch.setattr(os, "open", failing(os.open, number))
    with pytest.raises(StorageError, match="not allowed to read"):
        store.read("dir/a", size_bytes_max=1)


def test_a_name_too_long_for_the_disk(store: Store) -> None:
    with pytest.raises(StorageError, match="too long"):
        store.create("x" * 300, b"x")
    assert not store.exists("x" * 300)
    with pytest.raises(ObjectMissingError):
        store.read("x" * 300, size_bytes_max=1)


def test_a_fault_at_any_call_leaves_all_of_an_object_or_none(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each system call of a create fails once; what is then listed is whole."""
    number = 0
    for step in ("mkdir", "open", "write", "fsync", "link", "unlink", "close"):
        for at in range(1, 4):
            number += 1
            store = LocalStore(root)
            path = f"d{number}/a"
            with monkeypatch.context() as patch:
                patch.setattr(os, step, failing(getattr(os, step), errno.EIO, at=at))
                try:
                    store.create_all([(path, b"whole"), (f"d{number}/b", b"whole")])
                except LakebedError as error:
                    assert isinstance(error, UnavailableError)
            for info in store.list(f"d{number}/"):
                assert store.read(info.path, size_bytes_max=5) == b"whole"
            with monkeypatch.context():
                store.create(f"d{number}/later", b"x")


def test_where_no_file_is_nameless_a_temporary_name_does(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(root)
    store.create("first", b"x")
    real = os.open

    def without_nameless(path: str, flags: int, *args: Any) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        return real(path, flags, *args)

    monkeypatch.setattr(os, "open", without_nameless)
    store.create("a/b", b"x")
    store.create("a/c", b"x")
    assert files_below(root) == ["a/b", "a/c", "first"]


def test_no_free_temporary_name_is_an_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakebed.storage.local.has_nameless_files", lambda: False)

    class Stuck(SystemIds):
        def new(self) -> str:
            return "same"

    store = LocalStore(root, ids=Stuck())
    store.create("a", b"x")
    (root / ".tmp-same").write_bytes(b"x")
    with pytest.raises(UnavailableError, match="temporary name"):
        store.create("b", b"x")


def test_a_file_that_vanishes_while_listing_is_left_out(store: Store, root: Path) -> None:
    store.create_all((name, b"x") for name in ("a", "b", "c", "d/e"))
    listing = store.list()
    assert next(listing).path == "a"
    (root / "b").unlink()
    (root / "d" / "e").unlink()
    (root / "d").rmdir()
    assert [info.path for info in listing] == ["c"]


def test_the_memory_of_directories_is_bounded(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakebed.storage.local.KNOWN_DIRECTORY_COUNT_MAX", 3)
    store.create_all((f"{each}/a", b"x") for each in range(10))
    assert len(list(store.list())) == 10
    assert isinstance(store, LocalStore)
    assert max(len(store._known), len(store._ready)) <= 3
