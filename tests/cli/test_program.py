"""The program as a shell sees it: help at once and anywhere, stable exit codes, two-line errors."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from lakebed import errors
from lakebed.cli.failure import ExitCode, exit_code
from lakebed.cli.main import COMMANDS, cli
from lakebed.cli.session import Session

HEAVY = ("pyarrow", "rich", "obstore", "msgspec", "numpy", "psycopg")
NESTED = (("doctor", "store"), ("doctor", "table"), ("catalog", "rebuild"), ("config", "show"))
EVERY = [(name,) for name in COMMANDS] + list(NESTED)


def run(*args: Any, **extra: Any) -> Any:
    return subprocess.run(
        [sys.executable, "-m", "lakebed.cli", *args],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **extra,
    )


def test_help_of_each_command_imports_nothing_heavy_and_needs_no_configuration(
    tmp_path: Path,
) -> None:
    (tmp_path / "lakebed.toml").write_text("this is [not toml")
    script = (
        "import sys\nfrom lakebed.cli.main import cli\n"
        f"for path in {[(), *EVERY]!r}:\n"
        "    try:\n        cli.main([*path, '--help'])\n"
        "    except SystemExit as end:\n        assert end.code == 0, (path, end.code)\n"
        f"    assert not [m for m in {HEAVY!r} if m in sys.modules], path\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Usage: ") == len(EVERY) + 1


def test_each_command_of_the_overview_is_there_and_explains_itself() -> None:
    context = click.Context(cli)
    for name in COMMANDS:
        found = cli.get_command(context, name)
        assert found is not None
        assert found.name == name
        assert found.help


def test_exit_codes_are_documented() -> None:
    text = CliRunner().invoke(cli, ["--help"]).output
    for code in ExitCode:
        assert f"{code.value} " in text


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.RequestError("no"), 2),
        (errors.NotFoundError("no"), 2),
        (errors.BadMetadataError("no"), 2),
        (errors.UnsafePathError("no"), 2),
        (errors.ObjectMissingError("no"), 2),
        (errors.UnsafeStoreError("no"), 2),
        (errors.CommitConflictError("no"), 3),
        (errors.CommitUnknownError("no", commit_id="c1"), 4),
        (errors.UnavailableError("no"), 5),
        (errors.StorageError("no"), 5),
        (errors.LakebedError("no"), 1),
    ],
)
def test_each_error_has_its_exit_code(
    error: Any, code: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Session, *, create: bool = False) -> Any:
        raise error

    monkeypatch.setattr(Session, "catalog", fail)
    result = CliRunner().invoke(cli, ["tables"])
    assert result.exit_code == code == exit_code(error)
    assert result.stdout == ""
    assert result.stderr.splitlines()[0] == "error: no"
    assert "Traceback" not in result.stderr


def test_each_class_of_error_has_an_exit_code() -> None:
    for name in errors.__all__:
        expected = 1 if name in ("LakebedError", "CommitError") else None
        code = exit_code(getattr(errors, name)("x"))
        assert code == expected if expected else code in (2, 3, 4, 5)


def test_an_unknown_outcome_names_the_command_that_resolves_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(self: Session, *, create: bool = False) -> Any:
        raise errors.CommitUnknownError("lost", hint="catalog.resolve", commit_id="0123")

    monkeypatch.setattr(Session, "catalog", fail)
    assert "next: lakebed resolve 0123" in CliRunner().invoke(cli, ["tables"]).stderr


def test_the_command_that_resolves_says_what_the_commit_was_to_follow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(self: Session, *, create: bool = False) -> Any:
        raise errors.CommitUnknownError("lost", commit_id="0123", table="a.b", base_version=7)

    monkeypatch.setattr(Session, "catalog", fail)
    shown = CliRunner().invoke(cli, ["tables"]).stderr
    assert "next: lakebed resolve 0123 --table a.b --after 7 tells" in shown


def test_an_error_that_may_pass_says_so_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Session, *, create: bool = False) -> Any:
        raise errors.UnavailableError("refused\n\tIs the server running?")

    monkeypatch.setattr(Session, "catalog", fail)
    shown = CliRunner().invoke(cli, ["tables"]).stderr
    assert shown == "error: refused Is the server running?\nnext: Try again\n"


def test_an_error_cannot_steer_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Session, *, create: bool = False) -> Any:
        raise errors.RequestError("bad \x1b[2J name\nerror: forged", hint="try \x07")

    monkeypatch.setattr(Session, "catalog", fail)
    shown = CliRunner().invoke(cli, ["tables"]).stderr
    assert shown == "error: bad \\x1b[2J name\\nerror: forged\nnext: try \\x07\n"


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Session, *, create: bool = False) -> Any:
        raise errors.RequestError("bad")

    monkeypatch.setattr(Session, "catalog", fail)
    result = CliRunner().invoke(cli, ["tables", "--debug"])
    assert "Traceback" in result.stderr
    assert result.exit_code == 2


@pytest.mark.parametrize(
    "args",
    [["wibble"], ["scan"], ["tables", "--output", "xml"], ["info", "a", "b"], ["--wibble"], []],
)
def test_bad_usage_is_exit_code_two(args: Any) -> None:
    result = CliRunner().invoke(cli, args)
    assert result.exit_code == 2
    assert result.stdout == ""


def test_a_misspelt_command_is_guessed() -> None:
    assert "did you mean history?" in CliRunner().invoke(cli, ["histroy", "x"]).stderr


def test_reading_makes_no_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["info"])
    assert result.exit_code == 2
    assert "lakebed init" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_options_of_the_program_stand_before_or_after_the_command() -> None:
    runner = CliRunner()
    before = runner.invoke(cli, ["--output", "json", "--catalog", "x", "config", "show"])
    after = runner.invoke(cli, ["config", "show", "--catalog", "x", "--output", "json"])
    assert before.output == after.output
    assert '"x"' in before.output
    both = runner.invoke(cli, ["--output", "csv", "config", "show", "--output", "json"])
    assert both.output.startswith("[")


def test_unexpected_errors_take_two_lines_and_exit_code_one() -> None:
    script = (
        "import sys\nfrom lakebed.cli import main, session\n"
        "def fail(self, **_): raise TypeError('oops \\x1b')\n"
        "session.Session.catalog = fail\nsys.argv = ['lakebed', 'tables']\nmain.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == "error: unexpected TypeError: oops \\x1b"
    assert "--debug" in done.stderr.splitlines()[1]
    assert len(done.stderr.splitlines()) == 2


def test_interrupt_is_clean(tmp_path: Path) -> None:
    script = (
        "import sys, time\nfrom lakebed.cli import main, session\n"
        "def wait(self, **_):\n    print('waiting', flush=True)\n    time.sleep(60)\n"
        "session.Session.catalog = wait\nsys.argv = ['lakebed', 'tables']\nmain.main()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, shown = process.communicate(timeout=30)
    assert process.returncode == 130
    assert shown.strip() == "error: interrupted"


def test_a_reader_that_goes_away_ends_the_program_silently() -> None:
    script = (
        "import sys\nfrom lakebed.cli import main, tables, session\n"
        "class Catalog:\n    def tables(self): return [f't{i}' for i in range(200_000)]\n"
        "session.Session.catalog = lambda self, **_: Catalog()\n"
        "sys.argv = ['lakebed', 'tables', *sys.argv[1:]]\nmain.main()\n"
    )
    for form in ("table", "json", "csv"):
        with subprocess.Popen(
            [sys.executable, "-c", script, "--output", form],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.readline()
            process.stdout.close()
            shown = process.stderr.read()
        assert shown == ""
        assert process.returncode == 141


def test_the_program_runs_as_a_module_and_as_a_script() -> None:
    assert run("version").stdout.startswith("lakebed ")
    script = Path(sys.executable).with_name("lakebed")
    if os.access(script, os.X_OK):
        done = subprocess.run([script, "version"], capture_output=True, text=True, check=False)
        assert done.stdout.startswith("lakebed ")
