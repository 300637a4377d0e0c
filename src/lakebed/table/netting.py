"""Two bags of rows, without what they have in common."""

import pyarrow as pa
import pyarrow.compute as pc


def net(added: pa.Table, removed: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Set off equal rows against each other, one by one; rows keep their order.

    Equal means equal in each column; null equals null and NaN equals NaN.
    """
    both = pa.concat_tables([added, removed])
    codes = _codes(both)
    in_added, in_removed = codes.slice(0, added.num_rows), codes.slice(added.num_rows)
    return (
        added.filter(_beyond(in_added, in_removed)),
        removed.filter(_beyond(in_removed, in_added)),
    )


def _codes(table: pa.Table) -> pa.Array:
    """A number for each row, the same for equal rows."""
    codes = pa.array([0] * table.num_rows, pa.int64())
    for column in table.columns:
        encoded = _comparable(column).dictionary_encode(null_encoding="encode").combine_chunks()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.unify_dictionaries().combine_chunks()
        width = max(len(encoded.dictionary), 1)
        mixed = pc.add(pc.multiply(codes, width), encoded.indices.cast(pa.int64()))
        codes = mixed.dictionary_encode().indices.cast(pa.int64())
    return codes


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column in a form that can be looked up: floats by their bits, nested values as text."""
    kind = column.type
    if pa.types.is_nested(kind):
        texts = [None if value is None else repr(value) for value in column.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.string())])
    if pa.types.is_floating(kind):
        return pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), kind), column)
    return column


def _beyond(mine: pa.Array, theirs: pa.Array) -> pa.Array:
    """A mask of my rows that have no partner: per code, the later ones beyond their count."""
    import numpy as np

    codes, others = mine.to_numpy(), theirs.to_numpy()
    size = int(max(codes.max(initial=-1), others.max(initial=-1))) + 1
    partners = np.bincount(others, minlength=size)
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    starts = np.searchsorted(ordered, ordered, side="left")
    rank = np.arange(len(ordered)) - starts
    keep = np.empty(len(codes), dtype=bool)
    keep[order] = rank >= partners[ordered]
    return pa.array(keep)
