"""The eight verifiable criteria of the archive table, one test each, on every catalog."""

import random
import threading
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace
from tests.around import Meeting, through, together, watched
from tests.fix_catalogs import Opener
from tests.table.samples import NAME, create, minutes, paths, put, readings

from lakebed.commit.change import Commit
from lakebed.errors import CommitConflictError, SchemaMismatchError
from lakebed.format.datafile import DataFile
from lakebed.format.snapshot import Operation
from lakebed.table.catalog import Catalog
from lakebed.table.table import Table


def described(path: str, partition: tuple[Any, ...] = ()) -> DataFile:
    """A data file of which only the description exists; plans never open one."""
    return DataFile(path=f"data/{path}.parquet", row_count=1, size_bytes=100, partition=partition)


def statuses(table: Table) -> dict[str, str]:
    """Each file that the manifests of the newest version list, with its standing."""
    found: dict[str, str] = {}
    for name in table.inspect.manifests().column("path").to_pylist():
        for row in table.inspect.manifest(name).select(["path", "status"]).to_pylist():
            found[row["path"]] = row["status"]
    return found


def test_criterion_1_commit_append_makes_a_snapshot_with_one_manifest_of_the_files(
    catalog: Catalog,
) -> None:
    table = create(catalog)
    before = table.current_snapshot()
    files = [put(table, readings(day)) for day in (0, 1)]
    commit = table.commit_append(files)
    snapshot = table.current_snapshot()
    assert (commit.snapshot_id, commit.attempts) == (snapshot.snapshot_id, 1)
    assert snapshot.parent_id == before.snapshot_id
    (manifest,) = snapshot.manifest_list
    assert manifest.file_count == 2
    assert [entry.file for entry in manifest.entries] == files
    assert statuses(table) == {file.path: "added" for file in files}
    assert minutes(table) == [*range(4), *range(1440, 1444)]


def test_criterion_2_ten_appends_make_eleven_snapshots_in_one_parent_chain(
    catalog: Catalog,
) -> None:
    table = create(catalog)
    for number in range(10):
        table.commit_append([described(f"{number}")], verify=False)
    history = table.history()
    assert [snapshot.version for snapshot in history] == list(range(10, -1, -1))
    parents = [snapshot.snapshot_id for snapshot in history[1:]] + [None]
    assert [snapshot.parent_id for snapshot in history] == parents
    assert history[-1].operation is Operation.CREATE
    times = [snapshot.timestamp_ms for snapshot in history]
    assert sorted(set(times), reverse=True) == times


def test_criterion_3_of_two_appends_that_meet_at_the_swap_one_retries_and_both_land(
    opener: Opener,
) -> None:
    table = create(opener())
    barrier = threading.Barrier(2)
    files = [put(table, readings(day)) for day in (0, 1)]

    def append(file: DataFile) -> Commit:
        session = opener()
        mine = through(session, Meeting(session._services.backend, barrier)).table(NAME)
        return mine.commit_append([file])

    commits = together(lambda: append(files[0]), lambda: append(files[1]))
    assert sorted(commit.attempts for commit in commits) == [1, 2]
    first, second = sorted(commits, key=lambda commit: commit.attempts)
    assert (first.version, second.version) == (1, 2)
    assert paths(table) == {file.path for file in files}
    assert paths(table, 1) == {files[commits.index(first)].path}
    assert [s.commit_id for s in table.history(2)] == [second.commit_id, first.commit_id]
    assert len(minutes(table)) == 8


def test_criterion_4_commit_overwrite_removes_and_adds_in_one_snapshot(catalog: Catalog) -> None:
    table = create(catalog)
    kept, gone = put(table, readings(0)), put(table, readings(1))
    table.commit_append([kept, gone])
    table.commit_append([late := put(table, readings(2))])
    assert statuses(table) == {
        kept.path: "existing",
        gone.path: "existing",
        late.path: "added",
    }
    new = put(table, readings(1, first=100))
    commit = table.commit_overwrite([gone], [new])
    assert commit.version == 3
    assert (commit.removed_files, commit.added_files) == (1, 1)
    assert statuses(table) == {
        kept.path: "existing",
        gone.path: "deleted",
        late.path: "existing",
        new.path: "added",
    }
    assert paths(table) == {kept.path, late.path, new.path}
    assert paths(table, 2) == {kept.path, gone.path, late.path}


