"""A data file and what is known of it without opening it."""

from typing import Any

import msgspec

Bound = Any  # a value in storage form, see format.types

LIVE = 0  # value of `removed_version` in an entry that has not been removed


class ColumnStats(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """What is known of one column of one file (or of all files of a manifest).

    `lower` and `upper` are outer bounds of the values that are neither null nor NaN: every such
    value lies between them, and long text is cut so that this stays true. None means unknown,
    so pruning must keep the file.
    """

    null_count: int | None = None
    nan_count: int | None = None
    lower: Bound = None
    upper: Bound = None


class DataFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One immutable Parquet file.

    `row_count` and `size_bytes` are exact. `schema_id` is the schema it was written with: it
    tells the names its columns have inside. `partition` has one storage value per field of its
    spec. `stats` is by field id and may lack a column.
    """

    path: str
    row_count: int
    size_bytes: int
    schema_id: int = 0
    spec_id: int = 0
    partition: tuple[Bound, ...] = ()
    stats: dict[int, ColumnStats] = {}


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A data file's place in a manifest: since when it is live, and until when."""

    file: DataFile
    added_version: int
    removed_version: int = LIVE

    @property
    def is_live(self) -> bool:
        """Whether readers of the snapshot see it."""
        return self.removed_version == LIVE

    def status(self, version: int) -> str:
        """The entry's standing in the snapshot of `version`: added, existing or deleted."""
        if not self.is_live:
            return "deleted"
        return "added" if self.added_version == version else "existing"
