"""The head of a table: its pointer, and the metadata that the pointer leads to."""

from dataclasses import dataclass

from lakebed.commit.change import Definition
from lakebed.errors import BadMetadataError
from lakebed.files.metadata_files import MetadataFiles
from lakebed.format.metadata import TableMetadata
from lakebed.format.pointer import Pointer
from lakebed.format.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """One version of a table, read."""

    pointer: Pointer
    snapshot: Snapshot
    metadata: TableMetadata

    @property
    def definition(self) -> Definition:
        """What the table is, besides its files."""
        return Definition(
            metadata=self.metadata,
            schema_id=self.snapshot.schema_id,
            spec_id=self.snapshot.spec_id,
        )


def read_head(files: MetadataFiles, pointer: Pointer) -> Head:
    """Follow a pointer, and make sure that it leads to what it says."""
    snapshot = files.snapshot(pointer.snapshot_path)
    found = (snapshot.table_id, snapshot.version, snapshot.commit_id, snapshot.snapshot_id)
    if found != (pointer.table_id, pointer.version, pointer.commit_id, pointer.snapshot_id):
        raise BadMetadataError(
            f"{pointer.snapshot_path} is not version {pointer.version} of {pointer.name}",
            hint="The catalog and the files do not belong together; was one of them restored?",
            path=pointer.snapshot_path,
        )
    metadata = files.metadata(snapshot.metadata_path)
    if metadata.table_id != snapshot.table_id:
        raise BadMetadataError(
            f"{snapshot.metadata_path} belongs to another table", path=snapshot.metadata_path
        )
    metadata.schema(snapshot.schema_id)  # Both raise if there is no such thing: better now than
    metadata.spec(snapshot.spec_id)  # when a commit has built on it.
    return Head(pointer=pointer, snapshot=snapshot, metadata=metadata)
