"""Moves for tests of catalogs, with real snapshots as their documents."""

from dataclasses import replace
from typing import Any

from lakebed.catalog.backend import CatalogBackend
from lakebed.format.paths import snapshot_path
from lakebed.format.pointer import Action, ActionType, Move, Pointer, Token
from lakebed.format.snapshot import (
    Operation,
    Snapshot,
    decode_snapshot,
    encode_snapshot,
    make_snapshot_id,
)
from lakebed.ids import SystemIds
from lakebed.limits import FORMAT_VERSION

IDS = SystemIds()
START_MS = 1_700_000_000_000
STEP_MS = 10


def first_move(
    name: str, version: int = 0, *, time_ms: int = START_MS, actions: tuple[Action, ...] = ()
) -> Move:
    """The creation of a table with a fresh id."""
    snapshot = Snapshot(
        format_version=FORMAT_VERSION,
        version=version,
        snapshot_id=make_snapshot_id(version, IDS.bits(31)),
        table_id=IDS.new(),
        table_name=name,
        commit_id=IDS.new(),
        timestamp_ms=time_ms,
        operation=Operation.CREATE,
        metadata_path="metadata/table-0.json",
        schema_id=0,
        spec_id=0,
    )
    new = _pointer(snapshot)
    return Move(
        expected=new,
        new=new,
        document=encode_snapshot(snapshot),
        actions=actions,
        schema_id=0,
        schema_json={"fields": []},
    )


def next_move(
    before: Move,
    *,
    operation: Operation = Operation.APPEND,
    commit_id: str = "",
    token: Token | None = None,
    actions: tuple[Action, ...] = (),
    **changes: Any,
) -> Move:
    """A step from where another one led; `changes` are fields of the snapshot."""
    old = decode_snapshot(before.document, before.new.snapshot_path)
    version = old.version + 1
    tokens = dict(old.tokens)
    if token is not None:
        tokens[token.app] = token.version, version
    snapshot = Snapshot(
        format_version=FORMAT_VERSION,
        **{
            "version": version,
            "snapshot_id": make_snapshot_id(version, IDS.bits(31)),
            "table_id": old.table_id,
            "table_name": old.table_name,
            "commit_id": commit_id or IDS.new(),
            "timestamp_ms": old.timestamp_ms + STEP_MS,
            "operation": operation,
            "metadata_path": old.metadata_path,
            "schema_id": 0,
            "spec_id": 0,
            "parent_id": old.snapshot_id,
            "parent_path": before.new.snapshot_path,
            "token": token,
            "tokens": tokens,
            **changes,
        },
    )
    return Move(
        expected=before.new,
        new=_pointer(snapshot),
        document=encode_snapshot(snapshot),
        actions=actions,
        token=token,
    )


def last_move(before: Move) -> Move:
    """The tombstone after another step."""
    return next_move(before, operation=Operation.DROP)


def imposter(move: Move) -> Move:
    """The same step of a table with the same name and another id."""
    snapshot = decode_snapshot(move.document, move.new.snapshot_path)
    other = IDS.new()
    fields = {name: getattr(snapshot, name) for name in snapshot.__struct_fields__}
    return replace(
        move,
        expected=replace(move.expected, table_id=other),
        new=replace(move.new, table_id=other),
        document=encode_snapshot(Snapshot(**{**fields, "table_id": other})),
    )


def add_actions(count: int) -> tuple[Action, ...]:
    """Log rows of that many added files."""
    return tuple(
        Action(action_type=ActionType.ADD, path=f"data/{number}.parquet", num_records=number)
        for number in range(count)
    )


def create(catalog: CatalogBackend, name: str, actions: tuple[Action, ...] = ()) -> Move:
    """Enter a table where the catalog wants it to begin."""
    move = first_move(name, catalog.next_version(name), actions=actions)
    catalog.create(move)
    return move


def grow(catalog: CatalogBackend, name: str, version_count: int) -> list[Move]:
    """Make a table with that many versions."""
    moves = [create(catalog, name)]
    while len(moves) < version_count:
        moves.append(next_move(moves[-1]))
        assert catalog.swap([moves[-1]])
    return moves


def drop(catalog: CatalogBackend, before: Move) -> Move:
    """Drop the table whose last step is given; the tombstone."""
    tombstone = last_move(before)
    assert catalog.drop(tombstone)
    return tombstone


def _pointer(snapshot: Snapshot) -> Pointer:
    return Pointer(
        name=snapshot.table_name,
        table_id=snapshot.table_id,
        location=snapshot.table_name,
        version=snapshot.version,
        snapshot_id=snapshot.snapshot_id,
        snapshot_path=snapshot_path(snapshot.version),
        commit_id=snapshot.commit_id,
        timestamp_ms=snapshot.timestamp_ms,
        operation=snapshot.operation.value,
    )


EVERY_COLUMN = (
    Action(
        action_type=ActionType.PROTOCOL,
        commit_ts_ms=1_700_000_000_123,
        min_reader_version=1,
        min_writer_version=2,
        reader_features=["a", 'quote"s', "comma,{}"],
        writer_features=[],
    ),
    Action(
        action_type=ActionType.METADATA,
        table_name="plant.größe",
        description="a 'quoted' text\nof two lines, with \\ and %s and $1",
        schema_json={"fields": [{"id": 1, "name": "é漢字"}], "odd": "a\x00b\u2400\u24000"},
        partition_columns=["day(ts)", "NULL"],
        configuration={"owner": "", "key=with": "{}"},
    ),
    Action(
        action_type=ActionType.ADD,
        path="data/ts_day=2026-01-01/x.parquet",
        partition_values={"ts_day": "2026-01-01", "none": None},
        size_bytes=1 << 40,
        modification_time_ms=-1,
        data_change=True,
        num_records=0,
        stats_json={"min": {"1": -1.5, "2": "a"}, "max": {"1": 1e300}, "nulls": [0, None, True]},
    ),
    Action(
        action_type=ActionType.REMOVE,
        path="data/old.parquet",
        deletion_time_ms=1,
        data_change=False,
    ),
    Action(action_type=ActionType.TXN, app_id="app ☃", app_version=(1 << 62) + 1),
    Action(
        action_type=ActionType.COMMIT,
        commit_ts_ms=0,
        commit_user="o'neil",
        operation="append",
        operation_params={"nested": {"list": [1, 2, [3]]}, "empty": {}},
    ),
)
