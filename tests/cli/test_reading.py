"""Reading prints what the table holds, exactly, at any point of its history."""

import csv
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.shell import Shell

T = "plant.readings"
HARD = pa.table(
    {
        "flag": pa.array([True, False, None]),
        "small": pa.array([1, -(2**31), None], pa.int32()),
        "large": pa.array([2**63 - 1, -(2**63), None], pa.int64()),
        "single": pa.array([1.5, 0.1, None], pa.float32()),
        "real": pa.array([0.1, 1e300, -0.0]),
        "price": pa.array(["1.20", "-99999999.99", None]).cast(pa.decimal128(10, 2)),
        "day": pa.array([-3653, 20454, None], pa.int32()).cast(pa.date32()),
        "clock": pa.array([3_723_000_004, 0, None], pa.time64("us")),
        "local": pa.array([-1, 10**15, None], pa.timestamp("us")),
        "moment": pa.array([-1, 10**15, None], pa.timestamp("us", "UTC")),
        "tick": pa.array([-1, 10**18, None], pa.timestamp("ns", "UTC")),
        "text": pa.array(['a,"b"\nc\r\n', "", None]),
        "odd": pa.array(["NULL", "\x1b[31m é", "  x "]),
        "bytes": pa.array([b"\x00\xff", b"", None]),
        "four": pa.array([b"\x00\xff\x00\xff", b"abcd", None], pa.binary(4)),
    }
)
NOT_FINITE = pa.table({"x": [float("nan"), float("inf"), -float("inf"), None]})


def columns_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def test_a_scan_selects_rows_columns_and_their_order(plant: Shell) -> None:
    found = plant.rows(T, "--where", "value > 2", "--columns", "value,sensor")
    assert [list(row.items()) for row in found] == [
        [("value", 2.5), ("sensor", "b")],
        [("value", 3.5), ("sensor", "a")],
    ]
    assert len(plant.rows(T, "--limit", "3")) == 3
    assert plant.rows(T, "--limit", "0") == []
    assert plant.ok("scan", T, "--count") == "4\n"
    assert plant.json("scan", T, "--count", "--where", "value is null") == {"count": 1}


def test_a_column_with_a_comma_stands_in_quotes(shell: Shell) -> None:
    shell.ok("init", "t", "--schema", '"a,b" int, c int')
    assert shell.ok("scan", "t", "--columns", '"a,b",c', "--output", "csv") == '"a,b",c\n'


def test_the_past_is_read_by_version_tag_time_and_snapshot(plant: Shell) -> None:
    plant.ok("tag", T, "before", "--at", "0")
    versions = plant.json("history", T)
    (first,) = (version for version in versions if version["version"] == 1)
    for point, count in (
        ("0", 0),
        ("1", 4),
        ("before", 0),
        (first["timestamp"], 4),
        (str(first["snapshot_id"]), 4),
    ):
        assert len(plant.rows(T, "--as-of", point)) == count, point
    assert "neither a tag nor a time" in plant.error("scan", T, "--as-of", "nothing")
    assert "no version 99" in plant.error("scan", T, "--as-of", "99")


@pytest.mark.parametrize(("form", "rows"), [("csv", HARD), ("json", HARD), ("csv", NOT_FINITE)])
def test_what_scan_prints_can_be_appended_again(shell: Shell, form: str, rows: pa.Table) -> None:
    pq.write_table(rows, "rows.parquet")
    for name in ("a", "b"):
        shell.ok("init", name, "--like", "rows.parquet")
    shell.ok("append", "a", "rows.parquet")
    printed = shell.ok("scan", "a", "--output", form)
    shell.write(f"again.{form}", printed)
    shell.ok("append", "b", f"again.{form}")
    assert shell.ok("scan", "b", "--output", form) == printed
    files = (next(Path(f"lakebed/{name}/data").rglob("*.parquet")) for name in ("a", "b"))
    first, second = (pq.read_table(file, partitioning=None) for file in files)
    for name in rows.column_names:
        assert repr(first.column(name).to_pylist()) == repr(second.column(name).to_pylist()), name


def test_a_null_alone_in_its_line_survives(shell: Shell) -> None:
    shell.write("one.csv", "a\n1\n\n3\n")
    shell.ok("init", "t", "--schema", "a int")
    shell.ok("append", "t", "one.csv")
    assert shell.ok("scan", "t", "--output", "csv") == "a\n1\n\n3\n"


def test_a_pipe_gets_plain_aligned_text(plant: Shell) -> None:
    lines = plant.ok("scan", T).splitlines()
    assert lines[0].split() == ["ts", "sensor", "value"]
    assert lines[1] == "2026-01-01T00:00:00Z  a         1.5"
    assert "NULL" in lines[4]
    assert "\x1b" not in plant.ok("info", T)


