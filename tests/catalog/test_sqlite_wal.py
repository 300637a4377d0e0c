"""The WAL: bounded, emptied by the last to close, and safe from whoever else opens the file."""

import gc
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.catalog.contender import step_from
from tests.catalog.libraries import Other, use

from lakebed.catalog import sqlite_file, sqlite_guard
from lakebed.catalog import sqlite_library as library
from lakebed.catalog.sqlite import SqliteCatalog
from lakebed.catalog.sqlite_file import CHECKPOINT_PAGE_COUNT
from lakebed.testing.contract_catalog_races import in_child
from lakebed.testing.moves import add_actions, create, grow, next_move

PAGE_SIZE_BYTES = 4096


@pytest.fixture(autouse=True)
def safe_library(monkeypatch: pytest.MonkeyPatch) -> None:
    if not library.is_wal_safe(library.sqlite3):
        use("brought", monkeypatch)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "catalog.db"


@pytest.fixture
def wal(path: Path) -> Path:
    return Path(f"{path}-wal")


@pytest.fixture
def catalog(path: Path) -> Iterator[SqliteCatalog]:
    catalog = SqliteCatalog(path)
    yield catalog
    catalog.close()


def advance(catalog: SqliteCatalog, count: int) -> int:
    for _ in range(count):
        assert catalog.swap([step_from("sqlite", "", catalog.load("t"))])
    return catalog.load("t").version


def seen_elsewhere(path: Path) -> str:
    with Other("brought", path) as other:
        assert other.ask("open") == "opened"
        return other.ask("read")


@pytest.mark.slow
def test_the_wal_stays_small_over_thousands_of_commits(catalog: SqliteCatalog, wal: Path) -> None:
    create(catalog, "t")
    sizes = set()
    for _ in range(30):
        advance(catalog, 100)
        sizes.add(wal.stat().st_size)
    assert max(sizes) < 2 * CHECKPOINT_PAGE_COUNT * PAGE_SIZE_BYTES


def test_the_wal_shrinks_again_after_a_large_commit(
    path: Path, wal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = 256 << 10
    assert kept < sqlite_file.JOURNAL_SIZE_BYTES_KEPT
    monkeypatch.setattr(sqlite_file, "JOURNAL_SIZE_BYTES_KEPT", kept)
    catalog = SqliteCatalog(path)
    base = create(catalog, "t")
    assert catalog.swap([next_move(base, actions=add_actions(20_000))])
    assert wal.stat().st_size > kept + CHECKPOINT_PAGE_COUNT * PAGE_SIZE_BYTES
    advance(catalog, 2)
    assert wal.stat().st_size <= kept
    catalog.close()


def test_the_last_to_close_leaves_one_file(path: Path, wal: Path) -> None:
    one, two = SqliteCatalog(path), SqliteCatalog(path)
    grow(one, "t", 3)
    one.close()
    assert wal.exists()
    assert two.load("t").version == 2
    two.close()
    assert sorted(p.name for p in path.parent.iterdir()) == ["catalog.db", "catalog.db-queue"]


@pytest.mark.slow
def test_a_program_that_forgets_to_close_leaves_one_file(path: Path, wal: Path) -> None:
    program = (
        "import sys; from lakebed.catalog.sqlite import SqliteCatalog as C;"
        "from lakebed.testing.moves import grow; c = C(sys.argv[1]); grow(c, 't', 3)"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=True)
    assert not wal.exists()
    assert seen_elsewhere(path) == "2"


def read_with_sqlite3(path: Path) -> None:
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM lakebed_table").fetchone() == (1,)
    connection.close()


def copy_it(path: Path) -> None:
    shutil.copyfile(path, path.with_name("copy.db"))


@pytest.mark.slow
@pytest.mark.parametrize("meddle", [read_with_sqlite3, copy_it])
def test_no_commit_is_lost_when_others_in_this_process_open_the_file(
    catalog: SqliteCatalog, path: Path, wal: Path, meddle: object
) -> None:
    assert callable(meddle)
    create(catalog, "t")
    advance(catalog, 2)
    inode = wal.stat().st_ino
    for version in (3, 4):
        meddle(path)
        assert wal.stat().st_ino == inode
        assert advance(catalog, 1) == version
        assert seen_elsewhere(path) == str(version)


def test_without_the_guard_such_a_commit_would_be_lost(
    path: Path, wal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test above is not blind; where there is one library only, there is no such danger."""
    if library.sqlite3 is sqlite3:
        pytest.skip("the standard library is the one that is used")
    monkeypatch.setattr(sqlite_guard, "_OFD_LOCK", None)
    catalog = SqliteCatalog(path)
    create(catalog, "t")
    read_with_sqlite3(path)
    assert not wal.exists()
    catalog.close()


@pytest.mark.slow
def test_another_process_that_comes_and_goes_leaves_the_wal_alone(
    catalog: SqliteCatalog, path: Path, wal: Path
) -> None:
    create(catalog, "t")
    inode = wal.stat().st_ino
    read_with_sqlite3(path)  # From here on, SQLite's own locks of this process are gone.
    for version in (1, 2):
        with Other("brought", path) as other:
            assert other.ask("open") == "opened"
            assert other.ask("append 1") == str(2 * version - 1)
            assert advance(catalog, 1) == 2 * version
            assert other.ask("read") == str(2 * version)
    assert wal.stat().st_ino == inode


@pytest.mark.slow
def test_a_child_that_ends_leaves_the_wal_and_the_locks_of_its_parent(
    catalog: SqliteCatalog, path: Path, wal: Path
) -> None:
    create(catalog, "t")
    inode = wal.stat().st_ino
    assert in_child(lambda: advance(catalog, 1) == 1)
    child = os.fork()
    if not child:  # It ends as a program does, with all that Python tidies up.
        try:
            sys.exit(0)
        finally:
            gc.collect()
            os._exit(0)
    os.waitpid(child, 0)
    assert wal.stat().st_ino == inode
    assert advance(catalog, 1) == 2
    assert seen_elsewhere(path) == "2"


def test_descriptors_go_with_their_catalogs(tmp_path: Path) -> None:
    def count() -> int:
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    SqliteCatalog(tmp_path / "first.db").close()
    before = count()
    for number in range(10):
        SqliteCatalog(tmp_path / f"{number}.db").close()
    assert count() <= before
    for number in range(10):
        SqliteCatalog(tmp_path / f"{number}.db")  # Forgotten, not closed.
    gc.collect()
    SqliteCatalog(tmp_path / "last.db").close()
    assert count() <= before + 1


@pytest.mark.slow
def test_a_moved_directory_is_the_same_catalog(catalog: SqliteCatalog, path: Path) -> None:
    create(catalog, "t")
    advance(catalog, 3)
    catalog.close()
    shutil.copytree(path.parent, path.parent.with_name("copy"))
    assert seen_elsewhere(path.parent.with_name("copy") / "catalog.db") == "3"
