"""Several processes that append to one table from the same moment on."""

import multiprocessing
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _rows import rows
from _writers import open_table

import lakebed

WAIT_S_MAX = 600


@dataclass(frozen=True, slots=True)
class Crowd:
    """What became of a crowd's appends."""

    seconds: float
    failed_count: int
    retry_count: int


def run_writers(directory: Path, *, process_count: int, append_count: int) -> Crowd:
    """Let processes make so many appends each; timed from the first start to the last end."""
    open_table(directory)
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(process_count + 1)
    results: Any = context.Queue()
    processes = [
        context.Process(target=_write, args=(directory, number, append_count, barrier, results))
        for number in range(process_count)
    ]
    for process in processes:
        process.start()
    barrier.wait(WAIT_S_MAX)
    start = time.perf_counter()
    found = [results.get(timeout=WAIT_S_MAX) for _ in processes]
    seconds = time.perf_counter() - start
    for process in processes:
        process.join(WAIT_S_MAX)
    return Crowd(seconds, sum(failed for failed, _ in found), sum(again for _, again in found))


def _write(directory: Path, number: int, append_count: int, barrier: Any, results: Any) -> None:
    table = open_table(directory)
    batches = [rows(number * append_count + place) for place in range(append_count)]
    failed_count = retry_count = 0
    barrier.wait(WAIT_S_MAX)
    for batch in batches:
        try:
            retry_count += table.append(batch).attempts - 1
        except lakebed.LakebedError as error:
            print(f"process {number}: {error!r}")
            failed_count += 1
    results.put((failed_count, retry_count))
