"""Files that an engine writes by itself, on their way into a table.

    table.stage(columns) ─► the engine writes files below `directory`, with `schema` and `spec`
                         ─► describe(paths): durable? sound? of one partition? ─► DataFile values
                         ─► commit(added, removed, where): one snapshot, checked like any other

A staging is pinned to the version it was made at: what a change has read is read there, and
commits that came since are checked against it. Until `commit` no reader sees anything, and a
writer that dies leaves files behind that no version lists.
"""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lakebed.commit.change import Change, Commit, Definition, Isolation
from lakebed.commit.committer import Target
from lakebed.commit.head import Head
from lakebed.errors import SchemaMismatchError
from lakebed.expr.bind import Bound, bind
from lakebed.expr.parse import as_predicate
from lakebed.files.data_writer import WriterOptions
from lakebed.files.footer import adopt
from lakebed.files.metadata_files import MetadataFiles
from lakebed.format.datafile import DataFile
from lakebed.format.partition import PartitionSpec
from lakebed.format.schema import Schema
from lakebed.format.snapshot import Operation
from lakebed.plan.planner import make_plan
from lakebed.plan.read_plan import ReadPlan
from lakebed.table.appending import adding
from lakebed.table.rows import widened_schema
from lakebed.table.services import Place, Services
from lakebed.table.tasks import WriteTask
from lakebed.table.tokens import as_terms

_FOOTERS_AT_ONCE_MAX = 8

Partition = tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class Staging:
    """A write of an engine; made by `Table.stage`."""

    head: Head
    files: MetadataFiles
    services: Services
    schema: Schema  # what the files must hold, with the ids of columns that are new
    directory: str  # fresh and of this write alone: data/<id>

    @property
    def spec(self) -> PartitionSpec:
        """How the rows are split: each file holds rows of one partition."""
        return self.head.metadata.spec(self.head.snapshot.spec_id)

    @property
    def options(self) -> WriterOptions:
        """How the table wants its files written."""
        return WriterOptions.from_properties(self.head.metadata.properties)

    @property
    def place(self) -> Place:
        """The table's directory, for other processes."""
        return self.services.place(self.files.store)

    def write_task(self) -> WriteTask:
        """Work for another process: rows into files, with our own writer."""
        return WriteTask(place=self.place, schema=self.schema, spec=self.spec, options=self.options)

    def plan(self, where: object = None) -> ReadPlan:
        """The files that a read at the pinned version needs."""
        return make_plan(
            self.files,
            self.head.snapshot,
            schema=self._current,
            where=self._bound(where),
            where_text="" if where is None else str(where),
        )

    def describe(
        self, paths: Iterable[str], partitions: Mapping[str, Partition] | None = None
    ) -> tuple[DataFile, ...]:
        """Make files durable that another program wrote, and read what they hold.

        Args:
            paths: relative to the table, as the store lists them.
            partitions: for files whose statistics cannot show their partition (buckets), what
                the writer knows of it.

        Raises:
            SchemaMismatchError: a file does not fit the table.
            BadDataFileError: a file is damaged.
        """
        wanted = list(paths)
        if not wanted:
            return ()
        store, known = self.files.store, partitions or {}
        store.settle(wanted)

        def look(path: str) -> DataFile:
            return adopt(store, path, schema=self.schema, spec=self.spec, partition=known.get(path))

        with ThreadPoolExecutor(_FOOTERS_AT_ONCE_MAX, thread_name_prefix="lakebed-foot") as pool:
            return tuple(pool.map(look, wanted))

    def commit(
        self,
        added: Sequence[DataFile],
        *,
        removed: Sequence[DataFile] = (),
        where: object = None,
        operation: Operation | None = None,
        token: tuple[str, int] | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Commit:
        """Make the files part of the table, in one snapshot.

        Args:
            added: as `describe` or a WriteTask gave them.
            removed: files of the pinned version that they replace.
            where: what was read to decide this, as SQL text or an expression; `"true"` is all.
                None is a blind append, which fits after any commit.
            operation: for the history; told from the files if None.
            token: makes it exactly once, as in `Table.append`.
            properties: texts that stay with the commit.
        """
        if operation is None:
            operation = Operation.OVERWRITE if removed or where else Operation.APPEND
        terms = as_terms(token, properties)
        change = Change(
            operation=operation,
            added=tuple(added),
            removed=tuple(removed),
            read=self._bound(where),
            isolation=Isolation.of(self.head.metadata),
            define=self._define,
            token=terms.token,
            parameters=dict(terms.properties),
            data_change=operation is not Operation.REWRITE,
        )
        target = Target(files=self.files, base=self.head.pointer, change=change)
        return self.services.committer.commit([target])[0]

    @property
    def _current(self) -> Schema:
        return self.head.metadata.schema(self.head.snapshot.schema_id)

    @cached_property
    def _define(self) -> Any:
        is_new = self.schema is not self._current
        definition: Definition = self.head.definition
        return adding(self.schema, definition) if is_new else None

    def _bound(self, where: object) -> Bound | None:
        node = as_predicate(where)
        return None if node is None else bind(node, self._current)


def stage(
    head: Head, files: MetadataFiles, services: Services, incoming: Any, *, evolve: bool
) -> Staging:
    """Prepare a write of rows with the Arrow schema `incoming`; of the table's own if None."""
    metadata = head.metadata
    current = metadata.schema(head.snapshot.schema_id)
    schema = current
    if incoming is not None:
        schema = widened_schema(
            current,
            incoming,
            new_id=len(metadata.schemas),
            last_field_id=metadata.last_field_id,
        )
    if schema is not current and not evolve:
        extra = [field.name for field in schema.fields if field.id not in current.by_id]
        raise SchemaMismatchError(
            f"the rows bring columns that the table lacks: {', '.join(extra)}",
            hint="Nothing was changed. Leave them out, or let the table take them: mergeSchema",
            problems=extra,
        )
    return Staging(
        head=head,
        files=files,
        services=services,
        schema=schema,
        directory=f"data/{services.ids.new()}",
    )
