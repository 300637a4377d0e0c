"""Which SQLite is used, and that two of them never write one file in modes they cannot share."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.catalog.libraries import NAMES, Other, module_of, require_old_and_new, use

from lakebed.catalog import sqlite_file
from lakebed.catalog import sqlite_library as library
from lakebed.catalog.sqlite import SqliteCatalog
from lakebed.errors import UnavailableError
from lakebed.testing.moves import create, grow, next_move

OLD = SimpleNamespace(sqlite_version_info=(3, 51, 2))
NEW = SimpleNamespace(sqlite_version_info=(3, 51, 3))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "catalog.db"


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Each library in turn, for the whole test."""
    use(request.param, monkeypatch)
    yield request.param


def test_a_standard_library_that_is_new_enough_is_taken() -> None:
    assert library.choose(NEW, "no.such.module") is NEW


def test_an_old_standard_library_gives_way_to_the_one_brought_along() -> None:
    brought = module_of("brought")
    assert library.choose(OLD) is brought
    assert library.is_wal_safe(brought)


def test_without_the_one_brought_along_the_old_standard_library_does_it() -> None:
    assert library.choose(OLD, "no_such_module.dbapi2") is OLD


def test_one_brought_along_that_is_no_newer_is_left_aside() -> None:
    if library.is_wal_safe(sqlite3):
        pytest.skip("the standard library is new")
    assert library.choose(OLD, "sqlite3.dbapi2") is OLD


def test_each_library_runs_its_own_code_though_both_are_loaded() -> None:
    for name in NAMES:
        module = module_of(name)
        connection = module.connect(":memory:")
        assert connection.execute("SELECT sqlite_version()").fetchone() == (module.sqlite_version,)
        connection.close()


def test_a_taken_key_is_told_from_other_refusals(name: str) -> None:
    connection = library.sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE a (x PRIMARY KEY, y UNIQUE, z NOT NULL, CHECK (z > 0))")
    connection.execute("CREATE TABLE b (x PRIMARY KEY) WITHOUT ROWID")
    connection.execute("INSERT INTO a VALUES (1, 1, 1)")
    connection.execute("INSERT INTO b VALUES (1)")
    expected = {
        "INSERT INTO a VALUES (1, 2, 1)": True,
        "INSERT INTO a VALUES (2, 1, 1)": True,
        "INSERT INTO b VALUES (1)": True,
        "INSERT INTO a VALUES (2, 2, NULL)": False,
        "INSERT INTO a VALUES (2, 2, -1)": False,
        "INSERT INTO nothing VALUES (1)": False,
    }
    for statement, is_taken in expected.items():
        with pytest.raises(library.sqlite3.Error) as caught:
            connection.execute(statement)
        assert library.is_taken(caught.value) is is_taken, statement
    connection.close()


def test_the_journal_is_the_best_that_the_library_can_share(name: str, path: Path) -> None:
    catalog = SqliteCatalog(path)
    grow(catalog, "t", 5)
    safe = library.is_wal_safe(library.sqlite3)
    assert sqlite_file.journal_mode(catalog._sessions.get()) == ("wal" if safe else "persist")
    assert Path(f"{path}-wal").exists() is safe
    catalog.close()
    assert not Path(f"{path}-wal").exists()


@pytest.mark.slow
@pytest.mark.parametrize("first", NAMES)
@pytest.mark.parametrize("second", NAMES)
def test_the_libraries_take_a_closed_file_over_from_each_other(
    path: Path, first: str, second: str
) -> None:
    require_old_and_new()
    with Other(first, path) as one:
        assert one.ask("open") == "opened"
        assert one.ask("append 5") == "5"
        assert one.ask("close") == "closed"
        with Other(second, path) as two:
            assert two.ask("open") == "opened"
            assert two.ask("mode") == {"standard": "persist", "brought": "wal"}[second]
            assert two.ask("append 5") == "10"
            assert two.ask("close") == "closed"
        assert one.ask("open") == "opened"
        assert one.ask("append 1") == "11"


@pytest.mark.slow
@pytest.mark.parametrize("second", NAMES)
def test_what_a_killed_process_left_in_its_wal_is_there_for_either_library(
    path: Path, second: str
) -> None:
    require_old_and_new()
    with Other("brought", path) as one:
        assert one.ask("open") == "opened"
        assert one.ask("append 7") == "7"
        one.kill()
    assert Path(f"{path}-wal").stat().st_size > 0
    with Other(second, path) as two:
        assert two.ask("open") == "opened"
        assert two.ask("append 3") == "10"


@pytest.mark.slow
def test_an_old_library_is_refused_while_a_newer_one_has_the_file_open(path: Path) -> None:
    require_old_and_new()
    with Other("brought", path) as new, Other("standard", path) as old:
        assert new.ask("open") == "opened"
        assert "UnavailableError" in (said := old.ask("open"))
        assert "newer SQLite" in said
        assert new.ask("append 2") == "2"
        assert new.ask("close") == "closed"
        assert old.ask("open") == "opened"
        assert old.ask("append 2") == "4"


@pytest.mark.slow
def test_an_old_library_does_not_write_a_file_that_became_a_wal_beneath_it(path: Path) -> None:
    require_old_and_new()
    with Other("standard", path) as old, Other("brought", path) as new:
        assert old.ask("open") == "opened"
        assert old.ask("append 1") == "1"
        assert new.ask("open") == "opened"
        assert new.ask("mode") == "wal"
        assert new.ask("append 1") == "2"
        assert old.ask("read") == "2"  # Reading is safe.
        assert "UnavailableError" in old.ask("append 1")
        assert "newer SQLite" in old.ask("append 1")
        assert new.ask("append 1") == "3"
        assert new.ask("close") == "closed"
        assert old.ask("append 1") == "4"
        assert new.ask("open") == "opened"
        assert new.ask("append 1") == "5"


@pytest.mark.slow
def test_a_refused_write_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_old_and_new()
    use("standard", monkeypatch)
    catalog = SqliteCatalog(path)
    base = create(catalog, "t")
    with Other("brought", path) as new:
        assert new.ask("open") == "opened"
        with pytest.raises(UnavailableError, match="newer SQLite") as caught:
            catalog.swap([next_move(base)])
        assert "pysqlite3" in caught.value.hint
        assert new.ask("read") == "0"
    assert catalog.swap([next_move(base)])
    catalog.close()
