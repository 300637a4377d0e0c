"""Values on their way to PostgreSQL and back."""

import re
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

import msgspec

from lakebed.catalog import rows
from lakebed.errors import RequestError
from lakebed.format.pointer import Move, Pointer

_NUL, _MARK = "\x00", "\u2400"  # JSONB has no place for NUL: the mark and a letter stand for it
_MARKED_NUL, _MARKED_MARK = _MARK + "0", _MARK + "1"
_LONG = re.compile(r"\d{19}")
_INT_BITS = 64


def table_id_in(table_id: str) -> str:
    """A table's id as the column of type UUID takes it and gives it back."""
    try:
        if UUID(table_id).hex == table_id:
            return table_id
    except ValueError:
        pass
    raise RequestError(f"{table_id!r} is no table id", hint="Ids are 32 lower-case hex digits")


def _without_nul(value: Any) -> Any:
    if isinstance(value, str):
        if _NUL in value or _MARK in value:
            return value.replace(_MARK, _MARKED_MARK).replace(_NUL, _MARKED_NUL)
        return value
    if isinstance(value, dict):
        return {_without_nul(key): _without_nul(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nul(each) for each in value]
    return value


def _restored(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace(_MARKED_NUL, _NUL).replace(_MARKED_MARK, _MARK)
    if isinstance(value, dict):
        return {_restored(key): _restored(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_restored(each) for each in value]
    if isinstance(value, int) and value.bit_length() > _INT_BITS:
        return float(value)
    return value


def json_loads(data: str | bytes) -> Any:
    """A JSONB value as the plain value that was stored.

    JSONB writes numbers as decimals without an exponent: what is too long for any integer of
    ours was a float. The sign of -0.0 is lost.
    """
    text = data if isinstance(data, str) else data.decode()
    value = msgspec.json.decode(text)
    return _restored(value) if _MARK in text or _LONG.search(text) else value


def json_in(value: Any) -> str:
    """A plain value as the text of a JSONB value."""
    return rows.json_text(_without_nul(value))


ENCODERS = rows.Encoders(
    table_id=table_id_in, time=rows.utc_text, json=_without_nul, texts=list, flag=bool
)
DECODERS = rows.Decoders(
    table_id=lambda value: value.hex, time=rows.utc_ms, json=lambda value: value, texts=list
)


def log_pages(move: Move) -> Iterator[tuple[str, int]]:
    """The actions of a move as JSON, with their number, in pages: one statement inserts a page."""
    every = [
        dict(zip(rows.LOG_COLUMNS, row, strict=True)) for row in rows.action_rows(move, ENCODERS)
    ]
    for at in range(0, len(every), rows.PAGE_ROW_COUNT):
        page = every[at : at + rows.PAGE_ROW_COUNT]
        yield rows.json_text(page), len(page)


def pointer_out(row: Sequence[Any]) -> Pointer:
    """A pointer from the values of POINTER_COLUMNS."""
    return rows.pointer_of(row, row[1].hex)
