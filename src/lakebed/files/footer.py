"""Taking in a Parquet file that somebody else wrote: its footer is read, its rows are not.

    last 8 bytes -> length of the footer -> bounded? -> footer -> types, counts, ranges

The file is hostile until shown otherwise: we read the footer ourselves, with limits, before
pyarrow is given it, and whatever that then finds wrong is a BadDataFileError.
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
    plain_type,
    type_name,
)
from lakebed.files.column_stats import stats_fields
from lakebed.files.data_writer import one_partition
from lakebed.files.parquet_layout import INT96, Layout, read_layout
from lakebed.files.parquet_stats import layout_stats
from lakebed.format.datafile import ColumnStats, DataFile
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

_THRIFT_CONTAINER_SIZE_MAX = 1_000_000
_CANNOT_ADOPT = "Write its rows with append() instead"


def adopt(
    store: Store,
    path: str,
    *,
    schema: Schema,
    spec: PartitionSpec,
    partition: tuple[Any, ...] | None = None,
) -> DataFile:
    """Describe a Parquet file inside the table's directory so that it can become part of it.

    Columns are matched by field id if the file has ids, else by name; their order and columns
    the table does not know do not matter, and nullable columns may be missing. `partition` is
    what its writer says, for where statistics cannot show it.

    Raises:
        ObjectMissingError: there is no such file.
        BadDataFileError: it is not a sound Parquet file.
        SchemaMismatchError: its columns or its partition do not fit the table.
    """
    check_path(path)
    size_bytes = store.size(path)
    layout, arrow = _read_footer(store, path, size_bytes)
    _check_columns(path, schema, arrow, layout)
    stats = {
        field.id: layout_stats(layout, field.name, kind)
        for field, kind in stats_fields(schema)
        if field.name in arrow.names
    }
    _check_null_counts(path, stats, layout.row_count)
    partition = _partition(path, partition, one_partition(stats, layout.row_count, schema, spec))
    if partition is None:
        raise SchemaMismatchError(
            f"{path} spans several partitions of {', '.join(spec.describe(schema))}, or its "
            "statistics do not show that it lies in one",
            hint="Split the file by partition, or write its rows with append()",
            path=path,
        )
    return DataFile(
        path=path,
        row_count=layout.row_count,
        size_bytes=size_bytes,
        schema_id=schema.id,
        spec_id=spec.id,
        partition=partition,
        stats=stats,
    )


def _partition(
    path: str, said: tuple[Any, ...] | None, shown: tuple[Any, ...] | None
) -> tuple[Any, ...] | None:
    """The partition that statistics show, or else the one that the writer says."""
    if said is not None and shown is not None and said != shown:
        raise BadDataFileError(
            f"{path} is said to be of partition {said}, and its statistics show {shown}", path=path
        )
    return said if shown is None else shown


# ---------------------------------------------------------------------------------- the footer


def _read_footer(store: Store, path: str, size_bytes: int) -> tuple[Layout, Any]:
    """The footer as we read it, and the Arrow schema that pyarrow makes of it."""
    filesystem, prefix = store.arrow_filesystem()
    try:
        with filesystem.open_input_file(prefix + path) as source:
            layout = read_layout(source, path, size_bytes)
            arrow = pq.ParquetFile(
                source,
                thrift_string_size_limit=FOOTER_SIZE_BYTES_MAX,
                thrift_container_size_limit=_THRIFT_CONTAINER_SIZE_MAX,
            ).schema_arrow
    except (pa.ArrowException, OSError, ValueError, RecursionError) as error:
        raise BadDataFileError(
            f"{path} is not a readable Parquet file: {error}", path=path
        ) from error
    if len(layout.leaves) > COLUMN_COUNT_MAX:
        raise BadDataFileError(
            f"{path} has {len(layout.leaves)} columns, more than {COLUMN_COUNT_MAX}", path=path
        )
    if not layout.row_count:
        raise SchemaMismatchError(f"{path} has no rows", hint="Leave it out", path=path)
    return layout, arrow


def _check_null_counts(path: str, stats: dict[int, ColumnStats], row_count: int) -> None:
    for each in stats.values():
        if each.null_count is not None and not 0 <= each.null_count <= row_count:
            raise BadDataFileError(
                f"{path} says it has {each.null_count} nulls in {row_count} rows", path=path
            )


# ---------------------------------------------------------------------------------- the schema


def _check_columns(path: str, schema: Schema, arrow: Any, layout: Layout) -> None:
    problems = []
    if len(set(arrow.names)) != len(arrow.names):
        problems.append("two of its columns have the same name")
    old_times = {leaf.name for leaf in layout.leaves if leaf.kind == INT96}
    for field in schema.fields:
        place = arrow.get_field_index(field.name)
        if field.name in old_times:
            problems.append(
                f"column {field.name!r} holds INT96 timestamps (write it with "
                "use_deprecated_int96_timestamps=False)"
            )
        elif place >= 0:
            problems.extend(_problems(field, arrow.field(place)))
        elif field.required and field.name not in arrow.names:
            problems.append(f"column {field.name!r} is required and missing")
    problems.extend(_renamed(schema, arrow))
    problems.extend(_differing_in_case(schema, arrow))
    if not problems:
        problems = _null_problems(schema, arrow, layout)
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


def _differing_in_case(schema: Schema, arrow: Any) -> list[str]:
    """Columns of the file that engines which mind no case would take for ours."""
    ours = {field.name.casefold(): field.name for field in schema.fields}
    return [
        f"column {name!r} differs only in case from the table's {ours[name.casefold()]!r}"
        for name in arrow.names
        if ours.get(name.casefold(), name) != name
    ]


def _problems(field: Field, theirs: Any) -> list[str]:
    number = _field_id(theirs)
    if number is not None and number != field.id:
        return [f"column {field.name!r} has field id {number} where the table has {field.id}"]
    return mismatches(field.type, theirs.type, field.name)


def mismatches(ours: Type, kind: Any, path: str) -> list[str]:
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
    return mismatches(part.type, theirs.type, inside)


def _is_readable(ours: Primitive, kind: Any) -> bool:
    """Whether the file's values are ours as they lie there, or ours before a widening.

    Units of time are not converted: other readers of the table would take them as they are.
    """
    if pa.types.is_unsigned_integer(kind) or pa.types.is_float16(kind):
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


def _null_problems(schema: Schema, arrow: Any, layout: Layout) -> list[str]:
    """Required columns that the file does not show to be without nulls."""
    problems = []
    for field in schema.fields:
        is_open = field.name in arrow.names and arrow.field(field.name).nullable
        if not field.required or not is_open:
            continue
        kind = field.type if isinstance(field.type, Primitive) else Primitive(Kind.BINARY)
        null_count = layout_stats(layout, field.name, kind).null_count
        if null_count is None:
            problems.append(f"column {field.name!r} is required and may be null in the file")
        elif null_count:
            problems.append(f"column {field.name!r} is required and has {null_count} nulls")
    return problems
