"""The contract of catalogs, on each of them and on real servers."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.catalog.libraries import use_rollback_journal

from lakebed.catalog.backend import CatalogBackend
from lakebed.catalog.memory import MemoryCatalog
from lakebed.catalog.postgres import PostgresCatalog
from lakebed.catalog.sqlite import SqliteCatalog
from lakebed.catalog.store import StoreCatalog
from lakebed.ids import SystemIds
from lakebed.storage.local import LocalStore
from lakebed.storage.memory import MemoryStore
from lakebed.storage.store import Store
from lakebed.testing.contract_catalog import CatalogContract
from lakebed.testing.contract_catalog_races import DatabaseRaces, Opener


def closing(make: Callable[[], CatalogBackend]) -> Iterator[Opener]:
    """Open as often as asked; close all when the test is over."""
    opened: list[CatalogBackend] = []

    def open_one() -> CatalogBackend:
        opened.append(make())
        return opened[-1]

    yield open_one
    for catalog in opened:
        catalog.close()


class TestMemoryCatalog(CatalogContract, DatabaseRaces):
    survives_fork = False

    @pytest.fixture
    def opener(self) -> Opener:
        catalog = MemoryCatalog()
        return lambda: catalog


class TestSqliteCatalog(CatalogContract, DatabaseRaces):
    @pytest.fixture
    def opener(self, tmp_path: Path) -> Iterator[Opener]:
        yield from closing(lambda: SqliteCatalog(tmp_path / "catalog.db"))


class TestSqliteCatalogWithRollbackJournal(CatalogContract, DatabaseRaces):
    """As where Python has an old SQLite, and there is no other."""

    @pytest.fixture
    def opener(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opener]:
        use_rollback_journal(monkeypatch)
        yield from closing(lambda: SqliteCatalog(tmp_path / "catalog.db"))


@pytest.mark.postgres
class TestPostgresCatalog(CatalogContract, DatabaseRaces):
    @pytest.fixture
    def opener(self, postgres_uri: str) -> Iterator[Opener]:
        yield from closing(lambda: PostgresCatalog(postgres_uri))


class TestStoreCatalogOnDisk(CatalogContract):
    @pytest.fixture
    def opener(self, tmp_path: Path) -> Opener:
        return lambda: StoreCatalog(LocalStore(tmp_path / "root"), SystemIds())


class TestStoreCatalogInMemory(CatalogContract):
    survives_fork = False

    @pytest.fixture
    def opener(self) -> Opener:
        store = MemoryStore()
        return lambda: StoreCatalog(store, SystemIds())


@pytest.mark.s3
class TestStoreCatalogOnS3(CatalogContract):
    # SeaweedFS makes the losers of a race wait, up to three seconds with eight of them.
    race_thread_count = 3
    race_round_count = 3

    # Its client library has threads, which do not survive a fork.
    test_a_forked_child_works_and_leaves_the_parent_alone = None  # type: ignore[assignment]

    @pytest.fixture
    def opener(self, s3_store: Store) -> Opener:
        return lambda: StoreCatalog(s3_store, SystemIds())
