"""The SQLite file: ours or refused, set to be durable, and no error leaves anything half done."""

import resource
import shutil
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lakebed.catalog import sqlite_file
from lakebed.catalog import sqlite_library as library
from lakebed.catalog.sqlite import SqliteCatalog
from lakebed.errors import (
    BadMetadataError,
    CommitUnknownError,
    RequestError,
    UnavailableError,
    UnsupportedVersionError,
)
from lakebed.format.pointer import Action, ActionType
from lakebed.testing.moves import EVERY_COLUMN, add_actions, create, grow, next_move


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "catalog.db"


@pytest.fixture
def catalog(path: Path) -> Iterator[SqliteCatalog]:
    catalog = SqliteCatalog(path)
    yield catalog
    catalog.close()


def test_a_file_that_is_no_database_is_refused_unchanged(path: Path) -> None:
    for content in (b"x", b"SQLite format 4\x00" + bytes(5000), b"PAR1" * 2000):
        path.write_bytes(content)
        with pytest.raises(BadMetadataError):
            SqliteCatalog(path)
        assert path.read_bytes() == content


def test_a_database_of_another_program_is_refused_unchanged(path: Path) -> None:
    for statement in ("CREATE TABLE theirs (x)", "PRAGMA user_version = 3"):
        path.unlink(missing_ok=True)
        connection = library.sqlite3.connect(path)
        connection.execute(statement)
        connection.commit()
        connection.close()
        before = path.read_bytes()
        with pytest.raises(BadMetadataError, match="no Lakebed catalog"):
            SqliteCatalog(path)
        assert path.read_bytes() == before


def test_a_catalog_of_a_later_version_is_refused(catalog: SqliteCatalog, path: Path) -> None:
    session(catalog).execute("PRAGMA user_version = 2")
    with pytest.raises(UnsupportedVersionError, match="Upgrade"):
        SqliteCatalog(path)


def test_an_empty_file_becomes_a_catalog(path: Path) -> None:
    path.touch()
    catalog = SqliteCatalog(path)
    assert create(catalog, "t").new == catalog.load("t")
    catalog.close()


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError):
        SqliteCatalog(tmp_path)


