"""A lost catalog, restored from the metadata files alone.

    <warehouse>/**/metadata/snap-*.json ─► by table id ─► the longest chain ─► catalog.restore

A snapshot that was written and never committed looks like a version. It is taken only if nothing
speaks against it: a version whose successor names another parent was lost, and of two candidates
for the newest version the first is taken and the doubt reported.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakebed.catalog.backend import CatalogBackend
from lakebed.errors import LakebedError, RequestError
from lakebed.files.metadata_files import MetadataFiles
from lakebed.format.paths import METADATA
from lakebed.format.snapshot import Operation, Snapshot, decode_snapshot
from lakebed.limits import JSON_SIZE_BYTES_MAX
from lakebed.storage.store import Store
from lakebed.table.connect import connect
from lakebed.table.retelling import retell

_MARK = f"{METADATA}/snap-"


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildReport:
    """The tables that were restored, as (name, version, versions), and what was doubtful.

    `known` names the tables that the catalog had already, and that were left alone.
    """

    tables: tuple[tuple[str, int, int], ...]
    problems: tuple[str, ...]
    known: tuple[str, ...] = ()


def rebuild_catalog(
    uri: str,
    warehouse: str | None = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
) -> RebuildReport:
    """Fill a catalog with every table found below its warehouse; known tables are left alone."""
    with connect(uri, warehouse=warehouse, storage_options=storage_options) as catalog:
        services = catalog._services
        if services.backend.decides_by_snapshot:
            raise RequestError(
                "a catalog without a database needs no rebuilding",
                hint="Its files are the catalog; name an SQLite or PostgreSQL one",
            )
        if services.warehouse is None:
            raise RequestError(
                "it is not known where the tables are", hint="Name the place with warehouse=…"
            )
        return _Rebuild(services.backend, services.warehouse).run()


class _Rebuild:
    def __init__(self, backend: CatalogBackend, warehouse: Store) -> None:
        self._backend = backend
        self._warehouse = warehouse
        self._problems: list[str] = []
        self._tables: list[tuple[str, int, int]] = []
        self._known: list[str] = []

    def run(self) -> RebuildReport:
        # The longest histories first: of two tables that claim one name, the one that was only
        # about to be created when its writer died has a single version.
        found = sorted(self._locations().items(), key=lambda each: (-len(each[1]), each[0]))
        for location, paths in found:
            files = MetadataFiles(self._warehouse.child(location))
            for versions in self._by_table(files, location, paths).values():
                self._restore(location, files, versions)
        return RebuildReport(
            tables=tuple(sorted(self._tables)),
            problems=tuple(self._problems),
            known=tuple(sorted(self._known)),
        )

    def _locations(self) -> dict[str, list[str]]:
        """The directories of tables, each with the paths of its snapshots."""
        found: dict[str, list[str]] = {}
        for info in self._warehouse.list():
            location, mark, rest = info.path.rpartition(f"/{_MARK}")
            if mark and "/" not in rest and rest.endswith(".json"):
                found.setdefault(location, []).append(f"{_MARK}{rest}")
        return found

    def _by_table(
        self, files: MetadataFiles, location: str, paths: list[str]
    ) -> dict[str, dict[str, Snapshot]]:
        tables: dict[str, dict[str, Snapshot]] = {}
        for path in paths:
            try:
                data = files.store.read(path, size_bytes_max=JSON_SIZE_BYTES_MAX)
                snapshot = decode_snapshot(data, path)
            except LakebedError as error:
                self._problems.append(f"{location}/{path}: {error.message}")
                continue
            tables.setdefault(snapshot.table_id, {})[path] = snapshot
        return tables

    def _restore(self, location: str, files: MetadataFiles, versions: dict[str, Snapshot]) -> None:
        chain = self._chain(location, versions)
        if not chain:
            return
        _, head = chain[-1]
        if self._backend.find_commit(chain[0][1].commit_id):
            # Its creation is in the catalog, so it is too.
            if head.operation is not Operation.DROP:
                self._known.append(head.table_name)
            return
        try:
            self._backend.restore(list(retell(files, location, chain)))
        except LakebedError as error:
            self._problems.append(
                f"{location}: {head.table_name} was not restored: {error.message}"
            )
            return
        if head.operation is not Operation.DROP:
            self._tables.append((head.table_name, head.version, len(chain)))

    def _chain(self, location: str, versions: dict[str, Snapshot]) -> list[tuple[str, Snapshot]]:
        """The history, oldest first: from the newest version back, by the parents' paths."""
        newest = max(snapshot.version for snapshot in versions.values())
        heads = sorted(path for path, s in versions.items() if s.version == newest)
        complete = [found for path in heads if (found := _back_from(path, versions))]
        if not complete and all(versions[path].operation is Operation.DROP for path in heads):
            return []  # It was purged: its tombstone is all that is left, and all that is meant.
        if not complete:
            self._problems.append(f"{location}: the history of version {newest} has a gap")
            return []
        if len(complete) > 1:
            self._problems.append(
                f"{location}: {len(complete)} files claim to be version {newest}; took "
                f"{complete[0][-1][0]}"
            )
        return complete[0]


def _back_from(path: str, versions: dict[str, Snapshot]) -> list[tuple[str, Snapshot]] | None:
    """Follow the parents to the first version; None if one is missing or is another's."""
    found: list[tuple[str, Snapshot]] = []
    while True:
        snapshot = versions.get(path)
        if snapshot is None or (found and snapshot.snapshot_id != found[-1][1].parent_id):
            return None
        found.append((path, snapshot))
        if snapshot.operation is Operation.CREATE:
            return found[::-1]
        path = snapshot.parent_path
