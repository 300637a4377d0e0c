"""Spark gets the Java that is named, else the one on PATH, else the one from a wheel."""

import os
import subprocess
from pathlib import Path

import pytest

from lakebed.errors import RequestError
from lakebed.spark.java import ensure_java

SAYS_SO = "#!/bin/sh\necho 'openjdk 17' >&2\n"
SELLS_ONE = "#!/bin/sh\necho 'No Java runtime present, requesting install.' >&2\nexit 1\n"


def put_java(home: Path, text: str = SAYS_SO) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(text)
    java.chmod(0o755)
    return java


def test_java_home_is_taken_as_it_is(tmp_path: Path) -> None:
    put_java(tmp_path)
    variables = {"JAVA_HOME": str(tmp_path), "PATH": ""}
    assert ensure_java(variables) == str(tmp_path)
    assert variables == {"JAVA_HOME": str(tmp_path), "PATH": ""}


def test_a_java_home_without_java_is_refused_with_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"JAVA_HOME is .* Install a Java"):
        ensure_java({"JAVA_HOME": str(tmp_path)})


def test_a_java_on_path_needs_no_variable(tmp_path: Path) -> None:
    put_java(tmp_path)
    variables = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}
    assert ensure_java(variables) == ""
    assert "JAVA_HOME" not in variables


@pytest.mark.parametrize("has_decoy", [True, False])
def test_without_a_java_that_runs_the_one_of_the_wheel_is_taken(
    tmp_path: Path, *, has_decoy: bool
) -> None:
    if has_decoy:
        put_java(tmp_path / "decoy", SELLS_ONE)
    variables = {"PATH": str(tmp_path / "decoy" / "bin"), "HOME": str(tmp_path)}
    home = Path(ensure_java(variables))
    assert variables["JAVA_HOME"] == str(home)
    assert home.is_relative_to(tmp_path / ".cache" / "lakebed")
    # The argument that Spark always gives, and that this Java would refuse.
    ask = [str(home / "bin" / "java"), "--add-modules=jdk.incubator.vector", "-version"]
    answer = subprocess.run(ask, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert "openjdk version" in answer.stderr


def test_the_wheels_java_is_found_again_and_its_script_mended(tmp_path: Path) -> None:
    variables = {"PATH": "", "XDG_CACHE_HOME": str(tmp_path)}
    script = Path(ensure_java(dict(variables))) / "bin" / "java"
    good = script.read_text()
    script.write_text("broken")
    ensure_java(dict(variables))
    assert script.read_text() == good
    assert os.listdir(script.parent) == ["java"]
