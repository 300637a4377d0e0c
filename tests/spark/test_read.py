"""Law: `read` gives the rows of one version, natively, and Spark can neither lose nor write any."""

import datetime as dt
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.golden import record
from tests.golden.test_golden import NAMES, connect

import lakebed
from lakebed.errors import (
    BadDataFileError,
    NotFoundError,
    ObjectMissingError,
    PredicateError,
    RequestError,
)
from lakebed.spark.places import JvmPlace, jvm_place, s3a_options
from lakebed.spark.reading.read import read
from lakebed.spark.reading.workers import bins
from lakebed.spark.schema import as_frame_rows, frame_arrow_schema
from lakebed.table.services import Place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakebed.table.table import Table

pytestmark = pytest.mark.spark

READINGS = pa.schema(
    [("ts", pa.timestamp("us", "UTC")), ("sensor", pa.string()), ("value", pa.float64())]
)
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def readings(day: int, count: int = 4) -> pa.Table:
    start = START + dt.timedelta(days=day)
    return pa.table(
        {
            "ts": [start + dt.timedelta(hours=hour) for hour in range(count)],
            "sensor": [f"s{hour % 2}" for hour in range(count)],
            "value": [float(day * 100 + hour) for hour in range(count)],
        },
        READINGS,
    )


@pytest.fixture
def table(tmp_path: Path) -> "Table":
    made = lakebed.connect(tmp_path / "lake").create_table(
        "plant.readings", READINGS, partition_by=["day(ts)"]
    )
    for day in range(3):
        made.append(readings(day))
    return made


@contextmanager
def settings(spark: "SparkSession", **values: str) -> Iterator[None]:
    names = {name.replace("__", "."): value for name, value in values.items()}
    before = {name: spark.conf.get(name, None) for name in names}
    for name, value in names.items():
        spark.conf.set(name, value)
    yield
    for name, old in before.items():
        spark.conf.unset(name) if old is None else spark.conf.set(name, old)


@contextmanager
def job_group(spark: "SparkSession", name: str) -> Iterator[Callable[[], list[int]]]:
    """The jobs that were started inside."""
    context = spark.sparkContext
    context.setJobGroup(name, "a test")
    yield lambda: list(context.statusTracker().getJobIdsForGroup(name))
    context.setJobGroup("", "")


def plan_of(frame: "DataFrame") -> str:
    text: str = frame._jdf.queryExecution().executedPlan().toString()
    return text


def rows_of(frame: "DataFrame") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = frame.toArrow().to_pylist()
    return sorted(found, key=str)


# ----------------------------------------------------------------------------------- natively


def test_spark_scans_only_the_planned_files_with_its_own_vectorised_reader(
    spark: "SparkSession", table: "Table"
) -> None:
    frame = read(spark, table, where="ts >= '2026-01-03'", columns=["value"])
    plan = plan_of(frame)
    assert "FileScan parquet" in plan
    assert "Batched: true" in plan
    assert "InMemoryFileIndex(1 paths)" in plan
    assert "ReadSchema: struct<value:double>" in plan  # ts is certain for the whole file
    assert "Filter (" not in plan
    assert rows_of(frame) == [{"value": 200.0 + hour} for hour in range(4)]


def test_a_scan_turns_into_a_frame_with_its_limit(spark: "SparkSession", table: "Table") -> None:
    assert table.scan("value >= 100", ["value"], limit=5).to_spark(spark).count() == 5
    assert table.scan(limit=0).to_spark(spark).count() == 0
    assert table.scan("sensor = 's1'").to_spark(spark).count() == 6


def test_a_frame_stays_at_its_version(spark: "SparkSession", table: "Table") -> None:
    before = read(spark, table)
    table.delete("value < 100")
    table.append(readings(9))
    assert (before.count(), read(spark, table).count()) == (12, 12)
    assert before.selectExpr("min(value)").first() == (0.0,)
    assert read(spark, table).selectExpr("min(value)").first() == (100.0,)
    assert read(spark, table, as_of=1).count() == 4


