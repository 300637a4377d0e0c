"""What pruning may know about groups of rows, each a file or all files of a manifest."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lakebed.format.partition import TransformName
from lakebed.format.types import Primitive


@dataclass(frozen=True, slots=True, eq=False)
class PartitionEvidence:
    """The partition values that one transform made from one column, for each group.

    `lower` and `upper` are Arrow arrays at the type of the partition values, the least and the
    greatest value in the group, null where unknown or where there is none. `has_null` and
    `all_null` are numpy masks: False in the first says for certain that no row has a null, True
    in the second that every row has.
    """

    transform: TransformName
    width: int
    source: Primitive
    lower: Any
    upper: Any
    has_null: Any
    all_null: Any


class Evidence(Protocol):
    """Facts about `length` groups of rows; `row_count` is a numpy array of exact counts.

    The other answers are for one column by field id. None, or a null in an array, means unknown,
    and pruning keeps what is unknown.
    """

    length: int
    row_count: Any

    def lower(self, field_id: int) -> Any:
        """An Arrow array at the column's type: no value that is not NaN is below."""

    def upper(self, field_id: int) -> Any:
        """An Arrow array at the column's type: no value that is not NaN is above."""

    def null_count(self, field_id: int) -> Any:
        """An int64 Arrow array of exact counts."""

    def nan_count(self, field_id: int) -> Any:
        """An int64 Arrow array of exact counts; None for all but floating point columns."""

    def missing(self, field_id: int) -> Any:
        """A numpy mask of the groups that lack the column, so that it is null in each row."""

    def partitions(self, field_id: int) -> Sequence[PartitionEvidence]:
        """The partition values that were made from the column."""


class OneOf:
    """The evidence about one group of several, as evidence of its own."""

    def __init__(self, evidence: Evidence, index: int) -> None:
        self._all = evidence
        self._index = index
        self.length = 1
        self.row_count = evidence.row_count[index : index + 1]

    def lower(self, field_id: int) -> Any:
        """The group's lower bound."""
        return self._one(self._all.lower(field_id))

    def upper(self, field_id: int) -> Any:
        """The group's upper bound."""
        return self._one(self._all.upper(field_id))

    def null_count(self, field_id: int) -> Any:
        """The group's count of nulls."""
        return self._one(self._all.null_count(field_id))

    def nan_count(self, field_id: int) -> Any:
        """The group's count of NaN."""
        return self._one(self._all.nan_count(field_id))

    def missing(self, field_id: int) -> Any:
        """Whether the group lacks the column."""
        return self._one(self._all.missing(field_id))

    def partitions(self, field_id: int) -> Sequence[PartitionEvidence]:
        """The group's partition values."""
        return [
            PartitionEvidence(
                found.transform,
                found.width,
                found.source,
                self._one(found.lower),
                self._one(found.upper),
                self._one(found.has_null),
                self._one(found.all_null),
            )
            for found in self._all.partitions(field_id)
        ]

    def _one(self, values: Any) -> Any:
        return None if values is None else values[self._index : self._index + 1]
