"""A commit lands once on whatever version it meets; only its metadata is made again for that."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from tests.around import Around, interrupted, through, together, watched
from tests.commit.scripted import CountingClock
from tests.fix_catalogs import Opener
from tests.table.samples import NAME, create, minutes, paths, put, readings

import lakebed
from lakebed.catalog.memory import MemoryCatalog
from lakebed.clock import SystemClock
from lakebed.commit.policy import RetryPolicy
from lakebed.errors import (
    CommitConflictError,
    CommitUnknownError,
    RequestError,
    UnavailableError,
)
from lakebed.format.datafile import DataFile
from lakebed.format.pointer import Move
from lakebed.storage.memory import MemoryStore
from lakebed.table.catalog import Catalog
from lakebed.table.table import Table


def appender(table: Table, day: int = 20) -> Callable[[], object]:
    return lambda: table.append(readings(day))


def snapshots(table: Table) -> list[str]:
    return [info.path for info in table.files.store.list("metadata/snap-")]


def test_a_writer_that_loses_three_races_lands_at_the_fourth_attempt(catalog: Catalog) -> None:
    table = create(catalog)
    slow = interrupted(catalog, *[appender(table)] * 3).table(NAME)
    commit = slow.append(readings(1))
    assert (commit.attempts, commit.version) == (4, 4)
    assert table.scan().count() == 16
    assert [s.commit_id for s in table.history(1)] == [commit.commit_id]


def test_when_attempts_run_out_nothing_was_changed(catalog: Catalog) -> None:
    table = create(catalog)
    slow = interrupted(catalog, *[appender(table)] * 3, attempts=3)
    with pytest.raises(CommitConflictError, match="came first 3 times") as raised:
        slow.table(NAME).append(readings(1))
    assert raised.value.fields["attempts"] == 3
    assert "Nothing was changed" in raised.value.hint
    assert raised.value.retryable
    assert table.version == 3
    assert min(minutes(table)) >= 20 * 1440
    assert len(snapshots(table)) == 4


def test_data_files_are_stored_once_however_often_the_race_is_lost(memory: Catalog) -> None:
    table = create(memory)
    slow = interrupted(memory, *[appender(table)] * 3).table(NAME)
    watch = watched(slow)
    slow.append(readings(1))
    assert sum(path.startswith("data/") for path in watch.created) == 1
    assert sum("/snap-" in path for path in watch.created) == 4


def test_manifests_of_many_files_are_stored_once_however_often_the_race_is_lost(
    memory: Catalog,
) -> None:
    table = create(memory, by=())
    others = [appender(table)] * 3
    slow = interrupted(memory, *others).table(NAME)
    watch = watched(slow)
    files = [DataFile(path=f"data/{n}.parquet", row_count=1, size_bytes=9) for n in range(40)]
    commit = slow.commit_append(files, verify=False)
    assert commit.attempts == 4
    assert sum("/manifest-" in path for path in watch.created) == 1
    assert {f"data/{n}.parquet" for n in range(40)} < paths(table)
    (entry,) = [row for row in table.inspect.manifests().to_pylist() if not row["inline"]]
    assert (entry["file_count"], entry["written_version"]) == (40, 4)
    status = table.inspect.manifest(entry["path"]).column("status").unique().to_pylist()
    assert status == ["added"], "they are added by the version they landed on"


def test_many_files_that_meet_a_widened_column_keep_their_bounds(memory: Catalog) -> None:
    table = create(memory, by=())
    files = [put(table, readings(day)) for day in range(20)]
    slow = interrupted(memory, lambda: table.evolve().widen_column("status", "long").commit())
    assert slow.table(NAME).commit_append(files).attempts == 2
    assert table.scan("status = 1").count() == 40
    assert table.scan("status > 1").plan.file_count == 0
    assert table.scan().max("status").as_py() == 1


def test_the_snapshot_of_a_lost_attempt_is_deleted(database: Catalog) -> None:
    table = create(database)
    slow = interrupted(database, appender(table)).table(NAME)
    watch = watched(slow)
    slow.append(readings(1))
    first, second = (path for path in watch.created if "/snap-" in path)
    assert watch.deleted == [first]
    assert snapshots(table)[-1] == second
    assert len(snapshots(table)) == 3


class Swapping(Around):
    """A backend whose swaps go wrong in a way that the test says."""

    def __init__(self, inner: Any, swap: Callable[[Any, Sequence[Move]], bool]) -> None:
        super().__init__(inner)
        self._swap = swap

    def swap(self, moves: Sequence[Move]) -> bool:
        return self._swap(self.inner, moves)


def lose_reply(inner: Any, moves: Sequence[Move]) -> bool:
    inner.swap(moves)
    raise CommitUnknownError("no answer", commit_id=moves[0].new.commit_id)


def lose_request(_: Any, moves: Sequence[Move]) -> bool:
    raise CommitUnknownError("no answer", commit_id=moves[0].new.commit_id)


def refuse(_: Any, __: Sequence[Move]) -> bool:
    raise UnavailableError("connection refused")


TWICE = RetryPolicy(attempt_count_max=2, answer_count_max=2)


def test_a_commit_whose_reply_was_lost_is_reported_as_made(catalog: Catalog) -> None:
    table = create(catalog)
    session = through(catalog, Swapping(catalog._services.backend, lose_reply), policy=TWICE)
    commit = session.table(NAME).append(readings())
    assert (commit.version, commit.attempts) == (1, 1)
    assert minutes(table) == [0, 1, 2, 3]


def test_an_unknown_commit_deletes_no_file(catalog: Catalog) -> None:
    create(catalog)
    session = through(catalog, Swapping(catalog._services.backend, lose_request), policy=TWICE)
    lost = session.table(NAME)
    watch = watched(lost)
    with pytest.raises(CommitUnknownError) as raised:
        lost.append(readings())
    assert watch.deleted == []
    assert raised.value.fields["table"] == NAME
    assert raised.value.fields["base_version"] == 0
    assert all(lost.files.store.exists(path) for path in watch.created)


def test_a_commit_that_never_reached_the_catalog_leaves_no_snapshot(database: Catalog) -> None:
    """Else a rebuild from the files would make a commit that its writer was told had failed."""
    table = create(database)
    session = through(database, Swapping(database._services.backend, refuse), policy=TWICE)
    with pytest.raises(UnavailableError):
        session.table(NAME).append(readings())
    assert len(snapshots(table)) == 1
    assert table.version == 0


class Lining(Around):
    """A backend that notes when a writer is in line, and what it does there."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.is_inside = False
        self.swaps_in_line: list[bool] = []

    @contextmanager
    def queue(self, names: Sequence[str]) -> Iterator[None]:
        with self.inner.queue(names):
            self.is_inside = True
            yield
            self.is_inside = False

    def swap(self, moves: Sequence[Move]) -> bool:
        self.swaps_in_line.append(self.is_inside)
        return cast(bool, self.inner.swap(moves))


