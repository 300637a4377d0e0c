"""Small pipelines for tests: their text, their files, and what came of them."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakebed.flow.flow import Flow
from lakebed.flow.placing import anchored
from lakebed.flow.toml import parse_flow
from lakebed.spark.pipeline.progress import Progress, Unwatched
from lakebed.table.connect import connect
from lakebed.table.table import Table

HEAD = """
name = "test"
checkpoint = "checkpoint"
catalog = "sqlite:///lake/catalog.db"
trigger = "available now"
"""
CSV = """
[source]
kind = "files"
path = "incoming"
format = "csv"
schema = "ts timestamptz, sensor string, value double"
"""
SINK = """
[[sink]]
table = "plant.readings"
"""


@dataclass
class Site:
    """A directory with a pipeline, what arrives for it, and a lake."""

    root: Path

    def __post_init__(self) -> None:
        for name in ("incoming", "lake"):
            (self.root / name).mkdir()

    def flow(self, text: str) -> Flow:
        """A pipeline of this site."""
        return anchored(parse_flow(text), self.root)

    def arrive(self, name: str, *rows: tuple[str, str, float | str]) -> None:
        """A file of CSV appears, all at once as Spark wants it."""
        lines = ["ts,sensor,value", *(",".join(str(cell) for cell in row) for row in rows)]
        hidden = self.root / f"_{name}"
        hidden.write_text("\n".join(lines) + "\n")
        hidden.rename(self.root / "incoming" / name)

    def table(self, name: str = "plant.readings") -> Table:
        """A table of the lake."""
        return connect(f"sqlite:///{self.root}/lake/catalog.db").table(name)

    def rows(self, name: str = "plant.readings", *columns: str) -> list[Any]:
        """The rows of a table, in order."""
        found = self.table(name).scan(columns=list(columns) or None).to_arrow().to_pylist()
        return sorted(found, key=lambda row: json.dumps(row, default=str))


class Watching(Unwatched):
    """Remembers what it was told, and may do something after some batches."""

    def __init__(self, after: int = 0, act: Any = None) -> None:
        self.seen: list[Progress] = []
        self.reasons: list[str] = []
        self._after, self._act = after, act

    def progressed(self, progress: Progress) -> None:
        self.seen.append(progress)
        if self._act is not None and len(self.seen) == self._after:
            self._act()

    def stopping(self, reason: str) -> None:
        self.reasons.append(reason)
