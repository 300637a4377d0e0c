"""In a real process: progress is seen on a terminal and nowhere else, and each end is clean."""

import ctypes
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.shell import Shell

T = "plant.readings"
pytestmark = pytest.mark.slow
PROGRAM = (sys.executable, "-m", "lakebed.cli")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_terminal(*args: str, stdout: Path | None = None, **env: str) -> tuple[int, str]:
    """Run with a terminal of 80 columns for stderr, and for stdout too unless that is a file."""
    ours, theirs = pty.openpty()
    settings = {**os.environ, "TERM": "xterm", "COLUMNS": "80", **env}
    out = theirs if stdout is None else os.open(stdout, os.O_WRONLY | os.O_CREAT)
    process = subprocess.Popen(
        [*PROGRAM, *args], stdin=theirs, stdout=out, stderr=theirs, env=settings
    )
    os.close(theirs)
    if stdout is not None:
        os.close(out)
    shown = b""
    while True:
        ready, _, _ = select.select([ours], [], [], 60)
        try:
            data = os.read(ours, 1 << 16) if ready else b""
        except OSError:  # Linux: the other side is closed
            data = b""
        if not data:
            break
        shown += data
    os.close(ours)
    return process.wait(60), shown.decode()


@pytest.fixture(name="many")
def _many(plant: Shell) -> Shell:
    """The table with 200 rows more."""
    line = "2026-01-03T00:00:00Z,c,1\n"
    plant.write("many.csv", "ts,sensor,value\n" + line * 200)
    plant.ok("append", T, "many.csv")
    return plant


def test_a_terminal_gets_a_drawn_table_cut_to_a_hundred_rows(many: Shell) -> None:
    code, shown = on_terminal("scan", T)
    assert code == 0
    assert "───" in shown
    assert "first 100 rows" in shown
    assert len(_ESCAPES.sub("", shown).splitlines()) == 100 + 3
    _, all_of_it = on_terminal("scan", T, "--limit", "204")
    assert "first 100 rows" not in all_of_it
    assert len(all_of_it.splitlines()) == 204 + 2


def test_colour_is_left_out_when_asked(plant: Shell) -> None:
    assert "\x1b[1m" in on_terminal("info", T)[1]
    assert "\x1b" not in on_terminal("info", T, NO_COLOR="1")[1]
    assert "\x1b" not in on_terminal("info", T, "--no-color")[1]
    assert "\x1b" not in on_terminal("info", T, TERM="dumb")[1]


def test_history_on_a_terminal_shows_the_newest_fifty(plant: Shell) -> None:
    for number in range(52):
        plant.ok("tag", T, f"t{number}")
    _, shown = on_terminal("history", T)
    assert "newest 50 versions" in shown
    assert len(plant.json("history", T)) == 54


def test_progress_is_on_the_terminal_and_the_report_in_the_file(many: Shell) -> None:
    out = many.place / "out.csv"
    code, shown = on_terminal("scan", T, "--output", "csv", stdout=out)
    assert code == 0
    assert "scan of plant.readings" in shown
    assert "2026-01-03" not in shown
    lines = out.read_text().splitlines()
    assert (lines[0], len(lines)) == ("ts,sensor,value", 205)


def test_an_append_shows_what_it_reads_unless_it_shall_be_quiet(plant: Shell) -> None:
    out = plant.place / "out.json"
    _, shown = on_terminal("append", T, "rows.csv", "--output", "json", stdout=out)
    assert "write to plant.readings" in shown
    assert json.loads(out.read_text())["added_rows"] == 4
    _, shown = on_terminal("append", T, "rows.csv", "--quiet")
    assert shown == ""


def test_a_pipe_sees_no_progress(plant: Shell) -> None:
    done = subprocess.run(
        [*PROGRAM, "append", T, "rows.csv"], capture_output=True, text=True, check=False
    )
    assert (done.stderr, done.returncode) == ("", 0)
    assert "\x1b" not in done.stdout


def test_an_interrupted_append_commits_nothing_and_says_how_to_know(plant: Shell) -> None:
    os.mkfifo("pipe.csv")
    with (
        subprocess.Popen(
            [*PROGRAM, "append", T, "pipe.csv"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
        Path("pipe.csv").open("w") as pipe,
    ):  # returns when the program opens its side
        pipe.write("ts,sensor,value\n2026-01-01T00:00:00Z,a,1\n")
        pipe.flush()
        process.send_signal(signal.SIGINT)
        out, shown = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert shown.endswith(f"next: lakebed history {T} tells whether it was committed\n")
    assert shown.split("\n")[:2] == ["", "error: interrupted"]  # below the ^C of a terminal
    assert "Traceback" not in shown
    assert plant.version() == 1


def test_a_named_pipe_is_read_once_and_whole(plant: Shell) -> None:
    os.mkfifo("pipe.csv")
    with subprocess.Popen([*PROGRAM, "append", T, "pipe.csv"], stdout=subprocess.PIPE) as process:
        with Path("pipe.csv").open("w") as pipe:
            pipe.write("ts,sensor,value\n")
            pipe.writelines("2026-01-01T00:00:00Z,a,1\n" for _ in range(100_000))
        process.communicate(timeout=60)
    assert process.returncode == 0
    assert plant.json("scan", T, "--count") == {"count": 100_004}


def test_a_reader_that_leaves_ends_a_scan_silently(many: Shell) -> None:
    line = "2026-01-03T00:00:00Z,c,1\n"
    many.write("most.csv", "ts,sensor,value\n" + line * 50_000)
    many.ok("append", T, "most.csv")
    for form in ("table", "json", "csv"):
        with subprocess.Popen(
            [*PROGRAM, "scan", T, "--output", form],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.readline()
            process.stdout.close()
            assert process.stderr.read() == ""
        assert process.returncode == 141


def test_a_full_disk_under_the_report_is_an_error(plant: Shell) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*PROGRAM, "scan", T], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 5
    assert done.stderr == "error: the report cannot be written: No space left on device\n"


def _give_up_privilege() -> None:
    """Let modes of files count for root too: drop CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH."""
    for capability in (1, 2):
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)


def test_a_directory_that_is_read_only_can_be_read_and_not_changed(plant: Shell) -> None:
    def run(*args: str) -> tuple[int, str]:
        done = subprocess.run(
            [*PROGRAM, *args],
            preexec_fn=_give_up_privilege,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout + done.stderr

    places = [Path("lakebed"), *Path("lakebed").rglob("*")]
    for place in places:
        place.chmod(place.stat().st_mode & ~0o222)
    found = [run("scan", T, "--count"), run("append", T, "rows.csv"), run("tag", T, "x")]
    for place in places:
        place.chmod(place.stat().st_mode | 0o200)
    assert found[0] == (0, "4\n")
    for code, said in found[1:]:
        assert code in (2, 5)
        assert said.startswith("error: ")
    assert plant.version() == 1


def test_a_catalog_that_cannot_be_made_is_one_error(shell: Shell) -> None:
    said = shell.error("init", "t", "--schema", "a int", "--catalog", "sqlite:////proc/x/c.db")
    assert "cannot be created" in said


def test_closed_streams_are_no_reason_to_fail(plant: Shell) -> None:
    call = " ".join([*PROGRAM, "append", T, "rows.csv", "<&- >&- 2>&-"])
    assert subprocess.run(call, shell=True, check=False).returncode == 0
    assert plant.version() == 2