def test_missing_directories_are_made_and_the_file_is_private(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "catalog.db"
    SqliteCatalog(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_commits_stand_on_durable_settings(catalog: SqliteCatalog) -> None:
    settings = {
        "synchronous": 2,
        "busy_timeout": 30_000,
        "journal_mode": "wal" if library.sqlite3.sqlite_version_info >= (3, 51, 3) else "persist",
        "trusted_schema": 0,
    }
    for name, value in settings.items():
        assert session(catalog).execute(f"PRAGMA {name}").fetchall() == [(value,)]


def test_many_who_open_a_new_file_at_once_all_get_in(path: Path) -> None:
    opened: list[SqliteCatalog] = []
    threads = [
        threading.Thread(target=lambda: opened.append(SqliteCatalog(path))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 8
    move = create(opened[0], "t")
    assert [each.load("t") for each in opened] == [move.new] * 8
    for each in opened:
        each.close()


@pytest.mark.parametrize("table", ["lakebed_log_action", "lakebed_commit"])
@pytest.mark.parametrize("statement", ["UPDATE {} SET version = 9", "DELETE FROM {}"])
def test_log_and_commits_are_append_only(
    catalog: SqliteCatalog, table: str, statement: str
) -> None:
    create(catalog, "t", actions=EVERY_COLUMN)
    with pytest.raises(library.sqlite3.IntegrityError, match="append-only"):
        session(catalog).execute(statement.format(table))
    assert session(catalog).execute(f"SELECT count(*) FROM {table}").fetchone()[0] > 0


def test_the_log_answers_plain_sql(catalog: SqliteCatalog) -> None:
    create(catalog, "t", actions=EVERY_COLUMN)
    query = """SELECT path, json_extract(stats_json, '$.max."1"'), unixepoch(modification_time)
      FROM lakebed_log_action WHERE action_type = 'add' AND data_change"""
    rows = session(catalog).execute(query).fetchall()
    assert rows == [("data/ts_day=2026-01-01/x.parquet", 1e300, -1)]


@pytest.mark.parametrize("span", [slice(100, 4096), slice(4096, None), slice(24, 100)], ids=str)
def test_a_damaged_file_is_told_as_damaged(path: Path, span: slice) -> None:
    catalog = SqliteCatalog(path)
    grow(catalog, "t", 30)
    catalog.close()
    content = bytearray(path.read_bytes())
    content[span] = b"\xa5" * len(content[span])
    path.write_bytes(content)
    with pytest.raises(BadMetadataError):
        SqliteCatalog(path).load("t")


def test_a_truncated_file_is_told_as_damaged(path: Path) -> None:
    catalog = SqliteCatalog(path)
    create(catalog, "t", actions=add_actions(500))
    catalog.close()
    path.write_bytes(path.read_bytes()[: 2 * 4096])
    with pytest.raises(BadMetadataError):
        SqliteCatalog(path).load("t")


def test_a_catalog_that_may_not_be_written_refuses_and_still_reads(catalog: SqliteCatalog) -> None:
    base = create(catalog, "t")
    session(catalog).execute("PRAGMA query_only = ON")
    with pytest.raises(RequestError, match="may not be written"):
        catalog.swap([next_move(base)])
    assert catalog.load("t") == base.new


def test_a_full_file_is_unavailable_and_nothing_changes(catalog: SqliteCatalog) -> None:
    base = create(catalog, "t")
    (count,) = session(catalog).execute("PRAGMA page_count").fetchone()
    session(catalog).execute(f"PRAGMA max_page_count = {count}")
    step = next_move(base, actions=add_actions(2_000))
    with pytest.raises(UnavailableError, match="no room"):
        catalog.swap([step])
    assert catalog.load("t") == base.new
    assert catalog.find_commit(step.new.commit_id) == []
    assert catalog.swap([step])  # On a new connection, which has no such limit.


def test_a_commit_that_fails_on_its_way_to_the_disk_is_unknown_and_resolved(
    catalog: SqliteCatalog, path: Path
) -> None:
    """The pages of the file cannot be written when the journal is there already."""
    base = create(catalog, "t")
    step = next_move(base, actions=add_actions(1_000))
    with (
        files_no_larger_than(path.stat().st_size),
        pytest.raises((CommitUnknownError, UnavailableError)) as caught,
    ):
        catalog.swap([step])
    assert caught.type is CommitUnknownError
    outcome = catalog.outcome("t", step.new.commit_id, since=0)
    assert (outcome.head, outcome.committed) == (base.new, None)
    assert catalog.swap([step])
    assert len(list(catalog.log(step.new))) == 1_000


def test_a_busy_file_is_unavailable_and_nothing_changes(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "BUSY_TIMEOUT_MS", 50)
    catalog = SqliteCatalog(path)
    base = create(catalog, "t")
    other = library.sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(UnavailableError, match="busy"):
        catalog.swap([next_move(base)])
    other.execute("ROLLBACK")
    other.close()
    assert catalog.swap([next_move(base)])
    catalog.close()


@pytest.mark.parametrize(
    "action",
    [
        Action(action_type=ActionType.ADD, path="\ud800"),
        Action(action_type=ActionType.ADD, size_bytes=1 << 63),
        Action(action_type=ActionType.ADD, modification_time_ms=1 << 60),
        Action(action_type=ActionType.ADD, stats_json={"x": object()}),
    ],
    ids=["surrogate", "integer", "time", "object"],
)
def test_a_value_that_cannot_be_stored_is_refused_and_nothing_changes(
    catalog: SqliteCatalog, action: Action
) -> None:
    base = create(catalog, "t")
    with pytest.raises(RequestError):
        catalog.swap([next_move(base, actions=(action,))])
    assert catalog.load("t") == base.new
    assert catalog.swap([next_move(base)])


def test_the_warehouse_is_beside_the_file_and_moves_with_it(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    catalog = SqliteCatalog(tmp_path / "one" / "catalog.db")
    assert catalog.warehouse(None) == str(tmp_path / "one")
    assert catalog.warehouse(str(tmp_path / "one")) == str(tmp_path / "one")
    catalog.close()
    shutil.move(tmp_path / "one", tmp_path / "two")
    moved = SqliteCatalog(tmp_path / "two" / "catalog.db")
    assert moved.warehouse(None) == str(tmp_path / "two")
    moved.close()


def session(catalog: SqliteCatalog) -> library.sqlite3.Connection:
    return catalog._sessions.get()


@contextmanager
def files_no_larger_than(size_bytes: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
