"""A store in this process's memory: for tests, examples and throw-away tables."""

import threading
from collections.abc import Iterable, Iterator
from copy import copy
from typing import Any, ClassVar

from lakebed.clock import Clock, SystemClock
from lakebed.errors import LimitExceededError, ObjectExistsError, ObjectMissingError
from lakebed.format.paths import check_path
from lakebed.storage.store import ObjectInfo


class MemoryStore:
    """Objects in a dictionary; gone with the process.

    Without a name each store is its own; `named` gives the same one to all who ask.
    """

    _named: ClassVar[dict[str, "MemoryStore"]] = {}
    _named_lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, name: str = "", *, clock: Clock | None = None) -> None:
        self.uri = f"memory:{name}"
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._objects: dict[str, tuple[bytes, int]] = {}
        self._prefix = ""

    @classmethod
    def named(cls, name: str) -> "MemoryStore":
        """The store of that name, which lives as long as the process."""
        with cls._named_lock:
            return cls._named.setdefault(name, cls(name))

    def __repr__(self) -> str:
        return f"MemoryStore({self.uri!r})"

    def create(self, path: str, data: bytes | memoryview) -> None:
        """Store an object if there is none of that name."""
        key = self._key(path)
        content = bytes(data)
        with self._lock:
            if key in self._objects:
                raise ObjectExistsError(f"there is already a {path} in {self.uri}", path=path)
            self._objects[key] = content, self._clock.now_ms()

    def create_all(self, objects: Iterable[tuple[str, bytes | memoryview]]) -> None:
        """Store each in turn."""
        for path, data in objects:
            self.create(path, data)

    def settle(self, paths: Iterable[str]) -> None:
        """Nothing is more durable than it is."""
        for path in paths:
            self.size(path)

    def read(self, path: str, *, size_bytes_max: int) -> bytes:
        """Fetch a whole object."""
        content, _ = self._find(path)
        if len(content) > size_bytes_max:
            raise LimitExceededError(
                f"{path} in {self.uri} has {len(content)} bytes, more than {size_bytes_max}",
                path=path,
            )
        return content

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Fetch a part of an object; see `arrow_files.RangeStore`."""
        content, _ = self._find(path)
        return content[start : start + length]

    def read_tail(self, path: str, length: int) -> tuple[bytes, int]:  # noqa: ARG002
        """Fetch the end of an object: here all of it, since it costs nothing."""
        content, _ = self._find(path)
        return content, len(content)

    def size(self, path: str) -> int:
        """Tell an object's length in bytes."""
        content, _ = self._find(path)
        return len(content)

    def exists(self, path: str) -> bool:
        """Tell whether there is an object of that name."""
        key = self._key(path)
        with self._lock:
            return key in self._objects

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """All objects whose path starts with `prefix`, in order of path, as of now."""
        if prefix:
            check_path(prefix.removesuffix("/"))
        with self._lock:
            found = sorted(
                (key, len(content), modified_ms)
                for key, (content, modified_ms) in self._objects.items()
                if key.startswith(self._prefix + prefix)
            )
        skipped = len(self._prefix)
        return iter([ObjectInfo(key[skipped:], size, when) for key, size, when in found])

    def delete(self, path: str) -> None:
        """Remove an object; none of that name is no error."""
        key = self._key(path)
        with self._lock:
            self._objects.pop(key, None)

    def child(self, path: str) -> "MemoryStore":
        """The store whose root is `path` below this one; it shares the objects."""
        key = self._key(path)
        child = copy(self)
        child._prefix = f"{key}/"
        child.uri = f"{self.uri}/{path}"
        return child

    def arrow_filesystem(self) -> tuple[Any, str]:
        """A view of the objects for pyarrow, without copies."""
        from lakebed.storage.arrow_files import arrow_filesystem

        return arrow_filesystem(self), ""

    def _key(self, path: str) -> str:
        return self._prefix + check_path(path)

    def _find(self, path: str) -> tuple[bytes, int]:
        key = self._key(path)
        with self._lock:
            found = self._objects.get(key)
        if found is None:
            raise ObjectMissingError(f"there is no {path} in {self.uri}", path=path)
        return found
