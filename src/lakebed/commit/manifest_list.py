"""The list of manifests of the next snapshot, made from that of the current one.

    tail      the newest few files, inside the snapshot itself
    tier 1    about 16 files each      ┐  as soon as a tier has 8 manifests,
    tier 2    about 128                │  they fold into one of the next tier
    tier 3    about 1,024              ┘
    sealed    16,384 and more             not rewritten by appends

So a commit writes O(1) bytes on average, and the list has O(log n) entries. A removed file stays
listed, marked with the version that removed it, in the snapshot of that version only.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.files.manifest import INHERIT, concat, encode_manifest, inherit, live, to_table
from lakebed.files.metadata_files import MetadataFiles
from lakebed.files.summary import column_ranges, partition_ranges
from lakebed.format.datafile import LIVE, DataFile, Entry
from lakebed.format.document import checksum
from lakebed.format.metadata import TableMetadata
from lakebed.format.paths import manifest_path
from lakebed.format.snapshot import ManifestRef, PartitionRange
from lakebed.ids import Ids
from lakebed.limits import (
    MANIFEST_FILE_COUNT_SEALED,
    TAIL_FILE_COUNT_MAX,
    TAIL_SIZE_BYTES_MAX,
    TIER_FANOUT,
)

_ROUNDING = 1e-9  # so that the logarithm of a power is not taken for the tier below


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A manifest of added files, written once whatever version they land on.

    Its entries do not say their version; they inherit that of the snapshot which first lists it.
    """

    ref: ManifestRef
    table: Any
    data: bytes


