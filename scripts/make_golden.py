"""Make the golden tables of a format version: once, and never again.

    .venv/bin/python scripts/make_golden.py

They are committed under tests/golden/v<format version>, and each later Lakebed must read them. What
must be read is not taken from the reader: each step says the rows that the table has after it, and
nothing is kept unless a scan agrees. Clock and ids are fixed, so one version of the libraries gives
the same rows, names and times each time. A directory that is there is never touched.
"""

import getpass
import json
import os
import random
import shutil
import sqlite3
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.golden import record  # noqa: E402
from tests.golden.stories import STORE_STORIES, tell_sqlite  # noqa: E402

import lakebed  # noqa: E402
from lakebed.clock import SystemClock  # noqa: E402
from lakebed.ids import uuid7  # noqa: E402
from lakebed.limits import FORMAT_VERSION  # noqa: E402

SIZE_BYTES_MAX = 300_000
EPOCH_MS = 1_767_225_600_000  # 2026-01-01
STEP_MS = 1_000
SCRATCH = (".lakebed-probe", "*-queue", "*-journal", "*-wal", "*-shm")


class FixedClock(SystemClock):
    """Time that goes on by a second with each look."""

    def __init__(self) -> None:
        self._ms = EPOCH_MS

    def now_ms(self) -> int:
        """Look, and let a second pass."""
        self._ms += STEP_MS
        return self._ms


class FixedIds:
    """Ids of a seed."""

    def __init__(self, clock: FixedClock, seed: str) -> None:
        self._clock = clock
        self._random = random.Random(seed)  # noqa: S311 - names of files, not secrets
        self._lock = threading.Lock()

    def new(self) -> str:
        """Draw an id."""
        with self._lock:
            return f"{uuid7(self._clock.now_ms(), self._random.getrandbits(74)):032x}"

    def bits(self, count: int) -> int:
        """Draw bits."""
        return self._random.getrandbits(count)

    def fraction(self) -> float:
        """Draw a fraction."""
        return self._random.random()


class Recorder:
    """Takes down what each version of one table must be read as, and compares at once."""

    def __init__(self, table: lakebed.Table) -> None:
        self.table = table
        self._rows: list[dict[str, Any]] = []
        self._versions: dict[str, Any] = {}
        self._predicates: list[Any] = []
        self.saw([])

    def saw(
        self, rows: Sequence[dict[str, Any]], before: Sequence[dict[str, Any]] | None = None
    ) -> None:
        """Note that the newest version holds `rows`.

        `before` are the rows of the version before it under the columns that there are now, if
        they have other names or values than they had then.
        """
        snapshot = self.table.current_snapshot()
        scan = self.table.scan()
        found = record.rows_of(scan.to_arrow())
        told = self._under(rows, scan.schema)
        _agree(found, told, f"{self.table.name} version {snapshot.version}")
        noted = record.snapshot_of(snapshot)
        noted |= {"columns": record.columns_of(scan.schema), "rows": told}
        if snapshot.parent_id is not None:
            changes = self.table.changes(snapshot.version - 1)
            old = self._under(self._rows if before is None else before, changes.schema)
            new = self._under(rows, changes.schema)
            came, went = record.differing(old, new) if snapshot.data_change else ([], [])
            name = f"{self.table.name} changes of version {snapshot.version}"
            _agree(record.rows_of(changes.added.to_arrow()), came, name)
            _agree(record.rows_of(changes.removed.to_arrow()), went, name)
            noted |= {"added": came, "removed": went}
        self._versions[str(snapshot.version)] = noted
        self._rows = list(rows)

    def asked(self, predicate: str, holds: Callable[[dict[str, Any]], bool]) -> None:
        """Note which rows of the newest version a predicate selects."""
        scan = self.table.scan(predicate)
        told = self._under([row for row in self._rows if holds(row)], scan.schema)
        _agree(record.rows_of(scan.to_arrow()), told, f"{self.table.name} where {predicate}")
        self._predicates.append([predicate, told])

    def document(self) -> dict[str, Any]:
        """All that was noted."""
        return {
            "definition": record.definition_of(self.table),
            "predicates": self._predicates,
            "versions": self._versions,
        }

    @staticmethod
    def _under(rows: Sequence[dict[str, Any]], schema: pa.Schema) -> list[record.Row]:
        return record.rows_of(pa.Table.from_pylist(list(rows), schema=schema))


def main() -> None:
    """Make the tables in a scratch directory, and move them into place."""
    place = record.GOLDEN / f"v{FORMAT_VERSION}"
    if place.exists():
        sys.exit(
            f"{place} is there. Tables of a released format are never made again: that they can "
            "still be read is the point. A new format version gets a directory of its own."
        )
    os.environ["LOGNAME"] = "golden"  # the catalog's log says who commits
    assert getpass.getuser() == "golden"
    with tempfile.TemporaryDirectory(prefix="lakebed-golden-") as scratch:
        made = Path(scratch) / place.name
        (made / "expected").mkdir(parents=True)
        _make_store(made)
        _make_sqlite(made)
        for pattern in SCRATCH:
            for path in made.rglob(pattern):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        size_bytes = sum(path.stat().st_size for path in made.rglob("*") if path.is_file())
        if size_bytes > SIZE_BYTES_MAX:
            sys.exit(f"{size_bytes} bytes are too many for a repository")
        sums = record.sums_of(made)
        text = "".join(f"{digest}  {path}\n" for path, digest in sums.items())
        (made / record.SUMS).write_text(text, encoding="utf-8")
        shutil.copytree(made, place)
    print(f"{place}: {len(sums)} files, {size_bytes} bytes")


def _make_store(made: Path) -> None:
    for name, tell in STORE_STORIES.items():
        clock = FixedClock()
        ids = FixedIds(clock, name)
        with lakebed.connect(made / "store", clock=clock, ids=ids) as catalog:
            _write(made, f"store-{name}", tell(catalog, Recorder))


def _make_sqlite(made: Path) -> None:
    clock = FixedClock()
    file = made / "sqlite" / "catalog.db"
    ids = FixedIds(clock, "sqlite")
    with lakebed.connect(f"sqlite:///{file}", clock=clock, ids=ids) as catalog:
        for recorder in tell_sqlite(catalog, Recorder):
            _write(made, f"sqlite-{recorder.table.name}", recorder)
    with closing(sqlite3.connect(file)) as database:  # One file and nothing beside it.
        database.execute("PRAGMA journal_mode = delete")
        database.execute("VACUUM")


def _write(made: Path, name: str, recorder: Recorder) -> None:
    noted = recorder.document()
    versions = ",\n".join(f"{_json(key)}: {_json(each)}" for key, each in noted["versions"].items())
    predicates = ",\n".join(map(_json, noted["predicates"]))
    text = (
        f'{{"definition": {_json(noted["definition"])},\n'
        f'"predicates": [\n{predicates}\n],\n"versions": {{\n{versions}\n}}}}\n'
    )
    assert json.loads(text) == noted
    (made / "expected" / f"{name}.json").write_text(text, encoding="utf-8")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _agree(found: list[record.Row], told: list[record.Row], name: str) -> None:
    came, went = record.differing(told, found)
    if came or went:
        sys.exit(f"{name}: read, but not told: {came}; told, but not read: {went}")


if __name__ == "__main__":
    main()
