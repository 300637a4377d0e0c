"""Rows appended, and the columns they bring along, in one commit."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from lakebed.commit.change import Change, Commit, Definition
from lakebed.commit.committer import Target
from lakebed.commit.head import Head
from lakebed.errors import CommitConflictError
from lakebed.files.data_writer import WriterOptions
from lakebed.files.intake import batches_of
from lakebed.files.metadata_files import MetadataFiles
from lakebed.format.schema import Schema
from lakebed.format.snapshot import Operation
from lakebed.ids import Ids
from lakebed.table.rows import RowWriter, chunks_of, widened_schema
from lakebed.table.tokens import NO_TERMS, Terms

_DEFINITION_MOVED = "DEFINITION_MOVED"
_REPLAN_COUNT_MAX = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Rows that are encoded, and the schema they were encoded with if it is a new one."""

    writer: RowWriter
    schema: Schema
    define: Callable[[Definition], Definition] | None


def write_rows(
    incoming: Any, batches: Iterable[Any], *, head: Head, files: MetadataFiles, ids: Ids
) -> Written:
    """Encode record batches of the Arrow schema `incoming` as data files of a table."""
    metadata = head.metadata
    current = metadata.schema(head.snapshot.schema_id)
    schema = widened_schema(
        current,
        incoming,
        new_id=len(metadata.schemas),
        last_field_id=metadata.last_field_id,
    )
    writer = RowWriter(
        files.store,
        schema=schema,
        spec=metadata.spec(head.snapshot.spec_id),
        ids=ids,
        options=WriterOptions.from_properties(metadata.properties),
    )
    for rows in chunks_of(incoming, batches):
        writer.write(rows)
    define = None if schema is current else adding(schema, head.definition)
    return Written(writer=writer, schema=schema, define=define)


def append_target(
    data: Any,
    *,
    head: Head,
    files: MetadataFiles,
    ids: Ids,
    terms: Terms = NO_TERMS,
) -> Target:
    """Encode rows and say how they are to be committed."""
    written = write_rows(*batches_of(data), head=head, files=files, ids=ids)
    change = Change(
        operation=Operation.APPEND,
        added=written.writer.files,
        define=written.define,
        token=terms.token,
        parameters=dict(terms.properties),
    )
    return Target(files=files, base=head.pointer, change=change, pending=written.writer.pending)


def replanned(attempt: Callable[[], Commit], *, replayable: bool) -> Commit:
    """Plan and commit; again, if others gave out field ids that the rows need meanwhile."""
    for number in range(1, _REPLAN_COUNT_MAX + 1):
        try:
            return attempt()
        except CommitConflictError as error:
            moved = error.fields.get("verdict") == _DEFINITION_MOVED
            if not (moved and replayable) or number == _REPLAN_COUNT_MAX:
                raise
    raise AssertionError("the last attempt returns or raises")


def adding(schema: Schema, planned_on: Definition) -> Callable[[Definition], Definition]:
    """Add a schema whose field ids stand in files already written.

    That holds only while nobody else has given out ids: the files cannot change theirs.
    """

    def define(current: Definition) -> Definition:
        before, now = planned_on.metadata, current.metadata
        if (now.schemas, now.last_field_id, current.schema_id) != (
            before.schemas,
            before.last_field_id,
            planned_on.schema_id,
        ):
            raise CommitConflictError(
                f"the columns of {now.name} were changed by another commit, and these rows bring "
                "new columns too",
                hint="Nothing was changed. Append the rows again",
                table=now.name,
                verdict=_DEFINITION_MOVED,
            )
        grown = replace(
            now,
            schemas=(*now.schemas, schema),
            last_field_id=max(now.last_field_id, schema.last_id),
        )
        return Definition(metadata=grown, schema_id=schema.id, spec_id=current.spec_id)

    return define
