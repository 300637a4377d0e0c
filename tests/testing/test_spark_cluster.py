"""Servers of Spark end for certain: with the block, or with the one who started them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lakebed.clock import SystemClock
from lakebed.errors import UnavailableError
from lakebed.testing.spark_cluster import Guarded, living


def test_what_a_command_started_ends_with_it(tmp_path: Path) -> None:
    command = ["/bin/sh", "-c", "sleep 1000 & echo ready; sleep 1000"]
    guarded = Guarded(command, log=tmp_path / "log", env=os.environ)
    guarded.wait_for("ready")
    assert len(guarded.processes()) >= 3
    guarded.stop()
    assert guarded.processes() == []


def test_a_command_that_ends_is_noticed_with_its_log(tmp_path: Path) -> None:
    guarded = Guarded(["/bin/sh", "-c", "echo no port"], log=tmp_path / "log", env=os.environ)
    try:
        with pytest.raises(UnavailableError, match="no port"):
            guarded.wait_for("ready")
    finally:
        guarded.stop()


def test_servers_end_when_the_one_who_started_them_is_killed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = f"""
import os, pathlib, time
from lakebed.testing.spark_cluster import Guarded
guarded = Guarded(["/bin/sleep", "1357"], log=pathlib.Path({str(log)!r}), env=os.environ)
while not guarded.processes(): pass
print(*(each.pid for each in guarded.processes()), flush=True)
time.sleep(1000)
"""
    starter = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    pids = {int(pid) for pid in starter.stdout.readline().split()}
    assert pids
    starter.send_signal(signal.SIGKILL)
    starter.wait()
    starter.stdout.close()
    clock = SystemClock()
    deadline_ms = clock.monotonic_ms() + 20_000
    while pids & {each.pid for each in living()}:
        assert clock.monotonic_ms() < deadline_ms
        clock.sleep_ms(20)
