"""Objects as files that pyarrow reads by range, from as many threads as it likes.

Imports pyarrow, which takes a third of a second: stores import this module when first asked.
"""

import io
from collections.abc import Iterator
from typing import Any, NoReturn, Protocol

import pyarrow as pa
from pyarrow import fs

from lakebed.errors import ObjectMissingError, RequestError
from lakebed.storage.store import ObjectInfo

TAIL_SIZE_BYTES = 256 << 10  # a Parquet footer, or all of a small file, in one request
STREAM_BUFFER_SIZE_BYTES = 4 << 20


class RangeStore(Protocol):
    """What random access needs of a store; results have the buffer protocol."""

    def read_tail(self, path: str, length: int) -> tuple[Any, int]:
        """At least the last `length` bytes, or all there are, and the object's size."""

    def read_range(self, path: str, start: int, length: int) -> Any:
        """Exactly `length` bytes from `start`, both inside the object."""

    def size(self, path: str) -> int:
        """Tell an object's length in bytes, or raise ObjectMissingError."""

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """All objects whose path starts with `prefix`, in order of path."""


def arrow_filesystem(store: RangeStore) -> fs.FileSystem:
    """Wrap a store as a `pyarrow.fs.FileSystem` for reading."""
    return fs.PyFileSystem(_Handler(store))


class _Handler(fs.FileSystemHandler):
    def __init__(self, store: RangeStore) -> None:
        self._store = store

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Handler) and other._store is self._store

    def __hash__(self) -> int:
        return id(self._store)

    def get_type_name(self) -> str:
        return "lakebed"

    def normalize_path(self, path: str) -> str:
        return path

    def open_input_file(self, path: str) -> pa.NativeFile:
        tail, size_bytes = self._store.read_tail(path, TAIL_SIZE_BYTES)
        if len(tail) == size_bytes:
            return pa.BufferReader(pa.py_buffer(tail))
        return pa.PythonFile(_RangeFile(self._store, path, tail, size_bytes), mode="r")

    def open_input_stream(self, path: str) -> pa.NativeFile:
        tail, size_bytes = self._store.read_tail(path, TAIL_SIZE_BYTES)
        if len(tail) == size_bytes:
            return pa.BufferReader(pa.py_buffer(tail))
        file = _RangeFile(self._store, path, tail, size_bytes)
        # A stream is read in small bites: without a buffer each would be a request.
        return pa.PythonFile(io.BufferedReader(file, STREAM_BUFFER_SIZE_BYTES), mode="r")

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        return [self._info(path) for path in paths]

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        base = selector.base_dir.strip("/")
        above = f"{base}/" if base else ""
        found: dict[str, fs.FileInfo] = {}
        for each in self._store.list(above):
            *directories, name = each.path[len(above) :].split("/")
            for depth in range(1, len(directories) + 1):
                path = above + "/".join(directories[:depth])
                if depth == 1 or selector.recursive:
                    found.setdefault(path, fs.FileInfo(path, fs.FileType.Directory))
            if name and (selector.recursive or not directories):
                found[each.path] = _file_info(each.path, each.size_bytes, each.modified_ms)
        if base and not found and not selector.allow_not_found:
            raise FileNotFoundError(base)
        return list(found.values())

    def _info(self, path: str) -> fs.FileInfo:
        place = path.strip("/")
        if not place:
            return fs.FileInfo(path, fs.FileType.Directory)
        try:
            return _file_info(path, self._store.size(place))
        except ObjectMissingError:
            is_directory = next(iter(self._store.list(f"{place}/")), None) is not None
            kind = fs.FileType.Directory if is_directory else fs.FileType.NotFound
            return fs.FileInfo(path, kind)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise RequestError("this file system is for reading", hint="Write through a table")

    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = _refuse
    delete_file = move = copy_file = open_output_stream = open_append_stream = _refuse


class _RangeFile(io.RawIOBase):
    """An object that is read by range; pyarrow lets one thread at a time into each file."""

    def __init__(self, store: RangeStore, path: str, tail: Any, size_bytes: int) -> None:
        super().__init__()
        self._store = store
        self._path = path
        self._tail = memoryview(tail)
        self._size_bytes = size_bytes
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size_bytes}[whence]
        self._at = max(0, start + offset)
        return self._at

    def read(self, size: int = -1) -> bytes:
        return bytes(self._take(size))

    def readinto(self, buffer: Any) -> int:
        data = self._take(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _take(self, wanted: int) -> memoryview:
        available = max(0, self._size_bytes - self._at)
        length = available if wanted < 0 else min(wanted, available)
        if not length:
            return memoryview(b"")
        tail_start = self._size_bytes - len(self._tail)
        if self._at >= tail_start:
            data = self._tail[self._at - tail_start :][:length]
        else:
            data = memoryview(self._store.read_range(self._path, self._at, length))
        self._at += len(data)
        return data


def _file_info(path: str, size_bytes: int, modified_ms: int | None = None) -> fs.FileInfo:
    modified_ns = None if modified_ms is None else modified_ms * 1_000_000
    return fs.FileInfo(path, fs.FileType.File, size=size_bytes, mtime_ns=modified_ns)