def test_after_a_lost_race_a_writer_waits_in_line_and_after_a_quiet_commit_no_more(
    memory: Catalog,
) -> None:
    table = create(memory)
    lining = Lining(memory._services.backend)
    slow = interrupted(through(memory, lining), appender(table)).table(NAME)
    slow.append(readings(1))
    assert lining.swaps_in_line == [False, True]
    slow.append(readings(2))
    assert lining.swaps_in_line[2:] == [True], "it was crowded a moment ago"
    slow.append(readings(3))
    assert lining.swaps_in_line[3:] == [False]


def test_a_writer_whom_others_overtake_stays_in_line_until_they_are_gone(memory: Catalog) -> None:
    table = create(memory)
    lining = Lining(memory._services.backend)
    slow = through(memory, lining).table(NAME)

    def overtaken() -> Iterator[Any]:
        table.append(readings())
        yield from readings(1).to_batches()

    slow.append(overtaken())
    slow.append(overtaken())
    slow.append(readings(2))
    slow.append(readings(3))
    assert lining.swaps_in_line == [False, True, True, False]


def test_no_data_is_written_while_others_wait_in_line(memory: Catalog) -> None:
    table = create(memory)
    lining = Lining(memory._services.backend)
    slow = interrupted(through(memory, lining), appender(table)).table(NAME)
    slow.append(readings(1))
    watch = watched(slow)
    inside: list[tuple[str, bool]] = []
    create_one = watch.create

    def noted(path: str, data: bytes | memoryview) -> None:
        inside.append((path.partition("/")[0], lining.is_inside))
        create_one(path, data)

    watch.create = noted  # type: ignore[method-assign]
    slow.append(readings(2))
    assert inside == [("data", False), ("metadata", True)]


