"""What is in examples/ runs, and says what it promises."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lakebed.flow.toml import parse_flow, read_flow
from lakebed.flow.toml_text import flow_text

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
PROGRAMS = {  # each example with its arguments, and a pattern that its output must have
    "demo_table.py": ([], r"rows before 1,000,000, after 1,000,000"),
    "demo.py": (["--short"], r"no reading is missing, none is double"),
    "pipeline_files.py": ([], r"360 good readings"),
}
PIECES = {"demo_charts.py", "demo_report.py"}  # imported by the demo
ON_SPARK = {"demo.py", "pipeline_files.py"}


def marked(name: str) -> object:
    spark = [pytest.mark.spark, pytest.mark.crash, pytest.mark.timeout(600)]
    marks = spark if name in ON_SPARK else [pytest.mark.slow]
    return pytest.param(name, marks=marks)


def test_each_example_is_run_here() -> None:
    found = {path.name for path in EXAMPLES.glob("*.py")}
    assert found == set(PROGRAMS) | PIECES


@pytest.mark.parametrize("name", [marked(name) for name in PROGRAMS])
def test_an_example_runs_to_its_end(name: str, tmp_path: Path) -> None:
    arguments, said = PROGRAMS[name]
    if name == "demo.py":
        arguments = [*arguments, "--report", str(tmp_path / "report.html")]
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=590,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(said, done.stdout), done.stdout
    assert "\x1b" not in done.stdout  # plain text where there is no terminal
    if name == "demo.py":
        check_report((tmp_path / "report.html").read_text())


def check_report(page: str) -> None:
    """One file that needs no other, with a picture for each chapter."""
    assert page.count("<svg") == 5
    assert not re.search(r"<script|<link|<img|https?://|url\(", page)
    assert "NaN" not in page
    assert "prefers-color-scheme: dark" in page


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.name)
def test_a_pipeline_of_the_examples_is_sound(path: Path) -> None:
    flow = read_flow(path)
    assert parse_flow(flow_text(flow)) == flow
