"""What a writer wants to do to a table, independent of the version it lands on."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from lakebed.errors import RequestError
from lakebed.expr.bind import Bound
from lakebed.format.datafile import DataFile
from lakebed.format.metadata import TableMetadata
from lakebed.format.pointer import Token
from lakebed.format.snapshot import Operation, Snapshot

ISOLATION_PROPERTY = "commit.isolation-level"


class Isolation(StrEnum):
    """What a change that read the table demands of commits that came in between."""

    SERIALIZABLE = "serializable"  # nothing it read may have changed
    WRITE_SERIALIZABLE = "write-serializable"  # blind appends may count as coming after it

    @classmethod
    def of(cls, metadata: TableMetadata) -> "Isolation":
        """The level that a table's properties ask for."""
        text = metadata.properties.get(ISOLATION_PROPERTY, cls.WRITE_SERIALIZABLE.value)
        if text not in cls.__members__.values():
            raise RequestError(
                f"{ISOLATION_PROPERTY} is {text!r}",
                hint=f"Use one of: {', '.join(level.value for level in cls)}",
            )
        return cls(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What a table is at some version, besides its files."""

    metadata: TableMetadata
    schema_id: int
    spec_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One intended step of one table.

    `read` is the predicate whose rows the change depends on, evaluated at the version it was
    planned on; None for a blind append, which depends on nothing. `define` makes the next
    definition from the current one and is called again on each rebase; it raises
    CommitConflictError if it no longer can. `restore` replaces the whole list of files by that
    of an earlier snapshot, and is refused if anything changed since it was planned. `adopts`
    says that the added files come from somebody else, so one of them may be in the table already.
    """

    operation: Operation
    added: tuple[DataFile, ...] = ()
    removed: tuple[DataFile, ...] = ()
    read: Bound | None = None
    isolation: Isolation = Isolation.WRITE_SERIALIZABLE
    data_change: bool = True
    adopts: bool = False
    define: Callable[[Definition], Definition] | None = None
    restore: Snapshot | None = None
    token: Token | None = None
    parameters: dict[str, str] = field(default_factory=dict)

    @property
    def is_blind(self) -> bool:
        """Whether it fits after any commit, whatever that did to the files."""
        return self.read is None and not self.removed and self.restore is None


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


def commit_of(snapshot: Snapshot, *, attempts: int = 1, repeated: bool = False) -> Commit:
    """Report the commit that made a snapshot."""
    summary = snapshot.summary
    return Commit(
        table=snapshot.table_name,
        version=snapshot.version,
        snapshot_id=snapshot.snapshot_id,
        commit_id=snapshot.commit_id,
        timestamp_ms=snapshot.timestamp_ms,
        operation=snapshot.operation,
        added_files=summary.added_files,
        added_rows=summary.added_rows,
        removed_files=summary.removed_files,
        removed_rows=summary.removed_rows,
        attempts=attempts,
        repeated=repeated,
    )
