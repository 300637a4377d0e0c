"""What a catalog knows of a table: where its head is, how it got there, and the action log."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple


class Token(NamedTuple):
    """An exactly-once key chosen by the writer: `version` only ever grows within `app`."""

    app: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """One version of one table, as the catalog records it.

    `location` is relative to the catalog's warehouse, or a URI if it is elsewhere;
    `snapshot_path` is relative to the table.
    """

    name: str
    table_id: str
    location: str
    version: int
    snapshot_id: int
    snapshot_path: str
    commit_id: str
    timestamp_ms: int
    operation: str = ""


class ActionType(StrEnum):
    """The kinds of rows in the action log."""

    PROTOCOL = "protocol"
    METADATA = "metadata"
    ADD = "add"
    REMOVE = "remove"
    TXN = "txn"
    COMMIT = "commit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One row of the append-only log; columns that do not belong to its type are None.

    Times are milliseconds since 1970; maps and lists are plain values that JSON can hold. The
    row's place (`table_id`, `version`, `ordinal`) is added by the catalog.
    """

    action_type: ActionType
    commit_ts_ms: int | None = None
    commit_user: str | None = None
    operation: str | None = None
    operation_params: dict[str, Any] | None = None
    min_reader_version: int | None = None
    min_writer_version: int | None = None
    reader_features: list[str] | None = None
    writer_features: list[str] | None = None
    table_name: str | None = None
    description: str | None = None
    schema_json: dict[str, Any] | None = None
    partition_columns: list[str] | None = None
    configuration: dict[str, str] | None = None
    path: str | None = None
    partition_values: dict[str, str | None] | None = None
    size_bytes: int | None = None
    modification_time_ms: int | None = None
    data_change: bool | None = None
    num_records: int | None = None
    stats_json: dict[str, Any] | None = None
    deletion_time_ms: int | None = None
    app_id: str | None = None
    app_version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One table's step from `expected` to `new`, with everything that must land beside it.

    `new.version == expected.version + 1` and both have one `table_id`; for a table that is
    created, `expected` equals `new` and is not compared. `document` is the snapshot file's
    content: a catalog that decides by creating that file writes it; for the others it is on disk
    already.
    """

    expected: Pointer
    new: Pointer
    document: bytes
    actions: tuple[Action, ...] = ()
    token: Token | None = None
    schema_id: int | None = None  # set when this step adds a schema
    schema_json: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the catalog says of a commit id, read together with the head in one atomic read.

    `head` is None when no table has the name now: it was dropped. A head with another `table_id`
    than the asker knows says that it was dropped and created anew. Either way `committed` tells
    of any table that ever had the name.
    """

    head: Pointer | None
    committed: Pointer | None = field(default=None)
