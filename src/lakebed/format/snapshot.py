"""A snapshot: one version of a table, with the list of its manifests inside.

What a commit of a few rows writes is this one file:

    snap-<version>.json ── table-<id>.json       schemas, specs, tags, properties
         │
         ├── inline manifest                      the newest few files, listed right here
         ├── manifest-<id>.parquet                older files, columnar
         └── …                                    O(log n) of them
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import msgspec
from msgspec.structs import astuple

from lakebed.errors import BadMetadataError
from lakebed.format.datafile import LIVE, ColumnStats, Entry
from lakebed.format.document import decode_error, seal, unseal
from lakebed.format.paths import check_path
from lakebed.format.pointer import Token
from lakebed.limits import COUNT_MAX, FORMAT_VERSION, TIME_MS_MAX

SNAPSHOT_ID_RANDOM_BITS = 31
_VERSION_MAX = (1 << 32) - 2
_ID_MAX = (1 << 31) - 1


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
    """Turn a snapshot into the bytes of its file; raise what reading it back would raise."""
    _check(snapshot, "the new snapshot")
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
    for complaint in _complaints(snapshot):
        raise BadMetadataError(f"{path}: {complaint}", path=path)
    check_path(snapshot.metadata_path)
    if snapshot.parent_path:
        check_path(snapshot.parent_path)
    for ref in snapshot.manifest_list:
        if ref.path:
            check_path(ref.path)
        for entry in ref.entries:
            check_path(entry.file.path)


def _complaints(snapshot: Snapshot) -> Iterator[str]:
    """What contradicts itself in a snapshot, or could not have been written by us."""
    version = snapshot.version
    if snapshot.format_version != FORMAT_VERSION:
        yield "it says two format versions"
    if not 0 <= version <= _VERSION_MAX or version_of(snapshot.snapshot_id) != version:
        yield f"the snapshot id does not belong to version {version}"
    # A store that decides by names starts a new table behind the tombstone of the old one.
    if (snapshot.parent_id is None) != (snapshot.operation is Operation.CREATE):
        yield "it is created and has a parent, or neither"
    if snapshot.parent_id is not None and version_of(snapshot.parent_id) != version - 1:
        yield f"its parent is not version {version - 1}"
    if not 0 <= snapshot.timestamp_ms <= TIME_MS_MAX:
        yield f"{snapshot.timestamp_ms} is not a time"
    if not _are_counts(snapshot.schema_id, snapshot.spec_id, *astuple(snapshot.summary)):
        yield "a number is negative or too large"
    tails = [ref.spec_id for ref in snapshot.manifest_list if ref.is_inline]
    if len(set(tails)) != len(tails):
        yield "it has two inline manifests of one partition spec"
    for ref in snapshot.manifest_list:
        yield from _ref_complaints(ref, version)


def _ref_complaints(ref: ManifestRef, version: int) -> Iterator[str]:
    name = ref.path or "the inline manifest"
    counts = (ref.spec_id, ref.file_count, ref.row_count, ref.data_size_bytes, ref.deleted_count)
    if not _are_counts(*counts, ref.size_bytes):
        yield f"{name} has a number that is negative or too large"
    if not 0 <= ref.written_version <= version:
        yield f"{name} was written by version {ref.written_version}, after this one"
    if ref.path and ref.entries:
        yield f"{name} is listed with entries of its own"
    for entry in ref.entries:
        yield from _entry_complaints(entry, ref, version)
    if ref.is_inline:
        files = [entry.file for entry in ref.entries if entry.is_live]
        if (len(files), sum(file.row_count for file in files)) != (ref.file_count, ref.row_count):
            yield "the inline manifest does not have the files or rows it says"
        if len({file.path for file in files}) != len(files):
            yield "the inline manifest lists a file twice"


def _entry_complaints(entry: Entry, ref: ManifestRef, version: int) -> Iterator[str]:
    file = entry.file
    row_count = file.row_count
    if not (0 <= row_count <= COUNT_MAX and 0 <= file.size_bytes <= COUNT_MAX):
        yield f"{file.path!r} has a number that is negative or too large"
    if not 0 <= file.schema_id <= _ID_MAX:
        yield f"{file.path!r} has a number that is negative or too large"
    if file.spec_id != ref.spec_id:
        yield f"{file.path!r} is listed under another partition spec than its own"
    if not (0 <= entry.added_version <= version and LIVE <= entry.removed_version <= version):
        yield f"{file.path!r} was added or removed after version {version}"
    for stats in file.stats.values():
        nulls, nans = stats.null_count or 0, stats.nan_count or 0
        if nulls < 0 or nans < 0 or nulls + nans > row_count:
            yield f"{file.path!r} has more nulls than rows, or fewer than none"


def _are_counts(*numbers: int) -> bool:
    return min(numbers) >= 0 and max(numbers) <= COUNT_MAX


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
