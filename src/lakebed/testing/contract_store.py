"""The contract of `Store` as tests: subclass `StoreContract` and give it a fixture `store`.

class TestMyStore(StoreContract):
    @pytest.fixture
    def store(self) -> Store: ...  # empty, and of its own for each test
"""

import threading
from collections.abc import Callable
from typing import ClassVar

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from lakebed.errors import (
    LimitExceededError,
    ObjectExistsError,
    ObjectMissingError,
    UnsafePathError,
)
from lakebed.storage.store import Store

SIZE_BYTES_MAX = 1 << 20

UNSAFE_PATHS = (
    *("", "/", "/etc/passwd", "//host/share", "..", "../x", "a/../../x", "a/..", "."),
    *("a/./b", "a//b", "a/", "a\\b", "a\x00b", "a\nb", "file:///etc/passwd", "s3://bucket/key"),
    *("C:\\windows", "%2e%2e/x", "a/%2E%2e/b", "\ud800", "x" * 1025),
)

ODD_PATHS = (
    "data/ts_day=2026-01-01/name=a%2Fb c.parquet",
    "data/é漢字~#?*+=:@{}|^`'\"&<>.x",
    ".hidden/.file",
    "a..b/c...d",
)


class StoreContract:
    """What every store promises."""

    race_thread_count: ClassVar[int] = 8
    race_round_count: ClassVar[int] = 10

    def test_what_was_created_is_read_back(self, store: Store) -> None:
        """Read after write, by whole content, size and existence."""
        store.create("a/b/c", b"content")
        assert store.read("a/b/c", size_bytes_max=7) == b"content"
        assert store.size("a/b/c") == 7
        assert store.exists("a/b/c")

    def test_empty_objects_are_objects(self, store: Store) -> None:
        """Length zero is a length."""
        store.create("empty", b"")
        assert store.read("empty", size_bytes_max=0) == b""
        assert store.size("empty") == 0
        assert [info.path for info in store.list()] == ["empty"]

    def test_memoryviews_are_taken_as_their_bytes(self, store: Store) -> None:
        """A view of a larger buffer, or of wider items, is stored as the bytes it shows."""
        store.create("part", memoryview(b"0123456789")[2:5])
        store.create("wide", memoryview(bytes(8)).cast("I"))
        assert store.read("part", size_bytes_max=10) == b"234"
        assert store.read("wide", size_bytes_max=10) == bytes(8)

    def test_large_objects_come_back_whole(self, store: Store) -> None:
        """More than any single buffer on the way."""
        content = bytes(range(256)) * (40 << 10)
        store.create("large", content)
        assert store.read("large", size_bytes_max=len(content)) == content

    def test_second_create_is_refused_and_changes_nothing(self, store: Store) -> None:
        """An object is never replaced."""
        store.create("a", b"first")
        with pytest.raises(ObjectExistsError):
            store.create("a", b"second, and longer")
        assert store.read("a", size_bytes_max=100) == b"first"

    def test_create_all_creates_all(self, store: Store) -> None:
        """Several objects in several directories, from an iterator."""
        store.create_all(iter([("a", b"1"), ("b/c", b"22"), ("b/d", b"333")]))
        found = [(info.path, info.size_bytes) for info in store.list()]
        assert found == [("a", 1), ("b/c", 2), ("b/d", 3)]

    def test_create_all_of_many(self, store: Store) -> None:
        """More than a store would handle at once."""
        store.create_all((f"many/{each:03d}", b"%d" % each) for each in range(150))
        assert [info.path for info in store.list()] == [f"many/{each:03d}" for each in range(150)]

    def test_create_all_of_nothing_does_nothing(self, store: Store) -> None:
        """No objects, no effect."""
        store.create_all([])
        assert list(store.list()) == []

    def test_create_all_refuses_what_is_there(self, store: Store) -> None:
        """One name taken is an error, and that object stays as it was."""
        store.create("b", b"first")
        with pytest.raises(ObjectExistsError):
            store.create_all([("a", b"1"), ("b", b"second")])
        assert store.read("b", size_bytes_max=10) == b"first"

    def test_settling_takes_what_is_there_and_misses_what_is_not(self, store: Store) -> None:
        """Files of other programs are made durable; a name that leads out is refused."""
        store.create("data/a/b/file", b"content")
        store.create("data/other", b"more")
        store.settle(["data/a/b/file", "data/other"])
        store.settle([])
        assert store.read("data/a/b/file", size_bytes_max=100) == b"content"
        with pytest.raises(ObjectMissingError):
            store.settle(["data/other", "data/none"])
        with pytest.raises(UnsafePathError):
            store.settle(["../outside"])

    def test_missing_objects_are_reported_as_missing(self, store: Store) -> None:
        """Whether or not there is anything near."""
        store.create("dir/there", b"x")
        for path in ("nothing", "dir/nothing", "no/such/dir", "dir"):
            assert not store.exists(path)
            with pytest.raises(ObjectMissingError):
                store.read(path, size_bytes_max=1)
            with pytest.raises(ObjectMissingError):
                store.size(path)

    def test_an_oversized_read_is_refused(self, store: Store) -> None:
        """One byte more than allowed is too much."""
        store.create("a", b"12345")
        assert store.read("a", size_bytes_max=5) == b"12345"
        with pytest.raises(LimitExceededError):
            store.read("a", size_bytes_max=4)

    @pytest.mark.parametrize("path", UNSAFE_PATHS, ids=ascii)
    def test_paths_that_lead_out_are_refused(self, store: Store, path: str) -> None:
        """By every operation, before anything is touched."""
        calls: list[Callable[[], object]] = [
            lambda: store.create(path, b"x"),
            lambda: store.create_all([(path, b"x")]),
            lambda: store.read(path, size_bytes_max=1),
            lambda: store.size(path),
            lambda: store.exists(path),
            lambda: store.delete(path),
            lambda: store.child(path),
        ]
        for call in calls:
            with pytest.raises(UnsafePathError):
                call()
        if path and not path.endswith("a/"):
            with pytest.raises(UnsafePathError):
                store.list(path)
        assert list(store.list()) == []

    def test_odd_names_survive(self, store: Store) -> None:
        """What `check_path` lets through is stored, listed and read under exactly that name."""
        for path in ODD_PATHS:
            store.create(path, path.encode())
        assert [info.path for info in store.list()] == sorted(ODD_PATHS)
        for path in ODD_PATHS:
            assert store.read(path, size_bytes_max=1000) == path.encode()
            assert store.child("x").uri == f"{store.uri}/x"

    def test_listing_is_in_order_of_path(self, store: Store) -> None:
        """Of the whole path: a directory sorts by its name and the slash after it."""
        paths = ["a-b", "a/b-c", "a/b/c", "a0", "b", "a/é", "a/z", "a.b/c"]
        store.create_all((path, b"x") for path in paths)
        assert [info.path for info in store.list()] == sorted(paths)

    def test_listing_is_by_prefix_of_the_text(self, store: Store) -> None:
        """Not only by whole directories."""
        store.create_all((p, b"x") for p in ("m/snap-1", "m/snap-2", "m/snapshots/a", "m/t", "n"))
        assert _paths(store, "m/snap-") == ["m/snap-1", "m/snap-2"]
        assert _paths(store, "m/snap") == ["m/snap-1", "m/snap-2", "m/snapshots/a"]
        assert _paths(store, "m/") == _paths(store, "m") == _paths(store, "")[:-1]
        assert _paths(store, "m/snap-1") == ["m/snap-1"]
        assert _paths(store, "m/snap-1/") == _paths(store, "nothing/here") == []

    def test_listing_an_empty_store_is_empty(self, store: Store) -> None:
        """Before anything was created."""
        assert list(store.list()) == []
        assert list(store.list("metadata/")) == []

    def test_listing_tells_size_and_time(self, store: Store) -> None:
        """The time is by the store's clock: two objects are ordered, up to a second."""
        store.create("a", b"12345")
        store.create("b", b"1")
        first, second = store.list()
        assert (first.size_bytes, second.size_bytes) == (5, 1)
        assert 0 < first.modified_ms <= second.modified_ms + 1_000

    def test_delete_removes_and_a_second_delete_is_no_error(self, store: Store) -> None:
        """And the name is free again."""
        store.create("a/b", b"first")
        store.delete("a/b")
        store.delete("a/b")
        store.delete("never/was/there")
        assert not store.exists("a/b")
        assert list(store.list()) == []
        store.create("a/b", b"again")
        assert store.read("a/b", size_bytes_max=10) == b"again"

    def test_a_child_is_a_part_of_its_parent(self, store: Store) -> None:
        """Both see the same objects, each by its own path."""
        child = store.child("tables/one")
        child.create("metadata/a", b"x")
        assert _paths(store) == ["tables/one/metadata/a"]
        assert _paths(child) == _paths(child, "metadata/") == ["metadata/a"]
        assert child.child("metadata").read("a", size_bytes_max=1) == b"x"
        assert child.uri == f"{store.uri}/tables/one"
        store.create("tables/one-more", b"not in the child")
        assert _paths(child) == ["metadata/a"]

    def test_of_many_racing_creators_one_wins(self, store: Store) -> None:
        """Exactly one, and its content is what is there."""
        for number in range(self.race_round_count):
            winners = race(store, f"race/{number}", self.race_thread_count)
            assert len(winners) == 1
            assert store.read(f"race/{number}", size_bytes_max=SIZE_BYTES_MAX) == winners[0]

    def test_no_reader_sees_a_part_of_an_object(self, store: Store) -> None:
        """Each look finds nothing or all of it."""
        content = b"0123456789abcdef" * (SIZE_BYTES_MAX // 16)
        partial: list[int] = []
        is_done = threading.Event()

        def look() -> None:
            while not is_done.is_set():
                for info in store.list("seen/"):
                    if info.size_bytes != len(content):
                        partial.append(info.size_bytes)
                    found = store.read(info.path, size_bytes_max=SIZE_BYTES_MAX)
                    if found != content:
                        partial.append(len(found))

        reader = threading.Thread(target=look)
        reader.start()
        try:
            for number in range(10):
                store.create(f"seen/{number}", content)
        finally:
            is_done.set()
            reader.join()
        assert partial == []

    def test_arrow_reads_a_parquet_file(self, store: Store) -> None:
        """Through the file system that the store gives to pyarrow, also by several threads."""
        table = pa.table({"a": range(200_000), "b": [f"text {n % 977}" for n in range(200_000)]})
        names = ["data/one.parquet", "data/sub dir/two.parquet"]
        for name in names:
            sink = pa.BufferOutputStream()
            pq.write_table(table, sink, row_group_size=20_000, compression="none")
            store.create(name, memoryview(sink.getvalue()))
        filesystem, prefix = store.arrow_filesystem()
        read = ds.dataset([prefix + name for name in names], filesystem=filesystem)
        assert read.count_rows() == 400_000
        assert read.to_table(columns=["b"], filter=ds.field("a") == 7).num_rows == 2
        whole = pq.read_table(prefix + names[0], filesystem=filesystem)
        assert whole.equals(table)

    def test_arrow_streams_a_file(self, store: Store) -> None:
        """From begin to end, in bites, without knowing its size."""
        content = bytes(range(256)) * 4096
        store.create("stream", content)
        filesystem, prefix = store.arrow_filesystem()
        with filesystem.open_input_stream(prefix + "stream") as stream:
            bites = iter(lambda: stream.read(100_003), b"")
            assert b"".join(bites) == content

    def test_arrow_sees_files_and_directories(self, store: Store) -> None:
        """So that `dataset.dataset` can walk them."""
        store.create_all([("d/a", b"1"), ("d/e/f", b"22")])
        filesystem, prefix = store.arrow_filesystem()
        infos = filesystem.get_file_info([prefix + p for p in ("d", "d/a", "d/e/f", "d/x")])
        assert [info.type.name for info in infos] == ["Directory", "File", "File", "NotFound"]
        assert [info.size for info in infos[1:3]] == [1, 2]
        walked = filesystem.get_file_info(pa.fs.FileSelector(prefix + "d", recursive=True))
        found = sorted(info.path.removeprefix(prefix) for info in walked)
        assert found == ["d/a", "d/e", "d/e/f"]


def race(store: Store, path: str, thread_count: int) -> list[bytes]:
    """Let threads create one name at once; return what the winners wrote."""
    contents = [f"writer {each} ".encode() * 1000 for each in range(thread_count)]
    winners: list[bytes] = []
    start = threading.Barrier(thread_count)

    def compete(content: bytes) -> None:
        start.wait()
        try:
            store.create(path, content)
        except ObjectExistsError:
            return
        winners.append(content)

    threads = [threading.Thread(target=compete, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return winners


def _paths(store: Store, prefix: str = "") -> list[str]:
    return [info.path for info in store.list(prefix)]
