"""Types that text formats cannot hold: read as text first, then turned into what they mean.

`lakebed scan` spells bytes as hexadecimal digits, so that is how text spells them here too; Arrow
would take the digits themselves for the bytes. Its JSON reader knows neither dates nor times of
day.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import date, time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def as_spelled(wanted: "pa.Schema", *, knows_times: bool) -> "pa.Schema":
    """The schema to read with: text in place of what the reader does not know."""
    import pyarrow as pa

    def known(kind: Any) -> Any:
        is_known = not _is_spelled(kind) or (knows_times and not _is_bytes(kind))
        return kind if is_known else pa.string()

    return pa.schema([pa.field(field.name, known(field.type)) for field in wanted])


def as_meant(schema: "pa.Schema", wanted: "pa.Schema | None") -> "pa.Schema":
    """The schema after `meant`, of columns that were read with `as_spelled`."""
    for field in wanted or ():
        place = schema.get_field_index(field.name)
        if place >= 0 and _is_spelled(field.type):
            schema = schema.set(place, schema.field(place).with_type(field.type))
    return schema


def meant(batches: Iterable["pa.RecordBatch"], schema: "pa.Schema") -> Iterator["pa.RecordBatch"]:
    """Turn text into the types of `schema`, column by column.

    Raises:
        ValueError: a text does not spell a value of its type.
    """
    import pyarrow as pa

    for batch in batches:
        if batch.schema.equals(schema):
            yield batch
            continue
        columns = [
            column if column.type == field.type else _decoded(column, field)
            for column, field in zip(batch.columns, schema, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _is_spelled(kind: Any) -> bool:
    import pyarrow as pa

    return bool(_is_bytes(kind) or pa.types.is_time(kind) or pa.types.is_date(kind))


def _is_bytes(kind: Any) -> bool:
    import pyarrow as pa

    is_variable = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    return bool(is_variable or pa.types.is_fixed_size_binary(kind))


def _decoded(column: Any, field: Any) -> Any:
    import pyarrow as pa

    decode, example = _decoder(field.type)
    try:
        values = [None if text is None else decode(text) for text in column.to_pylist()]
    except ValueError as error:
        raise ValueError(f"column {field.name!r} wants {example}") from error
    return pa.array(values, field.type)


def _decoder(kind: Any) -> tuple[Callable[[str], Any], str]:
    """What turns a text into a value, and how such a text looks."""
    import pyarrow as pa

    if pa.types.is_time(kind):
        return time.fromisoformat, "times like 12:30:00"
    if pa.types.is_date(kind):
        return date.fromisoformat, "dates like 2026-01-31"
    return bytes.fromhex, "bytes as hexadecimal digits"
