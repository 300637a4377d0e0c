"""Tables made by a list of steps, once by the library and once as a plain list of rows.

A recipe is a value: it prints as Python that makes it again, and steps or rows can be left out of
it to find a smaller one that still fails.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
from tests.property.kinds import KINDS, Kind
from tests.property.predicates import Column, Columns, Predicate, sql_of, truth

import lakebed
from lakebed.table.table import Table

ROW = 0  # the key of the column that numbers the rows
_FILE_SIZE_BYTES_MAX = 1 << 20


@dataclass(frozen=True)
class Append:
    """Rows by column key; a key that is missing is null."""

    rows: tuple[Mapping[int, Any], ...]


@dataclass(frozen=True)
class Add:
    """A new column."""

    key: int
    name: str
    kind: str


@dataclass(frozen=True)
class Rename:
    """Another name for a column."""

    key: int
    name: str


@dataclass(frozen=True)
class Drop:
    """One column less."""

    key: int


@dataclass(frozen=True)
class Widen:
    """A type that holds more."""

    key: int
    kind: str


@dataclass(frozen=True)
class Repartition:
    """Other partitions from here on: transform, column key, width or 0."""

    parts: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class Remove:
    """The rows go for which a predicate is true; the others of their files are rewritten."""

    predicate: Predicate


@dataclass(frozen=True)
class Rollback:
    """Back to the table as it was after so many steps, columns and partitions included."""

    step_count: int


Step = Rollback | Append | Add | Rename | Drop | Widen | Repartition | Remove


@dataclass(frozen=True)
class Recipe:
    """A first schema, steps, and settings.

    `tail_max` is how many files stay inside a snapshot before they fold into a manifest, and
    `is_large` has row groups pruned as those of large files are.
    """

    columns: tuple[Add, ...]
    steps: tuple[Step, ...]
    parts: tuple[tuple[str, int, int], ...] = ()
    tail_max: int = 16
    is_large: bool = False
    row_group_rows: int = 1_000_000

    @contextmanager
    def limits(self) -> Iterator[None]:
        """Set the limits that decide which pass of pruning sees small tables."""
        small = 0 if self.is_large else 4 << 20
        with (
            patch("lakebed.commit.committer.TAIL_FILE_COUNT_MAX", self.tail_max),
            patch("lakebed.commit.manifest_list.TAIL_FILE_COUNT_MAX", self.tail_max),
            patch("lakebed.files.data_reader._SMALL_FILE_SIZE_BYTES", small),
        ):
            yield


@dataclass
class Built:
    """The library's table and the plain one."""

    table: Table
    columns: dict[int, Column] = field(default_factory=dict)
    rows: dict[int, dict[int, Any]] = field(default_factory=dict)  # by row number
    past: list[tuple[int, dict[int, Column], dict[int, dict[int, Any]]]] = field(
        default_factory=list
    )

    def remember(self) -> None:
        """Keep what the table is now, for a rollback."""
        rows = {number: dict(row) for number, row in self.rows.items()}
        self.past.append((self.table.version, dict(self.columns), rows))

    def matching(self, predicate: Predicate) -> set[int]:
        """The numbers of the rows for which the predicate is true."""
        return {
            number
            for number, row in self.rows.items()
            if truth(predicate, row, self.columns) is True
        }

    def values(self) -> dict[int, list[Any]]:
        """By column, the values that are there."""
        return {
            key: [row[key] for row in self.rows.values() if row[key] is not None]
            for key in self.columns
        }


def build(recipe: Recipe, catalog: lakebed.Catalog | None = None) -> Built:
    """Make both tables; the library's in a catalog of its own, or in one that has none."""
    columns = {add.key: Column(add.key, add.name, KINDS[add.kind]) for add in recipe.columns}
    schema = pa.schema([(column.name, column.kind.arrow) for column in columns.values()])
    table = (catalog or lakebed.connect("memory:")).create_table(
        "t",
        schema,
        partition_by=_spec(recipe.parts, columns),
        properties={"write.parquet.row-group-limit": str(recipe.row_group_rows)},
    )
    built = Built(table, columns)
    built.remember()
    for step in recipe.steps:
        _take(built, step)
        built.remember()
    return built


