"""Table properties: text for text, and the known ones are checked when they are set."""

from collections.abc import Mapping
from typing import Any

from lakebed.commit.change import ISOLATION_PROPERTY, Isolation
from lakebed.errors import RequestError
from lakebed.files.data_writer import WriterOptions


def check_properties(properties: Mapping[Any, Any]) -> dict[str, str]:
    """Return the properties if they can be a table's."""
    for key, value in properties.items():
        if not isinstance(key, str) or not isinstance(value, str) or not key.strip():
            raise RequestError(
                f"the property {key!r} is not a text with a text for its value",
                hint='Write numbers as text too: {"write.parquet.compression-level": "3"}',
            )
    WriterOptions.from_properties(properties)
    level = properties.get(ISOLATION_PROPERTY)
    if level is not None and level not in Isolation.__members__.values():
        raise RequestError(
            f"{ISOLATION_PROPERTY} is {level!r}",
            hint=f"Use one of: {', '.join(each.value for each in Isolation)}",
        )
    return dict(properties)
