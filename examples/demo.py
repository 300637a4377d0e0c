"""`make demo`: a plant of 1,000 sensors streams into a table through Spark, and is killed half-way.

    python examples/demo.py [--short] [--keep] [--report FILE]

The pipeline (examples/pipeline-plant.toml) runs as a process of its own. It is killed with SIGKILL
and started again; then every reading is compared with what the simulated plant has sent. At the
end there is one HTML page with pictures of it all. `--short`: 200 sensors, 4 minutes.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import demo_report
import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

import lakebed
from lakebed.flow.flow import Flow
from lakebed.flow.plant import arrivals
from lakebed.flow.sources import SensorSource
from lakebed.flow.toml import parse_flow
from lakebed.flow.toml_text import flow_text
from lakebed.format.snapshot import Operation

HERE = Path(__file__).resolve().parent
TABLE = "plant.readings"
SHORT: dict[str, Any] = {
    "sensors": 200,
    "seconds": 240,
    "seconds_per_batch": 20,
    "start_ms": 1_772_409_480_000,  # two minutes before midnight
    "silent_sensor": 17,
    "silent_from_second": 60,
}
SILENT_AFTER_SECONDS = 90
# Short lives on few cores: the quick compiler and the simple collector serve a JVM better.
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
console = Console(highlight=False)


def main() -> None:
    """Tell the story in a directory of its own, and write the report."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--short", action="store_true", help="200 sensors, 4 minutes")
    options.add_argument("--keep", action="store_true", help="keep the table")
    options.add_argument("--report", default="build/demo-report.html", type=Path)
    given = options.parse_args()
    started = time.monotonic()
    place = Path(tempfile.mkdtemp(prefix="lakebed-demo-"))
    try:
        demo = Demo(place, plant_flow(place, short=given.short))
        demo.tell()
        seconds = time.monotonic() - started
        given.report.parent.mkdir(parents=True, exist_ok=True)
        given.report.write_text(demo_report.page(demo.facts | {"seconds": seconds}))
    finally:
        if not given.keep:
            shutil.rmtree(place, ignore_errors=True)
    say(f"\nAll of it in {seconds:.0f} s. The pictures: {given.report.resolve().as_uri()}")
    if given.keep:
        say(f"The table: lakebed --catalog {demo.catalog_uri} info {TABLE}")


def plant_flow(place: Path, *, short: bool) -> Flow:
    """The pipeline of the example, shorter if need be, written down in the demo's directory."""
    flow = parse_flow((HERE / "pipeline-plant.toml").read_text(), file="pipeline-plant.toml")
    (plant,) = flow.sources
    assert isinstance(plant, SensorSource)
    if short:
        plant = replace(plant, **SHORT)
    engine = {**flow.engine, "spark.driver.extraJavaOptions": QUICK_JVM}
    flow = replace(flow, sources=(plant,), engine=engine)
    (place / "pipeline.toml").write_text(flow_text(flow))
    return flow


def say(text: str) -> None:
    """A line of the story."""
    console.print(text, soft_wrap=True)


def chapter(title: str) -> None:
    """A heading."""
    console.print(f"\n[bold]{title}[/bold]", soft_wrap=True)


