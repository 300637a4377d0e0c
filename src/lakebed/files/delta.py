"""What one commit did to the set of files, told from its snapshot and nothing else."""

from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from lakebed.files.manifest import live, to_entries
from lakebed.files.metadata_files import MetadataFiles
from lakebed.format.datafile import DataFile
from lakebed.format.snapshot import Operation, Snapshot


@dataclass(frozen=True, slots=True)
class Delta:
    """The files that a snapshot added to and removed from its parent."""

    snapshot: Snapshot
    added: tuple[DataFile, ...]
    removed: tuple[DataFile, ...]


def delta_of(files: MetadataFiles, snapshot: Snapshot) -> Delta:
    """Read the delta; opens only manifests that this very snapshot wrote."""
    if snapshot.operation is Operation.ROLLBACK:  # It lists manifests that others wrote.
        parent = files.snapshot(snapshot.parent_path)
        return Delta(snapshot, *difference(files, parent, snapshot))
    added: list[DataFile] = []
    removed: list[DataFile] = []
    if snapshot.summary.added_files or snapshot.summary.removed_files:
        metadata = files.metadata(snapshot.metadata_path)
        for ref in snapshot.manifest_list:
            if ref.written_version != snapshot.version:
                continue
            table = files.manifest(ref, metadata)
            spec = metadata.spec(ref.spec_id)
            mine = pc.equal(table.column("added_version"), snapshot.version)
            gone = pc.equal(table.column("removed_version"), snapshot.version)
            added += [e.file for e in to_entries(live(table.filter(mine)), spec)]
            removed += [e.file for e in to_entries(table.filter(gone), spec)]
    return Delta(snapshot, tuple(added), tuple(removed))


def difference(
    files: MetadataFiles, before: Snapshot, after: Snapshot
) -> tuple[tuple[DataFile, ...], tuple[DataFile, ...]]:
    """The files that `after` has and `before` has not, and the other way round; O(files)."""
    old, new = live_files(files, before), live_files(files, after)
    added = tuple(file for path, file in new.items() if path not in old)
    removed = tuple(file for path, file in old.items() if path not in new)
    return added, removed


def live_files(files: MetadataFiles, snapshot: Snapshot) -> dict[str, DataFile]:
    """Every file of a snapshot by path; for audits and tests, costs O(files)."""
    metadata = files.metadata(snapshot.metadata_path)
    found: dict[str, DataFile] = {}
    for ref in snapshot.manifest_list:
        table: Any = live(files.manifest(ref, metadata))
        for entry in to_entries(table, metadata.spec(ref.spec_id)):
            found[entry.file.path] = entry.file
    return found
