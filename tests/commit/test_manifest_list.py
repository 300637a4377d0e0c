"""The list of manifests stays short and a commit's metadata small, however long the table grows."""

from math import log
from typing import Any

import pytest
from tests.around import watched
from tests.format import build
from tests.table.samples import create, paths

from lakebed.commit.manifest_list import ManifestList, prepare
from lakebed.files.delta import delta_of
from lakebed.format.datafile import ColumnStats, DataFile
from lakebed.format.snapshot import ManifestRef, Snapshot
from lakebed.ids import SystemIds
from lakebed.limits import MANIFEST_FILE_COUNT_SEALED, TAIL_FILE_COUNT_MAX, TIER_FANOUT
from lakebed.table.catalog import Catalog
from lakebed.table.table import Table

DAY = 20_454  # 2026-01-01, in days since 1970


def described(name: object, day: int = 0, *, stats: bool = True) -> DataFile:
    """A data file that nobody has written; a list does not care."""
    low = (DAY + day) * 86_400_000_000
    return DataFile(
        path=f"data/{name}.parquet",
        row_count=10,
        size_bytes=1_000,
        partition=(DAY + day,),
        stats={1: ColumnStats(0, None, low, low + 9)} if stats else {},
    )


def sizes(snapshot: Snapshot) -> list[int]:
    return [ref.file_count for ref in snapshot.manifest_list]


def manifests(snapshot: Snapshot) -> set[str]:
    return {ref.path for ref in snapshot.manifest_list if ref.path}


def grow(table: Table, count: int) -> list[Snapshot]:
    """Append files one by one; the snapshots that came of it."""
    made = []
    for number in range(count):
        table.commit_append([described(f"one-{number}")], verify=False)
        made.append(table.current_snapshot())
    return made


def test_the_first_files_are_listed_inside_the_snapshot(memory: Catalog) -> None:
    made = grow(create(memory), TAIL_FILE_COUNT_MAX)
    assert [sizes(snapshot) for snapshot in made] == [[n] for n in range(1, 17)]
    assert all(snapshot.manifest_list[0].is_inline for snapshot in made)


def test_a_tail_that_is_full_folds_into_a_manifest(memory: Catalog) -> None:
    table = create(memory)
    full = grow(table, TAIL_FILE_COUNT_MAX + 1)[-1]
    (ref,) = full.manifest_list
    assert (ref.is_inline, ref.file_count, ref.row_count) == (False, 17, 170)
    table.commit_append([described("next")], verify=False)
    assert sizes(table.current_snapshot()) == [17, 1]


def test_a_tail_of_few_but_wide_files_folds_by_its_size(memory: Catalog) -> None:
    table = create(memory)
    long = "x" * 900
    for number in range(12):
        table.commit_append([described(f"{long}-{number}")], verify=False)
    assert manifests(table.current_snapshot()) == set()
    table.commit_append([described(f"{long}-last-{n}") for n in range(4)], verify=False)
    assert sizes(table.current_snapshot()) == [16]
    assert len(manifests(table.current_snapshot())) == 1


def test_eight_manifests_of_a_tier_become_one_of_the_next(memory: Catalog) -> None:
    table = create(memory)
    made = grow(table, 17 * TIER_FANOUT)
    before, after = made[-2], made[-1]
    assert sizes(before) == [17] * 7 + [16]
    assert sizes(after) == [17 * 8]
    assert len(paths(table)) == 17 * 8


