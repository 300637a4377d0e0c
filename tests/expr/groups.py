"""Evidence about small groups of rows: made by looking at each row, then vaguer on purpose."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from tests.expr.oracle import Row, transformed
from tests.expr.samples import KINDS, NAMES, SCHEMA, VALUES, is_number, typed

from lakebed.expr.bind import bind
from lakebed.expr.parse import parse_predicate
from lakebed.expr.prune import PartitionEvidence, may_match, must_match
from lakebed.files.column_stats import cut_lower, cut_upper
from lakebed.format.partition import PartitionField, TransformName, result_type
from lakebed.format.types import BYTES, FLOATS, Kind, Primitive


@dataclass(frozen=True, slots=True)
class Vague:
    """What is not known of one column of one group, or less precisely than it could be."""

    nulls: bool = False
    nans: bool = False
    lower: bool = False
    upper: bool = False
    wider: bool = False  # bounds that no value reaches
    cut: int = 0  # long text and bytes are cut to so many; 0 for not
    missing: bool = False  # the file has no such column; it is null in each row


EXACT = Vague()
UNKNOWN = Vague(nulls=True, nans=True, lower=True, upper=True)


@dataclass(frozen=True, slots=True)
class Split:
    """A transform that some column's rows were split by."""

    name: str
    transform: TransformName
    width: int = 0

    def value(self, row: Row) -> Any:
        """A row's partition value."""
        return transformed(row[self.name], self.transform, self.width, KINDS[self.name])


@dataclass
class Groups:
    """The evidence about groups of rows, as manifests would have it."""

    rows: list[list[Row]]
    vague: list[dict[str, Vague]] = field(default_factory=list)
    splits: list[Split] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.length = len(self.rows)
        self.row_count = np.array([len(group) for group in self.rows], np.int64)

    def lower(self, field_id: int) -> Any:
        return self._bounds(NAMES[field_id], place=0)

    def upper(self, field_id: int) -> Any:
        return self._bounds(NAMES[field_id], place=1)

    def null_count(self, field_id: int) -> Any:
        name = NAMES[field_id]
        counts = [
            None if vague.nulls else sum(row[name] is None for row in group)
            for group, vague in self._each(name)
        ]
        return pa.array(counts, pa.int64())

    def nan_count(self, field_id: int) -> Any:
        name = NAMES[field_id]
        if KINDS[name].kind not in FLOATS:
            return None
        counts = [
            None
            if vague.nans
            else sum(row[name] is not None and row[name] != row[name] for row in group)
            for group, vague in self._each(name)
        ]
        return pa.array(counts, pa.int64())

    def missing(self, field_id: int) -> Any:
        found = [vague.missing for _, vague in self._each(NAMES[field_id])]
        return np.array(found, bool) if any(found) else None

    def partitions(self, field_id: int) -> Sequence[PartitionEvidence]:
        return [self._partition(split) for split in self.splits if split.name == NAMES[field_id]]

    def _each(self, name: str) -> list[tuple[list[Row], Vague]]:
        vague = self.vague or [{}] * len(self.rows)
        return [(group, v.get(name, EXACT)) for group, v in zip(self.rows, vague, strict=True)]

    def _bounds(self, name: str, *, place: int) -> Any:
        kind = KINDS[name]
        found = [_range(group, name, vague)[place] for group, vague in self._each(name)]
        if kind.kind is Kind.FIXED:
            found = [v if v is None or len(v) == kind.length else None for v in found]
        return typed(found, kind)

    def _partition(self, split: Split) -> PartitionEvidence:
        source = KINDS[split.name]
        kind = result_type(PartitionField(0, 0, split.transform, "", split.width), source)
        values = [[split.value(row) for row in group] for group in self.rows]
        known = [[value for value in group if value is not None] for group in values]
        return PartitionEvidence(
            split.transform,
            split.width,
            source,
            typed([min(group, default=None) for group in known], kind),
            typed([max(group, default=None) for group in known], kind),
            np.array([None in group for group in values], bool),
            np.array([not group for group in known], bool),
        )


def _range(group: list[Row], name: str, vague: Vague) -> tuple[Any, Any]:
    values = [row[name] for row in group if is_number(row[name])]
    if not values:
        return None, None
    lower, upper = min(values), max(values)
    if vague.wider:
        others = [value for value in VALUES[name] if is_number(value)]
        lower, upper = min([lower, *others[:3]]), max([upper, *others[:3]])
    if vague.cut and (KINDS[name].kind is Kind.STRING or KINDS[name].kind in BYTES):
        lower, upper = cut_lower(lower, vague.cut), cut_upper(upper, vague.cut)
    return None if vague.lower else lower, None if vague.upper else upper


def splits_of(name: str) -> list[Split]:
    """Every transform that is defined for a column."""
    kind: Primitive = KINDS[name]
    if kind.kind in FLOATS:
        return []
    found = [Split(name, TransformName.IDENTITY)]
    if kind.kind is not Kind.BOOLEAN:
        found += [Split(name, TransformName.BUCKET, width) for width in (1, 3, 16)]
    if name in ("int", "long", "decimal", "wide", "string", "binary"):
        found += [Split(name, TransformName.TRUNCATE, width) for width in (1, 2, 10, (1 << 31) - 1)]
    if kind.kind is Kind.DATE or name.startswith("timestamp"):
        found += [Split(name, TransformName(t)) for t in ("year", "month", "day")]
    if name.startswith("timestamp"):
        found.append(Split(name, TransformName.HOUR))
    return found


def verdict(text: str, groups: Groups) -> str:
    """How many rows of the first group match, as far as evidence tells: all, some or none."""
    bound = bind(parse_predicate(text), SCHEMA)
    if must_match(bound, groups)[0]:
        return "all"
    return "some" if may_match(bound, groups)[0] else "none"