@dataclass(slots=True)
class _Piece:
    """A manifest on its way into the list.

    `table` holds the entries of one that is not on disk yet; `data` its bytes, if encoded.
    """

    ref: ManifestRef
    live_count: int
    table: Any = None
    data: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A finished list, and the manifest files that have to be there before it is committed."""

    refs: tuple[ManifestRef, ...]
    objects: tuple[tuple[str, bytes], ...]


class ManifestList:
    """Builds one list for one version; used once and thrown away."""

    def __init__(
        self,
        refs: Iterable[ManifestRef],
        *,
        files: MetadataFiles,
        metadata: TableMetadata,
        version: int,
        ids: Ids,
    ) -> None:
        self._files = files
        self._metadata = metadata
        self._version = version
        self._ids = ids
        self._pieces: list[_Piece] = []
        self._tails: dict[int, ManifestRef] = {}  # by spec
        for ref in refs:
            if ref.is_inline:
                self._tails[ref.spec_id] = _without_removed(ref)
            elif ref.file_count:
                self._pieces.append(_Piece(ref, ref.file_count))

    def remove(self, removed: Sequence[DataFile]) -> list[DataFile]:
        """Mark files as removed by this version; give back those that are not live here."""
        wanted = {file.path: file for file in removed}
        for spec_id, tail in list(self._tails.items()):
            self._tails[spec_id] = self._remove_inline(tail, wanted)
        for piece in reversed(self._pieces):  # what is removed is mostly young
            if not wanted:
                break
            self._remove_from(piece, wanted)
        return list(wanted.values())

    def find(self, files: Sequence[DataFile]) -> list[str]:
        """The paths of those files that are live here; opens manifests that may list them."""
        paths = {file.path for file in files}
        found = [
            entry.file.path
            for tail in self._tails.values()
            for entry in tail.entries
            if entry.is_live and entry.file.path in paths
        ]
        for piece in self._pieces:
            wanted = [file.path for file in files if _may_list(piece.ref, file)]
            if wanted:
                listed = live(self._current(piece)).column("path")
                found += listed.filter(pc.is_in(listed, pa.array(wanted, pa.string()))).to_pylist()
        return found

    def add(self, added: Iterable[DataFile]) -> None:
        """List files as added by this version."""
        by_spec: dict[int, list[Entry]] = {}
        for file in added:
            entry = Entry(file=file, added_version=self._version)
            by_spec.setdefault(file.spec_id, []).append(entry)
        for spec_id, entries in by_spec.items():
            before = self._tails.get(spec_id)
            kept = before.entries if before is not None else ()
            self._tails[spec_id] = self._inline(spec_id, (*kept, *entries))

    def add_prepared(self, manifests: Iterable[Prepared]) -> None:
        """List manifests of files that this version adds."""
        for each in manifests:
            ref = msgspec.structs.replace(each.ref, written_version=self._version)
            self._pieces.append(_Piece(ref, ref.file_count, each.table, each.data))

    def finish(self) -> Draft:
        """Fold what has to be folded, and encode it."""
        for spec_id in sorted(self._tails):
            self._fold_tail(spec_id)
        for spec_id in sorted({piece.ref.spec_id for piece in self._pieces}):
            while self._fold_tier(spec_id):
                pass
        objects: list[tuple[str, bytes]] = []
        refs = [self._written(piece, objects) for piece in self._pieces]
        tails = [tail for _, tail in sorted(self._tails.items()) if tail.entries]
        return Draft(refs=(*refs, *tails), objects=tuple(objects))

    # ------------------------------------------------------------------------------- removing

    def _remove_inline(self, tail: ManifestRef, wanted: dict[str, DataFile]) -> ManifestRef:
        if not any(entry.file.path in wanted for entry in tail.entries):
            return tail
        entries = tuple(
            msgspec.structs.replace(entry, removed_version=self._version)
            if wanted.pop(entry.file.path, None) is not None
            else entry
            for entry in tail.entries
        )
        return self._inline(tail.spec_id, entries)

    def _remove_from(self, piece: _Piece, wanted: dict[str, DataFile]) -> None:
        candidates = [path for path, file in wanted.items() if _may_list(piece.ref, file)]
        if not candidates:
            return
        table = live(self._files.manifest(piece.ref, self._metadata))
        gone = pc.is_in(table.column("path"), pa.array(candidates, pa.string()))
        found = table.column("path").filter(gone).to_pylist()
        if not found:
            return
        for path in found:
            del wanted[path]
        version = pa.scalar(self._version, pa.int64())
        marked = pc.if_else(gone, version, table.column("removed_version"))
        place = table.schema.get_field_index("removed_version")
        piece.table = table.set_column(place, "removed_version", marked)
        piece.live_count = table.num_rows - len(found)

    # -------------------------------------------------------------------------------- folding

    def _inline(self, spec_id: int, entries: tuple[Entry, ...]) -> ManifestRef:
        living = [entry.file for entry in entries if entry.is_live]
        return ManifestRef(
            spec_id=spec_id,
            written_version=self._version,
            file_count=len(living),
            row_count=sum(file.row_count for file in living),
            data_size_bytes=sum(file.size_bytes for file in living),
            deleted_count=len(entries) - len(living),
            entries=entries,
        )

    def _fold_tail(self, spec_id: int) -> None:
        """Turn a tail that has grown too long into a manifest."""
        tail = self._tails[spec_id]
        if tail.written_version != self._version:
            return
        if len(tail.entries) <= TAIL_FILE_COUNT_MAX and _size_bytes(tail) <= TAIL_SIZE_BYTES_MAX:
            return
        table = to_table(tail.entries, self._metadata.spec(spec_id), self._metadata)
        self._pieces.append(_Piece(tail, tail.file_count, table))
        del self._tails[spec_id]

    def _fold_tier(self, spec_id: int) -> bool:
        """Fold the lowest tier that is full; False if none is."""
        tiers: dict[int, list[_Piece]] = {}
        for piece in self._pieces:
            if piece.ref.spec_id == spec_id and piece.live_count < MANIFEST_FILE_COUNT_SEALED:
                tiers.setdefault(_tier(piece.live_count), []).append(piece)
        for _, pieces in sorted(tiers.items()):
            enough = _until_sealed(pieces)
            if len(pieces) >= TIER_FANOUT or enough is not None:
                self._merge(spec_id, enough or pieces)
                return True
        return False

    def _merge(self, spec_id: int, pieces: list[_Piece]) -> None:
        tables = [self._current(piece) for piece in pieces]
        merged = _Piece(
            pieces[0].ref,
            sum(piece.live_count for piece in pieces),
            concat(tables, self._metadata.spec(spec_id), self._metadata),
        )
        place = next(i for i, piece in enumerate(self._pieces) if piece is pieces[0])
        self._pieces[place] = merged
        gone = {id(piece) for piece in pieces[1:]}
        self._pieces = [piece for piece in self._pieces if id(piece) not in gone]

    def _current(self, piece: _Piece) -> Any:
        """The entries that this version's readers need: live ones, and those it removes."""
        if piece.table is None:
            return live(self._files.manifest(piece.ref, self._metadata))
        return inherit(piece.table, self._version)

    def _written(self, piece: _Piece, objects: list[tuple[str, bytes]]) -> ManifestRef:
        if piece.table is None:
            return piece.ref
        if piece.data is not None:
            objects.append((piece.ref.path, piece.data))
            return piece.ref
        path, data = manifest_path(self._ids.new()), encode_manifest(piece.table)
        objects.append((path, data))
        return _describe(piece.table, self._metadata, piece.ref.spec_id, self._version, path, data)


