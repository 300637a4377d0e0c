"""Partition transforms in Spark: which rows go into one file, and what a directory's name says.

    spec: day(ts), site          rows ─► helper columns p0_ts_day, p1_site ─► clustered by them
                                 ─► data/<id>/p0_ts_day=2026-01-01/p1_site=north/part-….parquet
    name of the directory        ─► the partition's values, or one row of the file if it is cut

The values are those of `expr.transform`, whatever the session's time zone is. All columns of the
table stay in the files; the helpers are in the directories only. Buckets are hashed by our own
code in Python workers: Spark's hash of text is another one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.errors import BadDataFileError
from lakebed.expr.convert import discrete_range
from lakebed.expr.transform import INT_MAX, INT_MIN, YEAR_EPOCH, apply_transform
from lakebed.files.manifest import storage_list
from lakebed.format.partition import PartitionField, PartitionSpec, TransformName, result_type
from lakebed.format.schema import Schema
from lakebed.format.types import NANOSECONDS, Kind, Primitive
from lakebed.spark.writing.incoming import quoted
from lakebed.storage.store import Store

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

NULL_DIRECTORY = "__HIVE_DEFAULT_PARTITION__"  # Spark's name for a helper that is null

_US_PER_DAY, _US_PER_HOUR, _US_PER_MINUTE = 86_400_000_000, 3_600_000_000, 60_000_000
_MONTHS_PER_YEAR = 12
_DAY_EPOCH = date(1970, 1, 1).toordinal()
_NULL_TEXT = "~null"  # no plain text begins with it: others are hashed
_PLAIN_TEXT = r"^[A-Za-z0-9_.-]{1,64}$"
_HASH_LENGTH = 32
_UNKNOWN = object()  # a value that the directory's name does not tell


@dataclass(frozen=True, slots=True)
class Helper:
    """A column that is there for the time of a write: one partition field's values."""

    name: str
    field: PartitionField
    source: Primitive
    source_name: str

    @property
    def is_text(self) -> bool:
        """Whether directories are named by text of the user's, which may have to be hashed."""
        return result_type(self.field, self.source).kind in (
            Kind.STRING,
            Kind.BINARY,
            Kind.FIXED,
            Kind.DECIMAL,
        )


def helpers_of(schema: Schema, spec: PartitionSpec) -> tuple[Helper, ...]:
    """The helpers of a spec; none for a field whose column was dropped."""
    taken = {name.casefold() for name in schema.by_name}
    found: list[Helper] = []
    for place, field in enumerate(spec.fields):
        source = schema.by_id.get(field.source_id)
        if source is None:
            continue
        assert isinstance(source.type, Primitive), "nested columns cannot partition a table"
        name = f"p{place}_{field.name}"
        while name.casefold() in taken:
            name += "_"
        taken.add(name.casefold())
        found.append(Helper(name, field, source.type, source.name))
    return tuple(found)


def with_helpers(frame: "DataFrame", helpers: Sequence[Helper]) -> "DataFrame":
    """The frame of a table's columns, and the helpers after them."""
    return frame.withColumns({helper.name: _directory_value(helper) for helper in helpers})


def clustered(frame: "DataFrame", names: Sequence[str]) -> "DataFrame":
    """The rows brought together by some columns, large groups in several parts."""
    columns = [quoted(name) for name in names]
    if frame.sparkSession.conf.get("spark.sql.adaptive.enabled") == "true":
        return frame.hint("rebalance", *columns)
    return frame.repartition(*columns)


def _directory_value(helper: Helper) -> "Column":
    from pyspark.sql import functions as F  # noqa: N812

    value = transformed(helper.field, helper.source, quoted(helper.source_name))
    if not helper.is_text:
        return value
    kind = result_type(helper.field, helper.source).kind
    plain = value.cast("string") if kind in (Kind.STRING, Kind.DECIMAL) else F.hex(value)
    digest = F.substring(F.sha2(plain, 256), 1, _HASH_LENGTH)
    return (
        F.when(value.isNull(), F.lit(_NULL_TEXT))
        .when(plain.rlike(_PLAIN_TEXT), plain)
        .otherwise(F.concat(F.lit("~"), digest))
    )


