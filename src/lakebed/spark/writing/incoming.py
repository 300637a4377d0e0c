"""The columns of a frame on their way into a table.

    frame ─► named as the table names them ─► Arrow types as the table takes them ─► staged
                                           ─► native: today's Spark types, with field ids
                                           ─► ours: Arrow batches that our writer conforms

What Spark has no type for comes as `lakebed.spark.schema` gives it out: a time of day as
microseconds in a long, nanoseconds as a long or as a timestamp, fixed[n] as binary.
"""

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import RequestError, SchemaMismatchError
from lakebed.files.arrow_schema import arrow_type, is_list
from lakebed.format.schema import Schema
from lakebed.format.types import (
    NANOSECONDS,
    Field,
    Kind,
    ListOf,
    MapOf,
    Primitive,
    Struct,
    Type,
    parts,
    walk,
)
from lakebed.spark.schema import to_arrow

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

_CASE_SENSITIVE = "spark.sql.caseSensitive"
_DAY_US = 86_400_000_000


def quoted(name: str) -> "Column":
    """A column of exactly that name: dots and brackets in it are part of it."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.col("`" + name.replace("`", "``") + "`")


def named_as(frame: "DataFrame", schema: Schema) -> "DataFrame":
    """The frame with the table's spelling of names, and without columns of Spark's type void.

    Raises:
        SchemaMismatchError: two columns have one name.
    """
    from pyspark.sql.types import NullType

    _check_names(frame.columns)
    exact = (frame.sparkSession.conf.get(_CASE_SENSITIVE) or "false").lower() == "true"
    spelling = {name if exact else name.casefold(): name for name in schema.by_name}
    kept, names = [], []
    for field in frame.schema.fields:
        ours = spelling.get(field.name if exact else field.name.casefold())
        if isinstance(field.dataType, NullType) and ours is not None:
            continue  # nothing but nulls: as if it were not there
        kept.append(quoted(field.name))
        names.append(ours or field.name)
    if names == frame.columns:
        return frame
    return frame.select(*kept).toDF(*names)


def with_open_parts(frame: "DataFrame") -> "DataFrame":
    """The frame with nested parts that may be null.

    Arrow refuses a required part of a value that is null itself, which Spark has no fear of.
    """
    fields = frame.schema.fields
    wanted = [_open_parts(field.dataType) for field in fields]
    if all(field.dataType == kind for field, kind in zip(fields, wanted, strict=True)):
        return frame
    columns = [
        quoted(field.name).cast(kind).alias(field.name)
        for field, kind in zip(fields, wanted, strict=True)
    ]
    return frame.select(*columns)


def _open_parts(kind: "DataType") -> "DataType":
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType

    match kind:
        case StructType():
            return StructType([StructField(f.name, _open_parts(f.dataType)) for f in kind.fields])
        case ArrayType():
            return ArrayType(_open_parts(kind.elementType))
        case MapType():
            return MapType(_open_parts(kind.keyType), _open_parts(kind.valueType))
    return kind


def _check_names(names: list[str]) -> None:
    folded = [name.casefold() for name in names]
    twice = sorted({name for name in names if folded.count(name.casefold()) > 1})
    if twice:
        raise SchemaMismatchError(
            f"the frame has several columns named {', '.join(twice)}",
            hint="Nothing was changed. Rename or drop all but one of them",
            problems=twice,
        )


def columns_of(frame: "DataFrame") -> pa.Schema:
    """The columns of a frame for a new table: each can be null, as Spark does it for files."""
    return columns_of_schema(frame.schema)


def columns_of_schema(schema: "StructType") -> pa.Schema:
    """The same, where there is no frame."""
    return pa.schema([_open(field) for field in to_arrow(schema)])


def incoming_columns(frame: "DataFrame", schema: Schema) -> pa.Schema:
    """The columns of a frame in Arrow types, as a table with that schema takes them."""
    return seen_as(columns_of(frame), schema)


def seen_as(incoming: pa.Schema, schema: Schema) -> pa.Schema:
    """Arrow columns of Spark's, with stand-ins taken for what they stand for."""
    fields = []
    for field in incoming:
        ours = schema.by_name.get(field.name)
        kind = field.type if ours is None else _meant(field.type, ours.type)
        fields.append(pa.field(field.name, kind))
    return pa.schema(fields)


def rows_seen_as(rows: Any, target: pa.Schema) -> Any:
    """A batch or table of Spark's rows in the types of `seen_as`.

    Raises:
        SchemaMismatchError: a value is none of its column's.
    """
    columns = []
    for place, field in enumerate(target):
        column = rows.column(place)
        if pa.types.is_nested(column.type):
            column = _settled(column)
        columns.append(column if column.type == field.type else _converted(column, field))
    make = pa.Table if isinstance(rows, pa.Table) else pa.RecordBatch
    return make.from_arrays(columns, schema=target)


