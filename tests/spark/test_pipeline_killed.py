"""`lakebed run` killed with SIGKILL, driver and JVM at once, goes on and has each row once."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.spark.pipelines import Site

from lakebed.flow.plant import arrivals
from lakebed.flow.sources import SensorSource
from lakebed.flow.toml import read_flow

pytestmark = [pytest.mark.spark, pytest.mark.crash]

SECONDS = 300
PIPELINE = f"""
name = "plant"
checkpoint = "checkpoint"
catalog = "sqlite:///lake/catalog.db"

[source]
kind = "sensors"
sensors = 50
seconds = {SECONDS}
seconds_per_batch = 10

[[sink]]
table = "plant.readings"

[[sink]]
table = "plant.copy"

[spark]
master = "local[2]"
driver.extraJavaOptions = "-XX:TieredStopAtLevel=1"
"""
ORDER = [("arrived_at", "ascending"), ("sensor_id", "ascending"), ("ts", "ascending")]


def start(site: Site, *more: str) -> "subprocess.Popen[str]":
    program = [sys.executable, "-m", "lakebed.cli", "run", str(site.root / "plant.toml"), *more]
    return subprocess.Popen(
        program,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # the JVM belongs to it too
    )


def wait_for_version(site: Site, version: int, child: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + 200
    newest = site.root / "lake" / "plant.copy" / "metadata"
    while not any(newest.glob(f"snap-{version:020d}-*")):
        assert child.poll() is None, child.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_killed_pipeline_goes_on_and_each_row_is_there_once(tmp_path: Path) -> None:
    site = Site(tmp_path)
    (site.root / "plant.toml").write_text(PIPELINE)
    metrics = site.root / "metrics.jsonl"
    child = start(site)
    wait_for_version(site, 3, child)
    os.killpg(child.pid, signal.SIGKILL)
    child.communicate()
    killed_at = site.table("plant.copy").version
    # A snapshot's file is there before the swap: the kill may fall between the two.
    assert 2 <= killed_at < 30

    done = start(site, "--metrics", str(metrics), "--output", "json")
    report, lines = done.communicate(timeout=250)
    assert done.returncode == 0, lines
    assert json.loads(report)["stopped_by"] == "end"
    told = [json.loads(line) for line in metrics.read_text().splitlines()]
    assert [each["event"] for each in told] == ["batch"] * (len(told) - 1) + ["end"]
    assert told[-1]["versions"] == {"plant.readings": 30, "plant.copy": 30}
    assert "Exception" not in lines
    (plant,) = read_flow(site.root / "plant.toml").sources
    assert isinstance(plant, SensorSource)
    expected = arrivals(plant, 0, SECONDS).sort_by(ORDER)
    for name in ("plant.readings", "plant.copy"):
        found = site.table(name).scan().to_arrow().sort_by(ORDER)
        assert found.equals(expected.cast(found.schema)), name
