"""The summary of a manifest that stands in the snapshot: ranges over its live files."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.files.column_stats import cut_lower, cut_upper
from lakebed.files.manifest import partition_types
from lakebed.format.datafile import ColumnStats
from lakebed.format.metadata import TableMetadata
from lakebed.format.partition import PartitionSpec
from lakebed.format.snapshot import PartitionRange
from lakebed.limits import SUMMARY_BOUND_LENGTH_MAX, SUMMARY_COLUMN_COUNT_MAX


def partition_ranges(
    table: Any, spec: PartitionSpec, metadata: TableMetadata
) -> tuple[PartitionRange, ...]:
    """The range of each partition field over live rows."""
    ranges = []
    for field_id, _ in partition_types(spec, metadata):
        column = table.column(f"part_{field_id}")
        lower, upper = _min_max(column)
        ranges.append(PartitionRange(column.null_count > 0, lower, upper))
    return tuple(ranges)


def column_ranges(table: Any) -> dict[int, ColumnStats]:
    """The range of the leading columns over live rows; one unknown file makes it unknown."""
    names = set(table.column_names)
    numbers = sorted(int(n[5:]) for n in names if n.startswith("null_"))
    found = {}
    for number in numbers[:SUMMARY_COLUMN_COUNT_MAX]:
        stats = ColumnStats(
            _known_total(table, f"null_{number}", names),
            _known_total(table, f"nan_{number}", names),
            *_range(table, number, names),
        )
        if stats != ColumnStats():
            found[number] = stats
    return found


def total(table: Any, name: str) -> int:
    """The sum of a column of counts."""
    return int(pc.sum(table.column(name)).as_py() or 0)


def _known_total(table: Any, name: str, names: set[str]) -> int | None:
    if name not in names or table.column(name).null_count:
        return None
    return total(table, name)


def _range(table: Any, number: int, names: set[str]) -> tuple[Any, Any]:
    lower, upper = table.column(f"lower_{number}"), table.column(f"upper_{number}")
    # A file without a single value has no bounds and does not widen the range.
    no_value = table.column(f"null_{number}")
    if f"nan_{number}" in names:
        no_value = pc.add(no_value, pc.fill_null(table.column(f"nan_{number}"), 0))
    has_value = pc.fill_null(pc.not_equal(no_value, table.column("row_count")), True)  # noqa: FBT003
    lower, upper = lower.filter(has_value), upper.filter(has_value)
    if lower.null_count or upper.null_count or not len(lower):
        return None, None
    low, _ = _min_max(lower)
    _, high = _min_max(upper)
    if pa.types.is_fixed_size_binary(lower.type):  # a cut value would not be one of the type
        return (low, high) if len(low) <= SUMMARY_BOUND_LENGTH_MAX else (None, None)
    if isinstance(low, str | bytes):
        low = cut_lower(low, SUMMARY_BOUND_LENGTH_MAX)
        high = cut_upper(high, SUMMARY_BOUND_LENGTH_MAX)
    return low, high


def _min_max(column: Any) -> tuple[Any, Any]:
    if pa.types.is_temporal(column.type):
        width = pa.int32() if pa.types.is_date32(column.type) else pa.int64()
        column = column.combine_chunks().view(width)
    extremes = pc.min_max(column)
    return extremes["min"].as_py(), extremes["max"].as_py()
