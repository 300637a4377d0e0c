"""A table of format version 1, once written, reads the same for ever.

The tables under v1 were made by scripts/make_golden.py and are never made again. What they must be
read as is beside them, from the script and not from a reader; `stories` tells what was done.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.golden import record

import lakebed
from lakebed.format.snapshot import Operation
from lakebed.format.types import Kind
from lakebed.limits import FORMAT_VERSION

V1 = record.GOLDEN / "v1"
NAMES = sorted(path.stem for path in (V1 / "expected").iterdir())
KINDS = {*Kind.__members__.values(), "struct", "list", "map"}
STORE_TABLES = ["evolved", "folded", "reborn", "types"]
SQLITE_TABLES = ["plant.alarms", "plant.readings"]
SIZE_BYTES_MAX = 300_000

Open = Callable[[str], lakebed.Table]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The golden directory where it may be written to: reading must not need the original."""
    return Path(shutil.copytree(V1, tmp_path / "v1"))


@pytest.fixture
def open_table(copy: Path) -> Any:
    """Open a golden table by the name of its record."""
    catalogs = {kind: connect(copy, kind) for kind in ("store", "sqlite")}

    def opened(name: str) -> lakebed.Table:
        kind, _, table = name.partition("-")
        return catalogs[kind].table(table)

    yield opened
    for catalog in catalogs.values():
        catalog.close()


def connect(root: Path, kind: str) -> lakebed.Catalog:
    return lakebed.connect(
        root / "store" if kind == "store" else f"sqlite:///{root}/sqlite/catalog.db"
    )


