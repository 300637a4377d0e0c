"""Rows of text cells as a table: plain and streaming for pipes, with rich for terminals."""

import itertools
from collections.abc import Iterable, Iterator, Sequence

from lakebed.cli.text import pad, width

_SAMPLE_ROW_COUNT = 1_000  # the rows whose widths decide the columns' widths
_GAP = "  "
_CELL_WIDTH_READABLE = 16  # a cell folded to this can still be read


def draw_plain(
    titles: Sequence[str],
    right: Sequence[bool],
    rows: Iterable[Sequence[str]],
    *,
    color: bool = False,
) -> Iterator[str]:
    """Aligned text; a late cell wider than all before pushes its own line only."""
    assert not color, "plain text has no colours"
    stream = iter(rows)
    sample = [titles, *itertools.islice(stream, _SAMPLE_ROW_COUNT)]
    widths = [max(map(width, column)) for column in zip(*sample, strict=True)]
    for row in itertools.chain(sample, stream):
        cells = [
            pad(cell, cells, right=at_right)
            for cell, cells, at_right in zip(row, widths, right, strict=True)
        ]
        yield _GAP.join(cells).rstrip() + "\n"


def draw_rich(
    titles: Sequence[str], right: Sequence[bool], rows: Iterable[Sequence[str]], *, color: bool
) -> Iterator[str]:
    """A table that fits the terminal; cells are text, never markup.

    Where columns are too many for that, each row becomes a few lines of its own.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=SIMPLE_HEAD,
        header_style="bold",
        pad_edge=False,
        show_edge=False,
        collapse_padding=True,
    )
    for title, at_right in zip(titles, right, strict=True):
        justify = "right" if at_right else "left"
        table.add_column(Text(title), justify=justify, overflow="fold")  # type: ignore[arg-type]
    console = Console(
        force_terminal=True, color_system="standard" if color else None, highlight=False
    )
    gathered = list(rows)
    if _least_width(titles, gathered) > console.width:
        yield from draw_records(titles, gathered)
        return
    for row in gathered:
        table.add_row(*(Text(cell) for cell in row))
    with console.capture() as captured:
        console.print(table)
    yield captured.get()


def draw_records(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Each row as lines of title and cell, under its number."""
    cells = max(map(width, titles), default=0)
    for number, row in enumerate(rows, start=1):
        yield f"row {number}\n"
        for title, cell in zip(titles, row, strict=True):
            yield f"{_GAP}{pad(title, cells)}{_GAP}{cell}".rstrip() + "\n"


def _least_width(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """How wide a table must be to be read: a cell may be folded, but not to crumbs."""
    columns = zip(titles, *rows, strict=True)
    widths = (min(max(map(width, column)), _CELL_WIDTH_READABLE) for column in columns)
    return sum(found + len(_GAP) for found in widths)
