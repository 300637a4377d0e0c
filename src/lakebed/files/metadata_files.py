"""Reading and writing a table's metadata files; immutable, so what was read once is kept."""

from collections import OrderedDict
from typing import Any, TypeVar

from lakebed.errors import BadMetadataError
from lakebed.files.manifest import to_table
from lakebed.files.manifest_read import decode_manifest
from lakebed.format.document import checksum
from lakebed.format.metadata import TableMetadata, decode_metadata
from lakebed.format.snapshot import ManifestRef, Snapshot, decode_snapshot
from lakebed.limits import JSON_SIZE_BYTES_MAX, MANIFEST_SIZE_BYTES_MAX
from lakebed.storage.store import Store

_Value = TypeVar("_Value")

_SNAPSHOTS_KEPT = 64
_MANIFESTS_KEPT = 64


class MetadataFiles:
    """The metadata directory of one table."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._snapshots: OrderedDict[str, Snapshot] = OrderedDict()
        self._metadata: OrderedDict[str, TableMetadata] = OrderedDict()
        self._manifests: OrderedDict[str, Any] = OrderedDict()

    def snapshot(self, path: str) -> Snapshot:
        """Read a snapshot file."""
        found = self._snapshots.get(path)
        if found is None:
            found = decode_snapshot(self.store.read(path, size_bytes_max=JSON_SIZE_BYTES_MAX), path)
            self.keep_snapshot(path, found)
        return found

    def keep_snapshot(self, path: str, snapshot: Snapshot) -> None:
        """Remember a snapshot that was just written."""
        _keep(self._snapshots, path, snapshot, _SNAPSHOTS_KEPT)

    def metadata(self, path: str) -> TableMetadata:
        """Read a table definition."""
        found = self._metadata.get(path)
        if found is None:
            found = decode_metadata(self.store.read(path, size_bytes_max=JSON_SIZE_BYTES_MAX), path)
            self.keep_metadata(path, found)
        return found

    def keep_metadata(self, path: str, metadata: TableMetadata) -> None:
        """Remember a definition that was just written."""
        _keep(self._metadata, path, metadata, _SNAPSHOTS_KEPT)

    def manifest(self, ref: ManifestRef, metadata: TableMetadata) -> Any:
        """The entries of a manifest as an Arrow table, deleted ones included."""
        spec = metadata.spec(ref.spec_id)
        if ref.is_inline:
            return to_table(ref.entries, spec, metadata)
        key = f"{ref.path} {ref.checksum} {ref.written_version}"
        table = self._manifests.get(key)
        if table is None:
            data = self.store.read(ref.path, size_bytes_max=MANIFEST_SIZE_BYTES_MAX)
            if len(data) != ref.size_bytes or checksum(data) != ref.checksum:
                raise BadMetadataError(
                    f"{ref.path} is damaged: its length or checksum does not match",
                    hint="Restore the file from a copy",
                    path=ref.path,
                )
            table = decode_manifest(data, ref, spec, metadata)
            _keep(self._manifests, key, table, _MANIFESTS_KEPT)
        return table


def _keep(cache: "OrderedDict[str, _Value]", key: str, value: _Value, count_max: int) -> None:
    cache[key] = value
    while len(cache) > count_max:
        cache.popitem(last=False)
