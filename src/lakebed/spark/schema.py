"""Columns between the table and Spark, with their field ids.

    ours                     Spark                  what it is there
    timestamptz              TimestampType          an instant
    timestamp                TimestampNTZType       a wall clock's reading
    fixed[n], binary         BinaryType
    time                     LongType               microseconds since midnight
    timestamp_ns, tz or not  none that is exact     the reader has to choose

Spark's clocks end at microseconds, and its type for the time of day is not open to users. A time
of day is exact as a number, so it is one. A column of nanoseconds is refused unless the reader
says what it shall be: `"long"` is exact (nanoseconds since 1970), `"truncate"` gives the
microsecond that each instant lies in.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import pyarrow as pa

from lakebed.errors import RequestError, SchemaMismatchError
from lakebed.format.schema import Schema
from lakebed.format.types import (
    INSTANTS,
    NANOSECONDS,
    Field,
    Kind,
    ListOf,
    MapOf,
    Primitive,
    Struct,
    Type,
    parts,
)

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType

Nanoseconds = Literal["refuse", "long", "truncate"]

FIELD_ID = "parquet.field.id"  # where Spark's Parquet reader and writer look for it

_NS_HINT = (
    'Choose with nanoseconds="long" (exact, as nanoseconds since 1970) or "truncate" '
    "(microseconds), or leave the column out with columns=[…]"
)


def check_nanoseconds(choice: str) -> Nanoseconds:
    """Return the choice if it is one."""
    if choice not in get_args(Nanoseconds):
        raise RequestError(
            f"nanoseconds={choice!r} is not a choice",
            hint=f"The choices are {', '.join(get_args(Nanoseconds))}",
        )
    return choice  # type: ignore[return-value]


def spark_schema(
    schema: Schema,
    *,
    columns: Sequence[str] | None = None,
    nanoseconds: str = "refuse",
    field_ids: bool = True,
) -> "StructType":
    """The schema of a frame that holds these columns; each of them may be null.

    Raises:
        NotFoundError: there is no such column.
        RequestError: a column has nanoseconds, and nobody said what they shall be.
    """
    from pyspark.sql.types import StructType

    choice = check_nanoseconds(nanoseconds)
    names = list(schema.by_name) if columns is None else columns
    fields = [schema.field(name) for name in names]
    for field in fields:
        _check_nanoseconds(field, choice)
    return StructType([_field(field, choice, field_ids=field_ids) for field in fields])


def is_cut(field: Field, nanoseconds: str) -> bool:
    """Whether the column's values are nanoseconds that the reader wants as microseconds."""
    is_fine = isinstance(field.type, Primitive) and field.type.kind in NANOSECONDS
    return is_fine and nanoseconds == "truncate"


def stored_type(kind: Type) -> "DataType":
    """The type to ask Spark's Parquet reader for: times that it cannot hold are plain numbers."""
    return _type(kind, "long", field_ids=False)


def _check_nanoseconds(field: Field, choice: Nanoseconds) -> None:
    where = _finest(field, field.name)
    if where is None or choice == "long":
        return
    if choice == "refuse":
        raise RequestError(
            f"the column {where!r} has nanoseconds, and Spark's timestamps end at microseconds",
            hint=_NS_HINT,
            column=where,
        )
    if not isinstance(field.type, Primitive):
        raise RequestError(
            f"the nanoseconds of {where!r} are inside a nested column and cannot be cut",
            hint='Read them as numbers with nanoseconds="long", or leave the column out',
            column=where,
        )


def _finest(field: Field, path: str) -> str | None:
    """The path of the first part of a column that has nanoseconds."""
    if isinstance(field.type, Primitive):
        return path if field.type.kind in NANOSECONDS else None
    found = (_finest(part, f"{path}.{part.name}") for part in parts(field.type))
    return next((each for each in found if each is not None), None)


# ------------------------------------------------------------------------------- ours to Spark


def _field(field: Field, choice: Nanoseconds, *, field_ids: bool) -> "StructField":
    from pyspark.sql.types import StructField

    metadata = {FIELD_ID: field.id} if field_ids else None
    kind = _type(field.type, choice, field_ids=field_ids)
    return StructField(field.name, kind, nullable=True, metadata=metadata)


def _type(kind: Type, choice: Nanoseconds, *, field_ids: bool) -> "DataType":
    from pyspark.sql import types

    match kind:
        case Struct(fields=fields):
            return types.StructType(
                [_field(field, choice, field_ids=field_ids) for field in fields]
            )
        case ListOf(element=element):
            return types.ArrayType(_type(element.type, choice, field_ids=field_ids))
        case MapOf(key=key, value=value):
            return types.MapType(
                _type(key.type, choice, field_ids=field_ids),
                _type(value.type, choice, field_ids=field_ids),
            )
    if kind.kind is Kind.DECIMAL:
        return types.DecimalType(kind.precision, kind.scale)
    if kind.kind in NANOSECONDS and choice == "truncate":
        return types.TimestampType() if kind.kind in INSTANTS else types.TimestampNTZType()
    simple: dict[Kind, DataType] = {
        Kind.BOOLEAN: types.BooleanType(),
        Kind.INT: types.IntegerType(),
        Kind.LONG: types.LongType(),
        Kind.FLOAT: types.FloatType(),
        Kind.DOUBLE: types.DoubleType(),
        Kind.DATE: types.DateType(),
        Kind.TIME: types.LongType(),
        Kind.TIMESTAMP: types.TimestampNTZType(),
        Kind.TIMESTAMPTZ: types.TimestampType(),
        Kind.TIMESTAMP_NS: types.LongType(),
        Kind.TIMESTAMPTZ_NS: types.LongType(),
        Kind.STRING: types.StringType(),
        Kind.BINARY: types.BinaryType(),
        Kind.FIXED: types.BinaryType(),
    }
    return simple[kind.kind]