# ------------------------------------------------------------------------------ the transforms


def transformed(field: PartitionField, source: Primitive, column: "Column") -> "Column":
    """A partition field's value, as a date, a whole number, a boolean, or the column's own type."""
    match field.transform:
        case TransformName.IDENTITY:
            return _identity(source, column)
        case TransformName.BUCKET:
            return _by_our_code(field, source, column)
        case TransformName.TRUNCATE:
            return _truncated(field, source, column)
    return _calendar(field.transform, source, column)


def _identity(source: Primitive, column: "Column") -> "Column":
    """The value; an instant is a number, since as text it would depend on the session's zone."""
    from pyspark.sql import functions as F  # noqa: N812

    match source.kind:
        case Kind.TIMESTAMPTZ:
            return F.unix_micros(column)
        case Kind.TIMESTAMP:
            return _wall_micros(column)
    return column


def _wall_micros(column: "Column") -> "Column":
    """Microseconds since 1970 of a wall clock's reading, without any zone."""
    from pyspark.sql import functions as F  # noqa: N812

    day = F.unix_date(column.cast("date")).cast("bigint")
    minutes = F.hour(column).cast("bigint") * F.lit(60) + F.minute(column)
    micros = (F.extract(F.lit("SECOND"), column) * F.lit(1_000_000)).cast("bigint")
    return day * F.lit(_US_PER_DAY) + minutes * F.lit(_US_PER_MINUTE) + micros


def _floor_div(number: "Column", divisor: int) -> "Column":
    """Whole parts, rounded down; Spark's `div` rounds towards zero."""
    from pyspark.sql import functions as F  # noqa: N812

    rest = number % F.lit(divisor)
    cut = F.call_function("div", number, F.lit(divisor))
    return cut - F.when(rest < 0, F.lit(1)).otherwise(F.lit(0))


def _day(source: Primitive, column: "Column") -> "Column":
    """Days since 1970, in UTC for instants."""
    from pyspark.sql import functions as F  # noqa: N812

    if source.kind is Kind.TIMESTAMPTZ:
        return _floor_div(F.unix_micros(column), _US_PER_DAY).cast("int")
    return F.unix_date(column.cast("date"))


def _calendar(transform: TransformName, source: Primitive, column: "Column") -> "Column":
    from pyspark.sql import functions as F  # noqa: N812

    if source.kind in NANOSECONDS:
        return _by_our_code(PartitionField(0, 0, transform, ""), source, column)
    if transform is TransformName.HOUR:
        if source.kind is Kind.TIMESTAMPTZ:
            hours = _floor_div(F.unix_micros(column), _US_PER_HOUR)
        else:
            hours = _day(source, column).cast("bigint") * F.lit(24) + F.hour(column)
        # Not greatest() and least(): they pass over NULL.
        low = F.when(hours < INT_MIN, F.lit(INT_MIN)).otherwise(hours)
        return F.when(hours > INT_MAX, F.lit(INT_MAX)).otherwise(low).cast("int")
    day = F.date_from_unix_date(_day(source, column))
    if transform is TransformName.DAY:
        return day
    year = F.year(day) - F.lit(YEAR_EPOCH)
    if transform is TransformName.YEAR:
        return year
    return year * F.lit(_MONTHS_PER_YEAR) + F.month(day) - F.lit(1)


def _truncated(field: PartitionField, source: Primitive, column: "Column") -> "Column":
    from pyspark.sql import functions as F  # noqa: N812

    if source.kind in (Kind.STRING, Kind.BINARY):
        return F.substring(column, 1, field.width)
    if source.kind is Kind.DECIMAL:
        return _by_our_code(field, source, column)
    low, _ = discrete_range(source)
    number = column.cast("bigint")
    rest = F.pmod(number, F.lit(field.width).cast("bigint"))
    lowest = F.lit(low).cast("bigint")
    floor = F.when(number < lowest + rest, lowest).otherwise(number - rest)
    return floor.cast("int" if source.kind is Kind.INT else "bigint")


