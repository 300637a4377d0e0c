"""Hostile bytes are tried in a process of their own, with little memory and little time.

The child says for each file how it ended: `ok`, or the name of the typed error. Whatever else
happens, be it a crash, a hang, hunger for memory or another exception, fails the test.
"""

import contextlib
import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MEMORY_BYTES = 1 << 30  # beyond what the interpreter and its libraries have after import
SECONDS_EACH = 5.0  # of the processor, whoever else uses the machine
SECONDS_ALL = 150.0  # by the clock on the wall, so that a hang is noticed


def confined(
    task: str, files: Sequence[bytes], tmp_path: Path, *, memory_bytes: int = MEMORY_BYTES
) -> list[str]:
    """How a task ended for each file, all of them in one child."""
    for number, data in enumerate(files):
        (tmp_path / f"{number}.bin").write_bytes(data)
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.files.confined", task, str(tmp_path), str(memory_bytes)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        told, complaint = child.communicate(timeout=SECONDS_ALL)
    except subprocess.TimeoutExpired:
        child.kill()
        told, complaint = child.communicate()
        complaint = f"no end in sight after {SECONDS_ALL} seconds. {complaint}"
    lines = [json.loads(line) for line in told.splitlines()]
    assert child.returncode == 0, f"died at file {len(lines)}: {complaint[-2000:]}"
    assert len(lines) == len(files)
    slow = [number for number, line in enumerate(lines) if line["seconds"] > SECONDS_EACH]
    assert not slow, f"files {slow} took more than {SECONDS_EACH} seconds"
    return [line["end"] for line in lines]


def _manifest(data: bytes) -> None:
    from tests.files import manifests

    manifests.decoded_bytes(data, manifests.small_table())


def _table_of(data: bytes) -> tuple[Any, Any, Any]:
    from tests.files import tables

    from lakebed.storage.memory import MemoryStore

    store = MemoryStore()
    store.create("data/x.parquet", data)
    return store, tables.SCHEMA, tables.METADATA


def _adopt(data: bytes) -> None:
    from lakebed.files.footer import adopt
    from lakebed.format.partition import PartitionSpec

    store, schema, _ = _table_of(data)
    adopt(store, "data/x.parquet", schema=schema, spec=PartitionSpec(0))


def _read(data: bytes, *, size_small: int | None = None) -> None:
    from tests.files import tables

    from lakebed.files import data_reader
    from lakebed.format.datafile import ColumnStats, DataFile

    if size_small is not None:
        data_reader._SMALL_FILE_SIZE_BYTES = size_small
    store, schema, metadata = _table_of(data)
    stats = {field.id: ColumnStats(0) for field in schema.fields}
    file = DataFile(
        path="data/x.parquet", row_count=tables.ROW_COUNT, size_bytes=len(data), stats=stats
    )
    batches = list(
        data_reader.read_files(
            store,
            [file],
            metadata=metadata,
            schema=schema,
            columns=None,
            where=tables.bound("value > 1 and sensor_id >= 'a'") if size_small == 0 else None,
        )
    )
    if size_small is None and tables.is_other(batches):
        raise AssertionError("other rows came out than went in")


TASKS: dict[str, Any] = {
    "manifest": _manifest,
    "adopt": _adopt,
    "read": _read,
    "read pushed": lambda data: _read(data, size_small=0),
}


def _main(task: str, place: str, memory_bytes: int) -> None:
    from lakebed.errors import LakebedError

    run = TASKS[task]
    first = True
    for number in range(len(list(Path(place).glob("*.bin")))):
        data = (Path(place) / f"{number}.bin").read_bytes()
        start = time.process_time()
        try:
            if first:
                _warm_up(run, memory_bytes)
                first = False
                start = time.process_time()
            run(data)
            end = "ok"
        except LakebedError as error:
            end = type(error).__name__
        print(json.dumps({"end": end, "seconds": time.process_time() - start}), flush=True)


def _warm_up(run: Any, memory_bytes: int) -> None:
    """Load libraries and start their threads, and only then close the purse."""
    from lakebed.errors import LakebedError

    with contextlib.suppress(LakebedError):
        run(b"PAR1" * 10)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + memory_bytes, used + memory_bytes))


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
