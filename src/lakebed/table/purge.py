"""Deleting the files of a table that is out of the catalog for good."""

from lakebed.commit.head import Head
from lakebed.errors import UnsafePathError
from lakebed.files.metadata_files import MetadataFiles
from lakebed.format.paths import check_path
from lakebed.format.snapshot import Snapshot
from lakebed.table.reachable import Reached, chain, reach


def listed_files(files: MetadataFiles, head: Head) -> Reached:
    """What the table's own history lists; read before the table is dropped.

    A history that cannot be read ends the purge here, while nothing is changed yet.
    """
    reached = Reached()
    for path, snapshot in chain(files, head.pointer.snapshot_path, head.snapshot):
        reach(files, path, snapshot, reached)
    return reached


def purge_files(
    files: MetadataFiles, listed: Reached, tombstone: Snapshot, *, keeps_versions: bool
) -> int:
    """Delete what the history lists, and nothing else; return how many files.

    The tombstone stays: `catalog rebuild` learns from it that the table is gone. Where files are
    the catalog, all snapshots stay (`keeps_versions`): a writer that has not heard of the drop
    would find its next version free, make it, and lose its rows without a word.
    """
    listed.definitions.discard(tombstone.metadata_path)
    if keeps_versions:
        listed.snapshots.clear()
    count = 0
    for path in listed.all_paths():
        try:
            files.store.delete(check_path(path))
        except UnsafePathError:
            continue  # A link or a pipe in the place of a file: not ours, so it stays.
        count += 1
    return count
