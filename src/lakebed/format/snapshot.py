"""A snapshot: one version of a table, with the list of its manifests inside.

    snap-<version>.json ── table-<id>.json       schemas, specs, tags, properties
         │
         ├── inline manifest                      the newest few files, listed right here
         ├── manifest-<id>.parquet                older files, columnar
         └── …                                    O(log n) of them
"""

from enum import StrEnum
from typing import Any

import msgspec

from lakebed.errors import BadMetadataError
from lakebed.format.datafile import ColumnStats, Entry
from lakebed.format.document import decode_error, seal, unseal
from lakebed.format.paths import check_path
from lakebed.format.pointer import Token
from lakebed.limits import FORMAT_VERSION

SNAPSHOT_ID_RANDOM_BITS = 31


class Operation(StrEnum):
    """What a snapshot did; the values are on disk and never change."""

    CREATE = "create"
    APPEND = "append"  # rows added, none removed
    OVERWRITE = "overwrite"  # rows removed and added
    DELETE = "delete"  # rows removed
    REWRITE = "rewrite"  # files replaced, rows unchanged: compaction
    ROLLBACK = "rollback"  # back to the files of an earlier version
    EVOLVE = "evolve"  # schema, partitioning or properties
    TAG = "tag"
    DROP = "drop"


class PartitionRange(msgspec.Struct, frozen=True, array_like=True):
    """The range of one partition field over the live files of a manifest."""

    has_null: bool
    lower: Any = None
    upper: Any = None


class ManifestRef(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One manifest as the snapshot lists it; `entries` holds an inline one, which has no path.

    Counts are of live files. An entry whose versions say "inherit" has `written_version`.
    `partitions` and `stats` summarise the live files; a column that is missing is unknown.
    """

    spec_id: int
    written_version: int
    file_count: int
    row_count: int
    data_size_bytes: int
    deleted_count: int = 0
    path: str = ""
    size_bytes: int = 0
    checksum: str = ""
    partitions: tuple[PartitionRange, ...] = ()
    stats: dict[int, ColumnStats] = {}
    entries: tuple[Entry, ...] = ()

    @property
    def is_inline(self) -> bool:
        """Whether the entries are inside the snapshot."""
        return not self.path


class Summary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How much a snapshot changed and how much the table holds after it."""

    added_files: int = 0
    removed_files: int = 0
    added_rows: int = 0
    removed_rows: int = 0
    added_bytes: int = 0
    total_files: int = 0
    total_rows: int = 0
    total_bytes: int = 0


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One committed state of a table."""

    format_version: int
    version: int
    snapshot_id: int
    table_id: str
    table_name: str
    commit_id: str
    timestamp_ms: int
    operation: Operation
    metadata_path: str
    schema_id: int
    spec_id: int
    parent_id: int | None = None
    parent_path: str = ""
    data_change: bool = True
    manifest_list: tuple[ManifestRef, ...] = ()
    summary: Summary = Summary()
    parameters: dict[str, str] = {}
    token: Token | None = None
    tokens: dict[str, tuple[int, int]] = {}  # app -> its last token, the version that has it
    tokens_complete: bool = True  # False: apps not in `tokens` may have committed long ago


def make_snapshot_id(version: int, random_bits: int) -> int:
    """A positive 63-bit id from which the version can be told."""
    return (version + 1) << SNAPSHOT_ID_RANDOM_BITS | random_bits


def version_of(snapshot_id: int) -> int | None:
    """The version inside a snapshot id; None if the number is too small to be one."""
    version = (snapshot_id >> SNAPSHOT_ID_RANDOM_BITS) - 1
    return version if version >= 0 else None


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Snapshot)


def encode_snapshot(snapshot: Snapshot) -> bytes:
    """Turn a snapshot into the bytes of its file."""
    assert snapshot.format_version == FORMAT_VERSION, "written by this version of the format"
    return seal(_ENCODER.encode(snapshot))


def decode_snapshot(data: bytes, path: str) -> Snapshot:
    """Read a snapshot file, or raise BadTableError; `storage_value` reads its bounds."""
    try:
        snapshot = _DECODER.decode(unseal(data, path=path))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise decode_error(path, error) from error
    _check(snapshot, path)
    return snapshot


def _check(snapshot: Snapshot, path: str) -> None:
    version = snapshot.version
    if version < 0 or version_of(snapshot.snapshot_id) != version:
        raise BadMetadataError(f"{path}: the snapshot id does not belong to version {version}")
    if (snapshot.parent_id is None) != (version == 0):
        raise BadMetadataError(f"{path}: only version 0 has no parent", path=path)
    if snapshot.parent_id is not None and version_of(snapshot.parent_id) != version - 1:
        raise BadMetadataError(f"{path}: its parent is not version {version - 1}", path=path)
    check_path(snapshot.metadata_path)
    if snapshot.parent_path:
        check_path(snapshot.parent_path)
    for ref in snapshot.manifest_list:
        if ref.path:
            check_path(ref.path)
        if min(ref.file_count, ref.row_count, ref.size_bytes, ref.deleted_count) < 0:
            raise BadMetadataError(f"{path}: a manifest has negative counts", path=path)
        for entry in ref.entries:
            check_path(entry.file.path)
            if entry.file.row_count < 0 or entry.file.size_bytes < 0:
                raise BadMetadataError(f"{path}: {entry.file.path} has negative counts", path=path)


__all__ = [
    "ManifestRef",
    "Operation",
    "PartitionRange",
    "Snapshot",
    "Summary",
    "decode_snapshot",
    "encode_snapshot",
    "make_snapshot_id",
    "version_of",
]
