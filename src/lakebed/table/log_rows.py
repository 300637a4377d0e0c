"""The action log as an Arrow table, with the columns that it has in SQL."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lakebed.catalog.rows import LOG_COLUMNS, json_text
from lakebed.format.pointer import Action

_TIMES = {
    "commit_ts": "commit_ts_ms",
    "modification_time": "modification_time_ms",
    "deletion_time": "deletion_time_ms",
}
_JSON = ("operation_params", "schema_json", "configuration", "partition_values", "stats_json")
_LISTS = ("reader_features", "writer_features", "partition_columns")
_LONGS = ("version", "size_bytes", "num_records", "app_version")
_INTS = ("ordinal", "min_reader_version", "min_writer_version")


def _type(name: str) -> pa.DataType:
    if name in _TIMES:
        return pa.timestamp("ms", tz="UTC")
    if name in _LISTS:
        return pa.list_(pa.string())
    if name in _LONGS:
        return pa.int64()
    if name in _INTS:
        return pa.int32()
    return pa.bool_() if name == "data_change" else pa.string()


LOG_SCHEMA = pa.schema([(name, _type(name)) for name in LOG_COLUMNS])


def log_table(table_id: str, rows: Sequence[tuple[int, int, Action]]) -> pa.Table:
    """Lay action rows out; maps and documents are JSON text."""
    places: dict[str, list[Any]] = {
        "table_id": [table_id] * len(rows),
        "version": [version for version, _, _ in rows],
        "ordinal": [ordinal for _, ordinal, _ in rows],
    }
    columns = []
    for field in LOG_SCHEMA:
        if field.name in places:
            values = places[field.name]
        else:
            attribute = _TIMES.get(field.name, field.name)
            values = [getattr(action, attribute) for _, _, action in rows]
        if field.name in _JSON:
            values = [None if value is None else json_text(value) for value in values]
        columns.append(pa.array(values, field.type))
    return pa.Table.from_arrays(columns, schema=LOG_SCHEMA)
