"""Schemas between Arrow and the table: types in, types out, and what does not fit.

Coming in, a user's Arrow type maps to the narrowest of our types that keeps every value; going
out, each of our types has exactly one Arrow type, and each field carries its id.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any

import pyarrow as pa

from lakebed.errors import IdentifierError, SchemaMismatchError
from lakebed.expr.arrow import primitive_arrow_type
from lakebed.format.schema import Schema, check_column_name
from lakebed.format.types import (
    DECIMAL_PRECISION_MAX,
    FLOATS,
    INSTANTS,
    INTEGERS,
    TIMESTAMPS,
    Field,
    Kind,
    ListOf,
    MapOf,
    Primitive,
    Struct,
    Type,
)
from lakebed.limits import TYPE_DEPTH_MAX

FIELD_ID = b"PARQUET:field_id"
INFERRED = b"lakebed.inferred"  # schema metadata: the types were guessed from Python values

_SCHEMAS_KEPT = 64
_INT_BITS, _UNSIGNED_INT_BITS, _UNSIGNED_LONG_BITS = 32, 16, 32
_NO_COLUMN_HINTS: tuple[tuple[Any, str], ...] = (
    (pa.types.is_uint64, "Cast it to int64, or to decimal128(20, 0) if values exceed 2^63 - 1"),
    (pa.types.is_null, "All its values are null; cast the column to the type it should have"),
    (pa.types.is_duration, "Cast it to int64 and say the unit in the column's name"),
    (pa.types.is_interval, "Store its months, days and nanoseconds as integer columns"),
    (pa.types.is_union, "Use one column per type, or a string column"),
    (pa.types.is_time64, "Times of day have microseconds; cast it to time64('us')"),
    (pa.types.is_decimal, f"Use a scale from 0 to the precision, at most {DECIMAL_PRECISION_MAX}"),
)


@dataclass(frozen=True, slots=True)
class Differences:
    """How incoming rows differ from a table.

    `extra` are columns the table could gain; `problems` are sentences for people, and rows with
    a problem cannot be taken.
    """

    extra: tuple[Any, ...] = ()
    problems: tuple[str, ...] = ()


def from_arrow(schema: Any, *, schema_id: int = 0, first_id: int = 1) -> Schema:
    """Turn a user's Arrow schema into ours, with fresh field ids in order, parents first.

    Raises:
        SchemaMismatchError: a column's type or name has no place in a table.
    """
    ids = count(first_id)
    _check_names([field.name for field in schema], "")
    return Schema(schema_id, tuple(_field(field, ids, field.name, 0) for field in schema))


@lru_cache(maxsize=_SCHEMAS_KEPT)
def to_arrow_schema(schema: Schema, *, field_ids: bool = True) -> Any:
    """Our schema as Arrow's; with `field_ids`, each field carries its id for Parquet."""
    return pa.schema(
        [_arrow_field(field, field.name, field_ids=field_ids) for field in schema.fields]
    )


def differences(table_schema: Schema, incoming: Any) -> Differences:
    """Compare a table with the schema of rows that shall go into it."""
    if incoming.equals(to_arrow_schema(table_schema, field_ids=False)):
        return Differences()  # Mostly, and worth not looking at each column.
    inferred = INFERRED in (incoming.metadata or {})
    problems = [f"column {name!r} appears more than once" for name in _repeated(incoming.names)]
    for field in table_schema.fields:
        place = incoming.get_field_index(field.name)
        if place >= 0:
            problems.extend(
                _mismatches(field, incoming.field(place).type, field.name, inferred=inferred)
            )
        elif field.required and field.name not in incoming.names:
            problems.append(f"column {field.name!r} is required and missing")
    extra = []
    folded = {field.name.casefold(): field.name for field in table_schema.fields}
    for field in incoming:
        if field.name not in table_schema.by_name:
            problem = _extra_problem(field, folded.get(field.name.casefold()))
            problems.extend([problem] if problem else [])
            extra.extend([] if problem else [field])
    return Differences(tuple(extra), tuple(problems))


def plain_type(kind: Any) -> Any:
    """The type of the values, whatever way they are laid out or dressed up."""
    while True:
        if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
            kind = kind.value_type
        elif isinstance(kind, pa.BaseExtensionType):
            kind = kind.storage_type
        else:
            return kind


def type_name(kind: Any) -> str:
    """An Arrow type in our words if it has any, else in Arrow's."""
    try:
        return str(_type(kind, count(1), "", 0))
    except (SchemaMismatchError, IdentifierError):
        return str(kind)