class Demo:
    """The chapters, and the facts they leave for the report."""

    def __init__(self, place: Path, flow: Flow) -> None:
        (plant,) = flow.sources
        assert isinstance(plant, SensorSource)
        assert plant.seconds is not None, "the demo's plant has an end"
        self.place = place
        self.plant = plant
        self.seconds: int = plant.seconds
        self.batches = -(-plant.seconds // plant.seconds_per_batch)
        self.catalog_uri = f"sqlite:///{place}/catalog.db"
        self.metrics = place / "metrics.jsonl"
        self.facts: dict[str, Any] = {"plant": plant}

    def tell(self) -> None:
        """All chapters in order."""
        self.stream_and_kill()
        self.go_on()
        self.check_each_reading()
        self.compact()
        self.query()
        self.travel()
        self.summarise_with_spark()
        self.without_us()
        self.look_back()

    @property
    def table(self) -> lakebed.Table:
        """The table, as this process sees it."""
        return lakebed.connect(self.catalog_uri).table(TABLE)

    # ------------------------------------------------------------------- streaming and killing

    def stream_and_kill(self) -> None:
        """The pipeline as a process of its own, until it is shot."""
        minutes = self.seconds // 60
        chapter(
            f"1. {self.plant.sensors:,} sensors stream {minutes} minutes of readings "
            "into a table, through Spark"
        )
        child = self.start()
        self.watch(child, until=int(self.batches * 0.4))
        time.sleep(self.batch_seconds() * 0.4)  # into the middle of a batch
        os.killpg(child.pid, signal.SIGKILL)
        killed_ms = time.time_ns() // 1_000_000
        child.wait()
        told = [json.loads(line) for line in self.metrics.read_text().splitlines()]
        fastest = max(each["rows_per_second"] for each in told)
        say(f"   {len(told)} batches, up to {fastest:,.0f} rows/s; each batch is one commit.")
        snapshot = self.table.current_snapshot()
        self.facts |= {
            "killed_ms": killed_ms,
            "killed_version": snapshot.version,
            "killed_rows": snapshot.summary.total_rows,
            "killed_digest": digest(self.table.scan().to_arrow()),
        }
        chapter("2. kill -9, in the middle of a batch")
        say(
            f"   The table is at version {snapshot.version}: {snapshot.summary.total_rows:,} rows "
            f"in {snapshot.summary.total_files} files. The batch after it is lost, for now."
        )

    def go_on(self) -> None:
        """The same command again."""
        restarted = time.monotonic()
        child = self.start()
        self.watch(child, until=self.batches)
        if child.wait() != 0:
            sys.exit((self.place / "pipeline.out").read_text())
        took = time.monotonic() - restarted
        told = [json.loads(line) for line in self.metrics.read_text().splitlines()]
        snapshot = self.table.current_snapshot()
        say(
            f"   The same command again: it went on from its checkpoint and was done after "
            f"{took:.0f} s, at version {snapshot.version}."
        )
        self.facts["batches"] = [each for each in told if each["event"] == "batch"]
        self.facts["report"] = told[-1]

    def start(self) -> "subprocess.Popen[bytes]":
        """`lakebed run`, in a group of processes that can be killed as one."""
        program = [sys.executable, "-m", "lakebed.cli", "run", "--quiet"]
        program += [str(self.place / "pipeline.toml"), "--catalog", self.catalog_uri]
        program += ["--metrics", str(self.metrics)]
        with (self.place / "pipeline.out").open("ab") as output:
            return subprocess.Popen(program, stdout=output, stderr=output, start_new_session=True)

    def watch(self, child: "subprocess.Popen[bytes]", *, until: int) -> None:
        """Follow the pipeline's metrics until so many batches are done."""
        bar = Progress(
            SpinnerColumn(),
            BarColumn(),
            TextColumn("{task.description}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        with bar:
            task = bar.add_task("Spark is starting", total=self.batches)
            while child.poll() is None:
                last = self.last_batch()
                if last is not None:
                    done = last["batch"] + 1
                    told = f"{last['rows_per_second']:>9,.0f} rows/s, {done} commits"
                    bar.update(task, completed=done, description=told)
                    if done >= until:
                        break
                time.sleep(0.05)
        if child.poll() not in (None, 0):
            sys.exit((self.place / "pipeline.out").read_text())

    def last_batch(self) -> dict[str, Any] | None:
        """What the pipeline told last."""
        lines = self.metrics.read_text().splitlines() if self.metrics.exists() else []
        told = [json.loads(line) for line in lines[-2:]]
        return next((each for each in reversed(told) if each["event"] == "batch"), None)

    def batch_seconds(self) -> float:
        """How long a batch takes these days."""
        last = self.last_batch()
        return 0.0 if last is None else last["lag_ms"] / 1_000

    # ---------------------------------------------------------------------------------- proving

    def check_each_reading(self) -> None:
        """The table against the plant, reading by reading."""
        sent = late = wrong = 0
        table = self.table
        coverage = np.zeros((self.plant.sensors, -(-self.seconds // 60)), np.int32)
        for first, last in windows(self.seconds, 600):
            # Late readings arrive after their window, so look a little further.
            rows = arrivals(self.plant, first, min(last + 100, self.seconds))
            expected, values = readings_of(rows, self.plant, first, last)
            found = table.scan(window_text(self.plant, first, last)).to_arrow()
            there, there_values = readings_of(found, self.plant, first, last, once=False)
            same = np.array_equal(there, expected) and np.array_equal(there_values, values)
            wrong += int(not same)
            second, sensor = keys(found, self.plant)
            np.add.at(coverage, (sensor, second // 60), 1)
            arrived = pc.less_equal(
                rows["arrived_at"].cast(pa.int64()), moment_us(self.plant, last)
            )
            sent += pc.sum(arrived).as_py()
            delay = pc.subtract(found["arrived_at"], found["ts"]).cast(pa.int64())
            late += pc.sum(pc.greater(delay, 2_000_000)).as_py()
        rows_there = table.scan().count()
        repeats = sent - rows_there
        chapter("3. Every reading is there, exactly once")
        say(f"   sent by the plant   {sent:>11,}")
        say(f"   sent twice          {repeats:>11,}   dropped on the way")
        say(f"   late                {late:>11,}   by up to {self.plant.delay_seconds} s, and kept")
        say(
            f"   in the table        {rows_there:>11,}   compared one by one: "
            + ("no reading is missing, none is double" if not wrong else f"{wrong} WINDOWS DIFFER")
        )
        assert not wrong, "the table is not what the plant sent"
        self.facts |= {"sent": sent, "late": late, "repeats": repeats, "rows": rows_there}
        self.facts["coverage"] = coverage

    # ------------------------------------------------------------------------------ maintaining

    def compact(self) -> None:
        """Small files of a day into large ones, sorted by sensor: the rows stay the same."""
        table = self.table
        before = table.current_snapshot().summary
        self.facts["small_version"] = table.version
        started = time.monotonic()
        # Sorted rows in row groups of this size: one sensor is found without reading the others.
        table.evolve().set_properties({"write.parquet.row-group-limit": "100000"}).commit()
        staging = table.stage()
        task = staging.write_task()
        small, large = list(staging.plan().files), []
        for day in sorted({file.partition for file in small}):
            inside = day_text(day[0])
            rows = (
                table.scan(inside)
                .to_arrow()
                .sort_by([("sensor_id", "ascending"), ("ts", "ascending")])
            )
            large += task.write(rows.schema, rows.to_batches())
        staging.commit(large, removed=small, operation=Operation.REWRITE)
        after = table.current_snapshot().summary
        chapter("4. Small files become large ones")
        say(
            f"   {before.total_files} files of {size(before.total_bytes / before.total_files)} "
            f"become {after.total_files} of {size(after.total_bytes / after.total_files)}, "
            f"sorted by sensor, in {time.monotonic() - started:.1f} s: "
            f"{size(before.total_bytes)} become {size(after.total_bytes)}. Readers notice nothing."
        )
        assert table.scan().count() == self.facts["rows"]
        self.facts["compacted"] = (before.total_files, after.total_files)

    # ---------------------------------------------------------------------------------- reading

    def query(self) -> None:
        """A few minutes of one sensor, before and after the compaction."""
        sensor = f"sensor-{self.plant.sensors // 2:04d}"
        last = min(660, self.seconds)
        where = f"sensor_id = '{sensor}' and {window_text(self.plant, 60, last)}"
        chapter(f"5. {(last - 60) // 60} minutes of {sensor}")
        table = self.table
        small = self.facts["small_version"]
        for name, version in (("small files", small), ("compacted", table.version)):
            took_ms, rows = [], pa.table({})
            for _ in range(5):
                started = time.perf_counter()
                rows = table.scan(where, columns=["ts", "value"], as_of=version).to_arrow()
                took_ms.append((time.perf_counter() - started) * 1_000)
            kept = len(table.read_plan(where, version).files)
            best = f"{min(took_ms):.0f} ms"
            say(f"   {name:<12} {rows.num_rows:>5} rows from {kept:>3} file(s) in {best:>6}")

    def travel(self) -> None:
        """The moment before the kill, still there."""
        version = self.facts["killed_version"]
        then = self.table.scan(as_of=version).to_arrow()
        chapter(f"6. Back to version {version}, just before the kill")
        same = digest(then) == self.facts["killed_digest"]
        say(
            f"   {then.num_rows:,} rows, {'the same as then' if same else 'NOT THE SAME'}: "
            "later commits and the compaction have left it alone."
        )
        assert same

    def summarise_with_spark(self) -> None:
        """A session of Spark in this process: which sensor is silent, and a summary by day."""
        from lakebed import spark as lake

        with warnings.catch_warnings(), stderr_to(self.place / "spark.log"):
            warnings.simplefilter("ignore")  # pyspark does not know pandas 3 yet
            session = lake.session(
                "local[2]",
                **{
                    "spark.sql.shuffle.partitions": "2",
                    "spark.driver.extraJavaOptions": QUICK_JVM,
                },
            )
        lake.read(session, self.table).createOrReplaceTempView("readings")
        silent = session.sql(
            "with last as (select sensor_id, max(ts) as seen from readings group by 1), "
            "newest as (select max(seen) as now from last) "
            "select sensor_id, date_format(seen, 'HH:mm:ss') as seen, "
            "unix_seconds(now) - unix_seconds(seen) as silent_seconds from last, newest "
            f"where unix_seconds(now) - unix_seconds(seen) > {SILENT_AFTER_SECONDS} order by 1"
        ).collect()
        chapter("7. Who is silent? Spark asks the table")
        for row in silent:
            say(
                f"   {row.sensor_id} was last heard at {row.seen}, {row.silent_seconds:,} s ago; "
                f"the other {self.plant.sensors - len(silent)} are well."
            )
        self.facts["silent"] = [(row.sensor_id, row.seen, row.silent_seconds) for row in silent]
        daily = session.sql(
            "select to_date(ts) as day, count(*) as readings, count(distinct sensor_id) as "
            "sensors, round(min(value), 2) as low, round(avg(value), 2) as mean, "
            "round(max(value), 2) as high, sum(status) as alarms from readings group by 1"
        )
        lake.write(daily, "plant.daily", catalog=self.catalog_uri, mode="overwrite")
        session.stop()
        rows = lakebed.connect(self.catalog_uri).table("plant.daily").scan().to_arrow().to_pylist()
        chapter("8. A summary by day, written by Spark to plant.daily")
        say("   day           readings  sensors     low    mean    high   alarms")
        for row in sorted(rows, key=lambda each: each["day"]):
            say(
                f"   {row['day']}  {row['readings']:>10,}  {row['sensors']:>7,}  "
                f"{row['low']:>6.2f}  {row['mean']:>6.2f}  {row['high']:>6.2f}  {row['alarms']:>7,}"
            )
        assert sum(row["readings"] for row in rows) == self.facts["rows"]
        self.facts["daily"] = rows

    def without_us(self) -> None:
        """Plain DuckDB on plain Parquet, found with a JSON parser."""
        files = live_files(Path(self.table.location))
        query = (
            "select count(*), count(distinct sensor_id), strftime(max(ts), '%Y-%m-%d %H:%M:%S') "
            "from read_parquet($files)"
        )
        rows, sensors, newest = duckdb.sql(query, params={"files": files}).fetchall()[0]
        chapter("9. Plain DuckDB reads the same files, without us")
        say(
            f"   {rows:,} rows of {sensors:,} sensors up to {newest}, "
            f"from {len(files)} Parquet files"
        )
        assert rows == self.facts["rows"]

    def look_back(self) -> None:
        """What the report draws of the history."""
        self.facts["history"] = [
            {
                "version": each.version,
                "time_ms": each.timestamp_ms,
                "operation": str(each.operation),
                "files": each.summary.total_files,
                "bytes": each.summary.total_bytes,
                "rows": each.summary.total_rows,
            }
            for each in reversed(self.table.history())
        ]


# ------------------------------------------------------------------------------------- arithmetic


def windows(seconds: int, width: int) -> list[tuple[int, int]]:
    """The plant's time in pieces."""
    return [(first, min(first + width, seconds)) for first in range(0, seconds, width)]


def window_text(plant: SensorSource, first: int, last: int) -> str:
    """Readings of some seconds, as a predicate."""
    low, high = (plant.start_ms // 1_000 + second for second in (first, last))
    return f"ts >= '{instant(low)}' and ts < '{instant(high)}'"


def day_text(day: int) -> str:
    """Readings of a day, given as its number since 1970."""
    return f"ts >= '{instant(day * 86_400)}' and ts < '{instant((day + 1) * 86_400)}'"


def instant(seconds: int) -> str:
    """Seconds since 1970 as text."""
    return f"{np.datetime64(seconds, 's')}Z"


def keys(rows: pa.Table, plant: SensorSource) -> tuple[np.ndarray, np.ndarray]:
    """Which second and which sensor each row is of."""
    ts = rows["ts"].cast(pa.int64()).to_numpy()
    names = pc.utf8_slice_codeunits(rows["sensor_id"], len("sensor-"))
    return (ts // 1_000 - plant.start_ms) // 1_000, names.cast(pa.int64()).to_numpy()


def readings_of(
    rows: pa.Table, plant: SensorSource, first: int, last: int, *, once: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """The readings of some seconds, numbered and in order, and their values; repeats `once`."""
    second, sensor = keys(rows, plant)
    inside = (second >= first) & (second < last)
    number = (second * plant.sensors + sensor)[inside]
    values = rows["value"].to_numpy()[inside]
    if once:
        number, places = np.unique(number, return_index=True)
        return number, values[places]
    order = np.argsort(number, kind="stable")
    return number[order], values[order]


def moment_us(plant: SensorSource, second: int) -> int:
    """A second of the plant's time, in microseconds since 1970."""
    return (plant.start_ms + second * 1_000) * 1_000


def digest(rows: pa.Table) -> tuple[int, float, int]:
    """Enough to tell whether two results are the same rows."""
    ts = rows["ts"].cast(pa.int64()).to_numpy()
    mixed = np.bitwise_xor.reduce(ts * 31 + (rows["value"].to_numpy() * 1_000).astype(np.int64))
    return rows.num_rows, round(pc.sum(rows["value"]).as_py(), 3), int(mixed)


@contextmanager
def stderr_to(path: Path) -> Iterator[None]:
    """What a JVM that is started here prints goes to a file."""
    saved = os.dup(2)
    with path.open("ab") as log:
        os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


def size(size_bytes: float) -> str:
    """1.2 MB."""
    return f"{size_bytes / 1e6:.1f} MB" if size_bytes >= 1e6 else f"{size_bytes / 1e3:.0f} KB"


def live_files(root: Path) -> list[str]:
    """The files of the newest version, found with a JSON parser and DuckDB alone."""
    newest = max(root.glob("metadata/snap-*.json"))
    paths = []
    for manifest in json.loads(newest.read_text())["lakebed"]["manifest_list"]:
        entries = manifest.get("entries", [])  # the newest few are inside the snapshot
        paths += [e["file"]["path"] for e in entries if not e.get("removed_version")]
        if "path" in manifest:
            query = "select path from read_parquet($file) where removed_version = 0"
            params = {"file": str(root / manifest["path"])}
            paths += [path for (path,) in duckdb.sql(query, params=params).fetchall()]
    return [str(root / path) for path in paths]


if __name__ == "__main__":
    main()
