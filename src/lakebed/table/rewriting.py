"""Rows removed and replaced, copy-on-write: only files that can hold a matching row are touched.

every row matches (by metadata alone)   the file is dropped, unread
some rows may match                     the file is read; if any does, the others are rewritten
no row can match                        the file stays
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.commit.change import Change, Commit, Isolation, commit_of
from lakebed.commit.committer import Target
from lakebed.commit.head import Head
from lakebed.errors import RequestError
from lakebed.expr.arrow import filter_mask
from lakebed.expr.bind import Bound, BoundConstant
from lakebed.files.data_reader import output_schema, read_files
from lakebed.files.data_writer import WriterOptions
from lakebed.files.intake import batches_of, conform
from lakebed.files.metadata_files import MetadataFiles
from lakebed.format.datafile import DataFile
from lakebed.format.schema import Schema
from lakebed.format.snapshot import Operation
from lakebed.ids import Ids
from lakebed.plan.planner import make_plan
from lakebed.table.appending import write_rows
from lakebed.table.rows import RowWriter
from lakebed.table.tokens import NO_TERMS, Terms

EVERYTHING = BoundConstant(value=True)


def delete_target(
    where: Bound,
    text: str,
    *,
    head: Head,
    files: MetadataFiles,
    ids: Ids,
    terms: Terms = NO_TERMS,
) -> Target | None:
    """Remove the rows for which `where` is true; None if there are none."""
    writer = _survivor_writer(head, files, ids)
    removed = _take_out(where, head, files, writer)
    if not removed:
        return None
    change = Change(
        operation=Operation.DELETE,
        added=writer.files,
        removed=tuple(removed),
        read=where,
        isolation=Isolation.of(head.metadata),
        token=terms.token,
        parameters={"where": text, **terms.properties},
    )
    return Target(files=files, base=head.pointer, change=change, pending=writer.pending)


def overwrite_target(
    data: Any,
    where: Bound | None,
    text: str,
    *,
    head: Head,
    files: MetadataFiles,
    ids: Ids,
    terms: Terms = NO_TERMS,
) -> Target:
    """Replace the rows for which `where` is true, or all, by new ones that must match it too."""
    incoming, batches = batches_of(data)
    if where is not None:
        schema = head.metadata.schema(head.snapshot.schema_id)
        batches = _matching(incoming, batches, where, text, schema)
    written = write_rows(incoming, batches, head=head, files=files, ids=ids)
    survivors = _survivor_writer(head, files, ids)
    removed = _take_out(where or EVERYTHING, head, files, survivors)
    change = Change(
        operation=Operation.OVERWRITE,
        added=(*survivors.files, *written.writer.files),
        removed=tuple(removed),
        read=where or EVERYTHING,
        isolation=Isolation.of(head.metadata),
        define=written.define,
        token=terms.token,
        parameters=({"where": text} if text else {}) | dict(terms.properties),
    )
    pending = (*survivors.pending, *written.writer.pending)
    return Target(files=files, base=head.pointer, change=change, pending=pending)


def nothing_deleted(head: Head) -> Commit:
    """The report of a delete that matched no row: the table stays at its version."""
    return replace(
        commit_of(head.snapshot),
        operation=Operation.DELETE,
        added_files=0,
        added_rows=0,
        removed_files=0,
        removed_rows=0,
    )


def _survivor_writer(head: Head, files: MetadataFiles, ids: Ids) -> RowWriter:
    metadata = head.metadata
    return RowWriter(
        files.store,
        schema=metadata.schema(head.snapshot.schema_id),
        spec=metadata.spec(head.snapshot.spec_id),
        ids=ids,
        options=WriterOptions.from_properties(metadata.properties),
    )


def _take_out(
    where: Bound, head: Head, files: MetadataFiles, survivors: RowWriter
) -> list[DataFile]:
    """Find the files that lose rows; what stays of them goes to `survivors`."""
    schema = head.metadata.schema(head.snapshot.schema_id)
    plan = make_plan(files, head.snapshot, schema=schema, where=where)
    removed = list(plan.certain_files)
    names = {field.id: field.name for field in schema.fields}
    for file in plan.edge_files:
        batches = read_files(
            files.store,
            [file],
            metadata=head.metadata,
            schema=schema,
            columns=None,
            where=None,
        )
        whole = pa.Table.from_batches(batches, output_schema(schema, None))
        matches = filter_mask(where, whole, names)
        if not pc.any(matches).as_py():
            continue
        removed.append(file)
        rest = whole.filter(pc.invert(matches))
        if rest.num_rows:
            survivors.write(rest)
    return removed


def _matching(
    incoming: Any, batches: Iterator[Any], where: Bound, text: str, schema: Schema
) -> Iterator[Any]:
    """The batches as they come, each checked: no row may lie outside of what it replaces."""
    names = {field.id: field.name for field in schema.fields}
    known = [name for name in incoming.names if name in schema.by_name]
    for batch in batches:
        rows = conform(batch.select(known), schema)
        outside = pc.sum(pc.invert(filter_mask(where, rows, names))).as_py() or 0
        if outside:
            raise RequestError(
                f"{outside} of {batch.num_rows} rows do not match {text}",
                hint="Nothing was changed. An overwrite puts rows only where it removes them; "
                "append the others",
            )
        yield batch