def test_times_of_versions_grow_also_when_the_clock_goes_back() -> None:
    clock = CountingClock(start_ms=5_000_000)
    catalog = Catalog(MemoryCatalog(), MemoryStore(), clock=clock)
    table = create(catalog)
    clock.time_ms = 4_000_000
    table.append(readings())
    table.append(readings(1))
    clock.time_ms = 6_000_000
    table.append(readings(2))
    times = [snapshot.timestamp_ms for snapshot in table.history()]
    assert times == [6_000_000, 5_000_002, 5_000_001, 5_000_000]


def test_all_attempts_have_one_commit_id_and_each_a_file_of_its_own(memory: Catalog) -> None:
    table = create(memory)
    seen: list[Move] = []

    def note(inner: Any, moves: Sequence[Move]) -> bool:
        seen.extend(moves)
        return cast(bool, inner.swap(moves))

    noting = Swapping(memory._services.backend, note)
    slow = interrupted(through(memory, noting), *[appender(table)] * 2).table(NAME)
    slow.append(readings(1))
    assert len({move.new.commit_id for move in seen}) == 1
    assert len({move.new.snapshot_path for move in seen}) == 3
    assert [move.new.version for move in seen] == [1, 2, 3]


def test_a_table_that_is_recreated_under_a_commit_is_left_alone(catalog: Catalog) -> None:
    before = create(catalog).metadata.table_id

    def recreate() -> None:
        catalog.drop_table(NAME)
        create(catalog)

    slow = interrupted(catalog, recreate).table(NAME)
    with pytest.raises(CommitConflictError, match="created anew"):
        slow.append(readings())
    assert catalog.table(NAME).scan().count() == 0
    assert catalog.table(NAME).metadata.table_id != before


def test_a_store_without_database_refuses_several_tables_before_anything_is_written(
    tmp_path: Path,
) -> None:
    with lakebed.connect(tmp_path) as catalog:
        a, b = create(catalog, "a"), create(catalog, "b")
        with pytest.raises(RequestError, match="several tables"), catalog.transaction() as tx:
            tx.append(a, readings())
            tx.append(b, readings())
        assert (a.version, b.version) == (0, 0)
        assert list(a.files.store.list("data/")) == []


@pytest.mark.slow
def test_eight_writers_lose_nothing_and_nobody_starves(opener: Opener) -> None:
    create(opener(), by=())

    def session() -> Table:
        # With pauses as they are in earnest: a store has no line, only these.
        inner = opener()
        return through(inner, inner._services.backend, clock=SystemClock()).table(NAME)

    tables = [session() for _ in range(8)]

    def write(me: int) -> None:
        for number in range(5):
            tables[me].append(readings(me, count=1, first=number))

    outcomes = together(*(partial(write, me) for me in range(8)))
    assert outcomes == [None] * 8
    expected = sorted(day * 1440 + n for day in range(8) for n in range(5))
    assert minutes(tables[0]) == expected
    assert tables[0].version == 40