def leaf_places(schema: Any) -> dict[str, int]:
    """By column name, the place of its first leaf among the leaf columns of a Parquet file."""
    places, place = {}, 0
    for field in schema:
        places[field.name] = place
        place += _leaf_count(field.type)
    return places


def _leaf_count(kind: Any) -> int:
    kind = plain_type(kind)
    if not pa.types.is_nested(kind):
        return 1
    return sum(_leaf_count(kind.field(place).type) for place in range(kind.num_fields))


# ------------------------------------------------------------------------------- Arrow to ours


def _field(field: Any, ids: Iterator[int], path: str, depth: int) -> Field:
    if depth > TYPE_DEPTH_MAX:
        raise SchemaMismatchError(f"column {path[:80]!r} is nested more than {TYPE_DEPTH_MAX} deep")
    number = next(ids)
    kind = _type(field.type, ids, path, depth)
    return Field(number, field.name, kind, required=not field.nullable)


def _type(kind: Any, ids: Iterator[int], path: str, depth: int) -> Type:
    kind = plain_type(kind)
    if pa.types.is_struct(kind):
        fields = [kind.field(place) for place in range(kind.num_fields)]
        _check_names([field.name for field in fields], f"{path}.")
        return Struct(
            tuple(_field(field, ids, f"{path}.{field.name}", depth + 1) for field in fields)
        )
    if is_list(kind):
        element = kind.value_field.with_name("element")
        return ListOf(_field(element, ids, f"{path}.element", depth + 1))
    if pa.types.is_map(kind):
        key = kind.key_field.with_name("key").with_nullable(False)  # noqa: FBT003
        value = kind.item_field.with_name("value")
        return MapOf(
            _field(key, ids, f"{path}.key", depth + 1),
            _field(value, ids, f"{path}.value", depth + 1),
        )
    primitive = _primitive(kind)
    if primitive is None:
        hint = next((text for test, text in _NO_COLUMN_HINTS if test(kind)), "Cast it first")
        raise SchemaMismatchError(
            f"column {path!r} has the Arrow type {kind}, which a table cannot hold",
            hint=hint,
            column=path,
        )
    return primitive


def is_list(kind: Any) -> bool:
    """Whether an Arrow type is a list in any of its layouts."""
    return bool(
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_fixed_size_list(kind)
        or pa.types.is_list_view(kind)
        or pa.types.is_large_list_view(kind)
    )


def _primitive(kind: Any) -> Primitive | None:
    if pa.types.is_integer(kind):
        return _integer(kind)
    if pa.types.is_floating(kind):
        return Primitive(Kind.DOUBLE if pa.types.is_float64(kind) else Kind.FLOAT)
    if pa.types.is_timestamp(kind):
        names = ("TIMESTAMP", "TIMESTAMPTZ")[kind.tz is not None]
        return Primitive(Kind[f"{names}_NS" if kind.unit == "ns" else names])
    if pa.types.is_decimal(kind):
        sound = 0 < kind.precision <= DECIMAL_PRECISION_MAX and 0 <= kind.scale <= kind.precision
        return Primitive(Kind.DECIMAL, kind.precision, kind.scale) if sound else None
    if pa.types.is_fixed_size_binary(kind):
        return Primitive(Kind.FIXED, length=kind.byte_width) if kind.byte_width else None
    if pa.types.is_time(kind):
        return None if kind.unit == "ns" else Primitive(Kind.TIME)
    simple = (
        (Kind.BOOLEAN, pa.types.is_boolean(kind)),
        (Kind.DATE, pa.types.is_date(kind)),
        (Kind.STRING, is_text(kind)),
        (Kind.BINARY, is_binary(kind)),
    )
    return next((Primitive(ours) for ours, is_it in simple if is_it), None)


