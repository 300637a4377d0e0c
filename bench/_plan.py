"""Large tables of files that are only described, and a query planned on them in a new process.

python bench/_plan.py DIRECTORY FILE_COUNT      measures; prints JSON
"""

import json
import resource
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

FILE_MINUTES = 5  # each file holds five minutes, so that an hour has twelve
COMMIT_FILE_COUNT = 1_000
START = datetime(2026, 1, 1, tzinfo=UTC)  # as in _rows, which would load pyarrow


def build(directory: Path, file_count: int) -> None:
    """Commit that many files in order of time, a thousand at once; no file is there."""
    from _rows import START_US
    from _writers import open_table

    from lakebed.format.datafile import ColumnStats, DataFile

    table = open_table(directory, ["day(ts)"])
    span_us, day_us = FILE_MINUTES * 60_000_000, 86_400_000_000

    def described(number: int) -> DataFile:
        first = START_US + number * span_us
        return DataFile(
            path=f"data/ts_day={first // day_us}/{number:032x}.parquet",
            row_count=10_000,
            size_bytes=40_000 + number % 1_000,
            partition=(first // day_us,),
            stats={
                1: ColumnStats(0, None, first, first + span_us - 1),
                2: ColumnStats(0, None, "sensor-0000", f"sensor-{990 + number % 10:04d}"),
                3: ColumnStats(0, 0, -10.5 - number % 7, 60.25 + number % 5),
                4: ColumnStats(0, None, 0, 3),
            },
        )

    for start in range(0, file_count, COMMIT_FILE_COUNT):
        numbers = range(start, min(start + COMMIT_FILE_COUNT, file_count))
        table.commit_append([described(number) for number in numbers], verify=False)


def measure_plan(directory: Path, file_count: int, *, warm: bool = False) -> dict[str, float]:
    """Open and plan in a process that has read nothing of the table."""
    command = [sys.executable, __file__, str(directory), str(file_count), *(["warm"] * warm)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _warm_up() -> None:
    from _rows import SCHEMA, rows

    import lakebed

    table = lakebed.connect("memory:").create_table("bench.other", SCHEMA)
    table.append(rows(0, 10))
    assert table.read_plan("ts < '2027-01-01' and ts >= '2026-01-01'").files


def _measure(directory: Path, file_count: int) -> dict[str, float]:
    # The hour begins and ends inside a file, in the middle of the table.
    hour = START + timedelta(minutes=FILE_MINUTES * (file_count // 2) + 2)
    where = f"ts >= '{hour.isoformat()}' and ts < '{(hour + timedelta(hours=1)).isoformat()}'"
    start = time.perf_counter()
    import lakebed

    catalog = lakebed.connect(f"sqlite:///{directory}/catalog.db")
    table = catalog.table("bench.readings")
    opened = time.perf_counter()
    plan = table.read_plan(where)
    kept_count = len(plan.files)
    planned = time.perf_counter()
    table.read_plan(where)
    again = time.perf_counter()
    rss_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    whole = table.read_plan()
    assert whole.file_count == file_count, "no file may be missing from the plan of all"
    ended = time.perf_counter()
    return {
        "open_ms": (opened - start) * 1000,
        "plan_ms": (planned - opened) * 1000,
        "again_ms": (again - planned) * 1000,
        "whole_ms": (ended - again) * 1000,
        "manifests_opened": plan.manifests_opened,
        "file_count": kept_count,
        "rss_mb": rss_mb,
        "whole_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


if __name__ == "__main__":
    if sys.argv[3:] == ["warm"]:
        _warm_up()
    print(json.dumps(_measure(Path(sys.argv[1]), int(sys.argv[2]))))
