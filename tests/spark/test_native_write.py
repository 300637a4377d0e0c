"""Law: files that Spark writes are files of ours, whatever the user's session is set to."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakebed
from lakebed.files.arrow_schema import to_arrow_schema
from lakebed.spark.settings import for_now
from lakebed.spark.writing.write import write
from lakebed.table.catalog import Catalog
from lakebed.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

# What a session may have been set to by somebody with other things in mind.
CONTRARY = {
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.parquet.fieldId.write.enabled": "false",
    "spark.sql.parquet.writeLegacyFormat": "true",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.compression.codec": "gzip",
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
    "spark.sql.files.maxRecordsPerFile": "7",
    "spark.sql.ansi.enabled": "false",
}


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[Catalog]:
    with lakebed.connect(f"sqlite:///{tmp_path}/catalog.db") as opened:
        yield opened


@contextmanager
def set_to(spark: "SparkSession", settings: dict[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
        assert {name: spark.conf.get(name) for name in settings} == settings
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


def frame(spark: "SparkSession", count: int = 1000, tasks: int = 2) -> "DataFrame":
    return spark.range(0, count, 1, tasks).selectExpr(
        "id",
        "timestamp_micros(id * 60000000 - 12219292800000000) as ts",
        "timestamp_micros(id * 60000000) as time",
        "cast(id as decimal(9,2)) as dec",
        "date_from_unix_date(cast(id - 150000 as int)) as day",
        "concat('sensor-', id % 10) as sensor",
        "named_struct('a', id, 'b', array(named_struct('c', id))) as nested",
        "map('k', id) as m",
    )


def parquet_files(table: Table) -> list[Path]:
    return sorted(Path(table.location) / file.path for file in table.read_plan().files)


def everything_below(table: Table) -> set[Path]:
    return {path for path in (Path(table.location) / "data").rglob("*") if path.is_file()}


def test_a_contrary_session_gets_the_same_files(spark: "SparkSession", catalog: Catalog) -> None:
    wanted = frame(spark).toArrow().to_pylist()
    with set_to(spark, CONTRARY):
        write(frame(spark), "t", catalog=catalog, via="executors")
    table = catalog.table("t")
    files = parquet_files(table)
    assert len(files) == 2
    assert everything_below(table) == set(files), "no _SUCCESS, no checksums, no empty files"
    found = table.scan().to_arrow().sort_by("id").to_pylist()
    assert found == wanted, "also before 1582, when calendars changed"
    metadata = pq.read_metadata(files[0])
    group = metadata.row_group(0)
    kinds = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    assert kinds["ts"].physical_type == "INT64"
    assert kinds["ts"].statistics.has_min_max
    assert kinds["dec"].physical_type == "INT32"
    assert {column.compression for column in kinds.values()} == {"ZSTD"}
    assert "DELTA_BINARY_PACKED" in kinds["ts"].encodings


def ids_of(fields: Any) -> dict[str, int]:
    found = {}
    for field in fields:
        number = (field.metadata or {}).get(b"PARQUET:field_id")
        if number is not None and int(number) > 0:
            found[field.name] = int(number)
        kind = field.type
        while pa.types.is_list(kind):
            kind = kind.value_type
        if pa.types.is_struct(kind):
            found |= ids_of(kind)
    return found


def test_files_carry_field_ids_and_statistics(spark: "SparkSession", catalog: Catalog) -> None:
    write(frame(spark), "t", catalog=catalog, via="executors")
    table = catalog.table("t")
    table.evolve().rename_column("sensor", "probe").commit()
    write(frame(spark, 10).withColumnRenamed("sensor", "probe"), table, via="executors")
    wanted = ids_of(to_arrow_schema(table.schema))
    for path in parquet_files(table):
        found = ids_of(pq.read_schema(path))
        found["probe"] = found.pop("sensor", found.get("probe", 0))
        assert found == wanted
    for file in table.read_plan().files:
        stats = file.stats[table.schema.field("id").id]
        assert stats.upper - stats.lower == file.row_count - 1
        assert stats.null_count == 0
    assert table.read_plan("id = 3").file_count == 2
    assert table.scan("probe = 'sensor-3'").count() == 101


def test_properties_of_the_table_say_how(spark: "SparkSession", catalog: Catalog) -> None:
    properties = {
        "write.parquet.compression-codec": "gzip",
        "write.parquet.compression-level": "9",
        "write.parquet.row-group-limit": "100",
    }
    table = catalog.create_table("t", frame(spark, 0).toArrow().schema, properties=properties)
    write(frame(spark, 1000, tasks=1), table, via="executors")
    (path,) = parquet_files(table)
    metadata = pq.read_metadata(path)
    assert metadata.num_row_groups == 10
    assert metadata.row_group(0).column(0).compression == "GZIP"
    assert pq.ParquetFile(path, page_checksum_verification=True).read().num_rows == 1000


def test_large_frames_make_files_of_the_size_wanted(
    spark: "SparkSession", catalog: Catalog
) -> None:
    properties = {"write.target-file-size-bytes": "20000"}
    table = catalog.create_table("t", pa.schema([("id", pa.int64())]), properties=properties)
    write(spark.range(0, 40_000, 1, 1), table, via="executors")
    assert [f.row_count for f in table.read_plan().files] == [10_000] * 4


# ---------------------------------------------------------------------------------- partitions


def rows_by_day(spark: "SparkSession", tasks: int) -> "DataFrame":
    rows = spark.range(0, 8000, 1, tasks).selectExpr("id", "id % 8 as k", "repeat('x', 50) as pad")
    return rows.selectExpr("*", "timestamp_micros(k * 86400000000) as ts")


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_each_partition_has_one_file_however_many_tasks_had_its_rows(
    spark: "SparkSession", catalog: Catalog, adaptive: str
) -> None:
    with set_to(spark, {"spark.sql.adaptive.enabled": adaptive}):
        done = write(
            rows_by_day(spark, 6), "t", catalog=catalog, partition_by="day(ts)", via="executors"
        )
    assert done.added_files == 8
    table = catalog.table("t")
    assert {f.partition for f in table.read_plan().files} == {(n,) for n in range(8)}
    path = parquet_files(table)[0]
    assert pq.read_schema(path).names == ["id", "k", "pad", "ts"], "each column is in the files"


def test_a_partition_that_is_too_large_is_split(spark: "SparkSession", catalog: Catalog) -> None:
    rows = spark.range(0, 60_000, 1, 8).selectExpr(
        "if(id < 50000, 0, id % 4) as k", "id", "sha2(cast(id as string), 256) as noise"
    )
    properties = {"write.target-file-size-bytes": "400000"}
    table = catalog.create_table(
        "t", rows.limit(0).toArrow().schema, partition_by=["k"], properties=properties
    )
    write(rows, table, via="executors")
    counts = Counter(file.partition for file in table.read_plan().files)
    assert counts[0,] > 2
    assert all(counts[n,] == 1 for n in (1, 2, 3))
    assert table.scan().count() == 60_000


# ------------------------------------------------------------------------------------ settings


def test_settings_are_back_when_the_last_of_several_writers_is_done(
    spark: "SparkSession", catalog: Catalog
) -> None:
    name = "spark.sql.parquet.outputTimestampType"
    tables = [catalog.create_table(f"t{n}", frame(spark, 0).toArrow().schema) for n in range(3)]
    with set_to(spark, {name: "INT96"}), ThreadPoolExecutor(3) as pool:
        done = [pool.submit(write, frame(spark, 100), t, via="executors") for t in tables]
        assert [each.result().added_rows for each in done] == [100] * 3
    for table in tables:
        assert table.scan("ts is not null").count() == 100


def test_a_setting_that_somebody_changes_meanwhile_is_left_alone(spark: "SparkSession") -> None:
    name = "spark.sql.parquet.outputTimestampType"
    with set_to(spark, {name: "INT96"}):
        with for_now(spark, {name: "TIMESTAMP_MICROS"}):
            with for_now(spark, {name: "TIMESTAMP_MICROS"}):
                pass
            assert spark.conf.get(name) == "TIMESTAMP_MICROS"
            spark.conf.set(name, "TIMESTAMP_MILLIS")
        assert spark.conf.get(name) == "TIMESTAMP_MILLIS"
        spark.conf.set(name, "INT96")
    with for_now(spark, {"spark.lakebed.test": "x"}):
        assert spark.conf.get("spark.lakebed.test") == "x"
    assert spark.conf.get("spark.lakebed.test", None) is None
