"""A driver killed at any point of a batch leaves each row in the table once, after a restart.

All streams run in one driver. Each is held at a point of its own; when all are there, the driver
and its JVM get SIGKILL. Five more streams run freely, are killed wherever they happen to be, and
again at a random moment of the second life. The third life ends by itself.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.drive_killed import noted_batches
from tests.spark.driving import ROOT

import lakebed
from lakebed.clock import SystemClock
from lakebed.table.table import Table
from lakebed.testing.spark_cluster import JAVA_OPTIONS, Guarded

pytestmark = [
    pytest.mark.spark,
    pytest.mark.crash,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("spark-killed"),
]

COLUMNS = pa.schema([("ts", pa.timestamp("us", "UTC")), ("value", pa.int64())])
BATCH_ROWS = 10
POINTS = {
    "begun": "before anything was written",
    "task": "while a task was running",
    "stored": "between the data files and the swap",
    "swapped": "right after the swap",
    "ended": "after the commit, before Spark noted it",
}
HELD = [
    *(("driver", point) for point in POINTS),
    *(("executors", point) for point in ("task", "stored")),
    *(("format", point) for point in ("task", "stored", "ended")),
]
FREE = ["driver"] * 4 + ["executors"]
FREE_BATCHES_MIN = 42
LAST_LIFE_BATCHES = 5
FREE_PACE = "400 milliseconds"  # so that they leave the processor to the others
SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}
CLOCK = SystemClock()


class Lives:
    """The streams, and the driver that is killed and started again."""

    def __init__(self, place: Path, seed: int) -> None:
        self.place = place
        self.random = Random(seed)
        self.held = [self._query(f"{sink}-{point}", sink, point) for sink, point in HELD]
        self.free = [self._query(f"free-{number}", sink) for number, sink in enumerate(FREE)]

    def _query(self, name: str, sink: str, point: str = "") -> dict[str, Any]:
        home = self.place / name
        uri = f"sqlite:///{home}/lake/catalog.db"
        lakebed.connect(uri).create_table("plant.readings", COLUMNS)
        return {
            "name": name,
            "sink": sink,
            "point": point,
            "pace": "0 seconds" if point else FREE_PACE,
            "batches": 3 if point else None,  # None: it goes on until it is killed
            "catalog": uri,
            "checkpoint": str(home / "checkpoint"),
            "reached": str(home / "reached"),
        }

    def table(self, name: str) -> Table:
        return lakebed.connect(f"sqlite:///{self.place}/{name}/lake/catalog.db").table(
            "plant.readings"
        )

    def noted(self, query: dict[str, Any]) -> int:
        """How many batches Spark knows to have ended."""
        return noted_batches(query["checkpoint"])

    def live(self, number: int, until: Callable[[], bool] | None, *, holds: bool) -> None:
        """One life of the driver: until the condition holds, and then kill -9; or to its end."""
        directory = self.place / f"life-{number}"
        directory.mkdir()
        argument = {"queries": self.left(), "holds": holds, "settings": SETTINGS}
        (directory / "argument").write_text(json.dumps(argument))
        env = {name: os.environ[name] for name in os.environ if not name.startswith("SPARK_")}
        env |= {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
        script = str(ROOT / "tests" / "spark" / "drive_killed.py")
        log = directory / "log"
        guarded = Guarded([sys.executable, script, str(directory)], log=log, env=env)
        try:
            if until is None:
                guarded.wait(300)
                report = directory / "report"
                assert report.exists(), log.read_text(errors="replace")[-6000:]
                assert "error" not in json.loads(report.read_text())["life"], report.read_text()
            else:
                self._wait(until, log)
        finally:
            guarded.stop()

    def _wait(self, until: Callable[[], bool], log: Path) -> None:
        deadline_ms = CLOCK.monotonic_ms() + 300_000
        while not until():
            tail = log.read_text(errors="replace")[-6000:] if log.exists() else ""
            assert not log.with_name("report").exists(), f"the driver has ended:\n{tail}"
            assert CLOCK.monotonic_ms() < deadline_ms, f"it takes too long:\n{tail}"
            CLOCK.sleep_ms(50)

    def left(self) -> list[dict[str, Any]]:
        """The queries that have not written all they should."""
        every = [*self.held, *self.free]
        return [q for q in every if q["batches"] is None or self.noted(q) < q["batches"]]

    def all_held(self) -> bool:
        return all(Path(query["reached"]).exists() for query in self.held)

    def some_more(self) -> Callable[[], bool]:
        """A condition that comes true at a random moment of the next batches."""
        query = self.random.choice(self.free)
        wanted = self.noted(query) + self.random.randint(3, 12)
        delay_ms = self.random.uniform(0, 400)

        def is_time() -> bool:
            if self.noted(query) < wanted:
                return False
            CLOCK.sleep_ms(delay_ms)
            return True

        return is_time

    def end_soon(self) -> None:
        """Let the free ones end by themselves, after some more batches."""
        for query in self.free:
            query["batches"] = max(FREE_BATCHES_MIN, self.noted(query) + LAST_LIFE_BATCHES)


@pytest.fixture(scope="module")
def lives(tmp_path_factory: pytest.TempPathFactory) -> Lives:
    seed = int(os.environ.get("LAKEBED_TEST_SEED", "20261118"))
    print(f"seed {seed}")
    found = Lives(tmp_path_factory.mktemp("killed"), seed)
    found.live(1, found.all_held, holds=True)
    found.live(2, found.some_more(), holds=False)
    found.end_soon()
    found.live(3, None, holds=False)
    return found


def check_once(table: Table, batches_min: int) -> int:
    """Raise unless the table has the rows of so many batches, each once; returns how many."""
    values = sorted(table.scan(columns=["value"]).to_arrow().column("value").to_pylist())
    assert values == list(range(len(values))), "a row is missing or there twice"
    batches, rest = divmod(len(values), BATCH_ROWS)
    assert not rest
    assert batches >= batches_min
    # Spark's source gives no rows in its first batch, which is recorded all the same.
    numbers = [int(s.parameters["stream.batch-id"]) for s in table.history() if s.parameters]
    assert numbers[::-1] == list(range(len(numbers))), "a batch was committed twice, or never"
    return len(numbers)


@pytest.mark.parametrize(("sink", "point"), HELD)
def test_a_driver_killed(lives: Lives, sink: str, point: str) -> None:
    name = f"{sink}-{point}"
    assert Path(lives.place, name, "reached").exists(), f"it was to be killed {POINTS[point]}"
    check_once(lives.table(name), 2)


def test_200_micro_batches_killed_at_random_have_each_row_once(lives: Lives) -> None:
    batches = [check_once(lives.table(query["name"]), FREE_BATCHES_MIN - 1) for query in lives.free]
    assert sum(batches) >= 200


def test_what_the_killed_drivers_left_behind_is_in_no_version(lives: Lives) -> None:
    """Files of killed writers may be there; every file of every version is, and is whole."""
    for query in (*lives.held, *lives.free):
        table = lives.table(query["name"])
        audit = lakebed.connect(query["catalog"]).doctor("plant.readings")
        assert not audit.problems, audit.problems
        assert table.scan().count() == table.current_snapshot().summary.total_rows
