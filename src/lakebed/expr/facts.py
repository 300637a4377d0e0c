"""What is certain about one column in each group of rows, put together from all evidence.

Partition values become bounds of the column they were made from: the rows of `day(ts) = d` have
their `ts` between the first and the last instant of d. Only a bucket says nothing about order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.expr.arrow import primitive_arrow_type
from lakebed.expr.bound import StorageValue
from lakebed.expr.convert import decimal_of, discrete_range, unscaled_of
from lakebed.expr.evidence import Evidence, PartitionEvidence
from lakebed.expr.like import prefix_end
from lakebed.expr.transform import INT_MAX, INT_MIN, units_per_day
from lakebed.format.partition import TransformName
from lakebed.format.types import FLOATS, INTEGERS, Kind, Primitive, Type

_OUTSIDE_BEFORE = np.iinfo(np.int64).min
_OUTSIDE = _OUTSIDE_BEFORE + 1


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """One column in each group; the masks are numpy's, and True means certain.

    Each number or text lies between `lower` and `upper`, Arrow arrays in the plain form of
    `plain_scalar`, null where unknown. `no_nan` and `only_nan` speak of the values that are not
    null; for types without NaN they are True and False.
    """

    all_null: Any
    no_null: Any
    no_nan: Any
    only_nan: Any
    lower: Any
    upper: Any
    buckets: tuple[PartitionEvidence, ...]


def plain_scalar(value: StorageValue, kind: Primitive) -> Any:
    """A constant in the form of the bounds: integers for times and truth, binary for fixed."""
    return pa.scalar(int(value) if isinstance(value, bool) else value, _plain_type(kind))


def _plain_type(kind: Primitive) -> Any:
    target = primitive_arrow_type(kind)
    if kind.kind is Kind.BOOLEAN:
        return pa.int8()
    if kind.kind is Kind.FIXED:
        return pa.binary()
    return _integer_type(target) if pa.types.is_temporal(target) else target


def column_facts(evidence: Evidence, field_id: int, kind: Type) -> Facts:
    """Gather what is known of a column; for nested columns that is which rows are null."""
    length = evidence.length
    partitions = evidence.partitions(field_id)
    all_null, no_null = _null_facts(evidence, field_id, partitions)
    no_nan, only_nan = np.ones(length, bool), np.zeros(length, bool)
    if not isinstance(kind, Primitive):
        nothing = pa.nulls(length, pa.int64())
        return Facts(all_null, no_null, no_nan, only_nan, nothing, nothing, ())
    if kind.kind in FLOATS:
        nans = _counts(evidence.nan_count(field_id), length)
        nulls = _counts(evidence.null_count(field_id), length)
        no_nan = nans == 0
        none_else = (nans == evidence.row_count) | (
            (nulls >= 0) & (nans + nulls == evidence.row_count)
        )
        only_nan = (nans > 0) & none_else
    lower = _plain(evidence.lower(field_id), kind, length)
    upper = _plain(evidence.upper(field_id), kind, length)
    buckets = []
    for found in partitions:
        # A column may have become floating point since rows were split by it: NaN is in no range.
        if kind.kind in FLOATS or found.source.kind in FLOATS:
            continue
        if found.transform is TransformName.BUCKET:
            buckets.append(found)
            continue
        first, last = _projected(found)
        lower = pc.max_element_wise(lower, first, skip_nulls=True)
        upper = pc.min_element_wise(upper, last, skip_nulls=True)
    return Facts(all_null, no_null, no_nan, only_nan, lower, upper, tuple(buckets))


def _null_facts(
    evidence: Evidence, field_id: int, partitions: Sequence[PartitionEvidence]
) -> tuple[Any, Any]:
    nulls = _counts(evidence.null_count(field_id), evidence.length)
    all_null, no_null = nulls == evidence.row_count, nulls == 0
    for found in partitions:
        all_null |= found.all_null
        no_null |= ~found.has_null
    missing = evidence.missing(field_id)
    if missing is not None:
        all_null |= missing
        no_null &= ~missing
    return all_null, no_null


def _counts(counts: Any, length: int) -> Any:
    """Counts as numpy has them, -1 for unknown."""
    if counts is None:
        return np.full(length, -1)
    return pc.fill_null(counts, -1).to_numpy(zero_copy_only=False)


def _plain(values: Any, kind: Primitive, length: int) -> Any:
    """Bounds in the form of `plain_scalar`.

    A column that was widened since the predicate was bound has bounds of a wider type. They stay
    so: Arrow compares both at the wider one, exactly.
    """
    if values is None:
        return pa.nulls(length, _plain_type(kind))
    if pa.types.is_temporal(values.type):
        return values.view(_integer_type(values.type))
    if kind.kind is Kind.BOOLEAN:
        return values.cast(pa.int8())
    return values.cast(pa.binary()) if kind.kind is Kind.FIXED else values


def _integer_type(target: Any) -> Any:
    return pa.int32() if target.bit_width == pa.int32().bit_width else pa.int64()


# ---------------------------------------------------------------------------------- partitions


def _projected(found: PartitionEvidence) -> tuple[Any, Any]:
    """The least and the greatest value that rows of these partitions can have."""
    kind = found.source
    if found.transform is TransformName.IDENTITY:
        return _plain(found.lower, kind, 0), _plain(found.upper, kind, 0)
    if found.transform is TransformName.TRUNCATE:
        return found.lower, _truncate_ends(found)
    first = _calendar_start(_numbers(found.lower), kind, found.transform)
    after = _calendar_start(_numbers(found.upper) + 1, kind, found.transform)
    # A result at the end of its type stands for all that is beyond it too.
    return (
        _known(first, found.lower, kind, beyond=INT_MIN),
        _known(after - 1, found.upper, kind, beyond=INT_MAX),
    )


def _numbers(values: Any) -> Any:
    if pa.types.is_temporal(values.type):
        values = values.view(pa.int32())
    return pc.fill_null(values, 0).to_numpy(zero_copy_only=False).astype(np.int64)


def _calendar_start(units: Any, kind: Primitive, transform: TransformName) -> Any:
    """The first value of a year, month, day or hour; a number outside the type if it has none.

    One day beyond the type's range is far enough to be seen as such, and cannot overflow.
    """
    per_unit = units_per_day(kind)
    if transform is TransformName.HOUR:
        per_unit //= 24
    elif transform is not TransformName.DAY:
        unit = "M8[M]" if transform is TransformName.MONTH else "M8[Y]"
        units = units.view(unit).astype("M8[D]").view(np.int64)
    low, high = discrete_range(kind)
    inside = (units > low // per_unit) & (units <= high // per_unit)
    return np.where(inside, units * per_unit, _OUTSIDE)


def _known(numbers: Any, values: Any, kind: Primitive, *, beyond: int) -> Any:
    """The numbers as bounds, null where the partition value does not tell one."""
    unknown = values.is_null().to_numpy(zero_copy_only=False)
    outside = (numbers == _OUTSIDE) | (numbers == _OUTSIDE_BEFORE)
    mask = unknown | outside | (_numbers(values) == beyond)
    target = pa.int32() if kind.kind is Kind.DATE else pa.int64()
    return pa.array(np.where(mask, 0, numbers), pa.int64(), mask=mask).cast(target)


def _truncate_ends(found: PartitionEvidence) -> Any:
    """The greatest value that is cut down to each upper partition value, or something above."""
    upper, kind = found.upper, found.source
    if kind.kind in INTEGERS:
        _, high = discrete_range(kind)
        numbers = _numbers(upper)
        mask = upper.is_null().to_numpy(zero_copy_only=False) | (numbers > high - found.width)
        ends = np.where(mask, 0, numbers) + (found.width - 1)
        return pa.array(ends, pa.int64(), mask=mask).cast(upper.type)
    encoded = upper.dictionary_encode()
    last = [_truncate_end(value, kind, found.width) for value in encoded.dictionary.to_pylist()]
    return pa.array(last, upper.type).take(encoded.indices)


def _truncate_end(value: Any, kind: Primitive, width: int) -> Any:
    if kind.kind is Kind.DECIMAL:
        _, high = discrete_range(kind)
        end = unscaled_of(value, kind.scale) + width - 1
        return decimal_of(min(end, high), kind.scale)
    if len(value) < width:
        return value  # nothing was cut off
    return prefix_end(value)