# ------------------------------------------------------------------------------ Spark to Arrow


def to_arrow(schema: "StructType") -> pa.Schema:
    """A frame's schema as Arrow's, in the types that `DataFrame.toArrow` gives: instants in UTC.

    Raises:
        SchemaMismatchError: a column's type has no place in a table.
    """
    return pa.schema([_arrow_field(field, field.name) for field in schema.fields])


def _arrow_field(field: "StructField", path: str) -> pa.Field:
    return pa.field(field.name, _arrow_type(field.dataType, path), nullable=field.nullable)


def _arrow_type(kind: "DataType", path: str) -> pa.DataType:
    from pyspark.sql import types

    match kind:
        case types.StructType():
            return pa.struct([_arrow_field(f, f"{path}.{f.name}") for f in kind.fields])
        case types.ArrayType():
            element = _arrow_type(kind.elementType, f"{path}.element")
            return pa.list_(pa.field("element", element, nullable=kind.containsNull))
        case types.MapType():
            key = pa.field("key", _arrow_type(kind.keyType, f"{path}.key"), nullable=False)
            value = _arrow_type(kind.valueType, f"{path}.value")
            return pa.map_(key, pa.field("value", value, nullable=kind.valueContainsNull))
        case types.DecimalType():
            return pa.decimal128(kind.precision, kind.scale)
        case types.StringType() | types.CharType() | types.VarcharType():
            return pa.string()
    simple: dict[type[DataType], pa.DataType] = {
        types.BooleanType: pa.bool_(),
        types.ByteType: pa.int8(),
        types.ShortType: pa.int16(),
        types.IntegerType: pa.int32(),
        types.LongType: pa.int64(),
        types.FloatType: pa.float32(),
        types.DoubleType: pa.float64(),
        types.DateType: pa.date32(),
        types.TimestampType: pa.timestamp("us", "UTC"),
        types.TimestampNTZType: pa.timestamp("us"),
        types.BinaryType: pa.binary(),
    }
    found = simple.get(type(kind))
    if found is None:
        raise SchemaMismatchError(
            f"column {path!r} has Spark's type {kind.simpleString()}, which a table cannot hold",
            hint="Cast it first; a column of nothing but nulls needs the type it should have",
            column=path,
        )
    return found


# ----------------------------------------------------------------- our rows as Spark takes them


def frame_arrow_schema(schema: pa.Schema, nanoseconds: str) -> pa.Schema:
    """The Arrow schema in which Spark takes rows of ours."""
    return pa.schema([pa.field(f.name, _plain(f.type, nanoseconds)) for f in schema])


def as_frame_rows(batch: Any, target: pa.Schema) -> Any:
    """A batch or table of ours in such a schema; instants are floored, nothing else is lost."""
    columns = [_as_plain(batch.column(place), field.type) for place, field in enumerate(target)]
    if isinstance(batch, pa.Table):
        return pa.Table.from_arrays(columns, schema=target)
    return pa.RecordBatch.from_arrays(columns, schema=target)


def _plain(kind: pa.DataType, nanoseconds: str) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _plain(f.type, nanoseconds)) for f in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", _plain(kind.value_type, nanoseconds)))
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type, nanoseconds), _plain(kind.item_type, nanoseconds))
    if pa.types.is_time(kind):
        return pa.int64()
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz) if nanoseconds == "truncate" else pa.int64()
    return pa.binary() if pa.types.is_fixed_size_binary(kind) else kind


def _as_plain(column: Any, kind: pa.DataType) -> Any:
    if column.type == kind:
        return column
    if pa.types.is_timestamp(kind) and column.type != kind:
        return _floored(column, kind)
    return column.cast(kind)


def _floored(column: Any, kind: pa.DataType) -> Any:
    """Microseconds of nanoseconds; Arrow's cast cuts towards 1970, and a floor goes down."""
    import pyarrow.compute as pc

    number = column.cast(pa.int64())
    micros = pc.divide(number, 1000)
    is_late = pc.greater(pc.multiply(micros, 1000), number)
    return pc.subtract(micros, is_late.cast(pa.int64())).cast(kind)


__all__ = [
    "FIELD_ID",
    "Nanoseconds",
    "as_frame_rows",
    "check_nanoseconds",
    "frame_arrow_schema",
    "is_cut",
    "spark_schema",
    "stored_type",
    "to_arrow",
]