def test_planning_reads_no_file_and_starts_no_job(spark: "SparkSession", table: "Table") -> None:
    with job_group(spark, "planning") as jobs:
        read(spark, table, where="value > 1", columns=["sensor"]).printSchema()
        assert jobs() == []


def test_many_files_are_looked_at_in_few_tasks_and_settings_stay(
    spark: "SparkSession", tmp_path: Path
) -> None:
    table = lakebed.connect(tmp_path).create_table(
        "t", pa.schema([("a", pa.int64())]), partition_by=["a"]
    )
    table.append(pa.table({"a": range(60)}))
    name = "spark.sql.sources.parallelPartitionDiscovery.threshold"
    before = spark.conf.get(name)
    with job_group(spark, "listing") as jobs:
        frame = read(spark, table)
        assert jobs() == []
    assert spark.conf.get(name) == before
    assert frame.selectExpr("count(*)", "sum(a)").first() == (60, 1770)


@pytest.mark.parametrize("via", ["native", "workers", "driver"])
def test_each_way_gives_the_same_rows_in_any_time_zone(
    spark: "SparkSession", tmp_path: Path, via: str
) -> None:
    rows = pa.table(
        {
            "i": pa.array([0, -1, 10**15, None], pa.timestamp("us", "UTC")),
            "w": pa.array([0, -1, -(2**63), None], pa.timestamp("us")),
            "n": pa.array([0, -1, -(2**63), None], pa.timestamp("ns")),
            "z": pa.array([0, -1, 2**63 - 1, None], pa.timestamp("ns", "UTC")),
            "d": pa.array([0, -1, -719_162, None], pa.int32()).cast(pa.date32()),
            "t": pa.array([0, 1, 86_399_999_999, None], pa.time64("us")),
            "s": pa.array([{"l": [b"abc"]}] * 4, pa.struct([("l", pa.list_(pa.binary(3)))])),
        }
    )
    table = lakebed.connect(tmp_path).create_table("t", rows.schema)
    table.append(rows)
    with settings(spark, spark__sql__session__timeZone="America/New_York"):
        for choice in ("long", "truncate"):
            wanted = as_frame_rows(rows, frame_arrow_schema(rows.schema, choice))
            found = read(spark, table, via=via, nanoseconds=choice).toArrow()
            for name in rows.column_names:
                # As numbers: Python's own times end before Arrow's do.
                pair = [
                    column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
                    for column in (found[name], wanted[name])
                ]
                assert pair[0].to_pylist() == pair[1].to_pylist(), (choice, name)


def test_no_column_and_no_row_are_frames_too(spark: "SparkSession", table: "Table") -> None:
    for via in ("native", "workers", "driver"):
        assert read(spark, table, columns=[], via=via).count() == 12
    empty = read(spark, table, where="value > 1e9", columns=["value", "ts"])
    assert (empty.columns, empty.count()) == (["value", "ts"], 0)
    assert empty.schema == read(spark, table, columns=["value", "ts"]).schema


# ---------------------------------------------------------------------------------- evolution


def test_renamed_dropped_added_again_and_widened_columns_are_themselves(
    spark: "SparkSession", tmp_path: Path
) -> None:
    table = lakebed.connect(tmp_path).create_table(
        "t",
        pa.schema([("a", pa.int32()), ("b", pa.int32()), ("f", pa.float32()), ("x", pa.string())]),
    )
    old = {"a": pa.array([1, 2], pa.int32()), "b": pa.array([10, 20], pa.int32())}
    table.append(pa.table({**old, "f": pa.array([0.1, 0.2], pa.float32()), "x": ["p", "q"]}))
    swap = table.evolve().rename_column("a", "c").rename_column("b", "a")
    swap.rename_column("c", "b").widen_column("a", "long").widen_column("f", "double").commit()
    table.append(pa.table({"b": pa.array([3], pa.int32()), "a": [2**40], "f": [0.3], "x": ["r"]}))
    table.evolve().drop_column("x").commit()
    table.evolve().add_column("x", "string").commit()
    table.append(pa.table({"b": pa.array([4], pa.int32()), "a": [40], "f": [0.4], "x": ["s"]}))
    for version in range(1, table.version + 1):
        wanted = sorted(table.scan(as_of=version).to_arrow().to_pylist(), key=str)
        assert rows_of(read(spark, table, as_of=version)) == wanted, version
    for where in ("a >= 20", "b < 3", "f > 0.15", "x is null", "x = 's'", "x != 'p'", "a = 20"):
        wanted = sorted(table.scan(where).to_arrow().to_pylist(), key=str)
        assert rows_of(read(spark, table, where)) == wanted, where
    assert rows_of(read(spark, table, "x = 's'", ["x"])) == [{"x": "s"}]


