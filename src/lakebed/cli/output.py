"""The report of a command as a table, JSON or CSV.

JSON is an array with one element per line, or one object; its keys are stable. CSV has a header,
an absent value is empty and an empty text is `""`. A table is drawn with rich on a terminal and
is plain aligned text everywhere else.
"""

import itertools
import re
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

_MUST_BE_QUOTED = re.compile('[,"\\r\\n]')
_ROWS_AT_ONCE = 256
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

    JSON and CSV have every column under `key`; a table leaves out those without a `title`, and
    an `optional` one that would be empty in each row.
    """

    key: str
    title: str = ""
    show: Callable[[Any], str] = to_text
    right: bool = False
    optional: bool = False


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
            titled = [column for column in columns if column.title]
            cells = [[column.show(row[column.key]) for column in titled] for row in rows]
            places = [
                place
                for place, column in enumerate(titled)
                if not column.optional or any(row[place] for row in cells)
            ]
            shown = [titled[place] for place in places]
            kept = ([row[place] for place in places] for row in cells)
            self._draw([column.title for column in shown], [c.right for c in shown], kept)

    def record(self, record: Mapping[str, Any], card: Callable[[], Iterable[str]]) -> None:
        """Emit one value; `card` gives the lines that people read."""
        if self.form is Form.JSON:
            write(to_json(record) + "\n")
        elif self.form is Form.CSV:
            self._csv(list(record), [list(record.values())])
        else:
            self.lines(card())

    def lines(self, lines: Iterable[str]) -> None:
        """Emit text that is harmless already."""
        for line in lines:
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
        lines = (",".join([_csv_value(value, clean) for value in row]) + "\n" for row in rows)
        for piece in _pieces(lines):
            write(piece)

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
    elements = (to_json(row) for row in rows)
    first = next(elements, None)
    if first is None:
        write("[]\n")
        return
    write(f"[\n{first}")
    for piece in _pieces(f",\n{element}" for element in elements):
        write(piece)
    write("\n]\n")


def _pieces(texts: Iterable[str]) -> Iterator[str]:
    """Many small texts as a few larger ones, since each write costs."""
    stream = iter(texts)
    while piece := "".join(itertools.islice(stream, _ROWS_AT_ONCE)):
        yield piece


def _csv_value(value: Any, clean: Callable[[str], str]) -> str:
    if value is None:
        return ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return _csv_cell(clean(value if isinstance(value, str) else to_text(value)))


def _csv_cell(text: str) -> str:
    if not text or _MUST_BE_QUOTED.search(text):
        return '"' + text.replace('"', '""') + '"'
    return text