def expected(name: str) -> dict[str, Any]:
    text = (V1 / "expected" / f"{name}.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


def rows(table: lakebed.Table, **asked: Any) -> list[record.Row]:
    return record.rows_of(table.scan(**asked).to_arrow())


# -------------------------------------------------------------------------------- the files


def test_golden_files_are_the_ones_that_were_made() -> None:
    lines = (V1 / record.SUMS).read_text(encoding="utf-8").splitlines()
    made = {path: digest for digest, path in (line.split("  ", 1) for line in lines)}
    assert record.sums_of(V1) == made


def test_golden_files_are_small_and_none_is_ignored_by_git() -> None:
    files = [path for path in V1.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < SIZE_BYTES_MAX
    asked = "\n".join(str(path) for path in files)
    ignored = subprocess.run(
        ["git", "check-ignore", "--stdin"], cwd=V1, input=asked, capture_output=True, text=True
    )
    assert ignored.stdout == ""


def test_each_format_version_has_its_golden_tables() -> None:
    assert (record.GOLDEN / f"v{FORMAT_VERSION}").is_dir()


def test_golden_tables_hold_what_the_format_has() -> None:
    told = {name: expected(name) for name in NAMES}
    operations = {v["operation"] for each in told.values() for v in each["versions"].values()}
    # A drop is not among the versions of any table: it is the tombstone that `reborn` begins after.
    assert operations == {each.value for each in Operation} - {"drop"}
    assert min(map(int, told["store-reborn"]["versions"])) > 0
    folded = told["store-folded"]["versions"]["10"]["manifests"]
    assert {inline for *_, inline in folded} == {True, False}
    assert sum(removed for _, _, _, removed, _ in folded) > 0
    kinds = {kind for *_, kind, _, _ in told["store-types"]["definition"]["schemas"][0]}
    assert {re.split(r"[(\[<]", kind)[0] for kind in kinds} == {str(kind) for kind in KINDS}
    assert len(told["store-evolved"]["definition"]["specs"]) == 2


@pytest.mark.slow
def test_maker_refuses_to_touch_golden_tables() -> None:
    before = record.sums_of(V1)
    script = record.GOLDEN.parent.parent / "scripts" / "make_golden.py"
    made = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert made.returncode == 1
    assert "never made again" in made.stderr
    assert record.sums_of(V1) == before


# ---------------------------------------------------------------------------------- reading


def test_catalogs_list_the_golden_tables_and_not_the_dropped_one(copy: Path) -> None:
    with connect(copy, "store") as store, connect(copy, "sqlite") as sqlite:
        assert store.tables() == STORE_TABLES
        assert sqlite.tables() == SQLITE_TABLES
    of_both = [f"sqlite-{t}" for t in SQLITE_TABLES] + [f"store-{t}" for t in STORE_TABLES]
    assert of_both == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_each_version_has_its_rows_and_columns(open_table: Open, name: str) -> None:
    table = open_table(name)
    for version, told in expected(name)["versions"].items():
        scan = table.scan(as_of=int(version))
        assert record.columns_of(scan.schema) == told["columns"], version
        assert record.rows_of(scan.to_arrow()) == told["rows"], version
        assert scan.count() == len(told["rows"]), version


@pytest.mark.parametrize("name", NAMES)
def test_definition_and_history_are_what_they_were(open_table: Open, name: str) -> None:
    table, told = open_table(name), expected(name)
    assert record.definition_of(table) == told["definition"]
    history = {str(s.version): record.snapshot_of(s) for s in table.history()}
    unread = {"columns", "rows", "added", "removed"}
    assert history == {
        version: {key: value for key, value in each.items() if key not in unread}
        for version, each in told["versions"].items()
    }


@pytest.mark.parametrize("name", NAMES)
def test_changes_of_each_version_are_what_they_were(open_table: Open, name: str) -> None:
    table = open_table(name)
    steps = {v: told for v, told in expected(name)["versions"].items() if "added" in told}
    assert len(steps) == len(expected(name)["versions"]) - 1, "all but the first have a parent"
    for version, told in steps.items():
        changes = table.changes(int(version) - 1, int(version))
        assert record.rows_of(changes.added.to_arrow()) == told["added"], version
        assert record.rows_of(changes.removed.to_arrow()) == told["removed"], version


@pytest.mark.parametrize("name", NAMES)
def test_tags_times_and_snapshot_ids_lead_to_their_version(open_table: Open, name: str) -> None:
    table, told = open_table(name), expected(name)
    for version, each in told["versions"].items():
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=each["timestamp_ms"])
        assert table.snapshot(moment).version == int(version)
        assert table.snapshot(each["snapshot_id"]).version == int(version)
    for tag, version in told["definition"]["tags"].items():
        assert rows(table, as_of=tag) == told["versions"][str(version)]["rows"]


@pytest.mark.parametrize("name", [n for n in NAMES if expected(n)["predicates"]])
def test_predicates_select_the_same_rows(open_table: Open, name: str) -> None:
    table = open_table(name)
    for predicate, told in expected(name)["predicates"]:
        assert 0 < len(told) < table.scan().count(), predicate
        assert rows(table, where=predicate) == told, predicate
        assert table.scan(predicate).count() == len(told), predicate


def test_doctor_finds_the_golden_tables_sound(copy: Path) -> None:
    for kind, tables in (("store", STORE_TABLES), ("sqlite", SQLITE_TABLES)):
        with connect(copy, kind) as catalog:
            audits = [catalog.doctor(table) for table in tables]
        assert [(audit.ok, audit.problems) for audit in audits] == [(True, ())] * len(tables)


def test_reading_a_store_catalog_writes_nothing(copy: Path) -> None:
    before = record.sums_of(copy)
    with connect(copy, "store") as catalog:
        for name in catalog.tables():
            table = catalog.table(name)
            assert len(rows(table)) == table.current_snapshot().summary.total_rows
            assert table.history()
    assert record.sums_of(copy) == before


def test_versions_of_a_dropped_table_are_not_read_as_those_of_its_successor(
    open_table: Open,
) -> None:
    with pytest.raises(lakebed.NotFoundError):
        open_table("store-reborn").scan(as_of=1)


def test_one_commit_of_two_tables_has_one_id_in_both(open_table: Open) -> None:
    readings, alarms = (
        {each["commit_id"] for each in expected(f"sqlite-{name}")["versions"].values()}
        for name in ("plant.readings", "plant.alarms")
    )
    (shared,) = readings & alarms
    assert open_table("sqlite-plant.readings").snapshot(2).commit_id == shared
    assert open_table("sqlite-plant.alarms").snapshot(1).commit_id == shared


@pytest.mark.slow
def test_duckdb_and_json_read_the_same_rows_without_lakebed(copy: Path) -> None:
    script = record.GOLDEN / "plain_reader.py"
    command = [sys.executable, "-I", str(script), str(copy)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    read = json.loads(ran.stdout)
    assert sorted(read) == NAMES
    for name in NAMES:
        found = {v: sorted(each, key=record.line) for v, each in read[name].items()}
        told = expected(name)["versions"]
        assert found == {version: each["rows"] for version, each in told.items()}, name


# ---------------------------------------------------------------------------------- writing


@pytest.mark.parametrize("name", NAMES)
def test_append_to_an_old_table_keeps_every_old_version(open_table: Open, name: str) -> None:
    table, told = open_table(name), expected(name)
    last = table.version
    held = table.scan().to_arrow()
    commit = table.append(held, token=("golden", 1))
    assert commit.version == last + 1
    newest = told["versions"][str(last)]["rows"]
    assert rows(table) == sorted(newest + newest, key=record.line)
    for version, each in told["versions"].items():
        assert rows(table, as_of=int(version)) == each["rows"], version
    table.evolve().add_column("fresh", "int").commit()
    (fresh,) = (field for field in table.schema.fields if field.name == "fresh")
    assert fresh.id == told["definition"]["last_field_id"] + 1


@pytest.mark.parametrize("name", NAMES)
def test_token_of_an_old_commit_still_counts(open_table: Open, name: str) -> None:
    table, told = open_table(name), expected(name)
    last = table.version
    with_token = {v: each for v, each in told["versions"].items() if each["token"]}
    newest = dict(each["token"] for each in with_token.values())
    for version, each in with_token.items():
        app, number = each["token"]
        if newest[app] == number:  # what travels in each snapshot
            again = table.append(table.scan(as_of=int(version)).to_arrow(), token=(app, number))
            assert again.version == int(version)
            assert again.commit_id == each["commit_id"]
    assert table.version == last


def test_rolled_back_and_deleted_rows_of_an_old_table_can_be_restored(open_table: Open) -> None:
    table, told = open_table("store-evolved"), expected("store-evolved")
    table.rollback("before-delete")
    version = told["definition"]["tags"]["before-delete"]
    assert rows(table) == told["versions"][str(version)]["rows"]
    table.delete("sensor = 'b'")
    deleted = next(e for e in told["versions"].values() if e["operation"] == "delete")
    assert rows(table) == deleted["rows"]
