"""Local disk: links are never followed, faults leave nothing half done, crashes leave no object."""

import errno
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.storage.disk import failing, files_below, paths

from lakebed.errors import (
    ObjectExistsError,
    RequestError,
    StorageError,
    UnsafePathError,
)
from lakebed.storage.local import LocalStore
from lakebed.storage.store import Store

# ---- symbolic links and other things that are not files


@pytest.mark.parametrize("inside", [True, False])
def test_no_operation_goes_through_a_linked_directory(
    store: Store, root: Path, tmp_path: Path, inside: bool
) -> None:
    place = (root if inside else tmp_path) / "place"
    place.mkdir(parents=True)
    (place / "file").write_bytes(b"secret")
    (root / "x").mkdir(parents=True)
    (root / "x" / "link").symlink_to(place)
    calls: list[Callable[[], object]] = [
        lambda: store.read("x/link/file", size_bytes_max=100),
        lambda: store.size("x/link/file"),
        lambda: store.exists("x/link/file"),
        lambda: store.delete("x/link/file"),
        lambda: store.create("x/link/new", b"x"),
        lambda: store.create("x/link/deep/new", b"x"),
        lambda: store.list("x/link/"),
        lambda: store.child("x/link"),
        lambda: store.child("x/link/below"),
    ]
    for call in calls:
        with pytest.raises(UnsafePathError):
            call()
    assert (place / "file").read_bytes() == b"secret"
    assert [p.name for p in place.iterdir()] == ["file"]


