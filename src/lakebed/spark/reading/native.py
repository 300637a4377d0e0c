"""Data files read by Spark's own Parquet reader, columns by field id.

    files ─► groups whose columns have the same names and types inside
          ─► one Parquet scan each ─► today's columns ─► our predicate, unless all rows match
          ─► union ─► the columns that were asked for, under their names

Between the first step and the last, columns are called after their field ids (`c7`), so no name
of the user's is ever parsed by Spark. Each scan names its files and its schema: no footer is
looked at beforehand, and no list of files can be out of date.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, reduce
from threading import Lock
from typing import TYPE_CHECKING

from lakebed.errors import BadDataFileError, StorageError
from lakebed.format.datafile import DataFile
from lakebed.format.schema import Schema
from lakebed.format.types import INSTANTS, Field, Primitive, Type
from lakebed.spark.places import JvmPlace, is_connect
from lakebed.spark.predicate import spark_predicate
from lakebed.spark.reading.workers import worker_frame
from lakebed.spark.schema import is_cut, stored_type
from lakebed.storage.store import Store
from lakebed.table.scan import Scan

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

Inside = tuple[tuple[int, str, Type], ...]  # field id, name and type of columns in a file

# What a session may be set to, our reads are not: a lost file is an error, and dates are dates.
READER_OPTIONS = {
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "datetimeRebaseMode": "CORRECTED",
    "mergeSchema": "false",
    "recursiveFileLookup": "true",  # a directory named day=… is no column
    "__globPaths__": "false",  # a bracket in a path is a bracket
}
_HIDDEN = ("_", ".")  # Spark passes over files of such names, even if told to read one

_THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_PARALLELISM = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_LISTED_HERE_COUNT_MAX = {True: 1_000, False: 32}  # by whether the files are local
_LISTING_TASK_COUNT = {True: 8, False: 64}
_settings_lock = Lock()


def native_frame(
    spark: "SparkSession",
    scan: Scan,
    files: Sequence[DataFile],
    place: JvmPlace,
    nanoseconds: str,
) -> "DataFrame":
    """The matching rows of some files, one or more, at the columns that the scan asks for.

    Raises:
        ObjectMissingError: a file is not there.
        BadDataFileError: a file does not have the length that it was committed with.
    """
    return _NativeRead(spark, scan, place, nanoseconds).frame(files)


class _NativeRead:
    def __init__(
        self, spark: "SparkSession", scan: Scan, place: JvmPlace, nanoseconds: str
    ) -> None:
        self._spark = spark
        self._scan = scan
        self._place = place
        self._nanoseconds = nanoseconds
        schema: Schema = scan.table_schema
        names = list(schema.by_name) if scan.columns is None else scan.columns
        self._output = [schema.field(name) for name in names]
        asked = {field.id for field in self._output}
        needed = scan.where.field_ids() - asked if scan.where is not None else ()
        self._fetched = [*self._output, *(schema.by_id[each] for each in sorted(needed))]

    def frame(self, files: Sequence[DataFile]) -> "DataFrame":
        if self._place.is_local:
            check_files(self._scan.files.store, files)
        hidden: list[DataFile] = []
        groups: dict[Inside, list[DataFile]] = {}
        for file in files:
            if is_hidden(file):
                hidden.append(file)
            else:
                groups.setdefault(self._inside(file.schema_id), []).append(file)
        frames = [self._group(inside, some) for inside, some in groups.items()]
        if hidden:
            frames.append(worker_frame(self._spark, self._scan, hidden, self._nanoseconds))
        return reduce(lambda one, other: one.union(other), frames)

    def _inside(self, schema_id: int) -> Inside:
        if schema_id not in self._insides:
            schema = self._scan.head.metadata.schema(schema_id)
            there = [schema.by_id[f.id] for f in self._fetched if f.id in schema.by_id]
            # Rows are counted by reading some column of theirs.
            there = there or [schema.fields[0]]
            self._insides[schema_id] = tuple((f.id, f.name, f.type) for f in there)
        return self._insides[schema_id]

    @cached_property
    def _insides(self) -> dict[int, Inside]:
        return {}

    def _group(self, inside: Inside, files: list[DataFile]) -> "DataFrame":
        from pyspark.sql.types import StructField, StructType

        stored = StructType([StructField(name, stored_type(kind)) for _, name, kind in inside])
        uris = [self._place.uri(file.path) for file in files]
        raw = _parquet(self._spark, stored, uris, self._place)
        frame = raw.toDF(*(_alias(number) for number, _, _ in inside))
        kinds = {number: kind for number, _, kind in inside}
        frame = frame.select(*(_today(field, kinds.get(field.id)) for field in self._fetched))
        where = self._scan.where
        if where is not None and not self._certain.issuperset(file.path for file in files):
            frame = frame.where(spark_predicate(where, _column))
        frame = frame.select(*(_shown(field, self._nanoseconds) for field in self._output))
        return frame.toDF(*(field.name for field in self._output)) if self._output else frame

    @cached_property
    def _certain(self) -> set[str]:
        """The files of which every row matches, as metadata shows."""
        found: set[str] = set()
        for part in self._scan.plan.parts:
            paths = part.table.column("path").to_numpy()
            found.update(paths[part.certain].tolist())
        return found


# ------------------------------------------------------------------------------------- files


def is_hidden(file: DataFile) -> bool:
    """Whether Spark passes over a file because of its name."""
    return file.path.rpartition("/")[2].startswith(_HIDDEN)


def check_files(store: Store, files: Iterable[DataFile]) -> None:
    """Look at each file as our own reader does: Spark minds neither lengths nor links."""
    for file in files:
        size_bytes = store.size(file.path)
        if size_bytes != file.size_bytes:
            raise BadDataFileError(
                f"{file.path} has {size_bytes} bytes where the manifest says {file.size_bytes}",
                hint="Restore the file from a copy",
                path=file.path,
            )


# ----------------------------------------------------------------------------------- columns


def _alias(field_id: int) -> str:
    return f"c{field_id}"


def _column(field_id: int) -> "Column":
    from pyspark.sql import functions as F  # noqa: N812

    return F.col(_alias(field_id))


def _today(field: Field, inside: Type | None) -> "Column":
    """A column as it is in the files, or null, at the type that it has today."""
    from pyspark.sql import functions as F  # noqa: N812

    if inside is None:
        return F.lit(None).cast(stored_type(field.type)).alias(_alias(field.id))
    if inside == field.type:
        return _column(field.id)
    return _column(field.id).cast(stored_type(field.type)).alias(_alias(field.id))


def _shown(field: Field, nanoseconds: str) -> "Column":
    """A column as the reader wants it: nanoseconds are cut if so."""
    from pyspark.sql import functions as F  # noqa: N812

    if not is_cut(field, nanoseconds):
        return _column(field.id)
    assert isinstance(field.type, Primitive), "is_cut says so"
    name = _alias(field.id)
    # Rounded down; `div` alone rounds towards 1970, and x - x % 1000 can leave the range.
    micros = f"({name} div 1000 - if({name} % 1000 < 0, 1L, 0L))"
    if field.type.kind in INSTANTS:
        return F.expr(f"timestamp_micros({micros})").alias(name)
    seconds = f"cast({micros} as decimal(19,0)) / 1000000"
    interval = f"make_dt_interval(0, 0, 0, cast({seconds} as decimal(18,6)))"
    return F.expr(f"timestamp_ntz'1970-01-01 00:00:00' + {interval}").alias(name)


# ----------------------------------------------------------------------------------- reading


def _parquet(
    spark: "SparkSession", schema: "StructType", uris: list[str], place: JvmPlace
) -> "DataFrame":
    from pyspark.errors import AnalysisException

    reader = spark.read.options(**READER_OPTIONS).options(**place.options).schema(schema)
    try:
        with quick_listing(spark, len(uris), is_local=place.is_local):
            return reader.parquet(*uris)
    except AnalysisException as error:
        raise StorageError(
            f"Spark cannot read the table's files: {error.getMessage()}",
            hint="Its driver and workers must see the files under the same paths as this process",
        ) from None


@contextmanager
def quick_listing(spark: "SparkSession", count: int, *, is_local: bool) -> Iterator[None]:
    """Have Spark look at many files in few tasks.

    It asks for each file's length, and above 32 files starts a job for that with up to 10,000
    tasks: 5,000 local files take 32 s. On the driver, or in 8 tasks, that is 1 to 2 s.
    """
    if count <= int(spark.conf.get(_THRESHOLD) or "32"):
        yield
        return
    wanted = {
        _THRESHOLD: str(_LISTED_HERE_COUNT_MAX[is_local]),
        _PARALLELISM: str(_LISTING_TASK_COUNT[is_local]),
    }
    if is_connect(spark):
        # The server looks when a query runs, so there is no moment to set it back.
        spark.conf.set(_PARALLELISM, wanted[_PARALLELISM])
        yield
        return
    with _settings_lock:
        before = {name: spark.conf.get(name) for name in wanted}
        try:
            for name, value in wanted.items():
                spark.conf.set(name, value)
            yield
        finally:
            for name, old in before.items():
                spark.conf.set(name, old or "")


__all__ = ["READER_OPTIONS", "check_files", "is_hidden", "native_frame", "quick_listing"]
