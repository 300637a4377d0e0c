"""Objects as files of pyarrow: only what is needed is fetched, and nothing can be written."""

import threading
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from lakebed.errors import ObjectMissingError, RequestError, UnsafePathError
from lakebed.storage.arrow_files import TAIL_SIZE_BYTES, arrow_filesystem
from lakebed.storage.memory import MemoryStore


class Ranged(MemoryStore):
    """A store that, unlike memory, gives no more than was asked for, and counts it."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[int] = []

    def read_tail(self, path: str, length: int) -> tuple[bytes, int]:
        content, size_bytes = super().read_tail(path, length)
        tail = content[max(0, size_bytes - length) :]
        self.fetched.append(len(tail))
        return tail, size_bytes

    def read_range(self, path: str, start: int, length: int) -> bytes:
        data = super().read_range(path, start, length)
        assert len(data) == length
        self.fetched.append(length)
        return data


@pytest.fixture
def store() -> Ranged:
    return Ranged()


def parquet(row_count: int) -> memoryview:
    table = pa.table({name: range(row_count) for name in "abcd"})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="none", use_dictionary=False, row_group_size=100_000)
    return memoryview(sink.getvalue())


def test_one_column_of_a_large_file_is_fetched_alone(store: Ranged) -> None:
    content = parquet(400_000)
    store.create("a", content)
    table = pq.read_table("a", columns=["b"], filesystem=arrow_filesystem(store))
    assert table["b"].to_pylist()[-1] == 399_999
    assert sum(store.fetched) < len(content) / 2


def test_a_small_file_is_fetched_at_once(store: Ranged) -> None:
    store.create("a", parquet(1_000))
    with arrow_filesystem(store).open_input_file("a") as file:
        assert pq.read_table(file).num_rows == 1_000
    assert len(store.fetched) == 1


def test_random_access_gives_the_bytes_asked_for(store: Ranged) -> None:
    content = bytes(range(256)) * (TAIL_SIZE_BYTES // 128)
    store.create("a", content)
    with arrow_filesystem(store).open_input_file("a") as file:
        assert file.size() == len(content)
        size = len(content)
        for start, length in ((0, 10), (size - 5, 100), (size, 1), (1000, 1), (size // 2 - 9, 99)):
            assert file.read_at(length, start) == content[start : start + length]
        file.seek(-4, 2)
        assert file.read() == content[-4:]
        file.seek(size + 10)
        assert file.read(5) == b""
        assert file.seek(3) == 3
        assert file.read(4) == content[3:7]
        assert file.tell() == 7


def test_several_threads_read_one_file(store: Ranged) -> None:
    content = bytes(range(256)) * 8192
    store.create("a", content)
    wrong: list[int] = []
    with arrow_filesystem(store).open_input_file("a") as file:

        def look(offset: int) -> None:
            starts = range(offset, len(content) - 1000, 40_009)
            wrong.extend(at for at in starts if file.read_at(777, at) != content[at : at + 777])

        threads = [threading.Thread(target=look, args=(each * 101,)) for each in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_streams_are_buffered(store: Ranged) -> None:
    content = bytes(range(256)) * 8192
    store.create("a", content)
    with arrow_filesystem(store).open_input_stream("a") as stream:
        assert b"".join(iter(lambda: stream.read(1000), b"")) == content
    assert len(store.fetched) <= 4


def test_our_errors_come_through(store: Ranged) -> None:
    filesystem = arrow_filesystem(store)
    with pytest.raises(ObjectMissingError):
        filesystem.open_input_file("missing")
    with pytest.raises(UnsafePathError):
        filesystem.open_input_file("../x")


def test_nothing_can_be_written(store: Ranged) -> None:
    store.create("a", b"x")
    filesystem = arrow_filesystem(store)
    calls: list[Any] = [
        lambda: filesystem.open_output_stream("b"),
        lambda: filesystem.open_append_stream("a"),
        lambda: filesystem.delete_file("a"),
        lambda: filesystem.delete_dir("a"),
        lambda: filesystem.delete_dir_contents("a"),
        lambda: filesystem.delete_dir_contents("", accept_root_dir=True),
        lambda: filesystem.create_dir("d"),
        lambda: filesystem.move("a", "b"),
        lambda: filesystem.copy_file("a", "b"),
    ]
    for call in calls:
        with pytest.raises(RequestError, match="for reading"):
            call()
    assert [info.path for info in store.list()] == ["a"]


def test_directories_are_what_paths_imply(store: Ranged) -> None:
    store.create_all([("d/a", b"1"), ("d/e/f/g", b"22"), ("h", b"")])
    filesystem = arrow_filesystem(store)

    def walk(base: str, *, recursive: bool) -> dict[str, str]:
        infos = filesystem.get_file_info(fs.FileSelector(base, recursive=recursive))
        return {info.path: info.type.name for info in infos}

    assert walk("", recursive=False) == {"d": "Directory", "h": "File"}
    assert walk("d", recursive=True) == {
        "d/a": "File",
        "d/e": "Directory",
        "d/e/f": "Directory",
        "d/e/f/g": "File",
    }
    with pytest.raises(FileNotFoundError):
        walk("nowhere", recursive=True)
    allowed = fs.FileSelector("nowhere", allow_not_found=True)
    assert filesystem.get_file_info(allowed) == []
    assert filesystem.get_file_info("").type == fs.FileType.Directory


def test_two_views_of_one_store_are_equal(store: Ranged) -> None:
    assert arrow_filesystem(store) == arrow_filesystem(store)
    assert arrow_filesystem(store) != arrow_filesystem(Ranged())
