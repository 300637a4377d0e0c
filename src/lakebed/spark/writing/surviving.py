"""Files that lose rows: which they are, and what stays of them.

plan ─► files of which every row goes: removed, not opened
     ─► edge files ─► one job counts the rows that go, by file
                   ─► none: left alone     all: removed     some: the rest is written anew
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakebed.expr.bind import Bound
from lakebed.format.datafile import DataFile
from lakebed.plan.read_plan import ReadPlan
from lakebed.spark.failures import spark_failures
from lakebed.spark.predicate import spark_predicate
from lakebed.spark.writing.incoming import quoted
from lakebed.spark.writing.storing import stored
from lakebed.spark.writing.targets import Targets
from lakebed.table.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import Column


@dataclass(frozen=True, slots=True, kw_only=True)
class Surviving:
    """Files to remove, and those that hold what stays of them."""

    added: tuple[DataFile, ...] = ()
    removed: tuple[DataFile, ...] = ()


def surviving(targets: Targets, plan: ReadPlan, where: Bound, via: str | None = None) -> Surviving:
    """Take the rows for which `where` is true out of the files of a plan."""
    goes = matches(targets, where)
    hit = hit_files(targets, plan.edge_files, goes)
    partly = [file for file in plan.edge_files if 0 < hit.get(file.path, 0) < file.row_count]
    wholly = [file for file in plan.edge_files if hit.get(file.path, 0) == file.row_count]
    removed = (*plan.certain_files, *wholly, *partly)
    if not partly:
        return Surviving(removed=removed)
    rest = targets.frame(partly).where(~goes).drop(targets.marker)
    added = stored(rest, elsewhere(targets.staging), via)
    return Surviving(added=added, removed=removed)


def matches(targets: Targets, where: Bound) -> "Column":
    """A column of target frames that is true where the predicate is, and false elsewhere."""
    from pyspark.sql import functions as F  # noqa: N812

    schema = targets.schema
    found = spark_predicate(where, lambda number: quoted(schema.by_id[number].name))
    return F.coalesce(found, F.lit(False))  # noqa: FBT003


def hit_files(targets: Targets, files: Sequence[DataFile], goes: "Column") -> dict[str, int]:
    """How many rows of each file are true for a condition, by the file's path."""
    from pyspark.sql import functions as F  # noqa: N812

    if not files:
        return {}
    counts = targets.frame(files).where(goes).groupBy(quoted(targets.marker)).agg(F.count("*"))
    with spark_failures("finding the rows to change"):
        found = counts.collect()
    marks = targets.by_mark(files)
    return {marks.file(mark).path: count for mark, count in found}


def elsewhere(staging: Staging) -> Staging:
    """The same staging with another new directory, for a second job of one commit."""
    return replace(staging, directory=f"data/{staging.services.ids.new()}")


__all__ = ["Surviving", "elsewhere", "hit_files", "matches", "surviving"]
