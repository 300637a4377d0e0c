"""The rows of the action log that tell what one commit did, as plain SQL can query them."""

from collections.abc import Sequence
from math import isfinite
from typing import Any

from lakebed.expr.transform import partition_text
from lakebed.expr.value_text import value_text
from lakebed.format.datafile import DataFile
from lakebed.format.metadata import TableMetadata, schema_document
from lakebed.format.pointer import Action, ActionType
from lakebed.format.snapshot import Operation, Snapshot
from lakebed.format.types import FLOATS, INTEGERS, Primitive
from lakebed.limits import FORMAT_VERSION


def actions_of(
    snapshot: Snapshot,
    metadata: TableMetadata,
    *,
    added: Sequence[DataFile] = (),
    removed: Sequence[DataFile] = (),
    defines: bool = False,
    user: str = "",
) -> tuple[Action, ...]:
    """Tell a commit as log rows; `defines` says that it changed the table's definition."""
    found = [_commit(snapshot, user)]
    if snapshot.operation is Operation.CREATE:
        found.append(_protocol())
    if defines:
        found.append(_metadata(snapshot, metadata))
    found += [_remove(file, snapshot, metadata) for file in removed]
    found += [_add(file, snapshot, metadata) for file in added]
    if snapshot.token is not None:
        app, version = snapshot.token
        found.append(Action(action_type=ActionType.TXN, app_id=app, app_version=version))
    return tuple(found)


def _commit(snapshot: Snapshot, user: str) -> Action:
    return Action(
        action_type=ActionType.COMMIT,
        commit_ts_ms=snapshot.timestamp_ms,
        commit_user=user or None,
        operation=snapshot.operation.value.upper(),
        operation_params={"commit_id": snapshot.commit_id, **snapshot.parameters},
    )


def _protocol() -> Action:
    return Action(
        action_type=ActionType.PROTOCOL,
        min_reader_version=FORMAT_VERSION,
        min_writer_version=FORMAT_VERSION,
        reader_features=[],
        writer_features=[],
    )


def _metadata(snapshot: Snapshot, metadata: TableMetadata) -> Action:
    schema = metadata.schema(snapshot.schema_id)
    return Action(
        action_type=ActionType.METADATA,
        table_name=snapshot.table_name,
        description=metadata.description or None,
        schema_json=schema_document(schema),
        partition_columns=metadata.spec(snapshot.spec_id).describe(schema),
        configuration=dict(metadata.properties),
    )


def _add(file: DataFile, snapshot: Snapshot, metadata: TableMetadata) -> Action:
    return Action(
        action_type=ActionType.ADD,
        path=file.path,
        partition_values=_partition_values(file, metadata),
        size_bytes=file.size_bytes,
        modification_time_ms=snapshot.timestamp_ms,
        data_change=snapshot.data_change,
        num_records=file.row_count,
        stats_json=_stats(file, metadata),
    )


def _remove(file: DataFile, snapshot: Snapshot, metadata: TableMetadata) -> Action:
    return Action(
        action_type=ActionType.REMOVE,
        path=file.path,
        partition_values=_partition_values(file, metadata),
        size_bytes=file.size_bytes,
        data_change=snapshot.data_change,
        num_records=file.row_count,
        deletion_time_ms=snapshot.timestamp_ms,
    )


def _partition_values(file: DataFile, metadata: TableMetadata) -> dict[str, str | None]:
    values: dict[str, str | None] = {}
    for field, value in zip(metadata.spec(file.spec_id).fields, file.partition, strict=False):
        source = metadata.field_type(field.source_id)
        known = value is not None and source is not None
        values[field.name] = partition_text(field, value, source) if known and source else None
    return values


def _stats(file: DataFile, metadata: TableMetadata) -> dict[str, Any]:
    lower: dict[str, Any] = {}
    upper: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    columns = metadata.schema(file.schema_id).by_id
    for field_id, stats in file.stats.items():
        field, kind = columns.get(field_id), metadata.field_type(field_id)
        if field is None or kind is None:
            continue
        if stats.lower is not None:
            lower[field.name] = _json_value(stats.lower, kind)
        if stats.upper is not None:
            upper[field.name] = _json_value(stats.upper, kind)
        if stats.null_count is not None:
            nulls[field.name] = stats.null_count
    return {
        "numRecords": file.row_count,
        "minValues": lower,
        "maxValues": upper,
        "nullCount": nulls,
    }


def _json_value(value: Any, kind: Primitive) -> Any:
    """Numbers as numbers, all else as text that people and SQL can read."""
    if kind.kind in INTEGERS or isinstance(value, bool):
        return value
    if kind.kind in FLOATS and isfinite(value):
        return value
    return value_text(value, kind)