def test_a_plan_tells_kept_files_from_dropped_ones(plant: Shell) -> None:
    where = ("--where", "ts < '2026-01-02' and value > 1")
    plan = plant.json("plan", T, *where)
    assert (plan["files_total"], plan["files_kept"], plan["rows_max"]) == (2, 1, 2)
    assert [file["every_row_matches"] for file in plan["files"]] == [True]
    assert "ts_day=2026-01-01" in plan["files"][0]["path"]
    assert "ts_day=2026-01-02" in plan["dropped"][0]["path"]
    text = plant.ok("plan", T, *where)
    assert "files      1 of 2 kept" in text
    assert "every row matches" in text
    listed = columns_of(plant.ok("plan", T, *where, "--output", "csv"))
    assert listed[0] == ["path", "rows", "bytes", "every_row_matches"]
    assert [row[0] for row in listed[1:]] == [plan["files"][0]["path"]]


def test_a_plan_looks_at_the_past_too(plant: Shell) -> None:
    assert plant.json("plan", T, "--as-of", "0")["files_kept"] == 0
    assert plant.json("plan", T)["files_kept"] == 2


def test_history_is_newest_first_and_can_be_cut(plant: Shell) -> None:
    plant.ok("append", T, "rows.csv", "--token", "loader:1")
    found = plant.json("history", T)
    assert [(row["version"], row["operation"]) for row in found] == [
        (2, "append"),
        (1, "append"),
        (0, "create"),
    ]
    assert found[0]["token"] == "loader:1"
    assert [row["version"] for row in plant.json("history", T, "--limit", "1")] == [2]
    text = plant.ok("history", T).splitlines()
    assert "-rows" not in text[0]
    assert text[1].endswith("loader:1")


def test_a_diff_counts_rows_and_names_changes_of_columns(plant: Shell) -> None:
    plant.ok("append", T, "rows.csv")
    plant.ok("delete", T, "--where", "sensor = 'b'")
    plant.ok("evolve", T, "--rename", "value=celsius", "--add", "site string")
    found = plant.json("diff", T, "1")
    assert (found["since"], found["until"]) == (1, 4)
    assert (found["added_rows"], found["removed_rows"]) == (4, 2)
    assert [(v["version"], v["added_rows"], v["removed_rows"]) for v in found["versions"]] == [
        (2, 4, 0),
        (3, 0, 2),
        (4, 0, 0),
    ]
    assert [(c["change"], c["column"], c["from"]) for c in found["schema_changes"]] == [
        ("renamed", "celsius", "value"),
        ("added", "site", None),
    ]
    text = plant.ok("diff", T, "1", "4")
    assert "+4 rows  -2 rows" in text
    assert "value is now named celsius" in text
    assert "+ site string" in text


def test_a_diff_shows_columns_that_went_or_grew(shell: Shell) -> None:
    shell.ok("init", "t", "--schema", "a int, b string")
    shell.ok("evolve", "t", "--widen", "a long", "--drop", "b")
    text = shell.ok("diff", "t", "0")
    assert "- b string" in text
    assert "a int is now long" in text


def test_the_rows_of_a_diff_say_whether_they_came_or_went(plant: Shell) -> None:
    plant.ok("delete", T, "--where", "sensor = 'b'")
    found = plant.json("diff", T, "1", "--rows")
    assert [(row["change"], row["sensor"]) for row in found] == [("removed", "b")]
    assert len(plant.json("diff", T, "0", "1", "--rows")) == 4
    assert plant.json("diff", T, "1", "1", "--rows") == []
    assert "older version first" in plant.error("diff", T, "1", "0")


def test_a_column_named_change_is_not_hidden_by_the_label(shell: Shell) -> None:
    shell.write("rows.csv", "change\n7\n")
    shell.ok("init", "t", "--like", "rows.csv")
    shell.ok("append", "t", "rows.csv")
    assert shell.json("diff", "t", "0", "--rows") == [{"_change": "added", "change": 7}]


def test_a_manifest_lists_its_files_with_their_statistics(plant: Shell) -> None:
    (manifest,) = plant.json("inspect-manifest", T)
    assert (manifest["file_count"], manifest["row_count"]) == (2, 4)
    entries = plant.json("inspect-manifest", T, manifest["path"])
    assert [(e["status"], e["row_count"], e["null_2"]) for e in entries] == [
        ("added", 2, 0),
        ("added", 2, 1),
    ]
    short = manifest["path"].rpartition("/")[2]
    assert short in plant.ok("inspect-manifest", T)
    text = plant.ok("inspect-manifest", T, short)
    assert "ts_day  2026-01-01" in text
    assert "value   1.5 .. 2.5" in text
    assert "1 null" in text
    assert "lakebed inspect-manifest" in plant.error("inspect-manifest", T, "nothing")


def test_a_predicate_that_cannot_be_read_is_one_line(plant: Shell) -> None:
    said = plant.error("scan", T, "--where", "value >")
    assert "at position" in said
    assert "\\n" not in said
    assert "The columns are: ts, sensor, value" in plant.error("scan", T, "--where", "nothing = 1")
    assert "nothing" in plant.error("scan", T, "--columns", "nothing")


def test_json_of_rows_is_an_array_with_one_row_per_line(plant: Shell) -> None:
    lines = plant.ok("scan", T, "--output", "json").splitlines()
    assert (lines[0], lines[-1], len(lines)) == ("[", "]", 6)
    assert json.loads(lines[1].rstrip(","))["value"] == 1.5
