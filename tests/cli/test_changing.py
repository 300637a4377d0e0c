"""Each command that changes rows makes one commit or none, and says which."""

import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.shell import Shell

T = "plant.readings"


def test_several_files_are_one_commit(plant: Shell) -> None:
    plant.write("more.ndjson", '{"ts": "2026-01-03T00:00:00Z", "sensor": "c", "value": 9}\n')
    done = plant.json("append", T, "rows.csv", "more.ndjson")
    assert (done["version"], done["added_rows"]) == (2, 5)
    assert plant.rows(T, "--where", "sensor = 'c'") == [
        {"ts": "2026-01-03T00:00:00Z", "sensor": "c", "value": 9.0}
    ]


def test_new_columns_are_added_in_the_same_commit(plant: Shell) -> None:
    plant.write("more.csv", "ts,site\n2026-01-03T00:00:00Z,north\n")
    plant.ok("append", T, "more.csv")
    assert plant.version() == 2
    assert plant.rows(T, "--where", "site = 'north'")[0]["sensor"] is None


def test_rows_come_from_a_pipe(plant: Shell) -> None:
    assert plant.json("append", T, "-", "--format", "csv", stdin=plant.ROWS)["added_rows"] == 4
    line = json.dumps({"ts": "2026-01-03T00:00:00Z", "value": 1})
    assert plant.json("append", T, "-", stdin=line)["added_rows"] == 1
    stream = io.BytesIO()
    rows = pa.table({"value": [7.0]})
    with pa.ipc.new_stream(stream, rows.schema) as writer:
        writer.write(rows)
    assert plant.json("append", T, "-", stdin=stream.getvalue())["added_rows"] == 1


def test_a_token_is_committed_once(plant: Shell) -> None:
    first = plant.json("append", T, "rows.csv", "--token", "loader:7")
    again = plant.json("append", T, "rows.csv", "--token", "loader:7")
    assert (first["repeated"], again["repeated"]) == (False, True)
    assert again["version"] == first["version"] == plant.version()
    assert "nothing was written" in plant.ok("append", T, "rows.csv", "--token", "loader:7")
    plant.error("append", T, "rows.csv", "--token", "loader")


def test_a_file_without_rows_is_said_to_have_none(plant: Shell) -> None:
    plant.write("empty.csv", "ts,sensor,value\n")
    assert "without rows" in plant.ok("append", T, "empty.csv")


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("a.csv", "value\nten\n", "a.csv"),
        ("a.csv", "", "Empty CSV"),
        ("a.csv", "ts\n2026-01-01 00:00:00\n", "zone"),
        ("a.parquet", "PAR1", "a.parquet"),
        ("a.json", "[1, 2", "a.json"),
        ("a.txt", "x", "--format"),
    ],
)
def test_a_file_that_does_not_fit_changes_nothing(
    plant: Shell, name: str, content: str, complaint: str
) -> None:
    plant.write(name, content)
    assert complaint in plant.error("append", T, "rows.csv", name)
    assert plant.version() == 1


def test_a_bad_row_far_into_a_file_is_one_line_and_no_commit(plant: Shell) -> None:
    good = "2026-01-01T00:00:00Z,a,1.5\n" * 60_000  # more than Arrow reads ahead to find types
    plant.write("late.csv", f"ts,sensor,value\n{good}2026-01-01T00:00:00Z,a,ten\n")
    said = plant.error("append", T, "late.csv")
    assert "late.csv" in said
    assert "Traceback" not in said
    assert plant.version() == 1


def test_files_in_place_are_adopted_from_paths_on_standard_input(plant: Shell) -> None:
    rows = pa.table({"ts": pa.array([0], pa.timestamp("us", "UTC")), "value": [5.0]})
    for name in ("a", "b"):
        pq.write_table(rows, f"lakebed/{T}/data/{name}.parquet")
    paths = f'lakebed/{T}/data/a.parquet\n\n{{"path": "data/b.parquet"}}\n'
    done = plant.json("commit", T, "--token", "adopt:1", stdin=paths)
    assert (done["added_files"], done["added_rows"]) == (2, 2)
    assert plant.json("commit", T, "--token", "adopt:1", stdin=paths)["repeated"] is True
    assert len(plant.rows(T, "--where", "value = 5")) == 2


@pytest.mark.parametrize(
    "stdin", ["", "\n\n", "data/nothing.parquet\n", "../../rows.csv\n", "/etc/passwd\n", "{}\n"]
)
def test_paths_that_cannot_be_adopted_change_nothing(plant: Shell, stdin: str) -> None:
    plant.error("commit", T, stdin=stdin)
    assert plant.version() == 1


def test_delete_removes_what_matches_and_nothing_else(plant: Shell) -> None:
    assert plant.json("delete", T, "--where", "sensor = 'a'", "--dry-run") == {
        "table": T,
        "would_remove_rows": 2,
    }
    assert plant.version() == 1
    assert "-2 rows" in plant.ok("delete", T, "--where", "sensor = 'a'")
    assert [row["sensor"] for row in plant.rows()] == ["b", None]


def test_a_delete_that_matches_nothing_makes_no_version(plant: Shell) -> None:
    assert "nothing was changed" in plant.ok("delete", T, "--where", "value > 100")
    assert plant.version() == 1
    plant.error("delete", T)
    plant.error("delete", T, "--where", "value >")


def test_a_rollback_brings_rows_back_and_can_be_rolled_back(plant: Shell) -> None:
    plant.ok("tag", T, "good")
    plant.ok("delete", T, "--where", "true")
    assert plant.rows() == []
    plant.ok("rollback", T, "good")
    assert len(plant.rows()) == 4
    plant.ok("rollback", T, "3")
    assert plant.rows() == []


def test_tags_are_given_moved_and_listed(plant: Shell) -> None:
    assert plant.json("tag", T) == []
    assert plant.json("tag", T, "first", "--at", "0")["tagged_version"] == 0
    assert plant.json("tag", T, "first", "--at", "1")["tagged_version"] == 1
    assert plant.json("tag", T) == [{"tag": "first", "version": 1}]
    assert "TAG" in plant.error("tag", T, "--at", "0")
    plant.error("tag", T, "12")


def test_resolve_tells_the_three_fates_by_exit_code(plant: Shell) -> None:
    (newest, *_) = plant.json("history", T)
    found = plant.run("resolve", newest["commit_id"], "--output", "json")
    assert found.exit_code == 0
    answer = json.loads(found.stdout)
    assert (answer["fate"], answer["commits"][0]["version"]) == ("committed", 1)
    lost = "0" * 32
    assert plant.run("resolve", lost).exit_code == 4
    assert plant.run("resolve", lost, "--table", T, "--after", "1").exit_code == 4
    dead = plant.run("resolve", lost, "--table", T, "--after", "0", "--output", "json")
    assert (dead.exit_code, json.loads(dead.stdout)["fate"]) == (6, "failed")
    assert "both" in plant.error("resolve", lost, "--after", "0")


def test_a_quiet_change_says_nothing_but_its_report(plant: Shell) -> None:
    assert plant.ok("append", T, "rows.csv", "--quiet") == ""
    assert plant.json("append", T, "rows.csv", "--quiet")["version"] == 3


def test_a_store_catalog_works_without_a_database(shell: Shell) -> None:
    shell.write("rows.csv", shell.ROWS)
    here = ("--catalog", "lake")
    shell.ok("init", "t", "--like", "rows.csv", *here)
    shell.ok("append", "t", "rows.csv", *here)
    assert shell.json("scan", "t", "--count", *here) == {"count": 4}
    assert not list(Path().rglob("*.db"))
