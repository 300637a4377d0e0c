"""Whatever the command: JSON and CSV are sound, hostile text is harmless, reading makes nothing."""

import csv
import io
import json

import pytest
from tests.cli.shell import Shell

from lakebed.cli.main import COMMANDS

T = "plant.readings"
READING = {
    "tables": ("tables",),
    "info": ("info", T),
    "history": ("history", T),
    "scan": ("scan", T),
    "plan": ("plan", T, "--where", "value > 1"),
    "diff": ("diff", T, "0"),
    "inspect-manifest": ("inspect-manifest", T),
    "doctor": ("doctor", "table", T),
    "resolve": ("resolve", "0" * 32),
    "run": ("run", "pipeline.toml", "--check"),
    "config": ("config", "show"),
    "version": ("version",),
}
CHANGING = {
    "init": ("init", "new", "--schema", "a int"),
    "append": ("append", T, "rows.csv"),
    "commit": ("commit", T),
    "delete": ("delete", T, "--where", "sensor = 'a'"),
    "tag": ("tag", T, "good"),
    "rollback": ("rollback", T, "0"),
    "evolve": ("evolve", T, "--add", "q int"),
    "drop": ("drop", T, "--yes"),
    "catalog": ("catalog", "rebuild"),
}
EVERY = READING | CHANGING
NEEDS_NO_CATALOG = ("config", "version", "init", "run")
HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07",
    "a\nerror: forged",
    "'; drop table lakebed_table; --",
    "../../etc/passwd",
    "\u202egnp.exe",
    "x" * 10_000,
    "\udcff",
    "",
    "-",
    "--help me",
    "%s%n{0}",
)


def adopted(plant: Shell) -> str:
    """The paths that `commit` reads from standard input."""
    path = next(plant.place.glob(f"lakebed/{T}/data/*/*.parquet"))
    (path.parent / "copy.parquet").write_bytes(path.read_bytes())
    return f"{path.parent / 'copy.parquet'}\n"


def test_the_examples_here_cover_each_command() -> None:
    assert set(EVERY) == set(COMMANDS)


@pytest.mark.parametrize("name", EVERY)
def test_json_is_one_document(plant: Shell, name: str) -> None:
    stdin = adopted(plant) if name == "commit" else None
    result = plant.run(*EVERY[name], "--output", "json", stdin=stdin)
    assert result.exit_code == (4 if name == "resolve" else 0), result.output
    assert json.loads(result.stdout) is not None
    assert result.stderr == ""


@pytest.mark.parametrize("name", EVERY)
def test_csv_has_a_header_and_rows_of_its_length(plant: Shell, name: str) -> None:
    stdin = adopted(plant) if name == "commit" else None
    result = plant.run("--output", "csv", *EVERY[name], stdin=stdin)
    header, *rows = csv.reader(io.StringIO(result.stdout))
    assert len(set(header)) == len(header) > 0
    assert rows
    assert {len(row) for row in rows} == {len(header)}


@pytest.mark.parametrize("name", [name for name in EVERY if name not in NEEDS_NO_CATALOG])
def test_without_a_catalog_nothing_is_made(shell: Shell, name: str) -> None:
    for catalog in ("sqlite:///lakebed/catalog.db", "lake", "file:///nowhere/at/all"):
        said = shell.error(*EVERY[name], "--catalog", catalog, stdin="x\n")
        assert "there is no" in said or "needs no rebuilding" in said
        assert list(shell.place.iterdir()) == []


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_refused_in_harmless_lines(plant: Shell, text: str) -> None:
    for given in (
        ("info", "--", text or "-"),
        ("scan", T, "--where", f"sensor = {text}"),
        ("tag", T, "--", text),
        ("rollback", T, "--", text),
        ("evolve", T, "--add", f"{text} wibble"),
        ("append", T, "--", text),
        ("config", "show", "--output", text),
        ("resolve", "--table", text, "--after", "0", "--", text),
    ):
        result = plant.run(*given)
        assert result.exit_code in (2, 6), given
        assert not {"\x1b", "\x07", "\u202e", "\r"} & set(result.output)
        starts = [line.partition(":")[0] for line in result.stderr.splitlines()]
        assert starts in ([], ["error"], ["error", "next"]), given
    assert plant.version() == 1


def test_hostile_data_cannot_steer_a_terminal_through_a_table(shell: Shell) -> None:
    shell.write("rows.json", json.dumps({"s": "\x1b[2J\nforged", "t": "\x9b31m \u202e"}))
    shell.ok("init", "t", "--schema", "s string, t string", "--description", "\x1b[2J")
    shell.ok("append", "t", "rows.json")
    for form in ("table", "json"):
        printed = shell.ok("scan", "t", "--output", form)
        assert not {"\x1b", "\x9b", "\u202e"} & set(printed)
    assert shell.json("scan", "t")[0]["s"] == "\x1b[2J\nforged"
    assert len(shell.ok("scan", "t").splitlines()) == 2
    assert "\x1b" not in shell.ok("info", "t")


@pytest.mark.parametrize("name", [n for n in EVERY if n not in ("tables", "version")])
def test_arguments_that_are_missing_or_too_many_are_usage_errors(shell: Shell, name: str) -> None:
    path = EVERY[name][:2] if name in ("config", "catalog", "doctor") else EVERY[name][:1]
    assert "--help" in shell.error(*path, *(["x"] * 9), "--wibble")
    assert "No such option" in shell.error(*path, "--wibble")
