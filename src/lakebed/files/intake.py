"""Rows from users: any object that speaks Arrow comes in, rows of exactly the table's types go on.

Nothing here walks rows in Python; lists of dicts are laid out by pyarrow.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import RequestError, SchemaMismatchError
from lakebed.files.arrow_schema import INFERRED, differences, to_arrow_schema, type_name
from lakebed.format.schema import Schema
from lakebed.format.types import Field, ListOf, MapOf, Primitive, Struct, walk

_HINT = (
    "Give a pyarrow Table, RecordBatch, reader or dataset, a polars or pandas DataFrame, a DuckDB "
    "relation, a dict of columns, a list of dicts, or an iterator of these"
)
_Batches = tuple[Any, Iterator[Any]]


def batches_of(data: Any) -> _Batches:
    """Open any Arrow-speaking object as a schema and a stream of record batches.

    An iterator gives its pieces one at a time; all must have the schema of the first.

    Raises:
        RequestError: the object has no rows in a form we know; also while batches are taken.
    """
    opened = _open_one(data)
    if opened is not None:
        return opened
    if isinstance(data, Iterable) and not isinstance(data, str | bytes | Mapping):
        return _open_pieces(data)
    raise _refusal(data)


def _open_one(data: Any) -> _Batches | None:
    """Open one table-like object; None if it may be a sequence of them."""
    try:
        if isinstance(data, pa.Table):
            return data.schema, iter(data.to_batches())
        if isinstance(data, pa.RecordBatch):
            return data.schema, iter((data,))
        if isinstance(data, dict):
            return _of_table(_guessed(pa.table(data), data.values()))
        if isinstance(data, list):
            return _of_rows(data) if data and isinstance(data[0], Mapping) else None
        return _open_foreign(data)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise RequestError(
            f"the {type(data).__name__} cannot be laid out as columns: {error}", hint=_HINT
        ) from error


def _open_foreign(data: Any) -> _Batches | None:
    home = type(data).__module__.partition(".")[0]
    if home == "pandas" and hasattr(data, "reset_index") and hasattr(data, "columns"):
        return _of_table(_of_pandas(data))
    if home == "polars" and hasattr(data, "collect"):
        data = data.collect()
    if home == "pyarrow":
        data = _of_dataset(data)
    if hasattr(data, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(data)
        return reader.schema, _guarded(reader)
    if hasattr(data, "__arrow_c_array__"):
        batch = pa.record_batch(data)
        return batch.schema, iter((batch,))
    return None


def _of_dataset(data: Any) -> Any:
    """A reader of a dataset or scanner; anything else as it is."""
    # Its import brings pandas along, which costs half a second that nobody else wants to wait.
    import pyarrow.dataset as ds

    if isinstance(data, ds.Dataset):
        data = data.scanner()
    return data.to_reader() if isinstance(data, ds.Scanner) else data


def _of_table(table: Any) -> _Batches:
    return table.schema, iter(table.to_batches())


def _of_pandas(frame: Any) -> Any:
    """A DataFrame's columns; an index with a name is a column, one without is a row number."""
    unnamed = [place for place, name in enumerate(frame.index.names) if name is None]
    has_named = len(unnamed) < len(frame.index.names)
    if unnamed and has_named:
        frame = frame.reset_index(level=unnamed, drop=True)
    return pa.Table.from_pandas(frame, preserve_index=has_named).replace_schema_metadata()


def _of_rows(rows: list[Any]) -> _Batches:
    # pa.Table.from_pylist looks at the first row's keys only and would lose the others' columns.
    structs = pa.array(rows)
    if structs.null_count:
        raise TypeError(f"{structs.null_count} of the {len(rows)} rows are None")
    chunks = structs.chunks if isinstance(structs, pa.ChunkedArray) else [structs]
    batches = [pa.RecordBatch.from_struct_array(chunk) for chunk in chunks]
    return _of_table(_guessed(pa.Table.from_batches(batches), [rows]))


