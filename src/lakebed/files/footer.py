"""Taking in a Parquet file that somebody else wrote: its footer is read, its rows are not.

    last 8 bytes -> length of the footer -> bounded? -> footer -> types, counts, ranges

The file is hostile until shown otherwise: sizes are compared with limits before pyarrow is given
the footer, and whatever it then finds wrong is a BadDataFileError.
"""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.errors import BadDataFileError, SchemaMismatchError
from lakebed.expr.arrow import primitive_arrow_type
from lakebed.files.arrow_schema import (
    FIELD_ID,
    from_arrow,
    is_list,
    leaf_places,
    plain_type,
    type_name,
)
from lakebed.files.column_stats import footer_stats, stats_fields
from lakebed.files.data_writer import one_partition
from lakebed.files.footer_check import check_footer
from lakebed.format.datafile import DataFile
from lakebed.format.partition import PartitionSpec
from lakebed.format.paths import check_path
from lakebed.format.schema import Schema
from lakebed.format.types import (
    Field,
    Kind,
    ListOf,
    MapOf,
    Primitive,
    Struct,
    Type,
    can_widen,
)
from lakebed.limits import COLUMN_COUNT_MAX, FOOTER_SIZE_BYTES_MAX
from lakebed.storage.store import Store

_ROW_GROUP_COUNT_MAX = 32_767  # Parquet numbers them with 16 bits
_THRIFT_CONTAINER_SIZE_MAX = 1_000_000
_ANY = Primitive(Kind.BINARY)  # stands for a nested column, whose statistics are not looked at
_CANNOT_ADOPT = "Write its rows with append() instead"


def adopt(store: Store, path: str, *, schema: Schema, spec: PartitionSpec) -> DataFile:
    """Describe a Parquet file inside the table's directory so that it can become part of it.

    Columns are matched by field id if the file has ids, else by name; their order and columns
    the table does not know do not matter, and nullable columns may be missing.

    Raises:
        ObjectMissingError: there is no such file.
        BadDataFileError: it is not a sound Parquet file.
        SchemaMismatchError: its columns or its partition do not fit the table.
    """
    check_path(path)
    size_bytes = store.size(path)
    footer, arrow = _read_footer(store, path, size_bytes)
    _check_columns(path, schema, arrow, footer)
    present = [(field, kind) for field, kind in stats_fields(schema) if field.name in arrow.names]
    stats = footer_stats(footer, present, leaf_places(arrow))
    partition = one_partition(stats, footer.num_rows, schema, spec)
    if partition is None:
        raise SchemaMismatchError(
            f"{path} spans several partitions of {', '.join(spec.describe(schema))}, or its "
            "statistics do not show that it lies in one",
            hint="Split the file by partition, or write its rows with append()",
            path=path,
        )
    return DataFile(
        path=path,
        row_count=footer.num_rows,
        size_bytes=size_bytes,
        schema_id=schema.id,
        spec_id=spec.id,
        partition=partition,
        stats=stats,
    )


# ---------------------------------------------------------------------------------- the footer


def _read_footer(store: Store, path: str, size_bytes: int) -> tuple[Any, Any]:
    """The footer and its Arrow schema."""
    filesystem, prefix = store.arrow_filesystem()
    try:
        with filesystem.open_input_file(prefix + path) as source:
            check_footer(source, path, size_bytes)
            file = pq.ParquetFile(
                source,
                thrift_string_size_limit=FOOTER_SIZE_BYTES_MAX,
                thrift_container_size_limit=_THRIFT_CONTAINER_SIZE_MAX,
            )
            footer, arrow = file.metadata, file.schema_arrow
    except (pa.ArrowException, OSError, ValueError, RecursionError) as error:
        raise BadDataFileError(
            f"{path} is not a readable Parquet file: {error}", path=path
        ) from error
    _check_counts(path, footer)
    return footer, arrow


def _check_counts(path: str, footer: Any) -> None:
    if footer.num_row_groups > _ROW_GROUP_COUNT_MAX or footer.num_columns > COLUMN_COUNT_MAX:
        raise BadDataFileError(
            f"{path} has {footer.num_row_groups} row groups and {footer.num_columns} columns",
            hint=f"At most {_ROW_GROUP_COUNT_MAX} and {COLUMN_COUNT_MAX} are allowed",
            path=path,
        )
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    counts = [group.num_rows for group in groups]
    if any(count < 0 for count in counts) or sum(counts) != footer.num_rows:
        raise BadDataFileError(
            f"{path} says it has {footer.num_rows} rows and its row groups {sum(counts)}", path=path
        )
    if not footer.num_rows:
        raise SchemaMismatchError(f"{path} has no rows", hint="Leave it out", path=path)


