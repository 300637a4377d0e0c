"""What a commit costs, beside a plain file, delta-rs and pyiceberg: all the bounds in one run.

    python bench/commit.py [--quick] [--only appends|flat|writers|plan|import] [--directory DIR]

Only ratios within one run count. Systems take turns append by append, and the old table and the
young one too, so that whatever else the machine does hits all alike.
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from _durable import Synced
from _plan import build, measure_plan
from _processes import run_writers
from _report import Report, arguments, workplace
from _rows import rows
from _writers import Append, delta, iceberg, open_table, ours, plain

import lakebed  # the first import also writes the bytecode that the measured one finds

PARTS = ("appends", "flat", "writers", "plan", "import")
KB = 1024


def main() -> int:
    options = arguments(__doc__ or "", PARTS)
    report = Report("-".join(["commit", *(options.only or ())]), quick=options.quick)
    work = {
        "appends": appends,
        "flat": flat,
        "writers": writers,
        "plan": plan,
        "import": import_time,
    }
    for part in options.only or PARTS:
        with workplace(options.directory) as directory:
            work[part](report, directory)
    return report.finish()


# ------------------------------------------------------------------------------------- appends


@dataclass(slots=True)
class Timed:
    """One system and the time of each of its appends, with and without making it durable."""

    append: Append
    synced: Synced | None  # for a system that does not sync what it writes
    raw_ms: list[float]
    durable_ms: list[float]

    def run(self, number: int) -> None:
        table = rows(number)
        start = time.perf_counter()
        self.append(table)
        spent = (time.perf_counter() - start) * 1000
        self.raw_ms.append(spent)
        self.durable_ms.append(spent + (self.synced.sync_ms() if self.synced else 0))


def appends(report: Report, directory: Path) -> None:
    """Small appends, all systems in turn; which goes first changes from round to round."""
    count = 50 if report.quick else 500
    report.heading(f"{count} appends of 10,000 rows; ms are medians, and only ratios count")
    systems = {
        "plain pyarrow + fsync": Timed(plain(directory / "plain"), None, [], []),
        "lakebed": Timed(ours(directory / "ours"), None, [], []),
        "delta-rs": Timed(delta(directory / "delta"), Synced(directory / "delta"), [], []),
        "pyiceberg": Timed(iceberg(directory / "iceberg"), Synced(directory / "iceberg"), [], []),
    }
    in_turn = list(systems.values())
    for number in range(count):
        turn = number % len(in_turn)
        for system in in_turn[turn:] + in_turn[:turn]:
            system.run(number)
    edge = min(50, count // 2)
    for name, system in systems.items():
        report.add(f"{name}: first {edge}", statistics.median(system.raw_ms[:edge]), "ms")
        report.add(f"{name}: last {edge}", statistics.median(system.raw_ms[-edge:]), "ms")
        report.add(f"{name}: all", statistics.median(system.raw_ms), "ms")
        if system.synced:
            report.add(f"{name}: all, made durable", statistics.median(system.durable_ms), "ms")
    mine = statistics.median(systems["lakebed"].raw_ms)
    floor = statistics.median(systems["plain pyarrow + fsync"].raw_ms)
    report.add("lakebed against plain pyarrow + fsync", mine / floor, "x", at_most=2)
    for name, bound in (("delta-rs", 8), ("pyiceberg", 50)):
        raw = statistics.median(systems[name].raw_ms) / mine
        durable = statistics.median(systems[name].durable_ms) / mine
        report.add(f"{name} against lakebed, not synced against synced", raw, "x")
        report.add(f"{name} against lakebed, both durable", durable, "x", at_least=bound)


# ---------------------------------------------------------------------------------------- flat


def flat(report: Report, directory: Path) -> None:
    """Whether append 5,000 costs what append 100 costs: the old table and young ones in turn.

    Four young tables give four times the samples: a median of 50 says little on a busy machine.
    """
    count, young_count = (500, 1) if report.quick else (5_000, 4)
    late = 50 * young_count
    report.heading(f"Flat: a table at {count:,} appends beside young ones; day(ts), fsync on")
    grown = open_table(directory / "old", ["day(ts)"])
    for number in range(count - late):
        grown.append(rows(number))
    young = [open_table(directory / f"young{n}", ["day(ts)"]) for n in range(young_count)]
    for table in young:
        for number in range(50):
            table.append(rows(number))
    late_ms, early_ms = [], []
    for number in range(late):
        round_number, place = divmod(number, young_count)
        if number % 2:
            late_ms.append(_append_ms(grown, count - late + number))
        early_ms.append(_append_ms(young[place], 50 + round_number))
        if not number % 2:
            late_ms.append(_append_ms(grown, count - late + number))
    ratio = statistics.median(late_ms) / statistics.median(early_ms)
    report.add(f"appends {count - late + 1:,}-{count:,} against 51-100", ratio, "x", at_most=1.25)
    written = sum(f.stat().st_size for f in Path(grown.location, "metadata").iterdir())
    report.add("metadata files written per commit", written / count / KB, "KB", at_most=8)
    size = (directory / "old" / "catalog.db").stat().st_size
    report.add("growth of the SQLite file per commit", size / count / KB, "KB")


def _append_ms(table: "lakebed.Table", number: int) -> float:
    batch = rows(number)
    start = time.perf_counter()
    table.append(batch)
    return (time.perf_counter() - start) * 1000


# ------------------------------------------------------------------------------------- writers


def writers(report: Report, directory: Path) -> None:
    """Many processes on one table, against one process that does all the work."""
    each = 10 if report.quick else 50
    report.heading(f"8 processes x {each} appends to one table, against 1 x {8 * each}")
    crowd = run_writers(directory / "crowd", process_count=8, append_count=each)
    alone = run_writers(directory / "alone", process_count=1, append_count=8 * each)
    table = open_table(directory / "crowd")
    missing = 8 * each - table.current_snapshot().summary.total_files
    report.add("failed appends", crowd.failed_count + alone.failed_count, at_most=0)
    report.add("appends that are not in the table", missing, at_most=0)
    report.add("retries per append", crowd.retry_count / (8 * each))
    report.add("8 processes", crowd.seconds, "s")
    report.add("1 process", alone.seconds, "s")
    report.add("8 processes against 1", crowd.seconds / alone.seconds, "x", at_most=3)


# ---------------------------------------------------------------------------------------- plan


def plan(report: Report, directory: Path) -> None:
    """A query of one hour on large tables; each measured in a process that has read nothing."""
    small, large = (10_000, 100_000) if report.quick else (100_000, 1_000_000)
    report.heading(f"Planning one hour on {small:,} and on {large:,} files, in a fresh process")
    build(directory / "small", small)
    found = _best([measure_plan(directory / "small", small, warm=True) for _ in range(9)])
    report.add(f"{small:,} files: manifests opened", found["manifests_opened"], at_most=2)
    report.add(f"{small:,} files: plan, best of 9", found["plan_ms"], "ms", at_most=50)
    report.add(f"{small:,} files: plan again", found["again_ms"], "ms")
    report.add(f"{small:,} files: files kept", found["file_count"])
    build(directory / "large", large)
    found = _best([measure_plan(directory / "large", large) for _ in range(5)])
    both = found["open_ms"] + found["plan_ms"]
    report.add(f"{large:,} files: manifests opened", found["manifests_opened"], at_most=2)
    report.add(f"{large:,} files: import, open, plan, best of 5", both, "ms", at_most=1000)
    report.add(f"{large:,} files: memory (RSS)", found["rss_mb"], "MB", at_most=1024)
    report.add(f"{large:,} files: plan of the whole table", found["whole_ms"], "ms")
    report.add(f"{large:,} files: memory after it", found["whole_rss_mb"], "MB", at_most=1024)


def _best(tries: list[dict[str, float]]) -> dict[str, float]:
    """The try that the rest of the machine disturbed least."""
    return min(tries, key=lambda each: each["open_ms"] + each["plan_ms"])


# -------------------------------------------------------------------------------------- import


def import_time(report: Report, directory: Path) -> None:
    """How long `import lakebed` takes in a fresh interpreter; pyarrow must not come with it."""
    del directory
    report.heading("Import")
    code = (
        "import sys, time; t = time.perf_counter(); import lakebed;"
        "print((time.perf_counter() - t) * 1000, 'pyarrow' in sys.modules)"
    )
    found = [_output(["-c", code]).split() for _ in range(15)]
    spent = statistics.median(float(ms) for ms, _ in found)
    report.add("import lakebed, median of 15", spent, "ms", at_most=100)
    loaded = sum(text == "True" for _, text in found)
    report.add("runs in which it loaded pyarrow", loaded, at_most=0)


def _output(command: Sequence[str]) -> str:
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=True)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