def _guessed(table: Any, sources: Iterable[Any]) -> Any:
    """Mark the schema if Python values, not typed arrays, gave a column its type."""
    guessed = any(isinstance(source, list | tuple) for source in sources)
    return table.replace_schema_metadata({INFERRED: b"true"} if guessed else None)


def _open_pieces(pieces: Iterable[Any]) -> _Batches:
    stream = iter(pieces)
    first = next(stream, None)
    if first is None:
        raise RequestError("there are no rows and nothing that tells their columns", hint=_HINT)
    schema, batches = _open_piece(first)
    return schema, chain(batches, _rest(stream, schema))


def _open_piece(piece: Any) -> _Batches:
    opened = _open_one(piece)
    if opened is None:
        raise _refusal(piece)
    return opened


def _rest(stream: Iterator[Any], schema: Any) -> Iterator[Any]:
    for number, piece in enumerate(stream, start=2):
        theirs, batches = _open_piece(piece)
        for batch in batches:
            yield batch if theirs.equals(schema) else _as_first(batch, schema, number)


def _as_first(batch: Any, schema: Any, number: int) -> Any:
    """Bring a later piece to the first one's schema if only order and guesses differ."""
    guessed = INFERRED in (schema.metadata or {})
    unlike = [f"no {name!r}" for name in schema.names if name not in batch.schema.names]
    for field in batch.schema:
        place = schema.get_field_index(field.name)
        if place < 0 or not _is_like(field.type, schema.field(place).type, guessed=guessed):
            unlike.append(str(field))
    if unlike:
        raise RequestError(
            f"piece {number} does not have the columns of the first: {', '.join(unlike)}",
            hint=f"The first piece has: {', '.join(str(field) for field in schema)}",
        )
    return batch.select(schema.names).cast(schema)


def _is_like(kind: Any, first: Any, *, guessed: bool) -> bool:
    if kind.equals(first) or pa.types.is_null(kind):
        return True
    return guessed and pa.types.is_integer(kind) and pa.types.is_floating(first)


def _guarded(reader: Any) -> Iterator[Any]:
    try:
        yield from reader
    except pa.ArrowException as error:
        raise RequestError(f"the rows could not be read: {error}") from error


def _refusal(data: Any) -> RequestError:
    return RequestError(f"a {type(data).__name__} does not hold rows", hint=_HINT)


# ------------------------------------------------------------------------------------- conform


def conform(batch_or_table: Any, target: Schema) -> Any:
    """Bring rows to exactly the columns, order and types of a table.

    Free of copies where the types are right already. The result's fields carry their ids.

    Raises:
        SchemaMismatchError: a column does not fit, a value would change, or a required one is null.
    """
    rows = batch_or_table
    if isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    wanted = to_arrow_schema(target)
    have = rows.schema
    if have.names == wanted.names and have.types == wanted.types:
        columns = rows.columns
    else:
        _check_fit(target, have)
        columns = [_column(rows, field, wanted.field(field.name).type) for field in target.fields]
    for field, column in zip(target.fields, columns, strict=True):
        if field.required and column.null_count:
            first = pc.index(column.is_null(), True)
            raise _null_error(field.name, column, f", the first in row {first} counted from 0")
        if not isinstance(field.type, Primitive):
            _check_parts(column, field, field.name)
    return pa.Table.from_arrays(columns, schema=wanted)


def _check_fit(target: Schema, have: Any) -> None:
    found = differences(target, have)
    problems = [
        *found.problems,
        *(f"column {f.name!r} ({type_name(f.type)}) is not in the table" for f in found.extra),
    ]
    if problems:
        raise SchemaMismatchError(
            f"the rows do not fit the table: {'; '.join(problems)}",
            hint="Rename, cast or drop columns, or change the table's schema first",
            problems=problems,
        )


