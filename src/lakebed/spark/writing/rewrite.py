"""Changing rows that are in a table: delete, update, and files rewritten to better ones.

All three copy on write: files that keep all their rows are left alone, the others are replaced in
one commit. What was read to decide goes along, so that commits in between are found out.

    delete, update   ─► plan with our statistics ─► whole files by metadata alone
                     ─► edge files: one job finds those that are hit, one writes them anew
    rewrite          ─► small files of one partition into large ones; rows stay as they are
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, Any

from lakebed.commit.change import Commit
from lakebed.errors import BadDataFileError, RequestError
from lakebed.expr.bind import Bound
from lakebed.expr.parse import as_predicate
from lakebed.format.datafile import DataFile
from lakebed.format.snapshot import Operation
from lakebed.spark.failures import spark_failures
from lakebed.spark.writing.assigning import assigned, expression
from lakebed.spark.writing.change_labels import update_note
from lakebed.spark.writing.incoming import quoted
from lakebed.spark.writing.storing import discard, stored
from lakebed.spark.writing.surviving import Surviving, hit_files, matches, surviving
from lakebed.spark.writing.targets import Targets
from lakebed.spark.writing.write import unchanged
from lakebed.table.staging import Staging
from lakebed.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_EVERYTHING = "true"
_EDGE_SIZE_BYTES_MAX = 16 << 20  # so much the driver deletes from faster than Spark starts a job
_SMALL_SHARE = 0.75  # of the size wanted: below it a file is small


def delete(
    table: Table,
    where: object,
    *,
    spark: "SparkSession | None" = None,
    txn: tuple[str, int] | None = None,
    properties: Mapping[str, str] | None = None,
    via: str | None = None,
) -> Commit:
    """Remove the rows for which `where` is true.

    Args:
        table: of `catalog.table`.
        where: SQL text or an expression of ours, which prunes files; `"true"` removes all rows.
            A Spark column can say more, and reads each file.
        spark: the session; the active one if None.
        txn: makes it exactly once, as in `Table.delete`.
        properties: texts that stay with the commit.
        via: `driver` or `executors`; the driver for few bytes if None.

    Returns:
        The commit; if no row matches, nothing is committed and it shows the newest version.

    Raises:
        CommitConflictError: another commit changed rows that this one has read.
    """
    done = table.committed(txn)
    if done is not None:
        return done
    if where is None:
        raise RequestError("delete needs a predicate", hint='To remove all rows: "true"')
    staging = table.stage()
    targets = Targets(spark=_session(spark), staging=staging)
    said: dict[str, str] = {"where": str(where), **(properties or {})}
    with spark_failures("the delete"):
        if _is_column(where):
            files = staging.plan(None).files
            kept = _without(targets, files, where)
            where = _EVERYTHING
        else:
            plan = staging.plan(where)
            edge_bytes = sum(file.size_bytes for file in plan.edge_files)
            if via == "driver" or (via is None and edge_bytes <= _EDGE_SIZE_BYTES_MAX):
                return table.delete(where, token=txn, properties=properties)
            assert plan.where is not None, "there is a predicate"
            kept = surviving(targets, plan, plan.where)
    if not kept.removed:
        return unchanged(table)
    return staging.commit(
        kept.added,
        removed=kept.removed,
        where=where,
        operation=Operation.DELETE,
        token=txn,
        properties=said,
    )


def update(
    table: Table,
    set: Mapping[str, Any],
    where: object = None,
    *,
    spark: "SparkSession | None" = None,
    txn: tuple[str, int] | None = None,
    properties: Mapping[str, str] | None = None,
) -> Commit:
    """Give columns new values in the rows for which `where` is true, or in all rows.

    Args:
        table: of `catalog.table`.
        set: by column, what it becomes: Spark SQL over the table's columns, or a Spark column,
            as in `{"value": "value * 1.8 + 32", "unit": "'F'"}`.
        where: as in `delete`; None is all rows.
        spark: the session; the active one if None.
        txn: makes it exactly once.
        properties: texts that stay with the commit.

    Returns:
        The commit; if no row matches, nothing is committed and it shows the newest version.

    Raises:
        SchemaMismatchError: a new value is of a type that its column does not take.
        CommitConflictError: another commit changed rows that this one has read.
    """
    done = table.committed(txn)
    if done is not None:
        return done
    staging = table.stage()
    targets = Targets(spark=_session(spark), staging=staging)
    text = "" if where is None else str(where)
    with spark_failures("the update"):
        files, goes, read = _update_targets(targets, where)
        if not files:
            return unchanged(table)
        rows = _updated(targets.frame(files).drop(targets.marker), targets, set, goes)
        added = stored(rows, staging)
    return staging.commit(
        added,
        removed=files,
        where=read,
        operation=Operation.OVERWRITE,
        token=txn,
        properties=update_note() | ({"where": text} if text else {}) | dict(properties or {}),
    )


def rewrite(
    table: Table,
    where: object = None,
    *,
    target_file_bytes: int | None = None,
    spark: "SparkSession | None" = None,
    properties: Mapping[str, str] | None = None,
) -> Commit:
    """Make few large files of many small ones; the rows stay as they are.

    Files of one partition that are below three quarters of the size wanted are put together, and
    files of an older partitioning are split by today's. Appends that come in between are kept; a
    commit that removes one of the files is a conflict, and the table stays as that left it.

    Args:
        table: of `catalog.table`.
        where: rewrite only files that may hold rows for which this is true.
        target_file_bytes: how large files should be; as the table's properties say if None.
        spark: the session; the active one if None.
        properties: texts that stay with the commit.

    Returns:
        The commit; if there is nothing to put together, the newest version.
    """
    staging = table.stage()
    session = _session(spark)
    target = target_file_bytes or staging.options.target_file_bytes
    files = _small_files(staging, staging.plan(where).files, target)
    if not files:
        return unchanged(table)
    targets = Targets(spark=session, staging=staging)
    with spark_failures("the rewrite"):
        rows = targets.frame(files).drop(targets.marker)
        if not staging.spec.fields:
            rows = rows.coalesce(max(1, ceil(sum(file.size_bytes for file in files) / target)))
        options = replace(staging.options, target_file_bytes=target)
        added = stored(rows, staging, options=options)
    _check_same(files, added, staging)
    return staging.commit(added, removed=files, operation=Operation.REWRITE, properties=properties)


# -------------------------------------------------------------------------------------- inside


def _session(spark: "SparkSession | None") -> "SparkSession":
    from pyspark.sql import SparkSession

    found = spark or SparkSession.getActiveSession()
    if found is None:
        raise RequestError(
            "there is no Spark session", hint="Start one: lakebed.spark.session(), or give spark="
        )
    return found


def _is_column(where: object) -> bool:
    from pyspark.sql import Column

    return isinstance(where, Column)


def _true_only(condition: Any) -> "Column":
    from pyspark.sql import functions as F  # noqa: N812

    return F.coalesce(condition, F.lit(False))  # noqa: FBT003


def _without(targets: Targets, files: Sequence[DataFile], condition: Any) -> Surviving:
    """What a delete by a Spark column leaves of the files."""
    goes = _true_only(condition)
    hit = hit_files(targets, files, goes)
    partly = [file for file in files if 0 < hit.get(file.path, 0) < file.row_count]
    removed = tuple(file for file in files if hit.get(file.path, 0))
    if not partly:
        return Surviving(removed=removed)
    rest = targets.frame(partly).where(~goes).drop(targets.marker)
    return Surviving(added=stored(rest, targets.staging), removed=removed)


def _update_targets(
    targets: Targets, where: object
) -> "tuple[tuple[DataFile, ...], Column | None, object]":
    """The files with rows to update, which rows of them, and what was read to know."""
    staging = targets.staging
    if _is_column(where):
        goes = _true_only(where)
        files = staging.plan(None).files
        hit = hit_files(targets, files, goes)
        return tuple(file for file in files if hit.get(file.path, 0)), goes, _EVERYTHING
    node = as_predicate(where)
    plan = staging.plan(node)
    bound: Bound | None = plan.where
    if bound is None:
        return plan.files, None, _EVERYTHING
    goes = matches(targets, bound)
    hit = hit_files(targets, plan.edge_files, goes)
    edge = tuple(file for file in plan.edge_files if hit.get(file.path, 0))
    return (*plan.certain_files, *edge), goes, node


def _updated(
    frame: "DataFrame", targets: Targets, changes: Mapping[str, Any], goes: "Column | None"
) -> "DataFrame":
    from pyspark.sql import functions as F  # noqa: N812

    if not changes:
        raise RequestError("update needs columns to set", hint='Write set={"value": "value * 2"}')
    given = {name: expression(value) for name, value in changes.items()}
    new = assigned(frame, given, targets.schema)
    columns = []
    for name in frame.columns:
        value = new.get(name)
        if value is None:
            columns.append(quoted(name))
        else:
            value = value if goes is None else F.when(goes, value).otherwise(quoted(name))
            columns.append(value.alias(name))
    return frame.select(*columns)


def _small_files(staging: Staging, files: Sequence[DataFile], target: int) -> tuple[DataFile, ...]:
    """The files worth rewriting."""
    spec = staging.spec.id
    groups: dict[tuple[Any, ...], list[DataFile]] = defaultdict(list)
    for file in files:
        if file.spec_id == spec and file.size_bytes < target * _SMALL_SHARE:
            groups[file.partition].append(file)
    small = {file.path for some in groups.values() if len(some) > 1 for file in some}
    return tuple(file for file in files if file.spec_id != spec or file.path in small)


def _check_same(removed: Sequence[DataFile], added: Sequence[DataFile], staging: Staging) -> None:
    """Raise if a rewrite has lost or made rows: it must not be committed."""
    before, after = (sum(file.row_count for file in some) for some in (removed, added))
    if before != after:
        discard(added, staging)
        raise BadDataFileError(f"a rewrite of {before} rows came to {after}; it was given up")


__all__ = ["delete", "rewrite", "update"]