def prepare(
    added: Sequence[DataFile], *, metadata: TableMetadata, ids: Ids
) -> tuple[Prepared, ...]:
    """Write many added files into manifests of their own, neighbours in time together."""
    prepared = []
    for spec_id in sorted({file.spec_id for file in added}):
        spec = metadata.spec(spec_id)
        entries = [
            Entry(file=file, added_version=INHERIT) for file in added if file.spec_id == spec_id
        ]
        table = _clustered(to_table(entries, spec, metadata))
        for start in range(0, table.num_rows, MANIFEST_FILE_COUNT_SEALED):
            part = table.slice(start, MANIFEST_FILE_COUNT_SEALED)
            path, data = manifest_path(ids.new()), encode_manifest(part)
            ref = _describe(part, metadata, spec_id, INHERIT, path, data)
            prepared.append(Prepared(ref=ref, table=part, data=data))
    return tuple(prepared)


def _clustered(table: Any) -> Any:
    """Sort by partition, then by the first column that has bounds: mostly the time."""
    keys = [name for name in table.column_names if name.startswith("part_")]
    lowers = [name for name in table.column_names if name.startswith("lower_")]
    order = [(name, "ascending") for name in (*keys, *lowers[:1])]
    return table.sort_by(order) if order else table


def _describe(
    table: Any, metadata: TableMetadata, spec_id: int, version: int, path: str, data: bytes
) -> ManifestRef:
    """The entry of a manifest in the list, with the ranges of its live files."""
    living = live(table)
    return ManifestRef(
        spec_id=spec_id,
        written_version=version,
        file_count=living.num_rows,
        row_count=pc.sum(living.column("row_count")).as_py() or 0,
        data_size_bytes=pc.sum(living.column("size_bytes")).as_py() or 0,
        deleted_count=table.num_rows - living.num_rows,
        path=path,
        size_bytes=len(data),
        checksum=checksum(data),
        partitions=partition_ranges(living, metadata.spec(spec_id), metadata),
        stats=column_ranges(living),
    )


def _without_removed(tail: ManifestRef) -> ManifestRef:
    """A tail as the next version inherits it: what earlier versions removed is forgotten."""
    if not tail.deleted_count:
        return tail
    kept = tuple(entry for entry in tail.entries if entry.removed_version == LIVE)
    return msgspec.structs.replace(tail, entries=kept, deleted_count=0)


def _may_list(ref: ManifestRef, file: DataFile) -> bool:
    """Whether the ranges of a manifest leave room for a file."""
    if ref.spec_id != file.spec_id:
        return False
    spans = zip(ref.partitions, file.partition, strict=False)
    return all(_may_hold(span, value) for span, value in spans)


def _may_hold(span: PartitionRange, value: object) -> bool:
    if value is None:
        return span.has_null
    if isinstance(value, int) and isinstance(span.lower, int) and isinstance(span.upper, int):
        return span.lower <= value <= span.upper
    return True  # Other types may differ in form between memory and JSON: look inside.


def _size_bytes(tail: ManifestRef) -> int:
    return len(msgspec.json.encode(tail))


def _tier(live_count: int) -> int:
    return int(log(max(live_count / TAIL_FILE_COUNT_MAX, 1), TIER_FANOUT) + _ROUNDING)


def _until_sealed(pieces: list[_Piece]) -> list[_Piece] | None:
    """The first pieces that together fill a sealed manifest, if there are enough."""
    total = 0
    for number, piece in enumerate(pieces, start=1):
        total += piece.live_count
        if total >= MANIFEST_FILE_COUNT_SEALED:
            return pieces[:number]
    return None
