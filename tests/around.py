"""Parts of a catalog with one call replaced: the rest goes to the real part behind it."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, cast

from lakebed.catalog.backend import CatalogBackend
from lakebed.clock import Clock
from lakebed.commit.policy import RetryPolicy
from lakebed.format.pointer import Move
from lakebed.storage.store import Store
from lakebed.table.catalog import Catalog
from lakebed.table.table import Table

MEETING_DURATION_S_MAX = 60.0


class Around:
    """A part that passes everything on; a subclass takes over the calls it is about."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class Meeting(Around):
    """A backend whose first swap waits until all writers are about to swap."""

    def __init__(self, inner: CatalogBackend, barrier: threading.Barrier) -> None:
        super().__init__(inner)
        self._barrier = barrier
        self._has_met = False

    def swap(self, moves: Sequence[Move]) -> bool:
        if not self._has_met:
            self._has_met = True
            self._barrier.wait(MEETING_DURATION_S_MAX)
        return cast(bool, self.inner.swap(moves))


class BeforeSwap(Around):
    """A backend that lets somebody else act right before each of its first swaps."""

    def __init__(self, inner: CatalogBackend, *acts: Callable[[], object]) -> None:
        super().__init__(inner)
        self._acts = list(acts)
        self.swap_count = 0

    def swap(self, moves: Sequence[Move]) -> bool:
        self.swap_count += 1
        if self._acts:
            self._acts.pop(0)()
        return cast(bool, self.inner.swap(moves))


class Watched(Around):
    """A store that counts what is read, created and deleted, by path."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.reads: Counter[str] = Counter()
        self.created: list[str] = []
        self.created_bytes = 0
        self.deleted: list[str] = []

    def read(self, path: str, *, size_bytes_max: int) -> bytes:
        self.reads[path] += 1
        return cast(bytes, self.inner.read(path, size_bytes_max=size_bytes_max))

    def create(self, path: str, data: bytes | memoryview) -> None:
        self.inner.create(path, data)
        self.created.append(path)
        self.created_bytes += len(data)

    def create_all(self, objects: Any) -> None:
        for path, data in objects:
            self.create(path, data)

    def delete(self, path: str) -> None:
        self.deleted.append(path)
        self.inner.delete(path)

    def manifest_reads(self) -> list[str]:
        """The manifests that were fetched."""
        return [path for path in self.reads if "/manifest-" in path]


def through(
    catalog: Catalog,
    backend: object,
    *,
    policy: RetryPolicy | None = None,
    clock: Clock | None = None,
) -> Catalog:
    """The same catalog as another session, by way of another backend."""
    services = catalog._services
    return Catalog(
        cast(CatalogBackend, backend),
        services.warehouse,
        clock=clock or services.clock,
        policy=policy,
        connection=services.connection,
    )


def interrupted(catalog: Catalog, *acts: Callable[[], object], attempts: int = 16) -> Catalog:
    """A session that others always get ahead of: each act comes right before one swap."""
    backend = BeforeSwap(catalog._services.backend, *acts)
    return through(catalog, backend, policy=RetryPolicy(attempt_count_max=attempts))


def watched(table: Table) -> Watched:
    """Begin to count what a table's files are asked for."""
    watch = Watched(table.files.store)
    table.files.store = cast(Store, watch)
    return watch


def together(*acts: Callable[[], Any]) -> list[Any]:
    """Run acts in threads of their own; give back what they returned or raised."""
    results: list[Any] = [None] * len(acts)

    def run(place: int, act: Callable[[], Any]) -> None:
        try:
            results[place] = act()
        except BaseException as error:  # noqa: BLE001 - handed to the test, which looks at it
            results[place] = error

    threads = [threading.Thread(target=run, args=each) for each in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
