"""Event times of a batch, for the commit's summary: from when to when, and how late.

Lateness is how far the oldest row of a batch lies behind the newest row that the table had before
it. All of it comes from rows in memory or from statistics that are at hand; no file is opened.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.commit.head import Head
from lakebed.errors import RequestError
from lakebed.format.datafile import ColumnStats, DataFile
from lakebed.format.partition import TransformName
from lakebed.format.types import NANOSECONDS, TIMESTAMPS, Field, Primitive

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CLOCK_TRANSFORMS = (TransformName.HOUR, TransformName.DAY)
_NS_PER_MS = 1_000_000
_NS_PER_US = 1_000
_NS_PER_UNIT = {"s": 1_000_000_000, "ms": _NS_PER_MS, "us": _NS_PER_US, "ns": 1}


@dataclass(frozen=True, slots=True)
class Extent:
    """The first and the last event time, in nanoseconds since 1970."""

    lower_ns: int
    upper_ns: int


def time_field(head: Head, named: str | None = None) -> Field | None:
    """The column that says when a row happened; None if the table does not show one.

    Args:
        head: the table.
        named: the column, if the user has said; else the one whose day or hour splits the table,
            else the only column of timestamps.
    """
    schema = head.metadata.schema(head.snapshot.schema_id)
    if named is not None:
        field = schema.field(named)
        if not _is_time(field):
            raise RequestError(
                f"the event time {named!r} is a column of type {field.type}",
                hint="Name a column of timestamps",
            )
        return field
    spec = head.metadata.spec(head.snapshot.spec_id)
    splitting = [f.source_id for f in spec.fields if f.transform in _CLOCK_TRANSFORMS]
    candidates = [field for field in schema.fields if _is_time(field)]
    for field in candidates:
        if field.id in splitting:
            return field
    return candidates[0] if len(candidates) == 1 else None


def extent_of_rows(rows: Any, field: Field) -> Extent | None:
    """The event times of an Arrow table; None if it has none."""
    if field.name not in rows.column_names or not rows.num_rows:
        return None
    column = rows.column(field.name)
    if not pa.types.is_timestamp(column.type):
        return None
    found = pc.min_max(column.cast(pa.int64()))
    if not found["min"].is_valid:
        return None
    unit = _NS_PER_UNIT[column.type.unit]
    return Extent(found["min"].as_py() * unit, found["max"].as_py() * unit)


def extent_of_files(files: Iterable[DataFile], field: Field) -> Extent | None:
    """The event times of data files by their statistics; None if any of them is unknown."""
    return _joined([(file.row_count, file.stats.get(field.id)) for file in files], field)


def newest_ns(head: Head, field: Field) -> int | None:
    """The newest event time of a table, from the summaries in its snapshot; None if unknown."""
    known: list[tuple[int, ColumnStats | None]] = []
    for ref in head.snapshot.manifest_list:
        if ref.is_inline:
            files = [entry.file for entry in ref.entries if entry.is_live]
            known += [(file.row_count, file.stats.get(field.id)) for file in files]
        elif ref.file_count:
            known.append((ref.row_count, ref.stats.get(field.id)))
    found = _joined(known, field)
    return None if found is None else found.upper_ns


def time_properties(extent: Extent | None, newest: int | None) -> dict[str, str]:
    """What a commit remembers of its event times."""
    if extent is None:
        return {}
    found = {
        "stream.event-time-min": time_text(extent.lower_ns),
        "stream.event-time-max": time_text(extent.upper_ns),
    }
    if newest is not None:
        late_ms = max(0, newest - extent.lower_ns) // _NS_PER_MS
        found["stream.lateness-ms-max"] = str(late_ms)
    return found


def watermark_properties(watermark_ms: int | None) -> dict[str, str]:
    """The watermark that the batch ran under, if the query has one."""
    if watermark_ms is None:
        return {}
    return {"stream.watermark": time_text(watermark_ms * _NS_PER_MS)}


def time_text(moment_ns: int) -> str:
    """An instant in ISO form, to the microsecond; a number where no calendar reaches."""
    try:
        moment = _EPOCH + timedelta(microseconds=moment_ns // _NS_PER_US)
    except OverflowError:
        return str(moment_ns)
    return moment.isoformat().replace("+00:00", "Z")


def _is_time(field: Field) -> bool:
    return isinstance(field.type, Primitive) and field.type.kind in TIMESTAMPS


def _joined(known: list[tuple[int, ColumnStats | None]], field: Field) -> Extent | None:
    lowers, uppers = [], []
    for row_count, stats in known:
        if stats is not None and stats.null_count == row_count:
            continue  # Nothing but nulls.
        if stats is None or not isinstance(stats.lower, int) or not isinstance(stats.upper, int):
            return None
        lowers.append(stats.lower)
        uppers.append(stats.upper)
    if not lowers:
        return None
    assert isinstance(field.type, Primitive), "checked by time_field"
    unit = 1 if field.type.kind in NANOSECONDS else _NS_PER_US
    return Extent(min(lowers) * unit, max(uppers) * unit)


__all__ = [
    "Extent",
    "extent_of_files",
    "extent_of_rows",
    "newest_ns",
    "time_field",
    "time_properties",
    "time_text",
    "watermark_properties",
]