def _integer(kind: Any) -> Primitive | None:
    if pa.types.is_uint64(kind):
        return None
    bits_max = _INT_BITS if pa.types.is_signed_integer(kind) else _UNSIGNED_INT_BITS
    return Primitive(Kind.INT if kind.bit_width <= bits_max else Kind.LONG)


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is text in any of its layouts."""
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def is_binary(kind: Any) -> bool:
    """Whether an Arrow type is bytes of any length in any of its layouts."""
    return bool(
        pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind)
    )


def _check_names(names: list[str], prefix: str) -> None:
    for name in names:
        check_column_name(name)
    twice = _repeated([name.casefold() for name in names])
    if twice:
        shown = ", ".join(repr(prefix + name) for name in names if name.casefold() in twice)
        raise SchemaMismatchError(
            f"the columns {shown} have the same name",
            hint="Names must differ by more than upper and lower case; rename one of them",
        )


def _repeated(names: list[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1}) if _any_twice(names) else []


def _any_twice(names: list[str]) -> bool:
    return len(set(names)) != len(names)


# ------------------------------------------------------------------------------- ours to Arrow


def _arrow_field(field: Field, name: str, *, field_ids: bool) -> Any:
    metadata = {FIELD_ID: str(field.id)} if field_ids else None
    kind = arrow_type(field.type, field_ids=field_ids)
    return pa.field(name, kind, nullable=not field.required, metadata=metadata)


def arrow_type(kind: Type, *, field_ids: bool = False) -> Any:
    """The one Arrow type in which a column of ours is written and read."""
    match kind:
        case Struct(fields=fields):
            return pa.struct(
                [_arrow_field(field, field.name, field_ids=field_ids) for field in fields]
            )
        case ListOf(element=element):
            return pa.list_(_arrow_field(element, "element", field_ids=field_ids))
        case MapOf(key=key, value=value):
            return pa.map_(
                _arrow_field(key, "key", field_ids=field_ids),
                _arrow_field(value, "value", field_ids=field_ids),
            )
        case _:
            return primitive_arrow_type(kind)


# --------------------------------------------------------------------------------- differences


def _extra_problem(field: Any, same_but_for_case: str | None) -> str:
    if same_but_for_case is not None:
        return f"column {field.name!r} differs only in case from the table's {same_but_for_case!r}"
    if not field.nullable:
        return (
            f"column {field.name!r} is new and not nullable, and the rows already in the table "
            "have no value for it"
        )
    try:
        from_arrow(pa.schema([field]))
    except (SchemaMismatchError, IdentifierError) as error:
        return f"{error.message} ({error.hint})"
    return ""


def _mismatches(field: Field, kind: Any, path: str, *, inferred: bool) -> list[str]:
    """Why values of an Arrow type cannot go into a column; empty if they can."""
    kind = plain_type(kind)
    wrong = [f"column {path!r}: table has {field.type}, data has {type_name(kind)}"]
    if pa.types.is_null(kind):
        return []  # nothing but nulls; whether the column takes nulls is checked with the rows
    match field.type:
        case Struct(fields=fields):
            if not pa.types.is_struct(kind) or [f.name for f in fields] != [f.name for f in kind]:
                return wrong
            return [
                problem
                for ours, theirs in zip(fields, kind, strict=True)
                for problem in _mismatches(
                    ours, theirs.type, f"{path}.{ours.name}", inferred=inferred
                )
            ]
        case ListOf(element=element):
            if not is_list(kind):
                return wrong
            return _mismatches(element, kind.value_type, f"{path}.element", inferred=inferred)
        case MapOf(key=key, value=value):
            if not pa.types.is_map(kind):
                return wrong
            return [
                *_mismatches(key, kind.key_type, f"{path}.key", inferred=inferred),
                *_mismatches(value, kind.item_type, f"{path}.value", inferred=inferred),
            ]
        case primitive:
            fits = _fits(primitive, kind) or (inferred and _fits_inferred(primitive, kind))
            return [] if fits else wrong


def _fits(ours: Primitive, kind: Any) -> bool:
    """Whether each value of the Arrow type can be one of ours, but for a checked cast."""
    if pa.types.is_timestamp(kind):
        return ours.kind in TIMESTAMPS and (ours.kind in INSTANTS) == (kind.tz is not None)
    if pa.types.is_time(kind):
        return ours.kind is Kind.TIME
    if pa.types.is_integer(kind):
        if ours.kind is Kind.DOUBLE:
            return True
        return _integer(kind) in (ours, Primitive(Kind.INT)) and ours.kind in INTEGERS
    theirs = _primitive(kind)
    if theirs is None:
        return False
    if ours.kind is Kind.DECIMAL and theirs.kind is Kind.DECIMAL:
        return theirs.scale == ours.scale and theirs.precision <= ours.precision
    widened = {(Kind.FLOAT, Kind.DOUBLE), (Kind.FIXED, Kind.BINARY)}
    return theirs == ours or (theirs.kind, ours.kind) in widened


def _fits_inferred(ours: Primitive, kind: Any) -> bool:
    """What besides fits if Arrow guessed the type: Python has one integer and one float type."""
    if pa.types.is_integer(kind):
        return ours.kind in INTEGERS | FLOATS
    if pa.types.is_floating(kind):
        return ours.kind in FLOATS
    if pa.types.is_decimal(kind):
        return ours.kind is Kind.DECIMAL and kind.scale <= ours.scale
    return is_binary(kind) and ours.kind is Kind.FIXED