def test_criterion_5_a_schema_mismatch_leaves_the_pointer_and_the_files_as_they_were(
    catalog: Catalog,
) -> None:
    table = create(catalog)
    table.commit_append([file := put(table, readings(0))])
    backend = catalog._services.backend
    before = backend.load(NAME)
    rows = readings(0).set_column(2, "value", pa.array(["warm"] * 4))
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink)
    table.files.store.create("data/odd.parquet", data := sink.getvalue().to_pybytes())
    odd = replace(file, path="data/odd.parquet", size_bytes=len(data))
    with pytest.raises(SchemaMismatchError, match="value"):
        table.commit_append([odd])
    assert backend.load(NAME) == before
    assert paths(table) == {file.path}
    assert minutes(table) == [0, 1, 2, 3]


def test_criterion_6_an_equality_on_the_partition_opens_only_manifests_that_overlap(
    opener: Opener,
) -> None:
    table = create(opener(), by=["sensor_id"])
    wanted = [described(f"b-{n}", ("b",)) for n in range(20)]
    nulls = [described(f"null-{n}", (None,)) for n in range(20)]
    table.commit_append([described(f"a-{n}", ("a",)) for n in range(20)], verify=False)
    table.commit_append(wanted, verify=False)
    table.commit_append([described(f"c-{n}", ("c",)) for n in range(20)], verify=False)
    table.commit_append(nulls, verify=False)
    cold = opener().table(NAME)
    watch = watched(cold)
    plan = cold.read_plan("sensor_id = 'b'")
    assert {file.path for file in plan.files} == {file.path for file in wanted}
    assert (plan.manifests_total, plan.manifests_opened) == (4, 1)
    assert len(watch.manifest_reads()) == 1
    assert {f.path for f in cold.read_plan("sensor_id is null").files} == {f.path for f in nulls}
    assert len(watch.manifest_reads()) == 2
    assert cold.read_plan("sensor_id = 'bb'").files == ()
    assert len(watch.manifest_reads()) == 2


@pytest.mark.slow
def test_criterion_7_a_hundred_random_commits_of_two_writers_are_each_applied_once(
    opener: Opener,
) -> None:
    table = create(opener(), by=())
    made: list[tuple[int, set[str], set[str]]] = []

    def write(me: str) -> int:
        mine, chance, conflicts = opener().table(NAME), random.Random(me), 0
        for number in range(50):
            added, removed = {f"data/{me}-{number}.parquet"}, set[str]()
            files = [described(f"{me}-{number}")]
            try:
                if chance.random() < 0.4 and (live := mine.read_plan().files):
                    gone = chance.choice(live)
                    removed = {gone.path}
                    commit = mine.commit_overwrite([gone], files, verify=False)
                else:
                    commit = mine.commit_append(files, verify=False)
            except CommitConflictError:
                conflicts += 1
            else:
                made.append((commit.version, added, removed))
        return conflicts

    conflicts = together(lambda: write("left"), lambda: write("right"))
    assert len(made) + sum(conflicts) == 100
    made.sort()
    assert [version for version, _, _ in made] == list(range(1, len(made) + 1))
    expected: set[str] = set()
    for version, added, removed in made:
        assert removed <= expected, f"version {version} removed what was not there"
        expected = (expected - removed) | added
        if version % 20 == 0:
            assert paths(table, version) == expected
    assert paths(table) == expected
    assert table.current_snapshot().summary.total_files == len(expected)


def test_criterion_8_a_snapshot_from_fifty_commits_ago_gives_the_files_of_its_time(
    opener: Opener,
) -> None:
    table = create(opener(), by=())
    for number in range(5):
        table.commit_append([described(f"old-{number}")], verify=False)
    then, expected = table.current_snapshot(), paths(table)
    for number in range(49):
        table.commit_append([described(f"new-{number}")], verify=False)
    victim = next(file for file in table.read_plan().files if "old-3" in file.path)
    table.commit_overwrite([victim], [], verify=False)
    assert table.version == then.version + 50
    cold = opener().table(NAME)
    assert paths(cold, then.snapshot_id) == expected
    assert len(paths(cold)) == 5 + 49 - 1
