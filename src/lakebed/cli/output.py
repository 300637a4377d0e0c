"""The report of a command as a table, JSON or CSV.

JSON is an array with one element per line, or one object; its keys are stable. CSV has a header,
an absent value is empty and an empty text is `""`. A table is drawn with rich on a terminal and
is plain aligned text everywhere else.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import click

from lakebed.cli.drawing import draw_plain, draw_rich
from lakebed.cli.text import escape
from lakebed.cli.values import is_number, plain_rows, to_json, to_text
from lakebed.cli.writing import write

if TYPE_CHECKING:
    import pyarrow as pa

_BOLD, _DIM, _RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"
TERMINAL_ROW_COUNT = 100  # rows of data shown on a terminal unless --limit says otherwise


class Form(StrEnum):
    """The value of --output."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a report; `show` turns its value into a table's cell.

    JSON and CSV have every column under `key`; a table leaves out those without a `title`.
    """

    key: str
    title: str = ""
    show: Callable[[Any], str] = to_text
    right: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Standard output, and how it wants its reports."""

    form: Form
    terminal: bool = False
    color: bool = False
    quiet: bool = False

    def rows(self, columns: Sequence[Column], rows: Iterable[Mapping[str, Any]]) -> None:
        """Emit a list of uniform values."""
        keys = [column.key for column in columns]
        if self.form is Form.JSON:
            write_json_rows({key: row[key] for key in keys} for row in rows)
        elif self.form is Form.CSV:
            self._csv(keys, ([row[key] for key in keys] for row in rows))
        else:
            shown = [column for column in columns if column.title]
            cells = ([column.show(row[column.key]) for column in shown] for row in rows)
            self._draw([column.title for column in shown], [c.right for c in shown], cells)

    def record(self, record: Mapping[str, Any], card: Callable[[], Iterable[str]]) -> None:
        """Emit one value; `card` gives the lines that people read."""
        if self.form is Form.JSON:
            write(to_json(record) + "\n")
        elif self.form is Form.CSV:
            self._csv(list(record), [list(record.values())])
        else:
            for line in card():
                write(line + "\n")

    def done(self, record: Mapping[str, Any], sentence: str) -> None:
        """Emit what a change did; a person who wants quiet gets no sentence."""
        self.record(record, lambda: [] if self.quiet else [sentence])

    def arrow(
        self, schema: "pa.Schema", batches: Iterable["pa.RecordBatch"], *, cut: bool = False
    ) -> None:
        """Emit rows of data as they come; `cut` stops a terminal after a screenful or two."""
        names = [escape(name) for name in schema.names]
        rows: Iterator[tuple[Any, ...]] = itertools.chain.from_iterable(
            plain_rows(batch) for batch in batches
        )
        if self.form is Form.JSON:
            write_json_rows(dict(zip(schema.names, row, strict=True)) for row in rows)
        elif self.form is Form.CSV:
            self._csv(schema.names, rows)
        else:
            if self.terminal and cut:
                rows = self._first(rows)
            cells = ([to_text(value) for value in row] for row in rows)
            self._draw(names, [is_number(kind) for kind in schema.types], cells)

    def _first(self, rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        yield from itertools.islice(rows, TERMINAL_ROW_COUNT)
        if next(rows, None) is not None:
            self.notice(f"first {TERMINAL_ROW_COUNT} rows; --limit N shows more, --output csv all")

    def _draw(
        self, titles: Sequence[str], right: Sequence[bool], cells: Iterable[Sequence[str]]
    ) -> None:
        draw = draw_rich if self.terminal else draw_plain
        for piece in draw(titles, right, cells, color=self.color):
            write(piece)

    def _csv(self, keys: Iterable[str], rows: Iterable[Sequence[Any]]) -> None:
        # A terminal must not be steered by data; a file or a pipe gets the data as it is.
        clean = escape if self.terminal else str
        write(",".join(_csv_cell(clean(key)) for key in keys) + "\n")
        for row in rows:
            write(",".join(_csv_value(value, clean) for value in row) + "\n")

    def notice(self, text: str) -> None:
        """Tell a person something beside the report."""
        if not self.quiet:
            click.echo(self.dim(escape(text)) if self.color else escape(text), err=True)

    def bold(self, text: str) -> str:
        """Text that stands out, where that can be shown."""
        return f"{_BOLD}{text}{_RESET}" if self.color else text

    def dim(self, text: str) -> str:
        """Text that steps back, where that can be shown."""
        return f"{_DIM}{text}{_RESET}" if self.color else text


def write_json_rows(rows: Iterable[Any]) -> None:
    """An array, one element per line, written as the elements come."""
    before = "["
    for row in rows:
        write(f"{before}\n{to_json(row)}")
        before = ","
    write("[]\n" if before == "[" else "\n]\n")


def _csv_value(value: Any, clean: Callable[[str], str]) -> str:
    match value:
        case None:
            return ""
        case str():
            return _csv_cell(clean(value))
        case _:
            return _csv_cell(clean(to_text(value)))


def _csv_cell(text: str) -> str:
    if not text or any(mark in text for mark in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text