def _by_our_code(field: PartitionField, source: Primitive, column: "Column") -> "Column":
    """The transform in Python workers, on whole Arrow columns."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import DateType, DecimalType, IntegerType

    def apply(values: pa.Array) -> pa.Array:  # Spark looks at the types
        return apply_transform(field, values, source)

    kind = result_type(field, source).kind
    decimal = DecimalType(source.precision or 10, source.scale)
    returned = {Kind.DATE: DateType(), Kind.DECIMAL: decimal}.get(kind, IntegerType())
    make: Any = getattr(F, "arrow_udf")  # noqa: B009 - its type stubs do not know it
    found: Column = make(apply, returned)(column)
    return found


# ----------------------------------------------------------------------------- the directories


def partitions_of(
    paths: Sequence[str], store: Store, helpers: Sequence[Helper], spec: PartitionSpec
) -> dict[str, tuple[Any, ...]]:
    """The partition of each file that Spark has written, by its path."""
    known: dict[str, tuple[Any, ...]] = {}
    for path in paths:
        directory = path.rpartition("/")[0]
        if directory not in known:
            known[directory] = _values(path, store, helpers, spec)
    return {path: known[path.rpartition("/")[0]] for path in paths}


def _values(
    path: str, store: Store, helpers: Sequence[Helper], spec: PartitionSpec
) -> tuple[Any, ...]:
    texts = path.split("/")[-1 - len(helpers) : -1]
    told = {h.field.id: _told(h, text) for h, text in zip(helpers, texts, strict=True)}
    if _UNKNOWN in told.values():
        told |= _of_a_row(path, store, [h for h in helpers if told[h.field.id] is _UNKNOWN])
    return tuple(told.get(field.id) for field in spec.fields)


def _told(helper: Helper, segment: str) -> Any:
    """What the name of a directory tells of a value, in storage form."""
    name, _, text = segment.partition("=")
    text = unquote(text)
    if unquote(name) != helper.name:
        raise BadDataFileError(f"Spark wrote a directory {segment!r}, not one of {helper.name!r}")
    if text == (_NULL_TEXT if helper.is_text else NULL_DIRECTORY):
        return None
    kind = result_type(helper.field, helper.source).kind
    if kind is Kind.STRING and not text.startswith("~"):
        return text
    if kind is Kind.BOOLEAN:
        return text == "true"
    if helper.is_text:
        return _UNKNOWN
    if kind is Kind.DATE:
        return _days(text)
    return int(text)


def _days(text: str) -> Any:
    try:
        return date.fromisoformat(text).toordinal() - _DAY_EPOCH
    except ValueError:
        return _UNKNOWN  # a year before 1 or after 9999


def _of_a_row(path: str, store: Store, helpers: Sequence[Helper]) -> Mapping[int, Any]:
    """Values of one row of a file: all of them are of one partition."""
    filesystem, prefix = store.arrow_filesystem()
    with filesystem.open_input_file(prefix + path) as source:
        file = pq.ParquetFile(source)
        names = [helper.source_name for helper in helpers]
        rows = next(_first_rows(file, names))
    found = {}
    for helper, column in zip(helpers, rows.columns, strict=True):
        values = apply_transform(helper.field, column, helper.source)
        (found[helper.field.id],) = storage_list(values)
    return found


def _first_rows(file: Any, names: list[str]) -> Iterator[Any]:
    for batch in file.iter_batches(batch_size=1, columns=names):
        yield batch.select(names)


__all__ = [
    "NULL_DIRECTORY",
    "Helper",
    "clustered",
    "helpers_of",
    "partitions_of",
    "transformed",
    "with_helpers",
]
