"""Rows of the two SQL catalogs: column lists, and values turned into pointers and back.

Both databases have the same tables with the same columns in the same order; they differ only in
how a time, a list, a map and a UUID are stored, which each backend's codec says.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from lakebed.errors import BadMetadataError, RequestError
from lakebed.format.pointer import Action, ActionType, Move, Pointer
from lakebed.format.snapshot import Operation

POINTER_COLUMNS = (
    "name",
    "table_id",
    "location",
    "version",
    "snapshot_id",
    "snapshot_path",
    "commit_id",
    "timestamp_ms",
    "operation",
)
LOG_COLUMNS = (
    "table_id",
    "version",
    "ordinal",
    "action_type",
    "commit_ts",
    "commit_user",
    "operation",
    "operation_params",
    "min_reader_version",
    "min_writer_version",
    "reader_features",
    "writer_features",
    "table_name",
    "description",
    "schema_json",
    "partition_columns",
    "configuration",
    "path",
    "partition_values",
    "size_bytes",
    "modification_time",
    "data_change",
    "num_records",
    "stats_json",
    "deletion_time",
    "app_id",
    "app_version",
)
MOVED_COLUMNS = POINTER_COLUMNS[2:]  # what a swap changes: all but name and table_id
WAREHOUSE = "warehouse"  # the property that says where the tables' directories are
PAGE_ROW_COUNT = 1_000  # rows fetched at once where a caller may read very many

_INTEGERS = ("version", "snapshot_id", "timestamp_ms")
_POINTER_TYPES = tuple(
    (POINTER_COLUMNS.index(column), int if column in _INTEGERS else str)
    for column in POINTER_COLUMNS
    if column != "table_id"  # the backend has made it a string
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class Encoders(NamedTuple):
    """How one database takes the values that have no type common to all."""

    table_id: Callable[[str], Any]
    time: Callable[[int], Any]
    json: Callable[[Any], Any]
    texts: Callable[[list[str]], Any]
    flag: Callable[[bool], Any]


class Decoders(NamedTuple):
    """How the same values come back."""

    table_id: Callable[[Any], str]
    time: Callable[[Any], int]
    json: Callable[[Any], Any]
    texts: Callable[[Any], list[str]]


def pointer_row(pointer: Pointer, table_id: Any) -> tuple[Any, ...]:
    """The values of POINTER_COLUMNS."""
    return pointer.name, table_id, *moved_row(pointer)


def moved_row(pointer: Pointer) -> tuple[Any, ...]:
    """The values of MOVED_COLUMNS."""
    return (
        pointer.location,
        pointer.version,
        pointer.snapshot_id,
        pointer.snapshot_path,
        pointer.commit_id,
        pointer.timestamp_ms,
        pointer.operation,
    )


def pointer_of(row: Sequence[Any], table_id: str) -> Pointer:
    """A pointer from the values of POINTER_COLUMNS.

    A database may hold anything: SQLite's columns take any type, and others can write too.
    """
    for place, kind in _POINTER_TYPES:
        if type(row[place]) is not kind:
            raise BadMetadataError(
                f"the catalog has {row[place]!r} for the {POINTER_COLUMNS[place]} of {row[0]!r}",
                hint="Restore the catalog from a copy, or from the files: lakebed catalog rebuild",
            )
    return Pointer(
        name=row[0],
        table_id=table_id,
        location=row[2],
        version=row[3],
        snapshot_id=row[4],
        snapshot_path=row[5],
        commit_id=row[6],
        timestamp_ms=row[7],
        operation=row[8],
    )


def action_rows(move: Move, encode: Encoders) -> list[tuple[Any, ...]]:
    """The values of LOG_COLUMNS for each action of a move."""
    table_id, version = encode.table_id(move.new.table_id), move.new.version
    return [
        (table_id, version, ordinal, *_action_row(action, encode))
        for ordinal, action in enumerate(move.actions)
    ]


def _action_row(action: Action, encode: Encoders) -> tuple[Any, ...]:
    time, json, texts = encode.time, encode.json, encode.texts
    a = action
    return (
        a.action_type.value,
        None if a.commit_ts_ms is None else time(a.commit_ts_ms),
        a.commit_user,
        a.operation,
        None if a.operation_params is None else json(a.operation_params),
        a.min_reader_version,
        a.min_writer_version,
        None if a.reader_features is None else texts(a.reader_features),
        None if a.writer_features is None else texts(a.writer_features),
        a.table_name,
        a.description,
        None if a.schema_json is None else json(a.schema_json),
        None if a.partition_columns is None else texts(a.partition_columns),
        None if a.configuration is None else json(a.configuration),
        a.path,
        None if a.partition_values is None else json(a.partition_values),
        a.size_bytes,
        None if a.modification_time_ms is None else time(a.modification_time_ms),
        None if a.data_change is None else encode.flag(a.data_change),
        a.num_records,
        None if a.stats_json is None else json(a.stats_json),
        None if a.deletion_time_ms is None else time(a.deletion_time_ms),
        a.app_id,
        a.app_version,
    )


def action_of(row: Sequence[Any], decode: Decoders) -> Action:
    """An action from the values of LOG_COLUMNS."""
    time, json, texts = decode.time, decode.json, decode.texts
    try:
        return Action(
            action_type=ActionType(row[3]),
            commit_ts_ms=None if row[4] is None else time(row[4]),
            commit_user=row[5],
            operation=row[6],
            operation_params=None if row[7] is None else json(row[7]),
            min_reader_version=row[8],
            min_writer_version=row[9],
            reader_features=None if row[10] is None else texts(row[10]),
            writer_features=None if row[11] is None else texts(row[11]),
            table_name=row[12],
            description=row[13],
            schema_json=None if row[14] is None else json(row[14]),
            partition_columns=None if row[15] is None else texts(row[15]),
            configuration=None if row[16] is None else json(row[16]),
            path=row[17],
            partition_values=None if row[18] is None else json(row[18]),
            size_bytes=row[19],
            modification_time_ms=None if row[20] is None else time(row[20]),
            data_change=None if row[21] is None else bool(row[21]),
            num_records=row[22],
            stats_json=None if row[23] is None else json(row[23]),
            deletion_time_ms=None if row[24] is None else time(row[24]),
            app_id=row[25],
            app_version=row[26],
        )
    except (ValueError, TypeError, msgspec.DecodeError) as error:
        raise BadMetadataError(
            f"row {row[2]} of version {row[1]} in the action log is not sound: {error}",
            table_id=str(row[0]),
            version=row[1],
        ) from error


def json_text(value: object) -> str:
    """A plain value as JSON text."""
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, UnicodeEncodeError) as error:
        raise RequestError(f"the action log takes only what JSON can hold: {error}") from error


def utc_time(time_ms: int) -> datetime:
    """Milliseconds since 1970 as a time in UTC."""
    try:
        return _EPOCH + time_ms * _MILLISECOND
    except OverflowError as error:
        raise RequestError(f"{time_ms} ms since 1970 is no time that can be stored") from error


def utc_text(time_ms: int) -> str:
    """Milliseconds since 1970 as ISO 8601 text."""
    return utc_time(time_ms).isoformat(timespec="milliseconds")


def utc_ms(time: datetime) -> int:
    """A time as milliseconds since 1970."""
    return (time - _EPOCH) // _MILLISECOND


def check_distinct(moves: Sequence[Move]) -> None:
    """Assert what the commit protocol promises of the moves of one swap."""
    assert moves, "a swap makes at least one step"
    assert len({move.new.name for move in moves}) == len(moves), "one step per table"
    for move in moves:
        check_step(move)


def check_step(move: Move) -> None:
    """Assert that a move is one step of one table."""
    assert move.expected.name == move.new.name, "a step renames nothing"
    assert move.expected.table_id == move.new.table_id, "a step keeps the table's id"
    assert move.new.version == move.expected.version + 1, "versions count by one"


def check_history(moves: Sequence[Move]) -> None:
    """Assert that the moves are the versions of one table, with none left out."""
    assert moves, "a history has at least one version"
    first = moves[0].new
    for place, move in enumerate(moves):
        assert move.new.table_id == first.table_id, "one table"
        assert move.new.name == first.name, "one name"
        assert move.new.version == first.version + place, "versions count by one"


def is_tombstone(pointer: Pointer) -> bool:
    """Whether the version says that the table is no more."""
    return pointer.operation == Operation.DROP
