"""A table's health: each metadata file of its history reads, each data file is there."""

from dataclasses import dataclass

from lakebed.errors import LakebedError
from lakebed.format.paths import DATA
from lakebed.table.reachable import Reached, chain, reach
from lakebed.table.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What was looked at, and what is wrong."""

    table: str
    version: int
    snapshot_count: int
    manifest_count: int
    file_count: int
    unlisted_count: int  # files below data/ that no version lists: harmless leftovers
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def audit_table(table: Table) -> Audit:
    """Walk the whole history; data files are compared by size, not read."""
    head, files = table.head(), table.files
    reached, problems = Reached(), []
    count = 0
    try:
        for path, snapshot in chain(files, head.pointer.snapshot_path, head.snapshot):
            if snapshot.table_id != head.snapshot.table_id:
                break
            count += 1
            try:
                reach(files, path, snapshot, reached)
            except LakebedError as error:
                problems.append(f"version {snapshot.version}: {error.message}")
    except LakebedError as error:
        problems.append(error.message)
    found = {info.path: info.size_bytes for info in files.store.list(f"{DATA}/")}
    for path, size_bytes in reached.data.items():
        size = found.get(path)
        if size is None and not path.startswith(f"{DATA}/"):
            size = _size(table, path)
        if size is None:
            problems.append(f"{path} is missing")
        elif size != size_bytes:
            problems.append(f"{path} has {size} bytes where the manifest says {size_bytes}")
    return Audit(
        table=table.name,
        version=head.pointer.version,
        snapshot_count=count,
        manifest_count=len(reached.manifests),
        file_count=len(reached.data),
        unlisted_count=len(found.keys() - reached.data.keys()),
        problems=tuple(problems),
    )


def _size(table: Table, path: str) -> int | None:
    """The size of a file that was adopted outside of data/."""
    try:
        return table.files.store.size(path)
    except LakebedError:
        return None
