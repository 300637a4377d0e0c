"""`make demo-table`: a plant of 1,000 sensors writes into one table, and what can go wrong does.

Six chapters, real output: appends and their cost, four processes at once with one of them killed,
the same batch sent twice, a query and its plan, time travel, and the files read without us.
"""

import json
import multiprocessing
import os
import shutil
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

import lakebed

ROWS = 10_000
APPENDS = 60
WRITERS = 4
BATCHES_PER_WRITER = 10
SENSORS = pa.array([f"sensor-{n:04d}" for n in range(1_000)])
START_US = 1_767_225_600_000_000  # 2026-01-01
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("sensor_id", pa.string()),
        ("value", pa.float64()),
        ("status", pa.int32()),
    ]
)


def readings(number: int) -> pa.Table:
    """One batch: ten minutes of readings, the same for the same number."""
    random = np.random.default_rng(number)
    start = START_US + number * 600_000_000
    ts = np.sort(random.integers(0, 600_000_000, ROWS)) + start
    return pa.table(
        {
            "ts": pa.array(ts, pa.timestamp("us", "UTC")),
            "sensor_id": SENSORS.take(pa.array(random.integers(0, 1_000, ROWS))),
            "value": np.round(random.normal(20, 5, ROWS), 2),
            "status": pa.array(random.integers(0, 4, ROWS), pa.int32()),
        }
    )


def main() -> None:
    """Tell the story in a directory of its own."""
    directory = Path(tempfile.mkdtemp(prefix="lakebed-demo-"))
    try:
        story(directory)
    finally:
        if "--keep" in sys.argv:
            print(f"\nThe files are in {directory}")
        else:
            shutil.rmtree(directory)


def story(directory: Path) -> None:
    """All chapters in order."""
    uri = f"sqlite:///{directory}/catalog.db"
    catalog = lakebed.connect(uri)
    table = catalog.create_table("plant.readings", SCHEMA, partition_by=["day(ts)"])
    append(table)
    compete(uri, table)
    repeat(table)
    query(table)
    travel(table)
    without_us(catalog, table, directory)


def chapter(title: str) -> None:
    """A heading."""
    print(f"\n\033[1m{title}\033[0m" if sys.stdout.isatty() else f"\n{title}")


def append(table: lakebed.Table) -> None:
    """Many small commits, each durable when it returns."""
    chapter(f"1. {APPENDS} appends of {ROWS:,} rows, each one durable when it returns")
    batches = [readings(number) for number in range(APPENDS)]
    latencies_ms = []
    for batch in batches:
        started = time.perf_counter()
        table.append(batch)
        latencies_ms.append((time.perf_counter() - started) * 1000)
    first, last = statistics.median(latencies_ms[:20]), statistics.median(latencies_ms[-20:])
    median = statistics.median(latencies_ms)
    print(f"   median {median:.1f} ms; first 20: {first:.1f}, last 20: {last:.1f}")
    metadata = sum(path.stat().st_size for path in Path(table.location, "metadata").iterdir())
    print(f"   metadata written per commit: {metadata / APPENDS:,.0f} bytes")


def work(uri: str, writer: int) -> None:
    """One process of its own: its batches, each with a token."""
    table = lakebed.connect(uri).table("plant.readings")
    for batch in range(BATCHES_PER_WRITER):
        number = 1_000 + writer * BATCHES_PER_WRITER + batch
        table.append(readings(number), token=(f"writer-{writer}", batch))


def compete(uri: str, table: lakebed.Table) -> None:
    """Several processes, one of them killed in the middle and started again."""
    chapter(f"2. {WRITERS} processes append at once; one is killed with SIGKILL and starts over")
    before = table.version
    spawn = multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=work, args=(uri, number)) for number in range(WRITERS)]
    for process in writers:
        process.start()
    while table.version < before + WRITERS * 2:
        time.sleep(0.005)
    victim = writers[0]
    os.kill(victim.pid or 0, signal.SIGKILL)
    victim.join()
    done = table.scan("ts >= '2026-01-07'").count() // ROWS
    print(f"   killed after {done} batches of all writers; it starts again from its first batch")
    again = spawn.Process(target=work, args=(uri, 0))
    again.start()
    for process in [*writers[1:], again]:
        process.join()
    expected = WRITERS * BATCHES_PER_WRITER * ROWS
    rows = table.scan("ts >= '2026-01-07'").count()
    print(f"   rows there: {rows:,}, rows sent: {expected:,}: each batch exactly once")
    assert rows == expected


def repeat(table: lakebed.Table) -> None:
    """A retry by somebody who does not know that the first try worked."""
    chapter("3. The same batch again, as a retry after a lost answer would send it")
    commit = table.append(readings(1_000), token=("writer-0", 0))
    print(f"   version {commit.version} has it; repeated={commit.repeated}, nothing was written")


def query(table: lakebed.Table) -> None:
    """One hour of one sensor, and why it is cheap."""
    chapter("4. One hour of one sensor")
    scan = table.scan(
        "ts >= '2026-01-01 03:00:00' and ts < '2026-01-01 04:00:00' and sensor_id = 'sensor-0042'",
        columns=["ts", "value"],
    )
    print("   " + scan.explain(limit=2).replace("\n", "\n   "))
    print(f"   {scan.count()} rows")


def travel(table: lakebed.Table) -> None:
    """A bad delete, seen and undone."""
    chapter("5. A delete that was a mistake, and the way back")
    good = table.version
    gone = table.delete("status = 3")
    print(f"   deleted: version {gone.version} has {table.scan().count():,} rows")
    print(f"   version {good} still has {table.scan(as_of=good).count():,}")
    table.rollback(good)
    print(f"   rolled back: version {table.version} has {table.scan().count():,} rows")


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


def without_us(catalog: lakebed.Catalog, table: lakebed.Table, directory: Path) -> None:
    """Plain DuckDB on plain files, and a catalog made anew from them."""
    chapter("6. Nothing is locked in")
    files = live_files(Path(table.location))
    print(f"   plain JSON and Parquet list {len(files)} live files; plain DuckDB reads them:")
    top = duckdb.sql(
        "select sensor_id, count(*) as n, round(avg(value), 2) as mean from read_parquet($files) "
        "group by all order by n desc, sensor_id limit 3",
        params={"files": files},
    )
    print("   " + str(top).rstrip().replace("\n", "\n   "))
    rows = table.scan().count()
    catalog.close()
    for path in directory.glob("catalog.db*"):
        path.unlink()
    from lakebed.table.rebuild import rebuild_catalog

    report = rebuild_catalog(f"sqlite:///{directory}/catalog.db")
    restored = lakebed.connect(f"sqlite:///{directory}/catalog.db").table("plant.readings")
    name, version, _ = report.tables[0]
    print(f"   the catalog was deleted and rebuilt from the files: {name} version {version}")
    print(f"   rows before {rows:,}, after {restored.scan().count():,}")


if __name__ == "__main__":
    main()
