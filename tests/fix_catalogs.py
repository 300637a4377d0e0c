"""Every kind of catalog as a fixture, and ways to open one of them a second time.

`opener` gives a new session on one place at each call, as another process would have; `catalog`
is the first such session. A test that takes either runs on all five kinds.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lakebed
from lakebed.catalog.memory import MemoryCatalog
from lakebed.clock import SystemClock
from lakebed.ids import SystemIds
from lakebed.storage.memory import MemoryStore
from lakebed.table.catalog import Catalog
from lakebed.testing.servers import S3Server

Opener = Callable[[], Catalog]

KINDS = [
    "memory",
    "sqlite",
    pytest.param("postgres", marks=pytest.mark.postgres),
    "store",
    pytest.param("s3", marks=pytest.mark.s3),
]
DATABASES = [
    "memory",
    "sqlite",
    pytest.param("postgres", marks=pytest.mark.postgres),
]


class QuickClock(SystemClock):
    """The machine's clock, but a pause between two attempts is at most a few milliseconds."""

    def sleep_ms(self, duration_ms: float) -> None:
        super().sleep_ms(min(duration_ms, 5))


def _maker(kind: str, request: pytest.FixtureRequest) -> Opener:
    if kind == "memory":
        backend, store = MemoryCatalog(), MemoryStore()
        return lambda: Catalog(backend, store, clock=QuickClock())
    place: Path = request.getfixturevalue("tmp_path") / "warehouse"
    if kind == "sqlite":
        uri = f"sqlite:///{place}/catalog.db"
        return lambda: lakebed.connect(uri, clock=QuickClock())
    if kind == "postgres":
        database: str = request.getfixturevalue("postgres_uri")
        return lambda: lakebed.connect(database, warehouse=place, clock=QuickClock())
    if kind == "store":
        return lambda: lakebed.connect(place, clock=QuickClock())
    server: S3Server = request.getfixturevalue("s3_server")
    prefix, options = f"{server.uri}/{SystemIds().new()}", server.storage_options
    return lambda: lakebed.connect(prefix, storage_options=options, clock=QuickClock())


def _sessions(kind: str, request: pytest.FixtureRequest) -> Iterator[Opener]:
    make = _maker(kind, request)
    opened: list[Catalog] = []

    def open_one() -> Catalog:
        opened.append(make())
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


@pytest.fixture(params=KINDS)
def opener(request: pytest.FixtureRequest) -> Iterator[Opener]:
    """Sessions of one catalog, of each kind in turn."""
    yield from _sessions(request.param, request)


@pytest.fixture
def catalog(opener: Opener) -> Catalog:
    """An empty catalog, of each kind in turn."""
    return opener()


@pytest.fixture(params=DATABASES)
def database_opener(request: pytest.FixtureRequest) -> Iterator[Opener]:
    """Sessions of one catalog that can commit several tables at once."""
    yield from _sessions(request.param, request)


@pytest.fixture
def database(database_opener: Opener) -> Catalog:
    """An empty catalog that can commit several tables at once."""
    return database_opener()


@pytest.fixture
def memory() -> Catalog:
    """An empty catalog in memory, for laws that do not depend on the kind."""
    return Catalog(MemoryCatalog(), MemoryStore(), clock=QuickClock())
