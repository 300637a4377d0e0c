"""MERGE: rows of a source update, delete and extend the rows of a table, in one commit.

    (merge(table, source).on("t.id = s.id")
        .when_matched_delete("s.gone")
        .when_matched_update(set={"value": "s.value"})
        .when_not_matched_insert()
        .execute())

Expressions are Spark SQL, or Spark columns; `t` (or `target`) is the table, `s` (or `source`) the
source. Clauses are tried in their order, and the first whose condition is true is the one.
NULL matches nothing. How it is done is in `merging.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lakebed.errors import RequestError
from lakebed.spark.writing.merge_plan import Act, Case, Clause, MergePlan, MergeReport, MergeTerms
from lakebed.spark.writing.merging import execute
from lakebed.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """A merge in the making; each call gives a new one."""

    plan: MergePlan

    def on(self, condition: Any) -> "Merge":
        """Say which rows belong together.

        Args:
            condition: `"t.id = s.id"`, a Spark column, or the names of columns that are equal.
        """
        if isinstance(condition, Sequence) and not isinstance(condition, str):
            return Merge(plan=replace(self.plan, keys=tuple(condition), condition=None))
        return Merge(plan=replace(self.plan, condition=condition, keys=()))

    def when_matched_update(
        self,
        set: Mapping[str, Any] | None = None,
        condition: Any = None,
    ) -> "Merge":
        """Give columns of matched rows new values; of all columns, those of the source, if None."""
        return self._with(Case.MATCHED, Act.UPDATE, condition, set)

    def when_matched_delete(self, condition: Any = None) -> "Merge":
        """Remove matched rows."""
        return self._with(Case.MATCHED, Act.DELETE, condition, None)

    def when_not_matched_insert(
        self, values: Mapping[str, Any] | None = None, condition: Any = None
    ) -> "Merge":
        """Add source rows that match no row; all their columns if `values` is None."""
        return self._with(Case.NOT_MATCHED, Act.INSERT, condition, values)

    def when_not_matched_by_source_update(
        self,
        set: Mapping[str, Any],
        condition: Any = None,
    ) -> "Merge":
        """Give columns new values in rows of the table that match no source row."""
        return self._with(Case.NOT_MATCHED_BY_SOURCE, Act.UPDATE, condition, set)

    def when_not_matched_by_source_delete(self, condition: Any = None) -> "Merge":
        """Remove rows of the table that match no source row."""
        return self._with(Case.NOT_MATCHED_BY_SOURCE, Act.DELETE, condition, None)

    def execute(
        self,
        txn: tuple[str, int] | None = None,
        properties: Mapping[str, str] | None = None,
        via: str | None = None,
    ) -> MergeReport:
        """Do it, in one commit.

        Args:
            txn: makes it exactly once, as in `Table.append`.
            properties: texts that stay with the commit.
            via: who writes the rows, `driver` or `executors`; size decides if None.

        Raises:
            RequestError: several source rows match one row of the table, with some of their
                keys; or the Spark job failed.
            SchemaMismatchError: a new value does not fit its column.
            CommitConflictError: another commit changed rows that this one has read.
        """
        if self.plan.condition is None and not self.plan.keys:
            raise RequestError(
                "a merge needs to know which rows belong together",
                hint='Say .on("t.id = s.id") or .on(["id"])',
            )
        if not self.plan.clauses:
            raise RequestError(
                "a merge without clauses does nothing",
                hint="Add .when_matched_update(), .when_not_matched_insert() or another",
            )
        terms = MergeTerms(txn=txn, properties=properties or {}, via=via)
        return execute(self.plan, terms)

    def _with(
        self, case: Case, act: Act, condition: Any, values: Mapping[str, Any] | None
    ) -> "Merge":
        if values is not None and not values:
            raise RequestError(f"{case.value} {act.value} has no columns to set")
        clause = Clause(case=case, act=act, condition=condition, values=values)
        return Merge(plan=replace(self.plan, clauses=(*self.plan.clauses, clause)))


def merge(table: Table, source: "DataFrame") -> Merge:
    """Begin a merge of a frame into a table; `execute()` does it."""
    return Merge(plan=MergePlan(table=table, source=source))


__all__ = ["Merge", "MergeReport", "merge"]
