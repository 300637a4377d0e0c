"""Tables are made, described, changed and dropped by commands; what is refused makes nothing."""

from pathlib import Path

import pytest
from tests.cli.shell import Shell

TYPES = (
    "b boolean, i int, l long, f float, d double, n decimal(10,2), day date, t time,"
    " ts timestamp, tz timestamptz, tn timestamp_ns, tzn timestamptz_ns, s string, x binary,"
    " x4 fixed[4], many list<int>, some map<string, double>, one struct<a: int, b: string>"
)


def test_the_first_table_makes_the_default_catalog(shell: Shell) -> None:
    made = shell.json("init", "plant.readings", "--schema", "ts timestamptz not null, v double")
    assert Path("lakebed/catalog.db").is_file()
    assert made["columns"] == [
        {"name": "ts", "type": "timestamptz", "required": True},
        {"name": "v", "type": "double", "required": False},
    ]
    assert shell.json("tables") == [{"name": "plant.readings"}]


def test_each_type_that_info_prints_can_be_typed(shell: Shell) -> None:
    shell.ok("init", "a", "--schema", TYPES)
    columns = shell.json("info", "a")["columns"]
    typed = ", ".join(f"{column['name']} {column['type']}" for column in columns)
    assert typed == TYPES.replace("  ", " ")
    shell.ok("init", "b", "--schema", typed)
    assert shell.json("info", "b")["columns"] == columns


def test_a_table_like_a_file_takes_its_rows(plant: Shell) -> None:
    info = plant.json("info", "plant.readings")
    assert [(c["name"], c["type"]) for c in info["columns"]] == [
        ("ts", "timestamptz"),
        ("sensor", "string"),
        ("value", "double"),
    ]
    assert info["partition_by"] == ["day(ts)"]
    assert (info["rows"], info["files"], info["version"]) == (4, 2, 1)
    assert info["time_range"] == {
        "column": "ts",
        "min": "2026-01-01T00:00:00Z",
        "max": "2026-01-02T12:00:00Z",
    }


def test_description_and_properties_are_kept(shell: Shell) -> None:
    given = ("--description", "what sensors say", "--property", "team=plant")
    shell.ok("init", "t", "--schema", "a int", *given)
    info = shell.json("info", "t")
    assert (info["description"], info["properties"]) == ("what sensors say", {"team": "plant"})
    assert "what sensors say" in shell.ok("info", "t")


def test_the_card_of_an_empty_table_claims_no_time(shell: Shell) -> None:
    shell.ok("init", "t", "--schema", "ts timestamptz")
    assert shell.json("info", "t")["time_range"] is None
    assert "None" not in shell.ok("info", "t")


@pytest.mark.parametrize(
    "args",
    [
        ("a b", "--schema", "a int"),
        ("../up", "--schema", "a int"),
        ("t", "--schema", "a wibble"),
        ("t", "--schema", ""),
        ("t",),
        ("t", "--schema", "a int", "--like", "x.csv"),
        ("t", "--like", "nothing.csv"),
        ("t", "--schema", "a int", "--property", "no value"),
    ],
)
def test_a_refused_table_makes_no_catalog(shell: Shell, args: tuple[str, ...]) -> None:
    shell.error("init", *args)
    assert list(shell.place.iterdir()) == []


def test_a_taken_name_is_refused(plant: Shell) -> None:
    assert "already" in plant.error("init", "plant.readings", "--schema", "a int")
    assert plant.version() == 1


def test_info_lists_each_table_with_its_numbers(plant: Shell) -> None:
    plant.ok("init", "b", "--schema", "a int")
    found = plant.json("info")
    assert [(row["name"], row["version"], row["rows"]) for row in found] == [
        ("b", 0, 0),
        ("plant.readings", 1, 4),
    ]
    assert "problem" not in plant.ok("info")


def test_a_damaged_table_does_not_hide_the_others(plant: Shell) -> None:
    plant.ok("init", "broken", "--schema", "a int")
    for path in Path("lakebed/broken/metadata").glob("snap-*"):
        path.write_bytes(b"{")
    result = plant.run("info")
    assert result.exit_code == 6
    assert "plant.readings" in result.stdout
    assert "broken" in result.stdout
    assert "problem" in result.stdout


def test_an_evolution_is_one_commit(plant: Shell) -> None:
    done = plant.json(
        *("evolve", "plant.readings", "--rename", "value=celsius", "--drop", "sensor"),
        *("--add", "quality list<int>", "--property", "team=plant"),
        *("--partition-by", "hour(ts), bucket(4, ts)"),
    )
    assert (done["version"], done["operation"]) == (2, "evolve")
    assert "rename value to celsius" in done["changes"]
    info = plant.json("info", "plant.readings")
    assert [c["name"] for c in info["columns"]] == ["ts", "celsius", "quality"]
    assert info["columns"][2]["type"] == "list<int>"
    assert info["partition_by"] == ["hour(ts)", "bucket(4, ts)"]
    assert info["properties"] == {"team": "plant"}
    assert [row["celsius"] for row in plant.rows()] == [1.5, 2.5, 3.5, None]


def test_evolve_widens_and_takes_settings_back(shell: Shell) -> None:
    shell.ok("init", "t", "--schema", "a int, b float", "--property", "x=1")
    shell.ok("evolve", "t", "--widen", "a long", "--widen", "b double", "--unset", "x")
    info = shell.json("info", "t")
    assert [c["type"] for c in info["columns"]] == ["long", "double"]
    assert info["properties"] == {}


def test_an_empty_partitioning_is_none(plant: Shell) -> None:
    plant.ok("evolve", "plant.readings", "--partition-by", "")
    assert plant.json("info", "plant.readings")["partition_by"] == []


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        ((), "nothing to change"),
        (("--add", "q int not null"), "not null"),
        (("--add", "value int"), "already"),
        (("--drop", "nothing"), "no column"),
        (("--drop", "ts"), "--partition-by"),
        (("--rename", "value"), "OLD=NEW"),
        (("--widen", "value int"), "cannot go from double to int"),
        (("--property", "a=1", "--unset", "a"), "both"),
        (("--partition-by", "wibble(ts)"), "wibble"),
    ],
)
def test_a_refused_evolution_makes_no_version(
    plant: Shell, args: tuple[str, ...], complaint: str
) -> None:
    assert complaint in plant.error("evolve", "plant.readings", *args)
    assert plant.version() == 1


def test_drop_needs_a_yes(plant: Shell) -> None:
    assert "--yes" in plant.error("drop", "plant.readings")
    assert plant.json("tables") == [{"name": "plant.readings"}]
    plant.ok("drop", "plant.readings", "--yes")
    assert plant.json("tables") == []
    assert list(Path("lakebed/plant.readings/data").rglob("*.parquet"))


def test_purge_removes_the_files(plant: Shell) -> None:
    assert plant.json("drop", "plant.readings", "--purge", "--yes")["purged"] is True
    assert not list(Path("lakebed").rglob("*.parquet"))


def test_a_name_that_is_not_there_is_guessed(plant: Shell) -> None:
    assert "Did you mean plant.readings?" in plant.error("info", "plant.reading")
    assert "lakebed tables" in plant.error("info", "zzz")
