"""A merge as a value: which rows belong together, and what happens to which of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from lakebed.commit.change import Commit
from lakebed.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Case(StrEnum):
    """The rows that a clause is about."""

    MATCHED = "when matched"
    NOT_MATCHED = "when not matched"  # by a row of the table: source rows
    NOT_MATCHED_BY_SOURCE = "when not matched by source"


class Act(StrEnum):
    """What a clause does with them."""

    UPDATE = "update"
    DELETE = "delete"
    INSERT = "insert"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """One WHEN; values of None are all columns, by their names."""

    case: Case
    act: Act
    condition: Any = None
    values: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeReport:
    """What a merge has done; `commit` is None if there was nothing to do."""

    commit: Commit | None
    updated_rows: int = 0
    deleted_rows: int = 0
    inserted_rows: int = 0
    copied_rows: int = 0  # they stand beside changed ones in the files that were rewritten

    @property
    def version(self) -> int | None:
        """The version that the merge made."""
        return None if self.commit is None else self.commit.version


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePlan:
    """All that was said of a merge; rows match by `keys`, or else by `condition`."""

    table: Table
    source: "DataFrame"
    condition: Any = None
    keys: tuple[str, ...] = ()
    clauses: tuple[Clause, ...] = field(default=())

    def of(self, case: Case) -> tuple[Clause, ...]:
        """The clauses about some rows, in their order."""
        return tuple(clause for clause in self.clauses if clause.case is case)


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeTerms:
    """What goes along with the commit, and who writes."""

    txn: tuple[str, int] | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    via: str | None = None


__all__ = ["Act", "Case", "Clause", "MergePlan", "MergeReport", "MergeTerms"]
