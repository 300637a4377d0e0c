"""A table as users see it: one object, and no decision of its own.

A `Table` is a handle: each call looks at the newest version. A `Scan` or a plan stays at the
version it was made at.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa

from lakebed.commit.change import Change, Commit, Isolation
from lakebed.commit.committer import Target
from lakebed.commit.head import Head, read_head
from lakebed.commit.rebase import commits_since
from lakebed.commit.token import repeated_commit
from lakebed.errors import NotFoundError, RequestError
from lakebed.expr.bind import Bound, bind
from lakebed.expr.parse import as_predicate
from lakebed.files.arrow_schema import to_arrow_schema
from lakebed.files.metadata_files import MetadataFiles
from lakebed.format.datafile import DataFile
from lakebed.format.metadata import TableMetadata
from lakebed.format.partition import PartitionSpec
from lakebed.format.pointer import Pointer, Token
from lakebed.format.schema import Schema
from lakebed.format.snapshot import Operation, Snapshot
from lakebed.plan.planner import make_plan
from lakebed.plan.read_plan import ReadPlan
from lakebed.table.appending import append_target, replanned
from lakebed.table.card import table_card
from lakebed.table.changes import Changes, changes_between
from lakebed.table.evolution import Evolution, tagging
from lakebed.table.inspect import Inspect
from lakebed.table.point import Point, at_point
from lakebed.table.rewriting import EVERYTHING, delete_target, nothing_deleted, overwrite_target
from lakebed.table.scan import Scan
from lakebed.table.services import Connection, Place, Services
from lakebed.table.staging import Staging, stage
from lakebed.table.tokens import as_terms, as_token
from lakebed.table.verification import adopted, files_change, verified


class Table:
    """One table of a catalog; made by `catalog.table` and `catalog.create_table`."""

    def __init__(self, services: Services, pointer: Pointer) -> None:
        self._services = services
        self._pointer = pointer
        self.name: str = pointer.name
        self.files: MetadataFiles = services.files_of(pointer)

    def __repr__(self) -> str:
        return f"Table({self.name!r})"

    def _repr_html_(self) -> str:
        return table_card(self.head())

    # ---------------------------------------------------------------------------- what it is

    def head(self) -> Head:
        """Read the newest version."""
        pointer = self._services.backend.load(self.name)
        if pointer.table_id != self._pointer.table_id:
            raise NotFoundError(
                f"{self.name} was dropped and created anew since it was opened",
                hint="Open it again: catalog.table(name)",
                table=self.name,
            )
        return read_head(self.files, pointer)

    @property
    def connection(self) -> Connection:
        """How another process opens the catalog of this table."""
        return self._services.connection

    @property
    def place(self) -> Place:
        """How another process opens the table's directory."""
        return self._services.place(self.files.store)

    @property
    def location(self) -> str:
        """Where its files are."""
        return self.files.store.uri

    @property
    def version(self) -> int:
        """The number of the newest version."""
        return self.head().pointer.version

    @property
    def metadata(self) -> TableMetadata:
        """Schemas, partition specs, tags and properties."""
        return self.head().metadata

    @property
    def schema(self) -> Schema:
        """The columns, with their field ids."""
        return _schema(self.head())

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns as Arrow types."""
        return to_arrow_schema(self.schema, field_ids=False)

    @property
    def spec(self) -> PartitionSpec:
        """How new rows are split into files."""
        head = self.head()
        return head.metadata.spec(head.snapshot.spec_id)

    def current_snapshot(self) -> Snapshot:
        """The newest version."""
        return self.head().snapshot

    def snapshot(self, point: Point) -> Snapshot:
        """The version at a point: snapshot id, version, time or tag."""
        return self._at(point).snapshot

    def history(self, limit: int | None = None) -> list[Snapshot]:
        """The versions from the newest back to the first, at most `limit` of them."""
        versions = commits_since(self.files, self.current_snapshot(), -1)
        return list(islice(versions, limit))

    @property
    def inspect(self) -> Inspect:
        """Snapshots, files, manifests, partitions and the log as Arrow tables."""
        return Inspect(self.head(), self.files, self._services.backend)

    # ------------------------------------------------------------------------------- reading

    def scan(
        self,
        where: object = None,
        columns: Sequence[str] | None = None,
        as_of: Point | None = None,
        limit: int | None = None,
    ) -> Scan:
        """Ask for rows.

        Args:
            where: SQL text as in `"ts >= '2026-01-01' and value is not null"`, or an expression
                made with `lakebed.col`.
            columns: names in the order wanted; all if None.
            as_of: version, snapshot id, datetime, ISO text or tag; the newest if None.
            limit: at most so many rows.
        """
        head = self._at(as_of)
        bound, text = _bound(where, _schema(head))
        return Scan(
            head,
            self.files,
            place=self.place,
            where=bound,
            where_text=text,
            columns=columns,
            limit=limit,
        )

    def read_plan(self, where: object = None, snapshot_id: Point | None = None) -> ReadPlan:
        """Find the files that a read needs, without reading any."""
        head = self._at(snapshot_id)
        schema = _schema(head)
        bound, text = _bound(where, schema)
        return make_plan(self.files, head.snapshot, schema=schema, where=bound, where_text=text)

    def changes(self, since: Point, until: Point | None = None) -> Changes:
        """The rows that were appended and removed after `since`, up to and with `until`."""
        return changes_between(self._at(since), self._at(until), self.files)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.scan().__arrow_c_stream__(requested_schema)

    # ------------------------------------------------------------------------------- writing

    def append(
        self,
        data: Any,
        token: tuple[str, int] | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Commit:
        """Append rows in one commit.

        Args:
            data: any Arrow-speaking object, pandas, polars, dicts, or an iterator of batches.
                Columns that the table lacks are added to it, if they can be null.
            token: `("app", 7)` makes it exactly once: a repeat returns the first commit and
                writes nothing. The numbers of one app only grow.
            properties: texts that stay with the commit: `{"job": "nightly"}`.
        """
        terms = as_terms(token, properties)

        def target(head: Head) -> Target:
            return append_target(
                data, head=head, files=self.files, ids=self._services.ids, terms=terms
            )

        return self._write(target, token=terms.token, replayable=not hasattr(data, "__next__"))

    def overwrite(
        self,
        data: Any,
        where: object = None,
        token: tuple[str, int] | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Commit:
        """Replace the rows for which `where` is true, or all of them, in one commit.

        The new rows must match `where` too. `token` and `properties` are as for `append`.
        """
        terms = as_terms(token, properties)

        def target(head: Head) -> Target:
            bound, text = _bound(where, _schema(head))
            return overwrite_target(
                data, bound, text, head=head, files=self.files, ids=self._services.ids, terms=terms
            )

        return self._write(target, token=terms.token, replayable=not hasattr(data, "__next__"))

    def delete(
        self,
        where: object,
        token: tuple[str, int] | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> Commit:
        """Remove the rows for which `where` is true; `"true"` removes all.

        If no row matches, nothing is committed and the report shows the current version.
        `token` and `properties` are as for `append`.
        """
        terms = as_terms(token, properties)
        done = self.committed(token)
        if done is not None:
            return done
        head = self.head()
        bound, text = _bound(where, _schema(head))
        if bound is None:
            raise RequestError("delete needs a predicate", hint='To remove all rows: "true"')
        target = delete_target(
            bound, text, head=head, files=self.files, ids=self._services.ids, terms=terms
        )
        if target is None:
            return nothing_deleted(head)
        return self._services.committer.commit([target])[0]

    def add_files(self, paths: Iterable[str], token: tuple[str, int] | None = None) -> Commit:
        """Adopt Parquet files inside the table's directory; they stay where they are.

        Their schema is checked, and statistics come from their footers.
        """
        head = self.head()
        found = adopted(self.files.store, paths, head)
        return self._commit_files(head, found, (), token, adopts=True)

    def commit_append(
        self,
        data_files: Iterable[DataFile],
        token: tuple[str, int] | None = None,
        *,
        verify: bool = True,
    ) -> Commit:
        """Commit data files that are in place already.

        With `verify`, each file's footer is read and compared with what is said of it.
        """
        head = self.head()
        files = tuple(data_files)
        if verify:
            verified(self.files.store, files, head.metadata)
        return self._commit_files(head, files, (), token, adopts=verify)

    def commit_overwrite(
        self,
        removed: Iterable[DataFile],
        added: Iterable[DataFile],
        *,
        verify: bool = True,
        base: Snapshot | None = None,
        data_change: bool = True,
    ) -> Commit:
        """Replace data files by others, in one snapshot.

        Args:
            removed: files of the table, as a plan gives them; conflict if any is gone.
            added: files that are in place already.
            verify: read the footers of `added` and compare.
            base: the version the decision was made on; commits since then are checked.
            data_change: False says that the rows are the same ones, as after a compaction.
        """
        head = self.head() if base is None else self._at(base.snapshot_id)
        files = tuple(added)
        if verify:
            verified(self.files.store, files, head.metadata)
        return self._commit_files(
            head, files, tuple(removed), None, adopts=verify, data_change=data_change
        )

    def stage(
        self, incoming: Any = None, *, evolve: bool = True, at: Point | None = None
    ) -> Staging:
        """Begin a write by an engine that makes the files itself; see `table.staging`.

        `incoming` is the rows' Arrow schema, the table's own if None; `at` is the version to pin.
        """
        return stage(self._at(at), self.files, self._services, incoming, evolve=evolve)

    def committed(self, token: tuple[str, int] | None) -> Commit | None:
        """The commit that this token made, if it made one."""
        wanted = as_token(token)
        return repeated_commit(self._services.backend, self.files, self.head(), wanted)

    # --------------------------------------------------------------------------- maintaining

    def tag(self, name: str, at: Point | None = None) -> Commit:
        """Name the version at a point, the newest if None."""
        head = self.head()
        version = at_point(self._services.backend, self.files, head, at).pointer.version
        return self._define(head, Operation.TAG, tagging(name, version), {"tag": name})

    def rollback(self, to: Point) -> Commit:
        """Make a new version that holds what the table held at `to`, columns included.

        Nothing is lost: a rollback can be rolled back. Tokens stay committed.
        """
        head = self.head()
        then = at_point(self._services.backend, self.files, head, to)
        change = Change(
            operation=Operation.ROLLBACK,
            restore=then.snapshot,
            read=EVERYTHING,
            isolation=Isolation.SERIALIZABLE,
            parameters={"to_version": str(then.pointer.version)},
        )
        return self._commit(head, change)

    def evolve(self) -> Evolution:
        """Begin a change of columns, partitioning or properties; `commit()` makes it."""
        return Evolution(
            lambda define, done: self._define(self.head(), Operation.EVOLVE, define, done)
        )

    # ------------------------------------------------------------------------------- inside

    def _at(self, point: Point | None) -> Head:
        return at_point(self._services.backend, self.files, self.head(), point)

    def _write(
        self,
        plan: Callable[[Head], Target],
        *,
        token: Token | None = None,
        replayable: bool,
    ) -> Commit:
        """Plan and commit, unless the token was committed before."""

        def attempt() -> Commit:
            head = self.head()
            done = repeated_commit(self._services.backend, self.files, head, token)
            return done or self._services.committer.commit([plan(head)])[0]

        return replanned(attempt, replayable=replayable)

    def _commit_files(
        self,
        head: Head,
        added: tuple[DataFile, ...],
        removed: tuple[DataFile, ...],
        token: tuple[str, int] | None,
        *,
        adopts: bool,
        data_change: bool = True,
    ) -> Commit:
        change = files_change(
            head, added, removed, as_token(token), adopts=adopts, data_change=data_change
        )
        return self._commit(head, change)

    def _define(
        self, head: Head, operation: Operation, define: Any, parameters: dict[str, str]
    ) -> Commit:
        change = Change(
            operation=operation, define=define, data_change=False, parameters=parameters
        )
        return self._commit(head, change)

    def _commit(self, head: Head, change: Change) -> Commit:
        target = Target(files=self.files, base=head.pointer, change=change)
        return self._services.committer.commit([target])[0]


def _schema(head: Head) -> Schema:
    return head.metadata.schema(head.snapshot.schema_id)


def _bound(where: object, schema: Schema) -> tuple[Bound | None, str]:
    node = as_predicate(where)
    return (None, "") if node is None else (bind(node, schema), str(node))
