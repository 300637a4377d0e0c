"""The columns of a new table, from whatever a user has at hand."""

from typing import Any

import pyarrow as pa

from lakebed.errors import RequestError
from lakebed.files.arrow_schema import to_arrow_schema
from lakebed.files.intake import batches_of
from lakebed.format.schema import Schema


def arrow_schema_of(schema: Any) -> Any:
    """An Arrow schema from one, from pairs of names and types, or from an object with rows."""
    if isinstance(schema, pa.Schema):
        return schema
    if isinstance(schema, Schema):
        return to_arrow_schema(schema, field_ids=False)
    if hasattr(schema, "__arrow_c_schema__") and not hasattr(schema, "__arrow_c_stream__"):
        return pa.schema(schema)
    if isinstance(schema, list | tuple) and all(
        isinstance(each, tuple | pa.Field) for each in schema
    ):
        return _from_pairs(schema)
    return batches_of(schema)[0].remove_metadata()


def _from_pairs(pairs: Any) -> Any:
    try:
        return pa.schema(list(pairs))
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise RequestError(
            f"the columns cannot be read: {error}",
            hint='Write them like [("ts", pa.timestamp("us", "UTC")), ("value", pa.float64())]',
        ) from error
