"""The doctor, the rebuild and the configuration tell the truth, by words and by exit code."""

import json
import shutil
from pathlib import Path

import pytest
from tests.cli.shell import Shell

T = "plant.readings"


def test_a_sound_table_is_called_sound(plant: Shell) -> None:
    found = plant.json("doctor", "table", T)
    assert found["ok"] is True
    assert (found["snapshot_count"], found["file_count"], found["problems"]) == (2, 2, [])
    assert "is sound: 2 versions" in plant.ok("doctor", "table", T)


def test_a_missing_file_is_named_with_exit_code_six(plant: Shell) -> None:
    lost = next(Path(f"lakebed/{T}/data").rglob("*.parquet"))
    lost.unlink()
    result = plant.run("doctor", "table", T)
    assert result.exit_code == 6
    assert lost.name in result.stdout
    assert json.loads(plant.run("doctor", "table", T, "--output", "json").stdout)["ok"] is False


def test_leftovers_are_mentioned_and_no_problem(plant: Shell) -> None:
    Path(f"lakebed/{T}/data/left.parquet").write_bytes(b"over")
    assert "1 file that no version lists" in plant.ok("doctor", "table", T)


def test_a_local_directory_is_fit_for_commits(shell: Shell) -> None:
    found = shell.json("doctor", "store", "place")
    assert (found["ok"], found["one_winner"], found["cleaned_up"]) == (True, True, True)
    assert "fit for commits" in shell.ok("doctor", "store", "place")
    assert not [path for path in shell.place.rglob("*") if path.is_file()]


def test_a_store_that_cannot_be_is_an_error(shell: Shell) -> None:
    shell.write("file", "x")
    shell.error("doctor", "store", "file/below", code=5)
    shell.error("doctor", "store", "wibble://x")


def test_a_lost_catalog_comes_back_with_its_tokens_and_tags(plant: Shell) -> None:
    plant.ok("append", T, "rows.csv", "--token", "loader:1")
    plant.ok("tag", T, "good")
    before = plant.json("history", T), plant.rows(), plant.json("tag", T)
    for path in Path("lakebed").glob("catalog.db*"):
        path.unlink()
    assert "no catalog" in plant.error("tables")
    found = plant.json("catalog", "rebuild")
    assert found["tables"] == [{"name": T, "version": 3, "snapshots": 4}]
    assert (plant.json("history", T), plant.rows(), plant.json("tag", T)) == before
    assert plant.json("append", T, "rows.csv", "--token", "loader:1")["repeated"] is True


def test_a_rebuild_leaves_known_tables_alone_and_a_dropped_one_dropped(plant: Shell) -> None:
    plant.ok("init", "gone", "--schema", "a int")
    plant.ok("drop", "gone", "--yes")
    again = plant.json("catalog", "rebuild")
    assert again == {"tables": [], "known": [T], "problems": []}
    assert plant.json("tables") == [{"name": T}]


def test_a_rebuild_reports_what_it_could_not_restore(plant: Shell) -> None:
    plant.ok("init", "broken", "--schema", "a int")
    for path in Path("lakebed/broken/metadata").glob("snap-*"):
        path.write_bytes(b"{")
    shutil.copytree("lakebed", "copy", ignore=shutil.ignore_patterns("catalog.db*"))
    result = plant.run("catalog", "rebuild", "--catalog", "sqlite:///copy/catalog.db")
    assert result.exit_code == 6
    assert "restored plant.readings" in result.stdout
    assert "problem: broken" in result.stdout


def test_a_rebuild_where_no_tables_can_be_makes_nothing(shell: Shell) -> None:
    shell.error("catalog", "rebuild")
    assert list(shell.place.iterdir()) == []


def test_a_copy_of_the_directory_is_the_table(plant: Shell) -> None:
    rows = plant.rows()
    shutil.move("lakebed", "elsewhere")
    assert plant.rows(T, "--catalog", "sqlite:///elsewhere/catalog.db") == rows


def test_the_catalog_comes_from_option_environment_file_and_default(
    plant: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def source() -> str:
        (found,) = (row for row in plant.json("config", "show") if row["name"] == "catalog")
        return f"{found['value']} {found['source']}"

    assert source() == "sqlite:///lakebed/catalog.db default"
    plant.write("lakebed.toml", '[default]\ncatalog = "sqlite:///file.db"\n')
    assert source().startswith("sqlite:///file.db file ")
    monkeypatch.setenv("LAKEBED_CATALOG", "sqlite:///env.db")
    assert source() == "sqlite:///env.db env LAKEBED_CATALOG"
    assert "no catalog at sqlite:///env.db" in plant.error("tables")
    found = plant.json("config", "show", "--catalog", "sqlite:///option.db")
    assert found[0] == {
        "name": "catalog",
        "value": "sqlite:///option.db",
        "source": "option --catalog",
    }
    assert plant.json("tables", "--catalog", "sqlite:///lakebed/catalog.db") == [{"name": T}]


def test_the_warehouse_may_be_elsewhere(shell: Shell) -> None:
    shell.ok("init", "t", "--schema", "a int", "--warehouse", "depot")
    assert Path("depot/t/metadata").is_dir()
    assert Path("lakebed/catalog.db").is_file()


def test_a_bare_path_to_a_database_is_explained(plant: Shell) -> None:
    said = plant.error("tables", "--catalog", "lakebed/catalog.db")
    assert "sqlite:///lakebed/catalog.db" in said
    assert "sqlite:///new.db" in plant.error(
        "init", "t", "--schema", "a int", "--catalog", "new.db"
    )
    assert not Path("new.db").exists()


def test_the_version_is_told_by_command_and_option(shell: Shell) -> None:
    assert shell.json("version")["lakebed"] == shell.ok("--version").split()[1]
