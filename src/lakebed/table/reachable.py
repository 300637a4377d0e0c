"""Every file that a chain of snapshots leads to."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from lakebed.errors import BadMetadataError
from lakebed.files.metadata_files import MetadataFiles
from lakebed.format.snapshot import ManifestRef, Snapshot


@dataclass(slots=True)
class Reached:
    """Paths by kind; data files with the size that metadata gives them."""

    snapshots: set[str] = field(default_factory=set)
    definitions: set[str] = field(default_factory=set)
    manifests: dict[str, ManifestRef] = field(default_factory=dict)
    data: dict[str, int] = field(default_factory=dict)

    def all_paths(self) -> Iterator[str]:
        """Every path, data before the metadata that lists it, snapshots last."""
        yield from self.data
        yield from self.manifests
        yield from self.definitions
        yield from self.snapshots


def reach(files: MetadataFiles, path: str, snapshot: Snapshot, reached: Reached) -> None:
    """Add what one snapshot leads to; a manifest that was seen before is not opened again."""
    reached.snapshots.add(path)
    reached.definitions.add(snapshot.metadata_path)
    metadata = files.metadata(snapshot.metadata_path)
    for ref in snapshot.manifest_list:
        if ref.path in reached.manifests:
            continue
        table = files.manifest(ref, metadata)
        paths, sizes = table.column("path").to_pylist(), table.column("size_bytes").to_pylist()
        reached.data.update(zip(paths, sizes, strict=True))
        if ref.path:
            reached.manifests[ref.path] = ref


def chain(files: MetadataFiles, path: str, snapshot: Snapshot) -> Iterator[tuple[str, Snapshot]]:
    """A snapshot and its ancestors, each with its path.

    A parent that is not the one meant is refused: hostile ones could go round in circles.
    """
    while True:
        yield path, snapshot
        if snapshot.parent_id is None:
            return
        path = snapshot.parent_path
        parent = files.snapshot(path)
        if (parent.snapshot_id, parent.table_id) != (snapshot.parent_id, snapshot.table_id):
            raise BadMetadataError(
                f"{path} is not the parent of version {snapshot.version}", path=path
            )
        snapshot = parent
