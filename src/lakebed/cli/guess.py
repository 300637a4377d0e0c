"""The schema of a table that could take a file, for `lakebed init --like`.

Parquet and Arrow say their types. Text does not: its types come from the first block, and a time
is an instant if each value of that block names its zone, with nanoseconds only where needed.
"""

from typing import TYPE_CHECKING, Any

from lakebed.cli.incoming import undressed
from lakebed.cli.readers import FileFormat, Reading, file_format, open_source
from lakebed.errors import RequestError

if TYPE_CHECKING:
    import pyarrow as pa

_ZONE = r"(Z|[+-]\d\d:?\d\d)$"


def guess_schema(path: str) -> "pa.Schema":
    """Read the columns of a file and their types."""
    kind = file_format(path)
    schema, batch = _start(path, Reading())
    if kind in (FileFormat.PARQUET, FileFormat.ARROW):
        return schema
    if kind is FileFormat.JSON:  # whose reader forgets zones
        schema = _zoned(schema, path)
    return _settled(schema, batch)


def _start(path: str, reading: Reading) -> tuple["pa.Schema", Any]:
    opened = open_source(path, reading)
    try:
        return undressed(opened.schema, path), next(opened.batches, None)
    finally:
        opened.close()


def _zoned(schema: "pa.Schema", path: str) -> "pa.Schema":
    """Look at the text of each time: does it name a zone?"""
    import pyarrow as pa
    import pyarrow.compute as pc

    times = [field.name for field in schema if pa.types.is_timestamp(field.type)]
    if not times:
        return schema
    texts = Reading(wanted=pa.schema([(name, pa.string()) for name in times]))
    _, batch = _start(path, texts)
    for name in times:
        values = batch.column(batch.schema.get_field_index(name)).drop_null()
        if len(values) and pc.all(pc.match_substring_regex(values, _ZONE)).as_py():
            place = schema.get_field_index(name)
            zoned = pa.field(name, pa.timestamp(schema.field(place).type.unit, tz="UTC"))
            schema = schema.set(place, zoned)
    return schema


def _settled(schema: "pa.Schema", batch: Any) -> "pa.Schema":
    """Microseconds where they hold every value seen; a column without values has no type."""
    import pyarrow as pa

    for place, field in enumerate(schema):
        if pa.types.is_null(field.type):
            raise RequestError(
                f"column {field.name!r} has no values that tell its type",
                hint="Name the columns and their types with --schema",
            )
        if pa.types.is_timestamp(field.type) and _fits_microseconds(batch, field):
            coarse = pa.timestamp("us", tz=field.type.tz)
            schema = schema.set(place, pa.field(field.name, coarse))
    return schema


def _fits_microseconds(batch: Any, field: Any) -> bool:
    import pyarrow as pa

    if batch is None or field.type.unit != "ns":
        return True
    try:
        batch.column(batch.schema.get_field_index(field.name)).cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        return False
    return True
