"""What a writer wants to do to a table, independent of the version it lands on."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from lakebed.expr.bind import Bound
from lakebed.format.datafile import DataFile
from lakebed.format.metadata import TableMetadata
from lakebed.format.pointer import Token
from lakebed.format.snapshot import Operation, Snapshot


class Isolation(StrEnum):
    """What a change that read the table demands of commits that came in between."""

    SERIALIZABLE = "serializable"  # nothing it read may have changed
    WRITE_SERIALIZABLE = "write-serializable"  # blind appends may count as coming after it


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One intended step of one table.

    `read` is the predicate whose rows the change depends on, evaluated at the version it was
    planned on; None for a blind append, which depends on nothing. `define` makes the next
    definition from the current one and is called again on each rebase. `restore` replaces the
    whole list of files by that of an earlier snapshot.
    """

    operation: Operation
    added: tuple[DataFile, ...] = ()
    removed: tuple[DataFile, ...] = ()
    read: Bound | None = None
    isolation: Isolation = Isolation.WRITE_SERIALIZABLE
    data_change: bool = True
    define: Callable[[TableMetadata, Snapshot], TableMetadata] | None = None
    restore: Snapshot | None = None
    token: Token | None = None
    parameters: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A change that is in the table for good."""

    table: str
    version: int
    snapshot_id: int
    commit_id: str
    timestamp_ms: int
    operation: Operation
    added_files: int = 0
    added_rows: int = 0
    removed_files: int = 0
    removed_rows: int = 0
    attempts: int = 1
    repeated: bool = False  # the token was committed before; nothing was written now
