"""One comparison against what is known of its column: can a row be TRUE, must every row be?

`may` is False only if no row can be TRUE, `must` is True only if every row is. Both look at one
leaf, or the opposite of one, and give a numpy mask with an entry for each group of rows.

A row is TRUE for `x op value` only if x is not null; NaN is TRUE for !=, NOT IN and the opposite
of an order, and for nothing else.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.expr.arrow import COMPARISONS, like_mask, primitive_arrow_type
from lakebed.expr.bound import (
    Bound,
    BoundCompare,
    BoundIn,
    BoundIsNan,
    BoundIsNull,
    BoundLike,
    BoundNonNull,
    StorageValue,
)
from lakebed.expr.facts import Facts, plain_scalar
from lakebed.expr.like import prefix_end
from lakebed.expr.nodes import NEGATED, Op
from lakebed.expr.transform import apply_transform
from lakebed.format.partition import PartitionField, TransformName
from lakebed.format.types import FLOATS, Primitive

_UPWARDS = frozenset({Op.GT, Op.GE})


def may_leaf(leaf: Bound, facts: Facts, *, negated: bool = False) -> Any:
    """False where no row can be TRUE."""
    if isinstance(leaf, BoundIsNull):
        return ~facts.all_null if negated else ~facts.no_null
    possible = ~facts.all_null
    match leaf:
        case BoundIsNan():
            return possible & (~facts.only_nan if negated else ~facts.no_nan)
        case BoundNonNull(truth=truth):
            return possible & (truth is not negated)
    number = ~facts.only_nan & _numbers_may(leaf, facts, negated=negated)
    if _holds_for_nan(leaf, negated=negated):
        return possible & (number | ~facts.no_nan)
    return possible & number


def must_leaf(leaf: Bound, facts: Facts, *, negated: bool = False) -> Any:
    """True where every row is TRUE for certain."""
    if isinstance(leaf, BoundIsNull):
        return facts.no_null if negated else facts.all_null
    match leaf:
        case BoundIsNan():
            return facts.no_null & (facts.no_nan if negated else facts.only_nan)
        case BoundNonNull(truth=truth):
            return facts.no_null & (truth is not negated)
    numbers = _numbers_must(leaf, facts, negated=negated)
    if _holds_for_nan(leaf, negated=negated):
        return facts.no_null & (numbers | facts.only_nan)
    return facts.no_null & facts.no_nan & numbers


def _holds_for_nan(leaf: Bound, *, negated: bool) -> bool:
    kind: Primitive = leaf.kind  # type: ignore[attr-defined]
    if kind.kind not in FLOATS:
        return False
    return negated is not (isinstance(leaf, BoundCompare) and leaf.op is Op.NE)


def _numbers_may(leaf: Bound, facts: Facts, *, negated: bool) -> Any:
    """May a value that is neither null nor NaN be TRUE? It cannot if all such are FALSE."""
    match leaf:
        case BoundCompare(op=op, value=value, kind=kind):
            op = NEGATED[op] if negated else op
            possible = ~_all_compare(NEGATED[op], value, kind, facts)
            return possible & _in_buckets((value,), kind, facts) if op is Op.EQ else possible
        case BoundIn(values=values, kind=kind):
            if negated:
                return ~_all_in(values, facts)
            return ~_none_in(values, facts) & _in_buckets(values, kind, facts)
        case BoundLike():
            return ~_all_like(leaf, facts) if negated else ~_none_like(leaf, facts)
    raise AssertionError(f"{type(leaf).__name__} does not look at values")


def _numbers_must(leaf: Bound, facts: Facts, *, negated: bool) -> Any:
    """Is every value that is neither null nor NaN TRUE? Unknown bounds say no."""
    match leaf:
        case BoundCompare(op=op, value=value, kind=kind):
            return _all_compare(NEGATED[op] if negated else op, value, kind, facts)
        case BoundIn(values=values, kind=kind):
            return _none_in(values, facts) if negated else _all_in(values, facts)
        case BoundLike():
            return _none_like(leaf, facts) if negated else _all_like(leaf, facts)
    raise AssertionError(f"{type(leaf).__name__} does not look at values")


# -------------------------------------------------------------------- what bounds are proof of


def _true(mask: Any) -> Any:
    """Arrow's mask as numpy's; what is unknown is not proven."""
    return pc.fill_null(mask, False).to_numpy(zero_copy_only=False)  # noqa: FBT003


def _all_compare(op: Op, value: StorageValue, kind: Primitive, facts: Facts) -> Any:
    """Does every value between the bounds compare so?"""
    constant = plain_scalar(value, kind)
    if op is Op.EQ:
        lower, upper = pc.equal(facts.lower, constant), pc.equal(facts.upper, constant)
        return _true(lower) & _true(upper)
    if op is Op.NE:
        return _true(pc.greater(facts.lower, constant)) | _true(pc.less(facts.upper, constant))
    return _true(COMPARISONS[op](facts.lower if op in _UPWARDS else facts.upper, constant))


def _single(facts: Facts) -> Any:
    """Where all values are one and the same."""
    return _true(pc.equal(facts.lower, facts.upper))


def _all_in(values: Sequence[StorageValue], facts: Facts) -> Any:
    return _single(facts) & _any_between(values, facts.lower, facts.lower)


def _none_in(values: Sequence[StorageValue], facts: Facts) -> Any:
    return ~_any_between(values, facts.lower, facts.upper)


def _any_between(values: Sequence[Any], lower: Any, upper: Any) -> Any:
    """Is one of the values, which are sorted, between two bounds or beside an unknown one?"""
    listed = np.array(values, dtype=None if isinstance(values[0], int | float) else object)
    first = np.searchsorted(listed, _filled(lower, values[0]), side="left")
    after = np.searchsorted(listed, _filled(upper, values[-1]), side="right")
    return first < after


def _filled(bounds: Any, value: Any) -> Any:
    """The bounds as numpy has them; one that is unknown is no farther in than `value`."""
    known = pc.fill_null(bounds, pa.scalar(value, bounds.type))
    return known.to_numpy(zero_copy_only=False)


def _in_buckets(values: Sequence[StorageValue], kind: Primitive, facts: Facts) -> Any:
    """Is the bucket of one of the values among those of the group?"""
    possible = np.ones(len(facts.all_null), bool)
    for found in facts.buckets:
        field = PartitionField(0, 0, TransformName.BUCKET, "", found.width)
        typed = pa.array(values, primitive_arrow_type(kind))
        buckets = sorted(set(apply_transform(field, typed, kind).to_pylist()))
        possible &= _any_between(buckets, found.lower, found.upper)
    return possible


def _none_like(leaf: BoundLike, facts: Facts) -> Any:
    single = _single(facts)
    none = single & ~_like(leaf, facts, single)
    if leaf.prefix:
        none |= _true(pc.less(facts.upper, leaf.prefix))
        end = prefix_end(leaf.prefix)
        if end is not None:
            none |= _true(pc.greater_equal(facts.lower, end))
    return none


def _all_like(leaf: BoundLike, facts: Facts) -> Any:
    single = _single(facts)
    matching = single & _like(leaf, facts, single)
    if leaf.is_prefix:
        starts = [_true(pc.starts_with(b, leaf.prefix)) for b in (facts.lower, facts.upper)]
        matching |= starts[0] & starts[1]
    return matching


def _like(leaf: BoundLike, facts: Facts, wanted: Any) -> Any:
    """Which lower bounds match; not asked where none is wanted."""
    return _true(like_mask(facts.lower, leaf.pattern)) if wanted.any() else wanted