def _spec(parts: tuple[tuple[str, int, int], ...], columns: Columns) -> list[str]:
    texts = []
    for transform, key, width in parts:
        name = columns[key].name
        if transform == "identity":
            texts.append(name)
        else:
            texts.append(f"{transform}({f'{width}, ' if width else ''}{name})")
    return texts


def _take(built: Built, step: Step) -> None:  # noqa: C901 - one case for each kind of step
    table, columns = built.table, built.columns
    match step:
        case Append(rows=rows):
            table.append(arrow_rows(rows, columns))
            for row in rows:
                built.rows[row[ROW]] = {key: row.get(key) for key in columns}
        case Add(key=key, name=name, kind=kind):
            table.evolve().add_column(name, kind).commit()
            columns[key] = Column(key, name, KINDS[kind])
            for stored in built.rows.values():
                stored[key] = None
        case Rename(key=key, name=name):
            table.evolve().rename_column(columns[key].name, name).commit()
            columns[key] = replace(columns[key], name=name)
        case Drop(key=key):
            table.evolve().drop_column(columns.pop(key).name).commit()
        case Widen(key=key, kind=kind):
            table.evolve().widen_column(columns[key].name, kind).commit()
            columns[key] = replace(columns[key], kind=KINDS[kind])
            for stored in built.rows.values():
                if kind == "double" and stored[key] is not None:
                    stored[key] = float(stored[key])
        case Repartition(parts=parts):
            table.evolve().partition_by(_spec(parts, columns)).commit()
        case Rollback(step_count=count):
            version, was, kept = built.past[count]
            table.rollback(version)
            built.columns = dict(was)
            built.rows = {number: dict(stored) for number, stored in kept.items()}
        case Remove(predicate=predicate):
            gone = built.matching(predicate)
            table.delete(sql_of(predicate, columns))
            built.rows = {n: row for n, row in built.rows.items() if n not in gone}


# --------------------------------------------------------------------------------------- Arrow


def arrow_rows(rows: tuple[Mapping[int, Any], ...], columns: Columns) -> pa.Table:
    """Plain rows as an Arrow table."""
    return pa.table(
        {
            column.name: _arrow([row.get(key) for row in rows], column.kind)
            for key, column in columns.items()
        }
    )


def _arrow(values: list[Any], kind: Kind) -> pa.Array:
    if not kind.unit_ns:
        return pa.array(values, kind.arrow)
    return pa.array(values, pa.int32() if kind.name == "date" else pa.int64()).cast(kind.arrow)


def plain_rows(table: pa.Table, columns: Columns) -> dict[int, tuple[str, ...]]:
    """An Arrow table as text by row number; text tells -0.0 from 0.0 and knows NaN."""
    numbers = table.column(columns[ROW].name).to_pylist()
    found = [_plain(table.column(column.name), column.kind) for column in columns.values()]
    assert len(set(numbers)) == len(numbers), "a row came twice"
    return {number: tuple(row) for number, *row in zip(numbers, *found, strict=True)}


def _plain(column: pa.ChunkedArray, kind: Kind) -> list[str]:
    assert column.type == kind.arrow, f"{column.type} where {kind.arrow} belongs"
    if kind.unit_ns:
        column = column.cast(pa.int32() if kind.name == "date" else pa.int64())
    return [repr(value) for value in column.to_pylist()]


def expected_rows(built: Built, numbers: set[int]) -> dict[int, tuple[str, ...]]:
    """The same of the plain table."""
    return {
        number: tuple(repr(built.rows[number][key]) for key in built.columns) for number in numbers
    }


def file_rows(built: Built) -> dict[str, set[int]]:
    """By path, the numbers of the rows of each live file, as pyarrow alone reads them."""
    name = built.columns[ROW].name
    found = {}
    for file in built.table.read_plan().files:
        data = built.table.files.store.read(file.path, size_bytes_max=_FILE_SIZE_BYTES_MAX)
        found[file.path] = set(pq.read_table(BytesIO(data), columns=[name])[name].to_pylist())
    return found