def _settled(column: Any) -> Any:
    """A copy of a nested column, laid out by Arrow itself.

    Spark's Java leaves offsets away where there are no values, as it may, and pyarrow 26 dies of
    that when it is asked how large a map inside a list is.
    """
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([_settled(chunk) for chunk in column.chunks], column.type)
    return pa.concat_arrays([column, column.slice(0, 0)])


def _converted(column: Any, field: pa.Field) -> Any:
    kind = field.type
    if pa.types.is_time(kind) and len(column) > column.null_count:
        ends = pc.min_max(column)
        if ends["min"].as_py() < 0 or ends["max"].as_py() >= _DAY_US:
            raise SchemaMismatchError(
                f"column {field.name!r} is a time of day, and a value is not one of the "
                f"{_DAY_US} microseconds of a day",
                hint="Nothing was changed. Give microseconds since midnight",
                column=field.name,
            )
    try:
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaMismatchError(
            f"column {field.name!r} cannot be taken as {kind}: {error}",
            hint="Nothing was changed. Cast the column before it is written",
            column=field.name,
        ) from error


def _meant(kind: pa.DataType, ours: Type) -> pa.DataType:
    """What a column of Spark's stands for in a column of ours."""
    if not any(_has_stand_in(part.type) for part in walk((Field(1, "", ours),))):
        return kind
    match ours:
        case Struct(fields=fields) if pa.types.is_struct(kind):
            if [field.name for field in fields] != [field.name for field in kind]:
                return kind
            pairs = zip(kind, fields, strict=True)
            return pa.struct([pa.field(f.name, _meant(f.type, part.type)) for f, part in pairs])
        case ListOf(element=element) if is_list(kind):
            return pa.list_(pa.field("element", _meant(kind.value_type, element.type)))
        case MapOf(key=key, value=value) if pa.types.is_map(kind):
            return pa.map_(_meant(kind.key_type, key.type), _meant(kind.item_type, value.type))
        case Primitive(kind=Kind.FIXED) if pa.types.is_binary(kind):
            return arrow_type(ours)
        case Primitive(kind=name) if name is Kind.TIME or name in NANOSECONDS:
            return arrow_type(ours) if pa.types.is_int64(kind) else kind
    return kind


def _has_stand_in(kind: Type) -> bool:
    if not isinstance(kind, Primitive):
        return False
    return kind.kind in NANOSECONDS or kind.kind in (Kind.TIME, Kind.FIXED)


def _open(field: pa.Field) -> pa.Field:
    """The field and all its parts, allowed to be null."""
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_open(part) for part in kind])
    elif is_list(kind):
        kind = pa.list_(_open(kind.value_field))
    elif pa.types.is_map(kind):
        kind = pa.map_(kind.key_type, _open(kind.item_field))
    return pa.field(field.name, kind)


# ------------------------------------------------------------------------- what the JVM can do


def native_obstacle(frame: "DataFrame", schema: Schema) -> str | None:
    """Why Spark's own writer cannot make files of the table of this frame; None if it can."""
    incoming = columns_of(frame)
    for field in schema.fields:
        reason = _foreign(field, field.name)
        if reason is not None:
            return reason
        place = incoming.get_field_index(field.name)
        if place >= 0 and not _is_exact(incoming.field(place).type, field.type):
            return f"{field.name} has to be converted with care"
    return None


def _foreign(field: Field, path: str) -> str | None:
    """The first part of a column that Spark has no type for, or cannot promise."""
    if isinstance(field.type, Primitive):
        return f"{path} is a {field.type}" if _has_stand_in(field.type) else None
    for part in parts(field.type):
        is_key = isinstance(field.type, MapOf) and part is field.type.key
        if part.required and not is_key:
            return f"{path}.{part.name} is required"  # Spark's writer says that parts may be null
        reason = _foreign(part, f"{path}.{part.name}")
        if reason is not None:
            return reason
    return None


def _is_exact(kind: pa.DataType, ours: Type) -> bool:
    """Whether Spark's cast to our type keeps every value."""
    match ours:
        case Struct(fields=fields):
            pairs = zip(kind, fields, strict=True)
            return all(_is_exact(theirs.type, part.type) for theirs, part in pairs)
        case ListOf(element=element):
            return _is_exact(kind.value_type, element.type)
        case MapOf(key=key, value=value):
            return _is_exact(kind.key_type, key.type) and _is_exact(kind.item_type, value.type)
        case Primitive(kind=Kind.DOUBLE):
            return not pa.types.is_int64(kind)  # beyond 2^53 a double has no odd numbers
    return True  # only what widens has passed the check of the schemas


def check_has_columns(frame: "DataFrame") -> None:
    """Raise if there is nothing to write."""
    if not frame.columns:
        raise RequestError("the frame has no columns", hint="Select some")


__all__ = [
    "check_has_columns",
    "columns_of",
    "columns_of_schema",
    "incoming_columns",
    "named_as",
    "native_obstacle",
    "quoted",
    "rows_seen_as",
    "seen_as",
    "with_open_parts",
]
