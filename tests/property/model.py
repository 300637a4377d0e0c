"""What a table is, as plainly as it can be said: for each version, a bag of rows by field id.

Shares no code with the library. A `Version` is never changed; an operation makes the next one.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.property.kinds import KINDS
from tests.property.predicates import Column, Predicate, truth

Row = frozenset[tuple[int, Any]]  # (field id, value); a null is not there
Bag = Counter[Row]
Parts = tuple[tuple[str, int, int], ...]  # transform, field id, width or 0


@dataclass(frozen=True)
class Version:
    """One version of a table."""

    operation: str
    columns: tuple[Column, ...]  # the key of a column is its field id
    rows: Bag
    parts: Parts = ()
    changes_rows: bool = True

    def column(self, key: int) -> Column:
        """A column by field id."""
        return next(column for column in self.columns if column.key == key)

    def matching(self, predicate: Predicate | None) -> Bag:
        """The rows for which a predicate is true."""
        if predicate is None:
            return self.rows
        columns = {column.key: column for column in self.columns}
        nothing = dict.fromkeys(columns)
        return Counter(
            {
                row: count
                for row, count in self.rows.items()
                if truth(predicate, {**nothing, **dict(row)}, columns) is True
            }
        )

    def values(self, key: int, predicate: Predicate | None = None) -> list[Any]:
        """The values of one column, without nulls."""
        return [dict(row)[key] for row in self.matching(predicate) if key in dict(row)]

    # --------------------------------------------------------------------------------- next ones

    def appended(self, rows: Iterable[Mapping[int, Any]]) -> "Version":
        """With more rows."""
        return replace(self, operation="append", rows=self.rows + bag(rows), changes_rows=True)

    def overwritten(self, rows: Iterable[Mapping[int, Any]], where: Predicate | None) -> "Version":
        """With rows in place of those that match."""
        left = self.rows - self.matching(where)
        return replace(self, operation="overwrite", rows=left + bag(rows), changes_rows=True)

    def deleted(self, where: Predicate) -> "Version":
        """Without the rows that match."""
        left = self.rows - self.matching(where)
        return replace(self, operation="delete", rows=left, changes_rows=True)

    def rewritten(self) -> "Version":
        """With the same rows in other files."""
        return replace(self, operation="rewrite", changes_rows=False)

    def tagged(self) -> "Version":
        """The same, as a version of its own."""
        return replace(self, operation="tag", changes_rows=False)

    def with_column(self, column: Column) -> "Version":
        """With one more column, null everywhere."""
        return self._evolved(columns=(*self.columns, column))

    def renamed(self, key: int, name: str) -> "Version":
        """With another name for a column."""
        columns = tuple(replace(c, name=name) if c.key == key else c for c in self.columns)
        return self._evolved(columns=columns)

    def without_column(self, key: int) -> "Version":
        """Without a column, and without its values."""
        rows: Bag = Counter()
        for row, count in self.rows.items():
            rows[frozenset(cell for cell in row if cell[0] != key)] += count
        columns = tuple(column for column in self.columns if column.key != key)
        return self._evolved(columns=columns, rows=rows)

    def widened(self, key: int, kind: str) -> "Version":
        """With a wider type for a column; its values stay equal."""
        columns = tuple(replace(c, kind=KINDS[kind]) if c.key == key else c for c in self.columns)
        return self._evolved(columns=columns)

    def repartitioned(self, parts: Parts) -> "Version":
        """With other partitions for new rows."""
        return self._evolved(parts=parts)

    def _evolved(self, **changes: Any) -> "Version":
        return replace(self, operation="evolve", changes_rows=False, **changes)


def bag(rows: Iterable[Mapping[int, Any]]) -> Bag:
    """Rows as a bag."""
    return Counter(
        frozenset((key, value) for key, value in row.items() if value is not None) for row in rows
    )


@dataclass
class ModelTable:
    """A table: its versions by number, and what no rollback takes back."""

    versions: dict[int, Version]
    tags: dict[str, int] = field(default_factory=dict)
    tokens: dict[str, dict[int, int]] = field(default_factory=dict)  # app -> number -> version
    last_key: int = 0
    kinds: dict[int, list[str]] = field(default_factory=dict)  # the types that a column ever had
    partitioned: set[int] = field(default_factory=set)  # the columns that ever split the rows

    @property
    def head(self) -> int:
        """The newest version's number."""
        return max(self.versions)

    @property
    def now(self) -> Version:
        """The newest version."""
        return self.versions[self.head]

    def push(self, version: Version) -> None:
        """Make it the newest."""
        self.versions[self.head + 1] = version
        self.partitioned |= {key for _, key, _ in version.parts}
        for column in version.columns:
            self.last_key = max(self.last_key, column.key)
            kinds = self.kinds.setdefault(column.key, [])
            if column.kind.name not in kinds:
                kinds.append(column.kind.name)

    def rolled_back(self, to: int) -> Version:
        """What a rollback makes of an older version."""
        return replace(self.versions[to], operation="rollback", changes_rows=True)

    def may_widen(self, key: int, kind: str) -> bool:
        """Whether a type holds every value that the column had, also before a rollback."""
        if kind == "double" and key in self.partitioned:
            return False
        return kind in self.kinds[key] or self.kinds[key] == ["int"]

    def last_token(self, app: str) -> int:
        """The highest token of an app; -1 if it has none."""
        return max(self.tokens.get(app, {}), default=-1)

    def changed(self, since: int, until: int) -> tuple[tuple[Column, ...], Bag, Bag] | None:
        """The columns of `until` at their widest, the rows that came and those that went.

        None if a column went away or came back in between: its values may be seen or not.
        """
        added: Bag = Counter()
        removed: Bag = Counter()
        columns = {column.key: column for column in self.versions[until].columns}
        for number in range(since, until):
            before, after = self.versions[number], self.versions[number + 1]
            keys = [column.key for column in after.columns]
            came_back = after.operation == "rollback" and len(keys) != len(before.columns)
            if came_back or any(column.key not in keys for column in before.columns):
                return None
            for column in before.columns:
                mine = columns.get(column.key, column)
                if _WIDTHS.index(column.kind.name) > _WIDTHS.index(mine.kind.name):
                    columns[column.key] = replace(mine, kind=column.kind)
            if after.changes_rows:
                added += after.rows - before.rows
                removed += before.rows - after.rows
        return tuple(columns.values()), added, removed


_WIDTHS = ("timestamptz", "string", "int", "long", "double")  # a column is int, then one of two
