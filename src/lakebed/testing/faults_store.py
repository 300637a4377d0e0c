"""A store whose answers get lost; what it holds stays sound."""

from collections.abc import Iterable, Iterator
from typing import Any

from lakebed.errors import UnavailableError
from lakebed.storage.memory import MemoryStore
from lakebed.storage.store import ObjectInfo
from lakebed.testing.faults import READ, WRITE, Fault, Faults
from lakebed.testing.scheduler_clock import EPOCH_MS

_CREATE = (*WRITE, Fault.FULL)
_STALE_AGE_MS_MAX = 200

_KINDS = (
    ("metadata/snap-", "snapshot"),
    ("metadata/manifest-", "manifest"),
    ("metadata/table-", "definition"),
    ("data/", "data"),
    (".lakebed/", "marker"),
)


class FaultyStore:
    """A memory store behind a network that the seed rules.

    Keeps the promises of `Store` (atomic, exclusive create; reads see what was created) but for
    listings, which may lack the newest objects: nothing that decides may stand on a listing.
    """

    def __init__(self, inner: MemoryStore, faults: Faults, prefix: str = "") -> None:
        self.uri = inner.uri
        self._inner = inner
        self._faults = faults
        self._prefix = prefix

    def create(self, path: str, data: bytes | memoryview) -> None:
        """Store one object."""
        content = bytes(data)
        self._faults.call(
            f"create {self._kind(path)}", lambda: self._inner.create(path, content), menu=_CREATE
        )

    def create_all(self, objects: Iterable[tuple[str, bytes | memoryview]]) -> None:
        """Store several; when torn, those that come after the tear are not there."""
        objects = list(objects)
        torn_at = len(objects)
        if len(objects) > 1 and self._faults.is_on and self._faults.scheduler.is_mine():
            step = f"create {self._kind(objects[0][0])}"
            if self._faults.draw(step, (Fault.TORN,)) is not None:
                torn_at = self._faults.chance.randrange(len(objects))
        for place, (path, data) in enumerate(objects):
            if place == torn_at:
                raise UnavailableError("simulated: some of the objects were stored")
            self.create(path, data)

    def settle(self, paths: Iterable[str]) -> None:
        """Nothing to wait for: what is there is durable."""
        self._inner.settle(paths)

    def read(self, path: str, *, size_bytes_max: int) -> bytes:
        """Fetch a whole object."""
        return self._faults.call(
            f"read {self._kind(path)}",
            lambda: self._inner.read(path, size_bytes_max=size_bytes_max),
            menu=READ,
        )

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Fetch a part of an object."""
        return self._inner.read_range(path, start, length)

    def read_tail(self, path: str, length: int) -> tuple[bytes, int]:
        """Fetch the end of an object."""
        return self._inner.read_tail(path, length)

    def size(self, path: str) -> int:
        """Tell an object's length."""
        step = f"read {self._kind(path)}"
        return self._faults.call(step, lambda: self._inner.size(path), menu=READ)

    def exists(self, path: str) -> bool:
        """Tell whether an object is there."""
        step = f"read {self._kind(path)}"
        return self._faults.call(step, lambda: self._inner.exists(path), menu=READ)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """List objects; a stale listing lacks some of the newest."""
        found = self._faults.call("list", lambda: list(self._inner.list(prefix)), menu=READ)
        faults = self._faults
        if faults.is_on and faults.scheduler.is_mine() and faults.draw("list", (Fault.STALE,)):
            since_ms = int(faults.scheduler.now_ms) + EPOCH_MS - _STALE_AGE_MS_MAX
            found = [info for info in found if info.modified_ms <= since_ms]
        return iter(found)

    def delete(self, path: str) -> None:
        """Remove an object."""
        step = f"delete {self._kind(path)}"
        self._faults.call(step, lambda: self._inner.delete(path), menu=WRITE)

    def child(self, path: str) -> "FaultyStore":
        """The store below; the same faults."""
        return FaultyStore(self._inner.child(path), self._faults, f"{self._prefix}{path}/")

    def arrow_filesystem(self) -> tuple[Any, str]:
        """For reading data; pyarrow's own threads meet no faults."""
        return self._inner.arrow_filesystem()

    def _kind(self, path: str) -> str:
        """What an object is, whether the path starts at the table or at the warehouse."""
        whole = self._prefix + path
        for part, kind in _KINDS:
            if part in whole:
                return kind
        return "other"
