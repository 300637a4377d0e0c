"""Overwriting: all rows, the rows that match a predicate, or the partitions that are hit.

Each is one commit that removes files of the pinned version and adds new ones. What the removal
depends on goes along as a predicate, so that a commit which came in between is found out.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from lakebed.commit.change import Commit
from lakebed.errors import RequestError
from lakebed.expr.bind import Bound
from lakebed.expr.parse import as_predicate
from lakebed.files.data_reader import count_matching
from lakebed.format.datafile import DataFile
from lakebed.format.metadata import TableMetadata
from lakebed.spark.writing.covering import covering
from lakebed.spark.writing.options import WriteOptions
from lakebed.spark.writing.storing import collected, discard, executor_files, stored
from lakebed.spark.writing.surviving import surviving
from lakebed.spark.writing.targets import Targets
from lakebed.spark.writing.workers import arrow_rows
from lakebed.table.staging import Staging
from lakebed.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_EVERYTHING = "true"
_EDGE_SIZE_BYTES_MAX = 32 << 20  # more than this is not rewritten on the driver


def overwrite_all(
    frame: "DataFrame", table: Table, staging: Staging, options: WriteOptions
) -> Commit:
    """Replace all rows."""
    rows = collected(frame, staging.place, options.via)
    if rows is not None:
        seen = arrow_rows(rows, staging.schema)
        return table.overwrite(seen, token=options.txn, properties=options.properties)
    return staging.commit(
        executor_files(frame, staging),
        removed=staging.plan(None).files,
        where=_EVERYTHING,
        token=options.txn,
        properties=options.properties,
    )


def overwrite_matching(
    frame: "DataFrame", table: Table, staging: Staging, options: WriteOptions
) -> Commit:
    """Replace the rows that match `replace_where` by new ones, which must match it too."""
    where = as_predicate(options.replace_where)
    plan = staging.plan(where)
    is_light = sum(file.size_bytes for file in plan.edge_files) <= _EDGE_SIZE_BYTES_MAX
    via = options.via if is_light or options.via else "executors"
    rows = collected(frame, staging.place, via)
    if rows is not None:
        seen = arrow_rows(rows, staging.schema)
        return table.overwrite(seen, where, token=options.txn, properties=options.properties)
    added = executor_files(frame, staging)
    assert plan.where is not None, "there is a predicate"
    _check_match(added, staging, plan.where, where)
    targets = Targets(spark=frame.sparkSession, staging=staging)
    kept = surviving(targets, plan, plan.where)
    return staging.commit(
        (*added, *kept.added),
        removed=kept.removed,
        where=where,
        token=options.txn,
        properties={"where": str(where), **options.properties},
    )


def overwrite_hit(frame: "DataFrame", staging: Staging, options: WriteOptions) -> Commit:
    """Replace the partitions that the new rows are in."""
    added = stored(frame, staging, options.via)
    hit = {file.partition for file in added}
    spec = staging.spec
    cover = covering(hit, staging.schema, spec)
    plan = staging.plan(cover)
    foreign = [file for file in plan.files if file.spec_id != spec.id]
    if foreign:
        discard(added, staging)
        raise RequestError(
            f"{len(foreign)} files were written under an older partitioning, so it is not known "
            "which of their rows are in the partitions to overwrite",
            hint="Nothing was changed. Use replace_where, or rewrite the table first: "
            "lakebed.spark.rewrite(table)",
        )
    return staging.commit(
        added,
        removed=[file for file in plan.files if file.partition in hit],
        where=cover,
        token=options.txn,
        properties=options.properties,
    )


def _check_match(
    added: tuple[DataFile, ...], staging: Staging, bound: Bound, where: object
) -> None:
    """Raise if a new row lies outside of what is replaced; its files are then removed."""
    total = sum(file.row_count for file in added)
    inside = count_matching(
        staging.files.store,
        added,
        metadata=_with_new_columns(staging),
        schema=staging.schema,
        where=bound,
    )
    if inside != total:
        discard(added, staging)
        raise RequestError(
            f"{total - inside} of {total} rows do not match {where}",
            hint="Nothing was changed. An overwrite puts rows only where it removes them; append "
            "the others",
        )


def _with_new_columns(staging: Staging) -> TableMetadata:
    """The table's metadata as it will be if the rows bring new columns."""
    metadata = staging.head.metadata
    if staging.schema.id < len(metadata.schemas):
        return metadata
    return replace(metadata, schemas=(*metadata.schemas, staging.schema))


__all__ = ["overwrite_all", "overwrite_hit", "overwrite_matching"]
