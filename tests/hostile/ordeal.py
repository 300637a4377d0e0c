"""Everything a user may do to a table, done to a hostile one in a process with little memory."""

import hashlib
import json
import os
import resource
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from tests.hostile.site import NAME, rows, uri_of

import lakebed
from lakebed.errors import LakebedError
from lakebed.table.audit import Audit
from lakebed.table.catalog import Catalog

MEMORY_BYTES = 3 << 29  # 1.5 GiB beyond what the interpreter has when it starts
SECONDS_EACH = 10.0
_LOOKED_INTO_SIZE_BYTES_MAX = 1 << 24

Operation = Callable[[Catalog], object]

READS: dict[str, Operation] = {
    "scan": lambda c: c.table(NAME).scan().to_arrow(),
    "filter": lambda c: c.table(NAME).scan("n >= 62 and sensor_id = 's2'").to_arrow(),
    "count": lambda c: c.table(NAME).scan("n < 10").count(),
    "past": lambda c: c.table(NAME).scan(as_of="good").to_arrow(),
    "plan": lambda c: c.table(NAME).read_plan("n = 5").files,
    "changes": lambda c: c.table(NAME).changes(4).added.to_arrow(),
    "history": lambda c: c.table(NAME).history(),
    "snapshots": lambda c: c.table(NAME).inspect.snapshots(),
    "files": lambda c: c.table(NAME).inspect.files(),
    "manifests": lambda c: c.table(NAME).inspect.manifests(),
    "partitions": lambda c: c.table(NAME).inspect.partitions(),
    "doctor": lambda c: c.doctor(NAME),
}
WRITES: dict[str, Operation] = {
    "append": lambda c: c.table(NAME).append(rows(80, 1)),
    "token": lambda c: c.table(NAME).append(rows(60, 4), token=("app", 1)),
    "overwrite": lambda c: c.table(NAME).overwrite(rows(63, 1), where="n = 63"),
    "delete": lambda c: c.table(NAME).delete("n = 62"),
    "rollback": lambda c: c.table(NAME).rollback("good"),
    "evolve": lambda c: c.table(NAME).evolve().add_column("more", "long").commit(),
    "tag": lambda c: c.table(NAME).tag("better"),
    "drop": lambda c: c.drop_table(NAME, purge=True),
}
ALL = READS | WRITES


def undergo(place: Path, kind: str) -> None:
    """Try each operation, and tell how it ended; runs in a process of its own."""
    _warm_up()
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES, used + MEMORY_BYTES))
    ends = {}
    for name, operation in ALL.items():
        before = fingerprint(place)
        start = time.monotonic()
        end = _end_of(operation, uri_of(place, kind))
        if time.monotonic() - start > SECONDS_EACH:
            end += " after too long a time"
        if end != "ok" and fingerprint(place) != before:
            end += " and something changed"
        ends[name] = end
    place.with_suffix(".ends").write_text(json.dumps(ends))
    os._exit(0)


def _end_of(operation: Operation, uri: str) -> str:
    try:
        with lakebed.connect(uri) as catalog:
            result = operation(catalog)
    except LakebedError as error:
        return type(error).__name__
    except BaseException as error:  # noqa: BLE001 - whatever it is, the test shall see it
        return f"UNTYPED {type(error).__name__}: {error}"[:500]
    return "problems" if isinstance(result, Audit) and not result.ok else "ok"


def _warm_up() -> None:
    """Load libraries and start their threads, and only then close the purse."""
    with lakebed.connect("memory:") as catalog:
        table = catalog.create_table("warm.up", rows(0, 0).schema)
        table.append(rows(0, 2))
        assert pa.table(table).num_rows == 2


def fingerprint(place: Path) -> str:
    """All that is in the warehouse: names, kinds and content, no link followed.

    The journals of the database come and go, and are not looked at.
    """
    whole = hashlib.sha256()
    for directory, directories, files in os.walk(place / "warehouse"):
        directories.sort()
        for name in sorted((*directories, *files)):
            path = Path(directory) / name
            info = path.lstat()
            if name.startswith("catalog.db-"):
                continue
            whole.update(f"{path} {info.st_mode} {info.st_size} ".encode())
            if stat.S_ISREG(info.st_mode) and info.st_size < _LOOKED_INTO_SIZE_BYTES_MAX:
                whole.update(path.read_bytes())
    return whole.hexdigest()