def _column(rows: Any, field: Field, kind: Any) -> Any:
    place = rows.schema.get_field_index(field.name)
    if place < 0:
        return pa.chunked_array([pa.nulls(rows.num_rows, kind)])
    column = rows.column(place)
    if column.type == kind:
        return column
    if pa.types.is_run_end_encoded(column.type):
        values = column.type.value_type
        column = pa.chunked_array([pc.run_end_decode(chunk) for chunk in column.chunks], values)
    loose = _loose(kind)
    try:
        column = column.cast(loose)
        return column if kind.equals(loose) else _relabelled(column, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaMismatchError(
            f"column {field.name!r}: {_example(column, kind)} cannot be held as {field.type} "
            "without changing it",
            hint="Round or cast the column before it is written",
            column=field.name,
            cause=str(error),
        ) from error


def _loose(kind: Any) -> Any:
    """The type with parts that may be null: Arrow refuses nulls in a part whose parent is null."""
    if pa.types.is_struct(kind):
        return pa.struct([_loose_field(kind.field(place)) for place in range(kind.num_fields)])
    if pa.types.is_list(kind):
        return pa.list_(_loose_field(kind.value_field))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_field, _loose_field(kind.item_field))
    return kind


def _loose_field(field: Any) -> Any:
    return field.with_type(_loose(field.type)).with_nullable(True)  # noqa: FBT003


@dataclass(frozen=True, slots=True)
class _Labelled:
    """An array under another type of the same layout, as Arrow's C interface lets it be told."""

    array: Any
    kind: Any

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        _, content = self.array.__arrow_c_array__()
        return self.kind.__arrow_c_schema__(), content


def _relabelled(column: Any, kind: Any) -> Any:
    """The column with required parts; `conform` looks for nulls in them."""
    return pa.chunked_array([pa.array(_Labelled(chunk, kind)) for chunk in column.chunks], kind)


def _example(column: Any, kind: Any) -> str:
    """The first value that a cast would change, as text."""
    try:
        back = column.cast(kind, safe=False).cast(column.type, safe=False)
        place = pc.index(pc.not_equal(back, column), True).as_py()
        if place < 0:
            return "a value"
        return f"the value {column.slice(place, 1).cast(pa.string())[0].as_py()} in row {place}"
    except pa.ArrowException:
        return "a value"


def _check_parts(column: Any, field: Field, path: str) -> None:
    """Raise if a required part of a nested value is null where its parent is not."""
    kind = field.type
    if isinstance(kind, Primitive) or not any(part.required for part in _inner(field)):
        return
    present = column.filter(column.is_valid())
    if isinstance(kind, Struct):
        values = [pc.struct_field(present, [place]) for place in range(len(kind.fields))]
        inside = list(zip(kind.fields, values, strict=True))
    elif isinstance(kind, ListOf):
        inside = [(kind.element, pc.list_flatten(present))]
    else:
        inside = [(kind.value, _map_values(present))]
    for part, values in inside:
        name = f"{path}.{part.name}"
        if part.required and values.null_count:
            raise _null_error(name, values)
        _check_parts(values, part, name)


def _inner(field: Field) -> list[Field]:
    """The parts whose nulls have to be looked for; a map's keys are never null."""
    kind = field.type
    if isinstance(kind, MapOf):
        return walk((kind.value,))
    return walk((field,))[1:]


def _map_values(column: Any) -> Any:
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    flat = [
        chunk.items.slice(
            chunk.offsets[0].as_py(), chunk.offsets[-1].as_py() - chunk.offsets[0].as_py()
        )
        for chunk in chunks
    ]
    return pa.chunked_array(flat, column.type.item_type)


def _null_error(name: str, values: Any, where: str = "") -> SchemaMismatchError:
    return SchemaMismatchError(
        f"column {name!r} is required and has {values.null_count} nulls{where}",
        hint="Fill the nulls or drop those rows",
        column=name,
    )
