"""The batch writer of `format("lakebed")`: rows through our own writer, in Python workers.

    planner   writer()  the table is found or made, its version pinned, the columns checked
    worker    write()   rows ─► files, stored durably, in no version ─► message
    planner   commit()  the files of all messages, in one commit
              abort()   the files of those that came, if no commit can have been tried

Only messages count: what failed, killed and speculative tasks have stored is in no version. Spark
calls `abort` also when `commit` has failed, and then nobody knows what became of it. A job that
lacks a message was never handed to `commit`, and only then anything is deleted.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from lakebed.commit.change import Commit
from lakebed.errors import AlreadyExistsError, LakebedError, NotFoundError, RequestError
from lakebed.expr.arrow import filter_mask
from lakebed.expr.bind import Bound, bind
from lakebed.expr.parse import as_predicate
from lakebed.files.intake import conform
from lakebed.format.datafile import DataFile
from lakebed.format.schema import Schema
from lakebed.spark.source.options import PLACE, STORAGE, TablePlace, place_of
from lakebed.spark.writing.commit import commit_files
from lakebed.spark.writing.incoming import columns_of_schema, rows_seen_as, seen_as
from lakebed.spark.writing.options import WriteOptions
from lakebed.table.table import Table
from lakebed.table.tasks import WriteTask

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class Written(WriterCommitMessage):
    """What one task has stored, and under which columns."""

    def __init__(self, files: tuple[DataFile, ...], task: WriteTask) -> None:
        self.files = files
        self.location = task.place.location
        self.schema = task.schema


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """All that workers and committers need; made once for each write, and pickled."""

    place: TablePlace
    options: WriteOptions
    incoming: pa.Schema  # the rows as the table names and takes them
    task: WriteTask
    version: int
    where: Bound | None = None  # of replaceWhere
    made_table: bool = False

    def write(self, batches: Iterable[Any]) -> tuple[DataFile, ...]:
        """Store the rows of one task."""
        some = iter(batches)
        first = next(some, None)
        if first is None:
            return ()
        return self.task.write(self.incoming, self._seen(first, some))

    def commit(self, files: Sequence[DataFile], options: WriteOptions | None = None) -> Commit:
        """Make the files part of the table."""
        options = options or self.options
        table = self.place.open()
        staging = table.stage(self.incoming, evolve=options.merge_schema, at=self.version)
        return commit_files(files, staging, options)

    def discard(self, files: Iterable[DataFile]) -> None:
        """Delete files that were never handed to a commit, and the table if it was made for them.

        Nothing depends on it: what cannot be deleted is in no version.
        """
        with suppress(LakebedError):
            table = self.place.open()
            for file in files:
                table.files.store.delete(file.path)
            head = table.head()
            if self.made_table and head.pointer.version == self.version:
                table._services.founder.drop(head, table.files)

    def _seen(self, first: Any, others: Iterator[Any]) -> Iterator[Any]:
        for batch in chain((first,), others):
            rows = rows_seen_as(batch, self.incoming)
            if self.where is not None:
                _check_match(rows, self.where, self.task.schema, self.options.replace_where)
            yield rows


def _check_match(rows: Any, where: Bound, schema: Schema, text: object) -> None:
    names = {field.id: field.name for field in schema.fields}
    matches = filter_mask(where, conform(rows, schema), names)
    outside = pc.sum(pc.invert(matches)).as_py() or 0
    if outside:
        raise RequestError(
            f"{outside} of {rows.num_rows} rows do not match {text}",
            hint="Nothing was changed. An overwrite puts rows only where it removes them; append "
            "the others",
        )


class LakebedWriter(DataSourceArrowWriter):
    """Writes one frame; pickled to the workers, and to the process that commits."""

    def __init__(self, plan: WritePlan) -> None:
        self._plan = plan

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        """Called once for each attempt of a task, in a worker."""
        return Written(self._plan.write(iterator), self._plan.task)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Called once, when every task has answered."""
        self._plan.commit(files_of(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Called when a task has failed for good, and when the commit has."""
        if None in messages:
            self._plan.discard(files_of(messages))


def files_of(messages: Iterable[WriterCommitMessage | None]) -> list[DataFile]:
    """The files of the tasks that have answered."""
    return [file for each in messages if isinstance(each, Written) for file in each.files]


# -------------------------------------------------------------------------------------- planning


def plan_write(options: Mapping[str, str], schema: "StructType", *, overwrite: bool) -> WritePlan:
    """Prepare a batch write from Spark's options.

    Raises:
        RequestError: an option is unknown, or not for this.
        SchemaMismatchError: the rows do not fit the table.
    """
    own = {key: value for key, value in options.items() if not key.lower().startswith(STORAGE)}
    mode = "overwrite" if overwrite else "append"
    asked = WriteOptions.of(own, mode=mode, known=PLACE)
    if asked.via == "driver":
        raise RequestError(
            'format("lakebed") always writes by the executors',
            hint='Use lakebed.spark.write(frame, table, via="driver")',
        )
    return prepared(place_of(options), asked, columns_of_schema(schema))


def prepared(place: TablePlace, options: WriteOptions, columns: pa.Schema) -> WritePlan:
    """Find or make the table, and fit the columns to it."""
    table, is_new = _found_or_made(place, options, columns)
    schema = table.schema
    incoming = seen_as(_named_as(columns, schema), schema)
    staging = table.stage(incoming, evolve=options.merge_schema)
    where = None
    if options.replace_where is not None:
        node = as_predicate(options.replace_where)
        assert node is not None, "there is a predicate"
        where = bind(node, schema)
    return WritePlan(
        place=place,
        options=options,
        incoming=incoming,
        task=staging.write_task(),
        version=staging.head.pointer.version,
        where=where,
        made_table=is_new,
    )


def _found_or_made(
    place: TablePlace, options: WriteOptions, columns: pa.Schema
) -> tuple[Table, bool]:
    try:
        return place.open(), False
    except NotFoundError:
        pass
    try:
        made = place.catalog().create_table(place.name, columns, options.partition_by or ())
    except AlreadyExistsError:
        return place.open(), False  # somebody else was faster
    return made, True


def _named_as(columns: pa.Schema, schema: Schema) -> pa.Schema:
    """The columns with the table's spelling of their names."""
    spelling = {name.casefold(): name for name in schema.by_name}
    names = [
        field.name if field.name in schema.by_name else spelling.get(field.name.casefold())
        for field in columns
    ]
    return pa.schema(
        [field.with_name(name or field.name) for name, field in zip(names, columns, strict=True)]
    )


__all__ = ["LakebedWriter", "WritePlan", "Written", "files_of", "plan_write", "prepared"]
