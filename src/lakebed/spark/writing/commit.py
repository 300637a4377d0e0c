"""Files that workers have stored, into the table: where there is no Spark session at hand.

append      added
overwrite   added, and everything removed
            … or what matches replaceWhere; the rest of those files is written anew, here
            … or the partitions that the new files are in (dynamic)
"""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.commit.change import Commit
from lakebed.errors import RequestError
from lakebed.expr.arrow import filter_mask
from lakebed.expr.parse import as_predicate
from lakebed.format.datafile import DataFile
from lakebed.spark.writing.covering import covering
from lakebed.spark.writing.options import WriteOptions
from lakebed.table.staging import Staging
from lakebed.table.tasks import ReadTask

_EVERYTHING = "true"


def commit_files(added: Sequence[DataFile], staging: Staging, options: WriteOptions) -> Commit:
    """Commit files as the options say."""
    if options.mode != "overwrite":
        return staging.commit(added, token=options.txn, properties=options.properties)
    if options.replace_where is not None:
        return _replace_matching(added, staging, options)
    if options.partition_overwrite == "dynamic" and staging.spec.fields:
        return _replace_hit(added, staging, options)
    return staging.commit(
        added,
        removed=staging.plan(None).files,
        where=_EVERYTHING,
        token=options.txn,
        properties=options.properties,
    )


def _replace_matching(added: Sequence[DataFile], staging: Staging, options: WriteOptions) -> Commit:
    where = as_predicate(options.replace_where)
    removed, rest = _taken_out(staging, where)
    return staging.commit(
        (*added, *rest),
        removed=removed,
        where=where,
        token=options.txn,
        properties={"where": str(where), **options.properties},
    )


def _taken_out(
    staging: Staging, where: object
) -> tuple[tuple[DataFile, ...], tuple[DataFile, ...]]:
    """The files that lose rows, and new ones with what stays of them."""
    plan = staging.plan(where)
    assert plan.where is not None, "there is a predicate"
    head = staging.head
    schema = head.metadata.schema(head.snapshot.schema_id)
    names = {field.id: field.name for field in schema.fields}
    whole = ReadTask(place=staging.place, metadata=head.metadata, schema=schema, files=())
    writer = replace(staging.write_task(), schema=schema)
    removed = list(plan.certain_files)
    rest: list[DataFile] = []
    for file in plan.edge_files:
        task = replace(whole, files=(file,))
        rows = pa.Table.from_batches(task.batches(), task.arrow_schema)
        matches = filter_mask(plan.where, rows, names)
        if not pc.any(matches).as_py():
            continue
        removed.append(file)
        kept = rows.filter(pc.invert(matches))
        rest.extend(writer.write(kept.schema, kept.to_batches()))
    return tuple(removed), tuple(rest)


def _replace_hit(added: Sequence[DataFile], staging: Staging, options: WriteOptions) -> Commit:
    hit = {file.partition for file in added}
    cover = covering(hit, staging.schema, staging.spec)
    plan = staging.plan(cover)
    if any(file.spec_id != staging.spec.id for file in plan.files):
        raise RequestError(
            "some files were written under an older partitioning, so it is not known which of "
            "their rows are in the partitions to overwrite",
            hint="Nothing was changed. Use replaceWhere",
        )
    return staging.commit(
        added,
        removed=[file for file in plan.files if file.partition in hit],
        where=cover,
        token=options.txn,
        properties=options.properties,
    )


__all__ = ["commit_files"]
