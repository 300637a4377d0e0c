"""A table's history as a stream reads it: version by version, in pieces that are read whole.

    version 7  append    [file] [file] [file]     a piece for each file
    version 8  rewrite   nothing: the rows are the same
    version 9  delete    plain: an error, unless the user has chosen; change feed: one piece

A piece of a change feed that took rows out and put rows in is a whole commit: what it only moved
from file to file is found by comparing all of them.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lakebed.commit.head import Head
from lakebed.errors import LakebedError, NotFoundError, ObjectMissingError, RequestError
from lakebed.files.delta import Delta, delta_of
from lakebed.files.manifest import live, to_entries
from lakebed.format.datafile import DataFile
from lakebed.format.schema import Schema
from lakebed.format.snapshot import Operation, Snapshot
from lakebed.spark.source.stream_offset import Offset
from lakebed.table.table import Table

_STEPS_KEPT = 64
_CHOICES = (
    "Choose: skipChangeCommits=true leaves such commits out, ignoreDeletes=true those that only "
    "delete, readChangeFeed=true shows what they did"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Files that are read together; `removed` has rows only in a change feed."""

    added: tuple[DataFile, ...] = ()
    removed: tuple[DataFile, ...] = ()

    @property
    def file_count(self) -> int:
        """What it counts for `maxFilesPerTrigger`."""
        return len(self.added) + len(self.removed)

    @property
    def size_bytes(self) -> int:
        """What it counts for `maxBytesPerTrigger`."""
        return sum(file.size_bytes for file in (*self.added, *self.removed))


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One version, or the snapshot that a stream begins with."""

    snapshot: Snapshot
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How much a batch may read at most; it reads at least one piece."""

    files: int | None = None
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How commits are taken that do more than append."""

    feed: bool = False
    skip_changes: bool = False
    ignore_deletes: bool = False


@dataclass(frozen=True, kw_only=True)
class History:
    """The history of one table, read forwards.

    `schema` and `columns` are what the stream gives out, found at version `known`: a newer
    version with other columns ends the stream, since its rows would lose what is new.
    """

    table: Table
    schema: Schema
    columns: tuple[str, ...] | None
    known: int
    manner: Manner
    _steps: "OrderedDict[tuple[int, bool], Step]" = field(default_factory=OrderedDict, repr=False)

    def head(self) -> Head:
        """The newest version of the table that the stream was made for."""
        return self.table.head()

    def step(self, version: int, *, initial: bool = False) -> Step:
        """One version, or the whole snapshot of it.

        Raises:
            NotFoundError: the version is gone.
            RequestError: it does what the stream was not told to take, or has other columns.
        """
        found = self._steps.get((version, initial))
        if found is None:
            found = self._read(version, initial=initial)
            self._steps[version, initial] = found
            while len(self._steps) > _STEPS_KEPT:
                self._steps.popitem(last=False)
        return found

    def between(self, start: Offset, end: Offset) -> Iterator[tuple[Step, tuple[Piece, ...]]]:
        """What lies between two offsets, step by step."""
        place = start
        if place.initial:
            step = self.step(place.version, initial=True)
            last = end.index if end.initial else None
            yield step, step.pieces[place.index : last]
            if end.initial:
                return
            place = Offset(table=place.table, version=place.version + 1)
        for version in range(place.version, end.version + (1 if end.index else 0)):
            step = self.step(version)
            first = place.index if version == place.version else 0
            last = end.index if version == end.version else None
            yield step, step.pieces[first:last]

    def limited(self, start: Offset, limit: Limit, until: int) -> Offset:
        """The offset at which a batch ends that begins at `start` and reads up to `until`."""
        left = _Allowance(limit)
        version = start.version
        if start.initial:
            step = self.step(start.version, initial=True)
            taken = left.take(step.pieces[start.index :]) + start.index
            if taken < len(step.pieces):
                return Offset(table=start.table, version=version, index=taken, initial=True)
            # A batch that begins with the snapshot ends with it: then its end alone says which
            # snapshot it was, should Spark ask for the first batch again.
            return Offset(table=start.table, version=version + 1)
        for number in range(version, until + 1):
            first = start.index if number == version else 0
            pieces = self.step(number).pieces
            taken = left.take(pieces[first:]) + first
            if taken < len(pieces):
                return Offset(table=start.table, version=number, index=taken)
        return Offset(table=start.table, version=max(until + 1, version))

    def _read(self, version: int, *, initial: bool) -> Step:
        snapshot = self._snapshot(version)
        self._check_columns(snapshot)
        try:
            if initial:
                return Step(snapshot=snapshot, pieces=_whole(self.table, snapshot))
            return Step(snapshot=snapshot, pieces=self._pieces(snapshot))
        except ObjectMissingError as error:
            raise self._gone(version) from error

    def _pieces(self, snapshot: Snapshot) -> tuple[Piece, ...]:
        if not snapshot.data_change:
            return ()
        delta = delta_of(self.table.files, snapshot)
        if self.manner.feed:
            return _feed_pieces(delta)
        if delta.removed or snapshot.operation is Operation.ROLLBACK:
            only_deletes = not delta.added and snapshot.operation is not Operation.ROLLBACK
            if self.manner.skip_changes or (self.manner.ignore_deletes and only_deletes):
                return ()
            raise RequestError(
                f"version {snapshot.version} of {self.table.name} is a "
                f"{snapshot.operation.value}: it took rows out, and a stream of rows cannot "
                "take back what it has given",
                hint=_CHOICES,
                table=self.table.name,
                version=snapshot.version,
            )
        return tuple(Piece(added=(file,)) for file in delta.added)

    def _snapshot(self, version: int) -> Snapshot:
        try:
            return self.table.snapshot(version)
        except (NotFoundError, ObjectMissingError) as error:
            raise self._gone(version) from error

    def _gone(self, version: int) -> LakebedError:
        return NotFoundError(
            f"version {version} of {self.table.name}, where the stream stands, is gone: it was "
            "expired, or an older copy of the table was restored",
            hint="Choose: a new checkpointLocation reads the whole table again, with "
            "startingVersion it begins at a version that is there and leaves the gap out",
            table=self.table.name,
            version=version,
        )

    def _check_columns(self, snapshot: Snapshot) -> None:
        if snapshot.version <= self.known:
            return
        metadata = self.table.files.metadata(snapshot.metadata_path)
        now = metadata.schema(snapshot.schema_id)
        names = list(self.columns or ()) or None
        if _shape(now, names) != _shape(self.schema, names):
            raise RequestError(
                f"the columns of {self.table.name} were changed at version {snapshot.version}",
                hint="Start the query again with the same checkpoint: it goes on there, with "
                "the new columns",
                table=self.table.name,
                version=snapshot.version,
            )


class _Allowance:
    """What a batch may still read."""

    def __init__(self, limit: Limit) -> None:
        self._files = limit.files
        self._size_bytes = limit.size_bytes
        self._is_first = True

    def take(self, pieces: tuple[Piece, ...]) -> int:
        """How many of the pieces fit; the very first always does."""
        for count, piece in enumerate(pieces):
            fits = self._files is None or piece.file_count <= self._files
            fits &= self._size_bytes is None or piece.size_bytes <= self._size_bytes
            if not (fits or self._is_first):
                return count
            self._is_first = False
            if self._files is not None:
                self._files = max(0, self._files - piece.file_count)
            if self._size_bytes is not None:
                self._size_bytes = max(0, self._size_bytes - piece.size_bytes)
        return len(pieces)


def _whole(table: Table, snapshot: Snapshot) -> tuple[Piece, ...]:
    """All files of a snapshot, the oldest first."""
    metadata = table.files.metadata(snapshot.metadata_path)
    found: list[tuple[int, str, DataFile]] = []
    for ref in snapshot.manifest_list:
        rows: Any = live(table.files.manifest(ref, metadata))
        entries = to_entries(rows, metadata.spec(ref.spec_id))
        found.extend((entry.added_version, entry.file.path, entry.file) for entry in entries)
    return tuple(Piece(added=(file,)) for _, _, file in sorted(found, key=lambda f: f[:2]))


def _feed_pieces(delta: Delta) -> tuple[Piece, ...]:
    if delta.added and delta.removed:
        return (Piece(added=delta.added, removed=delta.removed),)
    added = tuple(Piece(added=(file,)) for file in delta.added)
    return (*added, *(Piece(removed=(file,)) for file in delta.removed))


def _shape(schema: Schema, names: list[str] | None) -> Any:
    if names is None:
        return schema.fields
    return [schema.by_name.get(name) for name in names]


__all__ = ["History", "Limit", "Manner", "Piece", "Step"]
