"""How a merge is done: copy on write, touching only files that can match.

    source ─► kept for the time of the merge: it is read several times
           ─► least and greatest key ─► our planner leaves out files that cannot match
    find   ─► join of keys: files with rows to change; a row that two source rows want: refused
    write  ─► rows of those files, changed or copied, and source rows that match nothing
           ─► one commit: the found files are replaced; what was read goes along

Nothing is rewritten by a merge that only inserts, and nothing is committed if nothing changes.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from lakebed.commit.change import Commit
from lakebed.errors import RequestError, SchemaMismatchError
from lakebed.expr.nodes import Node
from lakebed.format.datafile import DataFile
from lakebed.format.schema import Schema
from lakebed.format.snapshot import Operation
from lakebed.spark.failures import spark_failures
from lakebed.spark.schema import stored_type
from lakebed.spark.writing.assigning import assigned
from lakebed.spark.writing.change_labels import key_note
from lakebed.spark.writing.incoming import quoted
from lakebed.spark.writing.merge_plan import Act, Case, Clause, MergePlan, MergeReport, MergeTerms
from lakebed.spark.writing.merge_terms import condition_of, key_pairs, key_range, spoken
from lakebed.spark.writing.storing import stored
from lakebed.spark.writing.targets import Targets

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_EVERYTHING = "true"
_KEYS_SHOWN_MAX = 5
_ROW, _HIT, _CLAUSE = "lakebed_row", "lakebed_hit", "lakebed_clause"
_NO_CLAUSE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The files with rows to change, and how many of those there are."""

    files: tuple[DataFile, ...] = ()
    updated_rows: int = 0
    deleted_rows: int = 0


def execute(merge: MergePlan, terms: MergeTerms) -> MergeReport:
    """Do a merge; see `Merge.execute`."""
    done = merge.table.committed(terms.txn)
    if done is not None:
        return MergeReport(commit=done)
    staging = merge.table.stage()
    targets = Targets(spark=merge.source.sparkSession, staging=staging)
    with spark_failures("the merge"), _kept(merge.source) as source:
        work = _Work(merge, source, targets)
        work.check()
        found = work.find()
        rows = work.rows(found.files)
        added = () if rows is None else stored(rows, staging, terms.via)
        copied = sum(file.row_count for file in found.files)
        copied -= found.updated_rows + found.deleted_rows
        inserted = sum(file.row_count for file in added) - copied - found.updated_rows
        commit = None
        if added or found.files:
            commit = _commit(work, found, added, terms)
    return MergeReport(
        commit=commit,
        updated_rows=found.updated_rows,
        deleted_rows=found.deleted_rows,
        inserted_rows=inserted,
        copied_rows=copied,
    )


def _commit(work: "_Work", found: Found, added: Sequence[DataFile], terms: MergeTerms) -> Commit:
    read = _EVERYTHING if work.range is None else work.range
    keys = [ours for ours, _ in key_pairs(work.merge)]  # tell the change feed what is an update
    note = key_note(keys) if keys and found.files else {}
    return work.targets.staging.commit(
        added,
        removed=found.files,
        where=read,
        # Never an append, even if rows are only added: of two merges that insert one key at the
        # same time the second must find out, and appends count as if nobody had read before.
        operation=Operation.OVERWRITE,
        token=terms.txn,
        properties=note | dict(terms.properties),
    )


@contextmanager
def _kept(source: "DataFrame") -> "Iterator[DataFrame]":
    """The source, computed once; it may be different each time otherwise."""
    level = source.storageLevel
    if level.useMemory or level.useDisk:
        yield source
        return
    kept = source.persist()
    try:
        yield kept
    finally:
        kept.unpersist()