def test_a_linked_file_is_not_an_object(store: Store, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(b"secret")
    root.mkdir()
    (root / "link").symlink_to(outside)
    (root / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("link", "dangling"):
        with pytest.raises(UnsafePathError):
            store.read(name, size_bytes_max=100)
        with pytest.raises(UnsafePathError):
            store.exists(name)
        with pytest.raises(UnsafePathError):
            store.delete(name)
        with pytest.raises(UnsafePathError):
            store.create(name, b"x")
    assert paths(store) == []
    assert outside.read_bytes() == b"secret"
    assert not (tmp_path / "nowhere").exists()


def test_a_link_that_appears_after_the_look_is_not_replaced(
    store: Store, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root.mkdir()
    (root / "link").symlink_to(tmp_path / "nowhere")
    monkeypatch.setattr("lakebed.storage.local._refuse_existing", lambda _target: None)
    with pytest.raises(ObjectExistsError):
        store.create("link", b"x")
    assert files_below(root) == ["link"]


def test_a_loop_of_links_is_refused(store: Store, root: Path) -> None:
    root.mkdir()
    (root / "loop").symlink_to("loop")
    with pytest.raises(UnsafePathError):
        store.read("loop/a", size_bytes_max=1)
    with pytest.raises(UnsafePathError):
        store.read("loop", size_bytes_max=1)


def test_the_root_itself_may_be_reached_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to("real")
    store = LocalStore(tmp_path / "alias")
    store.create("a/b", b"x")
    assert store.uri == str(tmp_path / "real")
    assert (tmp_path / "real" / "a" / "b").read_bytes() == b"x"


def test_pipes_and_sockets_are_refused_without_waiting(store: Store, root: Path) -> None:
    root.mkdir()
    os.mkfifo(root / "pipe")
    with pytest.raises(UnsafePathError):
        store.read("pipe", size_bytes_max=1)
    with pytest.raises(UnsafePathError):
        store.size("pipe")
    with pytest.raises(UnsafePathError):
        store.delete("pipe")
    assert paths(store) == []


def test_a_directory_is_not_deleted(store: Store, root: Path) -> None:
    store.create("a/b", b"x")
    with pytest.raises(UnsafePathError):
        store.delete("a")
    assert (root / "a" / "b").exists()


def test_a_file_in_the_way_of_a_directory(store: Store) -> None:
    store.create("a", b"x")
    with pytest.raises(StorageError, match="in the way"):
        store.create("a/b", b"x")
    assert not store.exists("a/b")
    assert list(store.list("a/")) == []


@pytest.mark.parametrize("bad", ["", "a\0b"])
def test_a_root_that_cannot_be_a_directory_is_refused(bad: str) -> None:
    with pytest.raises(RequestError):
        LocalStore(bad)


# ---- temporary files and other leftovers


def test_temporary_files_are_not_objects(store: Store, root: Path) -> None:
    store.create("a/b", b"x")
    (root / "a" / ".tmp-0123").write_bytes(b"half")
    (root / ".tmp-dir").mkdir()
    (root / ".tmp-dir" / "c").write_bytes(b"half")
    assert paths(store) == ["a/b"]
    for path in ("a/.tmp-0123", ".tmp-dir/c", ".tmp-new"):
        with pytest.raises(UnsafePathError):
            store.create(path, b"x")
        with pytest.raises(UnsafePathError):
            store.read(path, size_bytes_max=10)


def test_names_that_no_path_can_have_are_not_listed(store: Store, root: Path) -> None:
    store.create("good", b"x")
    (root / "back\\slash").write_bytes(b"x")
    (root / "new\nline").write_bytes(b"x")
    (Path(os.fsdecode(bytes(root) + b"/\xff\xfe"))).write_bytes(b"x")
    assert paths(store) == ["good"]


def test_a_leftover_of_the_same_name_does_not_stop_a_writer(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakebed.storage.local.has_nameless_files", lambda: False)

    class Counting:
        count = 0

        def new(self) -> str:
            self.count += 1
            return str(self.count)

        def bits(self, count: int) -> int:
            return 0

        def fraction(self) -> float:
            return 0.0

    root.mkdir()
    (root / ".tmp-1").write_bytes(b"left by a writer that was killed")
    LocalStore(root, ids=Counting()).create("a", b"x")
    assert files_below(root) == [".tmp-1", "a"]


@pytest.mark.crash
@pytest.mark.parametrize("step", ["write", "fsync", "link"])
@pytest.mark.parametrize("nameless", [True, False])
def test_a_writer_killed_before_the_name_leaves_no_object(
    root: Path, step: str, nameless: bool
) -> None:
    script = f"""
import os, signal
import lakebed.storage.local as local
local.has_nameless_files = lambda: {nameless}
store = local.LocalStore({str(root)!r})
store.create("dir/before", b"x")
os.{step} = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
store.create("dir/after", b"y" * 100_000)
"""
    ended = subprocess.run([sys.executable, "-c", script], check=False)
    assert ended.returncode == -signal.SIGKILL
    store = LocalStore(root)
    assert paths(store) == ["dir/before"]
    store.create("dir/after", b"z")
    leftovers = [name for name in files_below(root) if ".tmp-" in name]
    assert len(leftovers) == (0 if nameless else 1)


# ---- durability


def test_new_directories_and_names_are_synced(
    store: Store, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = os.fsync

    def spy(descriptor: int) -> None:
        info = os.fstat(descriptor)
        synced.append("file" if stat.S_ISREG(info.st_mode) else str(info.st_ino))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", spy)
    store.create("a/b/c", b"x")

    def inode(path: Path) -> str:
        return str(path.stat().st_ino)

    chain = [inode(root.parent), inode(root), inode(root / "a"), "file", inode(root / "a/b")]
    assert synced == chain
    synced.clear()
    store.create_all([("a/b/d", b"x"), ("a/b/e", b"x")])
    assert synced == ["file", "file", inode(root / "a/b")]
    synced.clear()
    store.child("a").child("b").create("f", b"x")
    assert synced == ["file", inode(root / "a/b")]


@pytest.mark.parametrize("names", [["a/1", "b/2", "c/3"], ["a/1", "a/2", "b/3"]])
def test_content_is_durable_before_the_name_and_the_name_before_the_end(
    store: Store, root: Path, monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    events: list[tuple[str, int]] = []
    sync, link = os.fsync, os.link

    def spy_sync(descriptor: int) -> None:
        sync(descriptor)
        events.append(("sync", os.fstat(descriptor).st_ino))

    def spy_link(source: str, target: str, **options: Any) -> None:
        link(source, target, **options)
        events.append(("link", os.stat(target).st_ino))

    monkeypatch.setattr(os, "fsync", spy_sync)
    monkeypatch.setattr(os, "link", spy_link)
    store.create_all([(name, name.encode()) for name in names])
    for name in names:
        file, directory = (root / name).stat().st_ino, (root / name).parent.stat().st_ino
        named = events.index(("link", file))
        assert ("sync", file) in events[:named]
        assert ("sync", directory) in events[named:]


def test_without_fsync_nothing_is_synced(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", failing(os.fsync, errno.EIO))
    LocalStore(root, fsync=False).create("a/b", b"x")


def test_files_are_readable_by_other_engines(store: Store, root: Path) -> None:
    before = os.umask(0o022)
    try:
        store.create("a", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((root / "a").stat().st_mode) == 0o644


def test_no_descriptor_is_left_open(store: Store) -> None:
    store.create("dir/first", b"x")
    before = len(os.listdir("/proc/self/fd"))
    store.create_all((f"dir/{each}", b"x") for each in range(100))
    with pytest.raises(ObjectExistsError):
        store.create_all([("dir/new", b"x"), ("dir/1", b"x")])
    store.read("dir/1", size_bytes_max=1)
    list(store.list())
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_forked_child_can_create_several(store: Store, root: Path) -> None:
    """The pool's threads do not survive a fork; the child makes its own."""
    store.create_all([("a", b"1"), ("b", b"2")])
    script = f"""
import os
from lakebed.storage.local import LocalStore
store = LocalStore({str(root)!r})
store.create_all([("c", b"1"), ("d", b"2")])
child = os.fork()
if not child:
    store.create_all([("e", b"1"), ("f", b"2")])
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30)
    assert paths(store) == ["a", "b", "c", "d", "e", "f"]
