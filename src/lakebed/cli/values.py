"""Arrow columns as plain Python values, exact and ready for JSON.

Times become ISO text (all nine digits if there are nanoseconds), decimals text, bytes hex, and
NaN and the infinities text, because JSON has none of them.
"""

import json
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lakebed.cli.text import escape, escape_json

if TYPE_CHECKING:
    import pyarrow as pa


def plain_rows(batch: "pa.RecordBatch | pa.Table") -> Iterator[tuple[Any, ...]]:
    """The rows as tuples of plain values."""
    columns = [plain_column(batch.column(i)) for i in range(batch.num_columns)]
    return zip(*columns, strict=True) if columns else iter(() for _ in range(batch.num_rows))


def plain_column(array: Any) -> list[Any]:
    """One column; `array` is an Array or a ChunkedArray."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if pa.types.is_dictionary(kind):
        return plain_column(array.cast(kind.value_type))
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        text = pc.replace_substring(array.cast(pa.string()), " ", "T", max_replacements=1)
        text = pc.replace_substring_regex(text, r"(\.\d*?)0+(Z?)$", r"\1\2")
        return pc.replace_substring_regex(text, r"\.(Z?)$", r"\1").to_pylist()
    if pa.types.is_nested(kind):
        return [plain_value(value) for value in array.cast(_readable(kind)).to_pylist()]
    if _is_spelled(kind):
        return array.cast(pa.string()).to_pylist()
    values = array.to_pylist()
    if pa.types.is_floating(kind) or pa.types.is_binary(kind) or not _is_json(kind):
        return [plain_value(value) for value in values]
    return values


def plain_value(value: Any) -> Any:
    """One value, nested ones too."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else _SPELLED.get(value, "NaN")
        case bytes():
            return value.hex()
        case dict():
            return {str(key): plain_value(item) for key, item in value.items()}
        case list() | tuple():
            return [plain_value(item) for item in value]
        case _:
            return value.isoformat() if hasattr(value, "isoformat") else str(value)


_SPELLED = {math.inf: "Infinity", -math.inf: "-Infinity"}


def to_json(value: Any) -> str:
    """One line of JSON that is harmless to a terminal."""
    document = json.dumps(value, ensure_ascii=False, allow_nan=False, default=plain_value)
    return escape_json(document)


def to_text(value: Any) -> str:
    """What a cell of a table shows."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case str():
            return escape(value)
        case dict() | list() | tuple():
            return to_json(value)
        case _:
            return str(value)


def is_number(kind: Any) -> bool:
    """Whether a column of this Arrow type is shown at the right edge."""
    import pyarrow as pa

    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _is_spelled(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_date(kind) or pa.types.is_decimal(kind))


def _is_json(kind: Any) -> bool:
    import pyarrow as pa

    known = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_string, pa.types.is_large_string)
    return any(test(kind) for test in known)


def _readable(kind: Any) -> Any:
    """The type with text in place of what Python's own types cannot hold exactly."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_readable(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_readable(kind.key_type), _readable(kind.item_type))
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_readable(kind.value_type)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_readable(kind.value_type)))
    if pa.types.is_temporal(kind) or pa.types.is_decimal(kind):
        return pa.string()
    return kind
