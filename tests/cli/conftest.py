"""A directory of its own for each test of the program, with a table in it on demand."""

from pathlib import Path

import pytest
from tests.cli.shell import Shell


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """The program in an empty directory, free of anyone's configuration."""
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("XDG_CONFIG_HOME", "LAKEBED_CATALOG", "LAKEBED_WAREHOUSE", "LAKEBED_OUTPUT"):
        monkeypatch.delenv(name, raising=False)
    return Shell(place)


@pytest.fixture
def plant(shell: Shell) -> Shell:
    """The same with `plant.readings`: version 1 has four rows on two days."""
    shell.write("rows.csv", shell.ROWS)
    shell.write("pipeline.toml", shell.PIPELINE)
    shell.ok("init", "plant.readings", "--like", "rows.csv", "--partition-by", "day(ts)")
    shell.ok("append", "plant.readings", "rows.csv")
    return shell