class _Work:
    """One merge, at one version of its table."""

    def __init__(self, merge: MergePlan, source: "DataFrame", targets: Targets) -> None:
        self.merge = merge
        self.targets = targets
        self.schema = targets.schema
        self.source = source.alias("s")
        self.condition = condition_of(merge)
        self.matched = merge.of(Case.MATCHED)
        self.orphaned = merge.of(Case.NOT_MATCHED_BY_SOURCE)
        self.inserts = merge.of(Case.NOT_MATCHED)
        # Rows without a partner can be anywhere, so then each file counts.
        self.range: Node | None = None if self.orphaned else key_range(merge, source, self.schema)
        self.candidates = targets.staging.plan(self.range).files

    def check(self) -> None:
        """Raise if a clause does not fit the table or the source, before any job is started."""
        empty = self._joined(self.targets.frame(()), "left_outer")
        for clause in (*self.matched, *self.orphaned):
            if clause.act is Act.UPDATE:
                assigned(empty, self._values(clause), self.schema)
        for clause in self.inserts:
            assigned(self.source, self._values(clause), self.schema)

    # ------------------------------------------------------------------------------------ find

    def find(self) -> Found:
        """Find the files with rows to change.

        Raises:
            RequestError: a row would be changed by several source rows.
        """
        from pyspark.sql import functions as F  # noqa: N812

        if not (self.matched or self.orphaned) or not self.candidates:
            return Found()
        mark = self.targets.marker
        target = self.targets.frame(self.candidates)
        target = target.withColumn(_ROW, F.monotonically_increasing_id())
        pairs = self._joined(target, "left_outer" if self.orphaned else "inner")
        per_row = (
            pairs.where(quoted(_CLAUSE) != _NO_CLAUSE)
            .groupBy(quoted(mark), quoted(_ROW))
            .agg(F.count("*").alias("n"), F.min(quoted(_CLAUSE)).alias("clause"))
        )
        per_file = per_row.groupBy(quoted(mark), "clause").agg(
            F.count("*").alias("rows"), F.max("n").alias("most")
        )
        found = per_file.collect()
        if any(row["most"] > 1 for row in found):
            self._refuse(per_row, pairs)
        marks = self.targets.by_mark(self.candidates)
        hit = {marks.file(row[mark]).path for row in found}
        acts = [clause.act for clause in (*self.matched, *self.orphaned)]
        counts = dict.fromkeys(Act, 0)
        for row in found:
            counts[acts[row["clause"]]] += row["rows"]
        return Found(
            files=tuple(file for file in self.candidates if file.path in hit),
            updated_rows=counts[Act.UPDATE],
            deleted_rows=counts[Act.DELETE],
        )

    def _joined(self, target: "DataFrame", how: str) -> "DataFrame":
        """Rows of the table, each with the source row that changes it, and the clause for it."""
        from pyspark.sql import functions as F  # noqa: N812

        source = self.source.withColumn(_HIT, F.lit(True)).alias("s")  # noqa: FBT003
        is_wanted = self._is_wanted()
        condition = self.condition if is_wanted is None else self.condition & is_wanted
        joined = target.alias("t").join(source, condition, how)
        return joined.withColumn(_CLAUSE, self._clause())

    def _is_wanted(self) -> "Column | None":
        """Whether some clause wants a pair; None if it always does.

        Pairs that no clause wants are no reason to refuse a merge. Where rows without a partner
        count, each partner does.
        """
        conditions = [clause.condition for clause in self.matched]
        if self.orphaned or not conditions or any(each is None for each in conditions):
            return None
        return reduce(lambda a, b: a | b, [_true(condition) for condition in conditions])

    def _clause(self) -> "Column":
        """The number of the clause that is about a row, counted over matched and orphaned."""
        from pyspark.sql import functions as F  # noqa: N812

        is_hit = quoted(_HIT).isNotNull()
        found = F.lit(_NO_CLAUSE)
        clauses = [*self.matched, *self.orphaned]
        for number in reversed(range(len(clauses))):
            clause = clauses[number]
            case = is_hit if clause.case is Case.MATCHED else ~is_hit
            when = case if clause.condition is None else case & _true(clause.condition)
            found = F.when(when, F.lit(number)).otherwise(found)
        return found

    def _refuse(self, per_row: "DataFrame", pairs: "DataFrame") -> None:
        several = per_row.where("n > 1").select(quoted(self.targets.marker), quoted(_ROW))
        names = [name for name, _ in key_pairs(self.merge)] or list(self.schema.by_name)
        names = names[:_KEYS_SHOWN_MAX]
        wanted = pairs.join(several, [self.targets.marker, _ROW], "left_semi")
        shown = wanted.select(*(_of("t", name) for name in names))
        rows = shown.distinct().limit(_KEYS_SHOWN_MAX).collect()
        keys = "; ".join(
            ", ".join(f"{name}={value!r}" for name, value in zip(names, row, strict=True))
            for row in rows
        )
        raise RequestError(
            f"several source rows match one row of {self.merge.table.name}: {keys}",
            hint="Nothing was changed. Leave one source row for each: "
            "source.dropDuplicates([…]), or narrow the condition",
        )

    # ----------------------------------------------------------------------------------- write

    def rows(self, files: Sequence[DataFile]) -> "DataFrame | None":
        """What is to be written: changed and copied rows of the files, and inserted ones."""
        parts = [self._changed(files)] if files else []
        if self.inserts:
            parts.append(self._inserted())
        return reduce(lambda a, b: a.unionByName(b), parts) if parts else None

    def _changed(self, files: Sequence[DataFile]) -> "DataFrame":
        from pyspark.sql import functions as F  # noqa: N812

        joined = self._joined(self.targets.frame(files), "left_outer")
        clauses = [*self.matched, *self.orphaned]
        gone = [number for number, clause in enumerate(clauses) if clause.act is Act.DELETE]
        kept = joined.where(~quoted(_CLAUSE).isin(gone)) if gone else joined
        changes = [
            (number, assigned(kept, self._values(clause), self.schema))
            for number, clause in enumerate(clauses)
            if clause.act is Act.UPDATE
        ]
        columns = []
        for name in self.schema.by_name:
            value = _of("t", name)
            for number, new in reversed(changes):
                if name in new:
                    value = F.when(quoted(_CLAUSE) == number, new[name]).otherwise(value)
            columns.append(value.alias(name))
        return kept.select(*columns)

    def _inserted(self) -> "DataFrame":
        from pyspark.sql import functions as F  # noqa: N812

        source = self.source
        if self.candidates:
            target = self.targets.frame(self.candidates).alias("t")
            source = source.join(target, self.condition, "left_anti").alias("s")
        number = F.lit(_NO_CLAUSE)
        for place in reversed(range(len(self.inserts))):
            condition = self.inserts[place].condition
            when = F.lit(True) if condition is None else _true(condition)  # noqa: FBT003
            number = F.when(when, F.lit(place)).otherwise(number)
        source = source.withColumn(_CLAUSE, number).where(quoted(_CLAUSE) != _NO_CLAUSE)
        source = source.alias("s")
        values = [assigned(source, self._values(clause), self.schema) for clause in self.inserts]
        columns = []
        for field in self.schema.fields:
            value = _nothing(field.name, self.schema)
            for place in reversed(range(len(values))):
                new = values[place].get(field.name)
                other = _nothing(field.name, self.schema) if new is None else new
                value = F.when(quoted(_CLAUSE) == place, other).otherwise(value)
            columns.append(value.alias(field.name))
        return source.select(*columns)

    def _values(self, clause: Clause) -> "dict[str, Column]":
        """What a clause sets, by the table's spelling of columns."""
        if clause.values is not None:
            return {name: spoken(value) for name, value in clause.values.items()}
        there = {name.casefold(): name for name in self.merge.source.columns}
        missing = [n for n in self.schema.by_name if n.casefold() not in there]
        extra = [n for key, n in there.items() if key not in self._folded()]
        if extra or (missing and clause.act is Act.UPDATE):
            problems = [f"the table lacks {name!r}" for name in extra]
            problems += [f"the source lacks {name!r}" for name in missing]
            raise SchemaMismatchError(
                f"{clause.act.value} of all columns does not fit: {'; '.join(problems)}",
                hint="Nothing was changed. Name the columns and their values",
                problems=problems,
            )
        return {
            name: _of("s", there[name.casefold()])
            for name in self.schema.by_name
            if name.casefold() in there
        }

    def _folded(self) -> set[str]:
        return {name.casefold() for name in self.schema.by_name}


def _of(alias: str, name: str) -> "Column":
    from pyspark.sql import functions as F  # noqa: N812

    return F.col(f"{alias}.`{name.replace('`', '``')}`")


def _true(condition: Any) -> "Column":
    """A condition that is false where it is NULL."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.coalesce(spoken(condition), F.lit(False))  # noqa: FBT003


def _nothing(name: str, schema: Schema) -> "Column":
    from pyspark.sql import functions as F  # noqa: N812

    return F.lit(None).cast(stored_type(schema.by_name[name].type))


__all__ = ["Found", "execute"]
