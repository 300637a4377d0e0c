"""Drivers in processes of their own: pyspark has one session for a process, and ours is taken.

The test's side starts `python -m tests.spark.drive_…` and reads its report; the driver's side
notes what it found part by part, so that one failure hides nothing else.
"""

import ipaddress
import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any

from lakebed.clock import SystemClock
from lakebed.testing.spark_cluster import Guarded

ROOT = Path(__file__).resolve().parents[2]
DURATION_S_MAX = 480
_CLOCK = SystemClock()


class Part(AbstractContextManager[dict[str, Any]]):
    """What one part of a driver has found, and how it went wrong if it did."""

    def __init__(self, found: dict[str, Any], at_end: Callable[[], None]) -> None:
        self._found = found
        self._at_end = at_end
        self._start_ms = 0.0

    def __enter__(self) -> dict[str, Any]:
        self._start_ms = _CLOCK.monotonic_ms()
        return self._found

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        self._found["duration_ms"] = round(_CLOCK.monotonic_ms() - self._start_ms)
        if error is not None:
            self._found["error"] = "".join(traceback.format_exception(kind, error, trace))
        self._at_end()
        return isinstance(error, Exception)


class Report:
    """The driver's side: its argument, and where its findings go."""

    def __init__(self) -> None:
        self._directory = Path(sys.argv[1])
        self.argument: dict[str, Any] = json.loads((self._directory / "argument").read_text())
        self._parts: dict[str, dict[str, Any]] = {}

    def part(self, name: str) -> Part:
        """A block whose findings are noted under a name."""
        return Part(self._parts.setdefault(name, {}), self._save)

    def _save(self) -> None:
        part = self._directory / "report.part"
        part.write_text(json.dumps(self._parts))
        part.rename(self._directory / "report")


class Drive:
    """The test's side of a driver that has ended."""

    def __init__(self, parts: Mapping[str, dict[str, Any]], log: str) -> None:
        self._parts = parts
        self._log = log

    def __getitem__(self, name: str) -> dict[str, Any]:
        """What a part has found; its failure is the test's."""
        found = self._parts.get(name)
        assert found is not None, f"the driver did not come so far; its log:\n{self._log[-8000:]}"
        assert "error" not in found, found["error"]
        return found

    def durations(self) -> dict[str, int]:
        return {name: found["duration_ms"] for name, found in self._parts.items()}


def drive(
    module: str, argument: Mapping[str, Any], directory: Path, env: Mapping[str, str] | None = None
) -> Drive:
    """Run `tests.spark.<module>` as a driver, and wait for its report."""
    directory.mkdir(parents=True)
    directory.chmod(0o700)  # the argument may hold secrets
    (directory / "argument").write_text(json.dumps(argument))
    log, report = directory / "log", directory / "report"
    environment = {name: os.environ[name] for name in os.environ if not name.startswith("SPARK_")}
    environment |= {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore", **(env or {})}
    # Not -m: what a driver defines must travel to the executors by value, and __main__ does.
    script = str(ROOT / "tests" / "spark" / f"{module}.py")
    guarded = Guarded([sys.executable, script, str(directory)], log=log, env=environment)
    try:
        guarded.wait(DURATION_S_MAX)
    finally:
        guarded.stop()
    found = json.loads(report.read_text()) if report.exists() else {}
    return Drive(found, log.read_text(errors="replace"))


def listening(pid: int) -> set[str]:
    """The addresses that a process listens at."""
    sockets = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(entry)
        except FileNotFoundError:
            continue
        if target.startswith("socket:["):
            sockets.add(target[8:-1])
    found = set()
    for kind in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{kind}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in sockets:  # 0A: it listens
                words = bytes.fromhex(fields[1].partition(":")[0])
                raw = b"".join(words[i : i + 4][::-1] for i in range(0, len(words), 4))
                address = ipaddress.ip_address(raw)
                found.add(str(getattr(address, "ipv4_mapped", None) or address))
    return found


# The JVM cannot write this codec: a table that wants it is written by Python workers.
FOR_WORKERS = {"write.parquet.compression-codec": "brotli"}


def makers(table: Any) -> list[str]:
    """Which programs wrote the files of a table: parquet-mr is the JVM's, parquet-cpp is ours."""
    import io

    import pyarrow.parquet as pq

    store = table.place.open()
    files = table.scan().plan.files
    contents = (store.read(file.path, size_bytes_max=file.size_bytes) for file in files)
    told = (pq.ParquetFile(io.BytesIO(content)).metadata.created_by for content in contents)
    return sorted({who.split()[0].removesuffix("-arrow") for who in told})
