"""Where a stream stands in a table's history: what Spark keeps in its checkpoints.

    {"table": "<id>", "version": 7, "index": 2, "initial": false}

    initial   the first `index` files of snapshot `version` have been read; its log comes after
    not       all changes before `version` have been read, and the first `index` of its own

The form is for ever: a checkpoint may be read by any later release. Nothing is read twice or left
out between two offsets, and the same two offsets are the same rows, at any time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lakebed.errors import RequestError


@dataclass(frozen=True, slots=True, kw_only=True)
class Offset:
    """A place between two files of a table's history."""

    table: str
    version: int
    index: int = 0
    initial: bool = False

    def __lt__(self, other: "Offset") -> bool:
        # The log goes on at the version after the snapshot, so the first pair tells them apart.
        return (self.version, self.index) < (other.version, other.index)

    def to_json(self) -> dict[str, Any]:
        """The form that Spark keeps."""
        return {
            "table": self.table,
            "version": self.version,
            "index": self.index,
            "initial": self.initial,
        }

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> "Offset":
        """Read the form that Spark keeps.

        Raises:
            RequestError: the checkpoint belongs to another source.
        """
        match found:
            case {
                "table": str(table),
                "version": int(version),
                "index": int(index),
                "initial": bool(initial),
            }:
                return cls(table=table, version=version, index=index, initial=initial)
        raise RequestError(
            f"the checkpoint holds {dict(found)!r}, which is no offset of a Lakebed table",
            hint="It belongs to another source. Start the query with a new checkpointLocation",
        )


__all__ = ["Offset"]