@pytest.mark.slow
def test_over_three_thousand_appends_the_list_is_short_and_the_cost_flat(memory: Catalog) -> None:
    table = create(memory)
    watch = watched(table)
    marks = []
    for number in range(3_000):
        table.commit_append([described(number, number // 100)], verify=False)
        count = number + 1
        bound = TIER_FANOUT * (log(max(count / TAIL_FILE_COUNT_MAX, 1), TIER_FANOUT) + 1) + 1
        assert len(table.current_snapshot().manifest_list) <= bound, f"after {count} appends"
        marks.append(watch.created_bytes)
    early = (marks[999] - marks[0]) / 999
    late = (marks[2_999] - marks[1_999]) / 1_000
    assert late <= 1.25 * early, f"{early:.0f} bytes a commit became {late:.0f}"
    assert late <= 8 << 10
    assert len(paths(table)) == 3_000
    assert table.current_snapshot().summary.total_rows == 30_000


@pytest.mark.slow
def test_appends_never_rewrite_a_sealed_manifest(memory: Catalog) -> None:
    table = create(memory)
    big = [described(f"big-{n}", n % 50) for n in range(MANIFEST_FILE_COUNT_SEALED)]
    table.commit_append(big, verify=False)
    (sealed,) = manifests(table.current_snapshot())
    for number in range(17 * TIER_FANOUT + 5):
        table.commit_append([described(f"small-{number}")], verify=False)
        assert sealed in manifests(table.current_snapshot())
    assert sizes(table.current_snapshot()) == [MANIFEST_FILE_COUNT_SEALED, 17 * 8, 5]


@pytest.mark.slow
def test_manifests_that_together_fill_a_sealed_one_do_not_wait_for_eight(memory: Catalog) -> None:
    table = create(memory)
    for part in range(3):
        files = [described(f"{part}-{n}") for n in range(6_000)]
        table.commit_append(files, verify=False)
    assert sizes(table.current_snapshot()) == [18_000]


def test_very_many_files_at_once_are_split_into_sealed_manifests_by_time() -> None:
    metadata = build.metadata()
    files = [described(n, (n * 7) % 100) for n in range(MANIFEST_FILE_COUNT_SEALED + 100)]
    first, second = prepare(files, metadata=metadata, ids=SystemIds())
    assert (first.ref.file_count, second.ref.file_count) == (MANIFEST_FILE_COUNT_SEALED, 100)
    assert first.ref.partitions[0].upper <= second.ref.partitions[0].lower


def test_a_removed_file_is_listed_as_such_once_and_then_forgotten(memory: Catalog) -> None:
    table = create(memory)
    files = [described(n) for n in range(20)]
    table.commit_append(files, verify=False)
    table.commit_append([tail := described("tail")], verify=False)
    table.commit_overwrite([files[3], tail], [], verify=False)
    snapshot = table.current_snapshot()
    assert [(ref.file_count, ref.deleted_count) for ref in snapshot.manifest_list] == [
        (19, 1),
        (0, 1),
    ]
    removed = {file.path for file in delta_of(table.files, snapshot).removed}
    assert removed == {files[3].path, tail.path}
    table.commit_append([described("later")], verify=False)
    after = table.current_snapshot()
    assert [(ref.file_count, ref.deleted_count) for ref in after.manifest_list][-1] == (1, 0)
    assert delta_of(table.files, after).removed == ()


def test_a_manifest_of_which_all_files_are_gone_is_listed_no_more(memory: Catalog) -> None:
    table = create(memory)
    files = [described(n) for n in range(20)]
    table.commit_append(files, verify=False)
    table.commit_overwrite(files, [], verify=False)
    assert sizes(table.current_snapshot()) == [0]
    table.commit_append([described("new")], verify=False)
    assert sizes(table.current_snapshot()) == [1]
    assert paths(table) == {"data/new.parquet"}


def test_a_removal_opens_only_manifests_whose_partitions_leave_room(memory: Catalog) -> None:
    table = create(memory)
    for day in range(3):
        table.commit_append([described(f"{day}-{n}", day) for n in range(20)], verify=False)
    table.files._manifests.clear()
    watch = watched(table)
    table.commit_overwrite([described("1-7", 1)], [], verify=False)
    assert len(watch.manifest_reads()) == 1
    assert len(paths(table)) == 59


def test_files_of_two_specs_are_kept_in_lists_of_their_own(memory: Catalog) -> None:
    table = create(memory)
    table.commit_append([described("by-day")], verify=False)
    table.evolve().partition_by(["sensor_id"]).commit()
    table.commit_append(
        [DataFile(path="data/by-sensor", row_count=1, size_bytes=1, spec_id=1, partition=("a",))],
        verify=False,
    )
    assert [(ref.spec_id, ref.file_count) for ref in table.current_snapshot().manifest_list] == [
        (0, 1),
        (1, 1),
    ]


def test_the_ranges_of_a_folded_manifest_cover_all_its_files(memory: Catalog) -> None:
    table = create(memory)
    for number in range(17 * TIER_FANOUT):
        table.commit_append([described(number, (number * 37) % 90)], verify=False)
    (ref,) = table.current_snapshot().manifest_list
    (span,) = ref.partitions
    assert (span.has_null, span.lower, span.upper) == (False, DAY, DAY + 89)
    stats = ref.stats[1]
    assert (stats.lower, stats.upper) == (DAY * 86_400_000_000, (DAY + 89) * 86_400_000_000 + 9)


def builder(table: Table, refs: tuple[ManifestRef, ...]) -> Any:
    head = table.head()
    return ManifestList(
        refs,
        files=table.files,
        metadata=head.metadata,
        version=head.snapshot.version + 1,
        ids=SystemIds(),
    )


def test_what_cannot_be_removed_is_given_back(memory: Catalog) -> None:
    table = create(memory)
    table.commit_append([described(n) for n in range(20)], verify=False)
    table.commit_append([described("tail")], verify=False)
    refs = table.current_snapshot().manifest_list
    building = builder(table, refs)
    missing = building.remove([described(3), described("tail"), described("nowhere")])
    assert [file.path for file in missing] == ["data/nowhere.parquet"]


def test_a_list_that_nothing_changes_writes_nothing(memory: Catalog) -> None:
    table = create(memory)
    table.commit_append([described(n) for n in range(20)], verify=False)
    refs = table.current_snapshot().manifest_list
    draft = builder(table, refs).finish()
    assert (draft.refs, draft.objects) == (refs, ())


def test_each_file_is_added_by_exactly_one_version(memory: Catalog) -> None:
    """Also through folds: the delta of a commit is told from its snapshot alone."""
    table = create(memory)
    added: list[str] = []
    for number in range(60):
        table.commit_append([described(f"{number}-{n}") for n in range(number % 5)], verify=False)
    for snapshot in table.history():
        added += [file.path for file in delta_of(table.files, snapshot).added]
    assert len(added) == len(set(added))
    assert set(added) == paths(table)


def test_manifests_that_fold_in_the_commit_that_brings_them_keep_each_file_s_version(
    memory: Catalog,
) -> None:
    table = create(memory)
    for number in range(TIER_FANOUT):
        table.commit_append([described(f"{number}-{n}") for n in range(20)], verify=False)
    assert sizes(table.current_snapshot()) == [20 * TIER_FANOUT]
    added = delta_of(table.files, table.current_snapshot()).added
    assert {file.path for file in added} == {f"data/7-{n}.parquet" for n in range(20)}
    versions = table.inspect.files().group_by("added_version").aggregate([("path", "count")])
    assert sorted(versions.column("added_version").to_pylist()) == list(range(1, 9))