@pytest.mark.parametrize("name", NAMES)
def test_golden_tables_read_as_the_embedded_reader_reads_them(
    spark: "SparkSession", name: str, tmp_path: Path
) -> None:
    kind, _, table_name = name.partition("-")
    # A copy: opening a catalog may change its file, and golden files stay as they are.
    shutil.copytree(record.GOLDEN / "v1", tmp_path / "v1")
    with connect(tmp_path / "v1", kind) as catalog:
        table = catalog.table(table_name)
        scan = table.scan()
        wanted = as_frame_rows(scan.to_arrow(), frame_arrow_schema(scan.schema, "long"))
        found = read(spark, table, nanoseconds="long").toArrow()
        assert found.column_names == wanted.column_names
        assert sorted(map(str, found.to_pylist())) == sorted(map(str, wanted.to_pylist()))


ODD_NAMES = ["a.b", "c`d", "e f", "g", "%", "naïve", "_metadata", "`", "select", "c1"]


@pytest.mark.parametrize("sensitive", ["true", "false"])
def test_odd_names_of_columns_and_directories_are_just_names(
    spark: "SparkSession", tmp_path: Path, sensitive: str
) -> None:
    odd = tmp_path / "a {b} [c] *?%20 é #1"
    rows = pa.table({name: [place] for place, name in enumerate(ODD_NAMES)})
    table = lakebed.connect(odd).create_table("t", rows.schema, partition_by=["a.b"])
    table.append(rows)
    with settings(spark, spark__sql__caseSensitive=sensitive):
        assert rows_of(read(spark, table)) == rows.to_pylist()
        quoted = '"c`d" = 1 and "%" in (4, 5) and "a.b" is not null'
        assert rows_of(read(spark, table, quoted, ["e f", "`"])) == [{"e f": 2, "`": 7}]
        assert rows_of(read(spark, table, via="workers")) == rows.to_pylist()


# ------------------------------------------------------------------------------- damaged files


LENIENT = {
    "spark__sql__files__ignoreMissingFiles": "true",
    "spark__sql__files__ignoreCorruptFiles": "true",
    "spark__sql__parquet__datetimeRebaseModeInRead": "LEGACY",
}


def path_of(table: "Table", place: int = 0) -> Path:
    return Path(table.location) / table.read_plan().files[place].path


def test_a_missing_or_changed_file_is_our_error_before_spark_starts(
    spark: "SparkSession", table: "Table"
) -> None:
    with settings(spark, **LENIENT):
        path = path_of(table)
        whole = path.read_bytes()
        path.write_bytes(whole[:-1])
        with pytest.raises(BadDataFileError, match="bytes where the manifest says"):
            read(spark, table)
        path.unlink()
        with pytest.raises(ObjectMissingError):
            read(spark, table)


@pytest.mark.parametrize("damage", ["gone", "bytes"])
def test_a_file_lost_after_planning_fails_the_query_whatever_the_session_says(
    spark: "SparkSession", table: "Table", damage: str
) -> None:
    from pyspark.errors import PySparkException

    with settings(spark, **LENIENT):
        frame = read(spark, table)
        path = path_of(table)
        size = path.stat().st_size
        if damage == "gone":
            path.unlink()
        else:
            path.write_bytes(b"PAR1" + os.urandom(size - 8) + b"PAR1")
        with pytest.raises((PySparkException, Exception), match=r"(?i)exist|parquet|failed"):
            frame.toArrow()


