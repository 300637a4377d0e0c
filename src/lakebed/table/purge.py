"""Deleting the files of a table that is out of the catalog for good."""

from lakebed.commit.head import Head
from lakebed.files.metadata_files import MetadataFiles
from lakebed.format.paths import check_path
from lakebed.format.snapshot import Snapshot
from lakebed.table.reachable import Reached, chain, reach


def purge_files(files: MetadataFiles, head: Head, tombstone: Snapshot) -> int:
    """Delete what the table's own history lists, and nothing else; return how many files.

    The tombstone stays: where files are the catalog it keeps the name's versions from being
    made twice, and `catalog rebuild` learns from it that the table is gone.
    """
    assert tombstone.table_id == head.snapshot.table_id, "the tombstone is this table's own"
    reached = Reached()
    for path, snapshot in chain(files, head.pointer.snapshot_path, head.snapshot):
        if snapshot.table_id == head.snapshot.table_id:
            reach(files, path, snapshot, reached)
    reached.definitions.discard(tombstone.metadata_path)
    count = 0
    for path in reached.all_paths():
        files.store.delete(check_path(path))
        count += 1
    return count
