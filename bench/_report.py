"""Lines of what was measured against its bound; printed, saved, and turned into an exit code."""

import argparse
import contextlib
import datetime
import importlib.metadata
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lakebed.catalog.sqlite_library import sqlite3  # the one that the catalog uses

RESULTS = Path(__file__).parent / "results"
_PACKAGES = ("lakebed", "pyarrow", "numpy", "msgspec", "deltalake", "pyiceberg", "pyspark")
_SIGNS = {True: "pass", False: "FAIL", None: ""}


@dataclass(frozen=True, slots=True)
class Line:
    """One figure; without a bound it only tells."""

    what: str
    measured: float
    unit: str
    at_most: float | None = None
    at_least: float | None = None

    @property
    def passed(self) -> bool | None:
        if self.at_most is not None:
            return self.measured <= self.at_most
        return None if self.at_least is None else self.measured >= self.at_least

    @property
    def bound(self) -> str:
        if self.at_most is not None:
            return f"<= {_number(self.at_most)}"
        return "" if self.at_least is None else f">= {_number(self.at_least)}"


@dataclass(slots=True)
class Report:
    """All figures of one run."""

    name: str
    quick: bool
    lines: list[Line] = field(default_factory=list)
    started: str = field(
        default_factory=lambda: datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    )

    def add(
        self,
        what: str,
        measured: float,
        unit: str = "",
        *,
        at_most: float | None = None,
        at_least: float | None = None,
    ) -> None:
        line = Line(what, measured, unit, at_most, at_least)
        self.lines.append(line)
        print(_row(line), flush=True)

    def heading(self, text: str) -> None:
        print(f"\n{text}", flush=True)

    def finish(self) -> int:
        """Save the run; 1 if a bound was missed."""
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"{self.name}{'-quick' if self.quick else ''}.json"
        path.write_text(json.dumps(self._document(), indent=1) + "\n", encoding="utf-8")
        failed = [line.what for line in self.lines if line.passed is False]
        bounded = sum(line.passed is not None for line in self.lines)
        print(f"\n{bounded - len(failed)} of {bounded} bounds hold; saved to {path}")
        return 1 if failed else 0

    def _document(self) -> dict[str, object]:
        return {
            "command": " ".join([Path(sys.executable).name, *sys.argv]),
            "started": self.started,
            "quick": self.quick,
            "machine": {
                "system": platform.platform(),
                "cpu": _processor(),
                "cores": os.cpu_count(),
                "load": os.getloadavg(),
            },
            "versions": {
                "python": platform.python_version(),
                "sqlite": sqlite3.sqlite_version,
                **{name: _version(name) for name in _PACKAGES},
            },
            "lines": [{**asdict(line), "passed": line.passed} for line in self.lines],
        }


def arguments(text: str, parts: tuple[str, ...]) -> argparse.Namespace:
    """The options that all benchmarks share."""
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("--quick", action="store_true", help="a tenth of the work: a smoke test")
    parser.add_argument("--only", choices=parts, action="append", help="one part; may be repeated")
    parser.add_argument("--directory", help="where to work (a new directory in it); default: tmp")
    return parser.parse_args()


@contextlib.contextmanager
def workplace(parent: str | None) -> Iterator[Path]:
    """A directory that is gone afterwards."""
    directory = Path(tempfile.mkdtemp(prefix="lakebed-bench-", dir=parent))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _row(line: Line) -> str:
    measured = f"{_number(line.measured)} {line.unit}".rstrip()
    row = f"  {line.what:<58} {measured:>14}  {line.bound:>10}  {_SIGNS[line.passed]}"
    return row.rstrip()


def _number(value: float) -> str:
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2f}"


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in text.splitlines() if "model name" in line]
    return names[0] if names else platform.processor()


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