def test_old_dates_do_not_move_with_the_sessions_calendar(
    spark: "SparkSession", tmp_path: Path
) -> None:
    rows = pa.table({"d": [dt.date(1, 1, 1), dt.date(1582, 10, 10), dt.date(1500, 3, 1)]})
    table = lakebed.connect(tmp_path).create_table("t", rows.schema)
    table.append(rows)
    with settings(spark, **LENIENT):
        assert rows_of(read(spark, table)) == sorted(rows.to_pylist(), key=str)
        assert read(spark, table, "d = '1582-10-10'").count() == 1
        assert read(spark, table, "d < '1582-10-10'").count() == 2


def test_files_that_spark_would_pass_over_are_read_all_the_same(
    spark: "SparkSession", table: "Table"
) -> None:
    """Spark leaves out `_x` and `.x` without a word, even where it is told to read it."""
    for place, name in enumerate(("_hidden.parquet", "plain.parquet")):
        path = Path(table.location) / "data" / name
        pq.write_table(readings(50 + place), path)
        table.add_files([f"data/{name}"])
    assert read(spark, table).count() == 20
    assert read(spark, table, "ts >= '2026-02-10'", ["value"]).count() == 8


# ----------------------------------------------------------------------------------- requests


def test_what_cannot_be_answered_is_a_typed_error(spark: "SparkSession", table: "Table") -> None:
    with pytest.raises(PredicateError, match=r"no column 'valu'.*Did you mean 'value'"):
        read(spark, table, where="valu > 1")
    with pytest.raises(PredicateError):
        read(spark, table, where="value >")
    with pytest.raises(NotFoundError, match="no column 'nope'"):
        read(spark, table, columns=["nope"])
    with pytest.raises(RequestError, match="asked for twice"):
        read(spark, table, columns=["value", "value"])
    with pytest.raises(NotFoundError, match="no version 99"):
        read(spark, table, as_of=99)
    with pytest.raises(NotFoundError, match="neither a tag nor a time"):
        read(spark, table, as_of="soon")
    with pytest.raises(RequestError, match=r"no way to read.*native, workers, driver"):
        read(spark, table, via="magic")


def test_a_table_in_memory_comes_over_the_driver(spark: "SparkSession") -> None:
    table = lakebed.connect("memory:").create_table("t", READINGS)
    table.append(readings(0))
    assert rows_of(read(spark, table, "value > 1")) == sorted(
        table.scan("value > 1").to_arrow().to_pylist(), key=str
    )
    with pytest.raises(RequestError, match=r'in this process only.*via="driver"'):
        read(spark, table, via="native")


# ------------------------------------------------------------------------------------- places


def test_the_jvm_gets_s3a_only_where_hadoop_has_it(spark: "SparkSession") -> None:
    place = Place(location="s3://bucket/a b/t", storage_options={"AWS_SECRET_ACCESS_KEY": "geheim"})
    assert jvm_place(spark, place) is None
    with settings(spark, spark__lakebed__s3a="true"):
        found = jvm_place(spark, place)
    assert found is not None
    assert found.uri("data/x.parquet") == "s3a://bucket/a b/t/data/x.parquet"
    assert found.options == {"fs.s3a.secret.key": "geheim"}
    assert "geheim" not in repr(found)
    assert jvm_place(spark, Place(location="/a b/t")) == JvmPlace(
        prefix="file:///a b/t/", is_local=True
    )


def test_options_of_ours_have_names_of_hadoops() -> None:
    assert s3a_options(
        {
            "aws_endpoint_url": "http://127.0.0.1:9000",
            "AWS_ACCESS_KEY_ID": "k",
            "region": "eu",
            "session_token": "t",
            "allow_http": "true",
            "timeout": "5s",
        }
    ) == {
        "fs.s3a.endpoint": "http://127.0.0.1:9000",
        "fs.s3a.access.key": "k",
        "fs.s3a.endpoint.region": "eu",
        "fs.s3a.session.token": "t",
        "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.aws.credentials.provider": (
            "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"
        ),
    }


def test_bins_keep_every_file_once_and_in_order(table: "Table") -> None:
    files = list(table.read_plan().files) * 200
    packed = bins(files)
    assert [file for some in packed for file in some] == files
    assert 1 < len(packed) < 20
    assert bins([]) == []