# ---------------------------------------------------------------------------------- the schema


def _check_columns(path: str, schema: Schema, arrow: Any, footer: Any) -> None:
    problems = []
    places = leaf_places(arrow)
    if len(set(arrow.names)) != len(arrow.names):
        problems.append("two of its columns have the same name")
    for field in schema.fields:
        if field.name not in places:
            if field.required:
                problems.append(f"column {field.name!r} is required and missing")
            continue
        theirs = arrow.field(field.name)
        if footer.schema.column(places[field.name]).physical_type == "INT96":
            problems.append(
                f"column {field.name!r} holds INT96 timestamps (write it with "
                "use_deprecated_int96_timestamps=False)"
            )
            continue
        problems.extend(_problems(field, theirs))
    problems.extend(_renamed(schema, arrow))
    if not problems:
        problems = _null_problems(schema, arrow, footer)
    if problems:
        raise SchemaMismatchError(
            f"{path} does not fit the table: {'; '.join(problems)}",
            hint=_CANNOT_ADOPT,
            path=path,
            problems=problems,
        )


def _field_id(field: Any) -> int | None:
    text = (field.metadata or {}).get(FIELD_ID, b"")
    return int(text) if text.isdigit() and int(text) > 0 else None


def _renamed(schema: Schema, arrow: Any) -> list[str]:
    """Columns of the file whose id is one of ours under another name."""
    ours = [(field, schema.by_id.get(_field_id(field) or 0)) for field in arrow]
    return [
        f"column {field.name!r} has the field id of the table's {same.name!r}"
        for field, same in ours
        if same is not None and same.name != field.name
    ]


def _problems(field: Field, theirs: Any) -> list[str]:
    number = _field_id(theirs)
    if number is not None and number != field.id:
        return [f"column {field.name!r} has field id {number} where the table has {field.id}"]
    return _mismatches(field.type, theirs.type, field.name)


def _mismatches(ours: Type, kind: Any, path: str) -> list[str]:
    """Why a column as it lies in the file cannot be read as ours; empty if it can."""
    kind = plain_type(kind)
    name = type_name(kind)
    shown = name if name != str(ours) else str(kind)
    wrong = [f"column {path!r}: table has {ours}, file has {shown}"]
    pairs: list[tuple[Field, Any]] = []
    match ours:
        case Primitive():
            return [] if _is_readable(ours, kind) else wrong
        case Struct(fields=fields) if pa.types.is_struct(kind):
            if [field.name for field in fields] != [field.name for field in kind]:
                return wrong
            pairs = list(zip(fields, kind, strict=True))
        case ListOf(element=element) if is_list(kind):
            pairs = [(element, kind.value_field)]
        case MapOf(key=key, value=value) if pa.types.is_map(kind):
            pairs = [(key, kind.key_field), (value, kind.item_field)]
        case _:
            return wrong
    return [problem for part, theirs in pairs for problem in _part_problems(part, theirs, path)]


def _part_problems(part: Field, theirs: Any, path: str) -> list[str]:
    inside = f"{path}.{part.name}"
    number = _field_id(theirs)
    if number is not None and number != part.id:
        return [f"column {inside!r} has field id {number} where the table has {part.id}"]
    if part.required and theirs.nullable:
        return [f"column {inside!r} is required and may be null in the file"]
    return _mismatches(part.type, theirs.type, inside)


def _is_readable(ours: Primitive, kind: Any) -> bool:
    """Whether the file's values are ours as they lie there, or ours before a widening.

    Units of time are not converted: other readers of the table would take them as they are.
    """
    if pa.types.is_unsigned_integer(kind):
        return False
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        return bool(primitive_arrow_type(ours) == _in_utc(kind))
    try:
        theirs = from_arrow(pa.schema([pa.field("c", kind)])).fields[0].type
    except SchemaMismatchError:
        return False
    return can_widen(theirs, ours)


def _in_utc(kind: Any) -> Any:
    """Parquet keeps that a timestamp is an instant, not the zone it is shown in."""
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    return kind


def _null_problems(schema: Schema, arrow: Any, footer: Any) -> list[str]:
    """Required columns that the file does not show to be without nulls."""
    open_fields = [
        (field, field.type if isinstance(field.type, Primitive) else _ANY)
        for field in schema.fields
        if field.required and field.name in arrow.names and arrow.field(field.name).nullable
    ]
    stats = footer_stats(footer, open_fields, leaf_places(arrow))
    problems = []
    for field, kind in open_fields:
        null_count = stats[field.id].null_count
        if kind is _ANY or null_count is None:
            problems.append(f"column {field.name!r} is required and may be null in the file")
        elif null_count:
            problems.append(f"column {field.name!r} is required and has {null_count} nulls")
    return problems
