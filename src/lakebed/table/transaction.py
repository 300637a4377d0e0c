"""Several tables, one commit: all of it happens, or nothing."""

from dataclasses import replace
from typing import Any, Self

from lakebed.commit.change import Commit
from lakebed.commit.committer import Target
from lakebed.errors import RequestError
from lakebed.expr.bind import bind
from lakebed.expr.parse import as_predicate
from lakebed.format.snapshot import Operation
from lakebed.table.appending import append_target
from lakebed.table.rewriting import delete_target, overwrite_target
from lakebed.table.services import Services
from lakebed.table.table import Table
from lakebed.table.tokens import as_terms


class Transaction:
    """Collects changes and commits them when its `with` block ends without an error.

    A table can be appended to several times; any other change must be the only one of its table.
    `commits` has a report per table afterwards. With a token, a repeat of the whole transaction
    returns the first commits and writes nothing.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._targets: dict[str, Target] = {}
        self._is_over = False
        self.commits: list[Commit] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._is_over = True
        if kind is None and self._targets:
            self.commits = self._services.committer.commit(list(self._targets.values()))

    def append(self, table: Table | str, data: Any, token: tuple[str, int] | None = None) -> None:
        """Append rows to a table."""
        opened = self._open(table)
        target = append_target(
            data,
            head=opened.head(),
            files=opened.files,
            ids=self._services.ids,
            terms=as_terms(token, None),
        )
        self._put(opened.name, target)

    def overwrite(self, table: Table | str, data: Any, where: object = None) -> None:
        """Replace the rows of a table for which `where` is true, or all."""
        opened = self._open(table)
        head = opened.head()
        node = as_predicate(where)
        bound = None if node is None else bind(node, head.metadata.schema(head.snapshot.schema_id))
        text = "" if node is None else str(node)
        target = overwrite_target(
            data, bound, text, head=head, files=opened.files, ids=self._services.ids
        )
        self._put(opened.name, target)

    def delete(self, table: Table | str, where: object) -> None:
        """Remove the rows of a table for which `where` is true."""
        opened = self._open(table)
        head = opened.head()
        node = as_predicate(where)
        if node is None:
            raise RequestError("delete needs a predicate", hint='To remove all rows: "true"')
        bound = bind(node, head.metadata.schema(head.snapshot.schema_id))
        target = delete_target(
            bound, str(node), head=head, files=opened.files, ids=self._services.ids
        )
        if target is not None:
            self._put(opened.name, target)

    def _open(self, table: Table | str) -> Table:
        if self._is_over:
            raise RequestError("the transaction is over", hint="Begin another one")
        if isinstance(table, str):
            return Table(self._services, self._services.backend.load(table))
        if table._services.backend is not self._services.backend:
            raise RequestError(
                f"{table.name} belongs to another catalog",
                hint="One transaction covers tables of one catalog",
            )
        return table

    def _put(self, name: str, target: Target) -> None:
        before = self._targets.get(name)
        self._targets[name] = target if before is None else _joined(name, before, target)


def _joined(name: str, before: Target, after: Target) -> Target:
    """Two appends to one table as one."""
    changes = before.change, after.change
    blind = all(c.operation is Operation.APPEND and c.define is None for c in changes)
    if not blind or before.change.token != after.change.token:
        raise RequestError(
            f"{name} is changed twice in one transaction",
            hint="Only appends of one token, without new columns, can be joined",
        )
    change = replace(before.change, added=(*before.change.added, *after.change.added))
    return replace(before, change=change, pending=(*before.pending, *after.pending))
