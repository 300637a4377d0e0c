"""Deleting the files of a table that is out of the catalog for good."""

from lakebed.commit.head import Head
from lakebed.files.metadata_files import MetadataFiles
from lakebed.format.paths import check_path
from lakebed.format.snapshot import Snapshot
from lakebed.table.reachable import Reached, chain, reach


def purge_files(
    files: MetadataFiles, head: Head, tombstone: Snapshot, *, keeps_versions: bool
) -> int:
    """Delete what the table's own history lists, and nothing else; return how many files.

    The tombstone stays: `catalog rebuild` learns from it that the table is gone. Where files are
    the catalog, all snapshots stay (`keeps_versions`): a writer that has not heard of the drop
    would find its next version free, make it, and lose its rows without a word.
    """
    assert tombstone.table_id == head.snapshot.table_id, "the tombstone is this table's own"
    reached = Reached()
    for path, snapshot in chain(files, head.pointer.snapshot_path, head.snapshot):
        if snapshot.table_id == head.snapshot.table_id:
            reach(files, path, snapshot, reached)
    reached.definitions.discard(tombstone.metadata_path)
    if keeps_versions:
        reached.snapshots.clear()
    count = 0
    for path in reached.all_paths():
        files.store.delete(check_path(path))
        count += 1
    return count
