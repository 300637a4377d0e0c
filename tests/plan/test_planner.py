"""A plan opens only what can hold a matching row, keeps all that can, and says why."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.around import watched
from tests.table.samples import NAME, create, minutes, paths, readings

from lakebed.format.datafile import ColumnStats, DataFile
from lakebed.table.catalog import Catalog
from lakebed.table.table import Table

DAY = 20_454  # 2026-01-01, in days since 1970
US_PER_DAY = 86_400_000_000


def described(name: str, day: int, *, values: tuple[Any, Any] | None = (0.0, 9.0)) -> DataFile:
    """A file of one day of which only the description exists."""
    low = (DAY + day) * US_PER_DAY
    stats = {1: ColumnStats(0, None, low, low + US_PER_DAY - 1)}
    if values is not None:
        stats[3] = ColumnStats(0, 0, *values)
    return DataFile(
        path=f"data/{name}", row_count=10, size_bytes=9, partition=(DAY + day,), stats=stats
    )


def cold(catalog: Catalog) -> Table:
    """The table in a session that has read nothing yet."""
    return Catalog(catalog._services.backend, catalog._services.warehouse).table(NAME)


def by_days(catalog: Catalog, days: int = 5) -> Table:
    """One manifest of twenty files per day."""
    table = create(catalog)
    for day in range(days):
        table.commit_append([described(f"{day}-{n}", day) for n in range(20)], verify=False)
    return cold(catalog)


# -------------------------------------------------------------------------------- which are opened


@pytest.mark.parametrize(
    ("where", "days"),
    [
        ("ts >= '2026-01-02' and ts < '2026-01-03'", [1]),
        ("ts = '2026-01-03 12:00:00'", [2]),
        ("ts in ('2026-01-01', '2026-01-05')", [0, 4]),
        ("ts < '2026-01-01'", []),
        ("ts <= '2026-01-01'", [0]),
        ("ts > '2026-01-04 23:59:59.999999'", [4]),
        ("ts >= '2026-01-04 23:59:59.999999'", [3, 4]),
        ("not (ts < '2026-01-04')", [3, 4]),
        ("ts < '2026-01-02' or ts >= '2026-01-05'", [0, 4]),
        ("ts is null", []),
        ("value > 9.0", []),
        ("value >= 9.0", [0, 1, 2, 3, 4]),
        ("sensor_id = 'x'", [0, 1, 2, 3, 4]),
        ("true", [0, 1, 2, 3, 4]),
        ("false", []),
    ],
)
def test_a_manifest_whose_summary_cannot_match_is_not_opened(
    memory: Catalog, where: str, days: list[int]
) -> None:
    table = by_days(memory)
    watch = watched(table)
    plan = table.read_plan(where)
    assert len(watch.manifest_reads()) == len(days)
    assert (plan.manifests_total, plan.manifests_opened) == (5, len(days))
    assert {file.path for file in plan.files} == {
        f"data/{day}-{n}" for day in days for n in range(20)
    }
    assert (plan.file_count, plan.row_count) == (20 * len(days), 200 * len(days))


def test_a_plan_without_predicate_lists_everything(memory: Catalog) -> None:
    table = by_days(memory, 2)
    plan = table.read_plan()
    assert (plan.file_count, plan.manifests_opened) == (40, 2)
    assert plan.certain_row_count == plan.row_count == 400
    assert plan.edge_files == ()


def test_a_manifest_is_fetched_once_however_often_it_is_planned_on(memory: Catalog) -> None:
    table = by_days(memory)
    watch = watched(table)
    for _ in range(3):
        table.read_plan("ts < '2026-01-02'")
    assert list(watch.reads.values()).count(1) == len(watch.reads)


def test_the_tail_is_planned_without_opening_anything(memory: Catalog) -> None:
    table = create(memory)
    table.commit_append([described(f"{day}", day) for day in range(10)], verify=False)
    fresh = cold(memory)
    watch = watched(fresh)
    plan = fresh.read_plan("ts >= '2026-01-09'")
    assert [file.path for file in plan.files] == ["data/8", "data/9"]
    assert (plan.manifests_total, plan.manifests_opened) == (0, 0)
    assert watch.manifest_reads() == []


def test_files_of_an_opened_manifest_are_told_apart_by_their_statistics(memory: Catalog) -> None:
    table = create(memory)
    files = [described(f"{n}", 0, values=(n, n + 0.5)) for n in range(20)]
    table.commit_append(files, verify=False)
    plan = table.read_plan("value >= 5.5 and value <= 7")
    assert [file.path for file in plan.files] == ["data/5", "data/6", "data/7"]
    assert [file.path for file in plan.certain_files] == ["data/6"]
    assert [file.path for file in plan.edge_files] == ["data/5", "data/7"]
    assert plan.certain_row_count == 10


def test_a_file_without_statistics_is_always_kept_and_never_certain(memory: Catalog) -> None:
    table = create(memory)
    known, unknown = described("known", 0), described("unknown", 0, values=None)
    table.commit_append([known, unknown], verify=False)
    plan = table.read_plan("value > 100")
    assert [file.path for file in plan.files] == ["data/unknown"]
    plan = table.read_plan("value >= 0")
    assert [file.path for file in plan.certain_files] == ["data/known"]
    assert [file.path for file in plan.edge_files] == ["data/unknown"]


def test_the_same_holds_where_the_unknown_file_is_in_a_manifest(memory: Catalog) -> None:
    """A summary over files of which one is unknown must not be narrower than that one."""
    table = create(memory)
    files = [described(f"{n}", 0) for n in range(19)]
    table.commit_append([*files, described("unknown", 0, values=None)], verify=False)
    plan = cold(memory).read_plan("value > 100")
    assert [file.path for file in plan.files] == ["data/unknown"]


def test_removed_files_are_not_planned(memory: Catalog) -> None:
    table = create(memory)
    files = [described(f"{n}", 0) for n in range(20)]
    table.commit_append(files, verify=False)
    table.commit_append([tail := described("tail", 0)], verify=False)
    table.commit_overwrite([files[3], tail], [], verify=False)
    assert paths(cold(memory)) == {file.path for file in files if file is not files[3]}


def test_a_plan_knows_all_that_is_known_of_a_file(memory: Catalog) -> None:
    table = create(memory)
    files = [described(f"{n:02}", n) for n in range(20)]
    table.commit_append(files, verify=False)
    assert list(cold(memory).read_plan().files) == files
    light = cold(memory).read_plan().readable_files()
    assert [(f.path, f.row_count, f.size_bytes) for f in light] == [
        (f.path, f.row_count, f.size_bytes) for f in files
    ]


# -------------------------------------------------------------------------------------- explanation


def test_an_explanation_names_what_is_kept_and_why_the_rest_is_not(memory: Catalog) -> None:
    table = by_days(memory)
    table.commit_append([described("tail", 1)], verify=False)
    text = table.read_plan("ts >= '2026-01-02' and ts < '2026-01-03'").explain(limit=3)
    lines = text.splitlines()
    assert lines[0].startswith(f"{NAME} version 6 where ts >= '2026-01-02'")
    assert lines[1] == "manifests  1 of 5 opened, and the tail inside the snapshot"
    assert lines[2] == "files      21 of 101 kept, 21 of them match as a whole"
    assert lines[3] == "rows       at most 210 of 1,010"
    kept = [line for line in lines if line.startswith("  + data/")]
    assert len(kept) == 3
    assert all(line.endswith("10 rows: every row matches") for line in kept)
    assert "  + … 18 more" in lines
    dropped = [line for line in lines if line.startswith("  - metadata/manifest-")]
    assert len(dropped) == 3
    assert "ts: 2026-01-01" in dropped[0]
    assert "is outside" in dropped[0]
    assert lines[-1] == "  - … 80 files dropped in all"


def test_an_explanation_without_predicate_is_short(memory: Catalog) -> None:
    lines = by_days(memory, 1).scan().explain(limit=2).splitlines()
    assert lines[0] == f"{NAME} version 1"
    assert lines[2] == "files      20 of 20 kept"
    assert len(lines) == 7
    assert not [line for line in lines if line.startswith("  -")]


def test_an_explanation_tells_edges_from_certain_files(memory: Catalog) -> None:
    table = create(memory)
    table.append(readings(0))
    table.append(readings(1))
    text = table.scan("ts < '2026-01-02 00:01:00'").explain()
    assert "every row matches" in text
    assert "may match" in text


# ------------------------------------------------------------------------------ boundary cases


EDGES: list[tuple[str, list[Any], str, int]] = [
    ("min equals max", [5.0, 5.0], "x = 5", 2),
    ("at the lower bound", [1.0, 9.0], "x <= 1", 1),
    ("at the upper bound", [1.0, 9.0], "x >= 9", 1),
    ("just outside", [1.0, 9.0], "x > 9", 0),
    ("nulls beside values", [None, 5.0], "x = 5", 1),
    ("nulls beside values, is null", [None, 5.0], "x is null", 1),
    ("only nulls", [None, None], "x = 5", 0),
    ("only nulls, is null", [None, None], "x is null", 2),
    ("NaN beside values", [float("nan"), 5.0], "x = 5", 1),
    ("only NaN", [float("nan")] * 2, "x = 5", 0),
    ("minus zero", [-0.0], "x = 0", 1),
    ("zero for minus zero", [0.0], "x >= -0.0", 1),
    ("infinities", [float("inf"), float("-inf")], "x > 1e308", 1),
    ("unequal to the only value", [5.0, 5.0], "x <> 5", 0),
    ("unequal with nulls", [5.0, None], "x <> 5", 0),
    ("unequal with NaN", [5.0, float("nan")], "not (x = 5)", 1),
]


@pytest.mark.parametrize("case", EDGES, ids=lambda case: case[0])
def test_pruning_never_drops_a_file_that_matches(
    memory: Catalog, case: tuple[str, list[Any], str, int]
) -> None:
    _, values, where, count = case
    rows = pa.table({"x": pa.array(values, pa.float64())})
    table = memory.create_table("t", rows.schema)
    table.append(rows)
    scan = table.scan(where)
    assert scan.count() == scan.to_arrow().num_rows == count
    if count:
        assert scan.plan.file_count == 1


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("x" * 64 + "a", "s = '" + "x" * 64 + "a'"),
        ("x" * 64 + "z", "s > '" + "x" * 64 + "y'"),
        ("\U0010ffff" * 70, "s >= '" + "\U0010ffff" * 70 + "'"),
        ("", "s = ''"),
        ("it's", "s = 'it''s'"),
        ("ä" * 80, "s like 'ää%'"),
    ],
    ids=["long", "long above", "greatest character", "empty", "quote", "umlauts"],
)
def test_text_that_is_cut_in_statistics_is_still_found(
    memory: Catalog, text: str, where: str
) -> None:
    rows = pa.table({"s": [text]})
    table = memory.create_table("t", rows.schema)
    for _ in range(18):  # some in a manifest, whose bounds are cut once more, some in the tail
        table.append(rows)
    assert table.scan(where).count() == 18


@pytest.mark.slow
def test_a_plan_of_random_ranges_keeps_what_a_full_scan_finds(memory: Catalog) -> None:
    table = create(memory)
    chance = np.random.default_rng(7)
    for day in chance.integers(0, 40, 60).tolist():
        table.append(readings(day, count=3, first=int(chance.integers(0, 1_000))))
    everything = minutes(table)
    for _ in range(30):
        low, high = sorted(chance.integers(0, 41 * 1440, 2).tolist())
        where = f"ts >= '{moment(low)}' and ts < '{moment(high)}'"
        expected = [minute for minute in everything if low <= minute < high]
        assert minutes(table.scan(where)) == expected, where
        assert table.scan(where).count() == len(expected), where


def moment(minute: int) -> str:
    days, rest = divmod(minute, 1440)
    return str(np.datetime64("2026-01-01") + days) + f" {rest // 60:02}:{rest % 60:02}:00"


def test_a_limit_reads_only_the_files_that_surely_hold_so_many_rows(memory: Catalog) -> None:
    table = create(memory)
    table.commit_append([described(f"{n:02}", n) for n in range(20)], verify=False)
    plan = cold(memory).read_plan()
    files = plan.readable_files()
    first = files[0].row_count
    assert plan.readable_files(first) == files[:1]
    assert plan.readable_files(first + 1) == files[:2]
    assert plan.readable_files(plan.row_count + 1) == files
