"""No history of concurrent writers under faults breaks a law, and a seed tells all of it."""

import os
import random
import subprocess
import sys

import pytest

from lakebed.catalog.memory import MemoryCatalog
from lakebed.testing.faults import Fault
from lakebed.testing.history import Kind, Result
from lakebed.testing.scheduler import Workers
from lakebed.testing.simulate import Tally, describe, main, run_histories
from lakebed.testing.simulate_run import run_history
from lakebed.testing.simulate_setting import Backend, Beginning, draw_setting

CHUNK_COUNT = 10
CHUNK_SIZE = 2_000  # times CHUNK_COUNT: the 20,000 histories of `make test`

LOST = (Fault.REFUSED, Fault.LOST_REQUEST, Fault.LOST_REPLY, Fault.LATE, Fault.LATE_CRASH)
DEATHS = (Fault.CRASH, Fault.CRASH_AFTER)
EXPECTED: list[tuple[str, Fault]] = [
    *(("catalog swap", fault) for fault in (*LOST, *DEATHS, Fault.CLOCK_JUMP)),
    *(("create snapshot", fault) for fault in (*LOST, *DEATHS, Fault.FULL, Fault.CLOCK_JUMP)),
    *(("create data", fault) for fault in (*LOST, *DEATHS, Fault.FULL, Fault.TORN)),
    *(("create definition", fault) for fault in (*LOST[1:], Fault.FULL, Fault.TORN)),
    *(("delete snapshot", fault) for fault in LOST[1:4]),
    *((step, Fault.REFUSED) for step in ("catalog load", "read snapshot", "read definition")),
    *((step, Fault.CRASH) for step in ("catalog load", "read snapshot", "read definition")),
    *((step, Fault.INTERRUPT) for step in ("catalog load", "read snapshot", "create snapshot")),
    ("list", Fault.STALE),
    ("sleep", Fault.CRASH),
]
EXPECTED_OUTCOMES: list[tuple[Kind, Result]] = [
    *((Kind.APPEND, result) for result in Result if result is not Result.IDLE),
    *((Kind.DELETE, result) for result in Result),
    *((kind, Result.COMMITTED) for kind in Kind),
    *((kind, Result.FAILED) for kind in Kind if kind is not Kind.REPLACE),
    *((kind, Result.ABANDONED) for kind in Kind if kind is not Kind.REPLACE),
    *((kind, Result.UNKNOWN) for kind in (Kind.OVERWRITE, Kind.REWRITE, Kind.CREATE)),
]


def assert_sound(tally: Tally) -> None:
    assert not tally.failures, describe(tally.failures[0])


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_a_few_histories_keep_every_law(first: int) -> None:
    assert_sound(run_histories(range(1_000_000 + first, 1_000_000 + first + 50)))


@pytest.mark.simulation
@pytest.mark.parametrize("chunk", range(CHUNK_COUNT))
def test_many_histories_keep_every_law_and_meet_every_fault(chunk: int) -> None:
    tally = run_histories(range(chunk * CHUNK_SIZE, (chunk + 1) * CHUNK_SIZE))
    assert_sound(tally)
    assert tally.history_count == CHUNK_SIZE
    assert [pair for pair in EXPECTED if not tally.faults[pair]] == []
    assert [pair for pair in EXPECTED_OUTCOMES if not tally.outcomes[pair]] == []


def test_same_seed_gives_the_same_trace_and_another_seed_another() -> None:
    workers = Workers()
    first = [run_history(seed, workers).fingerprint for seed in range(20)]
    again = [run_history(seed, workers).fingerprint for seed in reversed(range(20))][::-1]
    workers.close()
    assert first == again
    assert len(set(first)) == 20


@pytest.mark.slow
def test_a_trace_does_not_depend_on_the_process_or_its_hash_seed() -> None:
    code = (
        "from lakebed.testing.simulate_run import run_history\n"
        "from lakebed.testing.scheduler import Workers\n"
        "workers = Workers()\n"
        "print([run_history(seed, workers).fingerprint for seed in range(30)])\n"
    )
    prints = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(prints) == 1


def test_settings_cover_both_backends_and_every_beginning() -> None:
    settings = [draw_setting(random.Random(seed)) for seed in range(500)]
    assert {setting.backend for setting in settings} == set(Backend)
    assert {setting.beginning for setting in settings} == set(Beginning)
    assert {len(setting.orders) for setting in settings} == {2, 3, 4}
    assert {setting.is_whole for setting in settings} == {True, False}
    assert {len(setting.tables) for setting in settings} == {1, 2}


def test_the_command_reports_counters_and_succeeds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--histories", "20", "--seed", "5"]) == 0
    shown = capsys.readouterr().out
    assert "20 histories" in shown
    assert "no broken" in shown
    assert "create snapshot" in shown
    assert "lost-reply" in shown


def test_the_command_shows_the_seed_and_its_trace_and_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_histories(range(50))  # so that the beginnings are made by sound code
    monkeypatch.setattr(MemoryCatalog, "_may_move", lambda self, move: True)
    assert main(["--histories", "200", "--seed", "1"]) == 1
    shown = capsys.readouterr().out
    assert "breaks a law" in shown
    assert "catalog swap" in shown.partition("trace:")[2]
    seed = shown.rpartition("--replay ")[2].strip()
    assert main(["--replay", seed]) == 1
    again = capsys.readouterr().out
    assert shown.partition("trace:")[2].partition("replay:")[0] in again


def test_a_sound_replay_shows_its_trace_and_succeeds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--replay", "7"]) == 0
    shown = capsys.readouterr().out
    assert "begins" in shown
    assert "fingerprint" in shown
