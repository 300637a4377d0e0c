"""Values that users compute for columns of a table, at the column's type.

What an expression gives is rarely of the column's type to the letter: `1.5` is a decimal to
Spark, `price * 1.1` has more digits than the price. Numbers are converted as SQL assigns them,
rounded where the column rounds, and what cannot be held stops the job, whatever
`spark.sql.ansi.enabled` says. A number with a fraction is no value of an integer column.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lakebed.errors import SchemaMismatchError
from lakebed.format.schema import Schema
from lakebed.spark.schema import stored_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType


def assigned(
    frame: "DataFrame", values: "Mapping[str, Column]", schema: Schema
) -> "dict[str, Column]":
    """Expressions over a frame, by the column that they are for, each at exactly its type.

    Raises:
        NotFoundError: there is no such column.
        SchemaMismatchError: an expression has a type that cannot be assigned.
    """
    ours = {name: schema.field(name) for name in values}
    probe = [value.alias(str(place)) for place, value in enumerate(values.values())]
    given = frame.select(*probe).schema.fields
    found, problems = {}, []
    for (name, value), field in zip(values.items(), given, strict=True):
        fitted = _assigned(value, field.dataType, stored_type(ours[name].type), name)
        if fitted is None:
            shown = field.dataType.simpleString()
            problems.append(f"column {name!r}: table has {ours[name].type}, the new value {shown}")
        else:
            found[name] = fitted
    if problems:
        raise SchemaMismatchError(
            f"the new values do not fit the table: {'; '.join(problems)}",
            hint="Nothing was changed. Cast them in the expression",
            problems=problems,
        )
    return found


def expression(value: object) -> "Column":
    """What a user sets a column to: SQL text, a Spark column, or a plain value."""
    from pyspark.sql import Column
    from pyspark.sql import functions as F  # noqa: N812

    if isinstance(value, str):
        return F.expr(value)
    return value if isinstance(value, Column) else F.lit(value)


def _assigned(value: "Column", given: "DataType", wanted: "DataType", name: str) -> "Column | None":
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import DateType, NullType, TimestampNTZType

    if _plain(given) == _plain(wanted):
        return value
    if isinstance(given, NullType):
        return F.lit(None).cast(wanted)
    if isinstance(given, DateType) and isinstance(wanted, TimestampNTZType):
        return value.cast(wanted)
    if not (_is_number(given) and _is_number(wanted)):
        return None
    cast = value.try_cast(wanted)
    fits = cast.isNotNull()
    if _is_integer(wanted) and not _is_integer(given):
        fits = fits & (cast == value)
    text = F.concat(F.lit(f"column {name!r} cannot hold "), value.cast("string"))
    return F.when(value.isNull() | fits, cast).otherwise(F.raise_error(text))


def _plain(kind: "DataType") -> str:
    """A type as text, without what may be null and how strings are compared."""
    return kind.simpleString().lower()


def _is_number(kind: "DataType") -> bool:
    from pyspark.sql.types import NumericType

    return isinstance(kind, NumericType)


def _is_integer(kind: "DataType") -> bool:
    from pyspark.sql.types import IntegralType

    return isinstance(kind, IntegralType)


__all__ = ["assigned", "expression"]
