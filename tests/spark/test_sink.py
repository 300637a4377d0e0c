"""A stream's batches are in the table exactly once, however often Spark hands them over."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import lakebed
from lakebed.spark.streaming.sink import BatchSink, foreach_batch
from lakebed.table.catalog import Catalog
from lakebed.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.spark,
    # pyspark leaves sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

COLUMNS = pa.schema([("ts", pa.timestamp("us", "UTC")), ("value", pa.int64())])


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return lakebed.connect(f"sqlite:///{tmp_path}/lake/catalog.db")


@pytest.fixture
def table(catalog: Catalog) -> Table:
    return catalog.create_table("plant.readings", COLUMNS)


@pytest.fixture
def arrivals(tmp_path: Path) -> Callable[[int, int], None]:
    """Puts a file with the values first..last-1 where `stream` looks for files."""
    (tmp_path / "in").mkdir()

    def arrive(first: int, last: int) -> None:
        rows = "".join(f"{n}\n" for n in range(first, last))
        (tmp_path / "in" / f"{first:06}.csv").write_text(rows)

    return arrive


def stream(spark: "SparkSession", tmp_path: Path) -> "DataFrame":
    reader = spark.readStream.schema("value long").option("maxFilesPerTrigger", 1)
    return reader.csv(str(tmp_path / "in")).selectExpr("timestamp_seconds(value) as ts", "value")


def run(frame: "DataFrame", sink: Any, tmp_path: Path, **settings: str) -> None:
    writer = frame.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer = writer.outputMode(settings.get("output", "append"))
    query = writer.foreachBatch(sink).trigger(availableNow=True).start()
    query.awaitTermination()


def values(table: Table) -> list[int]:
    return sorted(table.scan(columns=["value"]).to_arrow().column("value").to_pylist())


def properties(table: Table) -> dict[str, str]:
    return table.current_snapshot().parameters


def forget_last_commit(tmp_path: Path) -> None:
    """Take back the last note that a batch has ended, as if the driver had died before it."""
    last = max((tmp_path / "checkpoint" / "commits").glob("[0-9]*"), key=lambda p: int(p.name))
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)


@pytest.mark.parametrize("via", ["driver", "executors", None])
def test_each_batch_is_one_commit_that_knows_its_query_and_batch(
    spark: "SparkSession", table: Table, tmp_path: Path, arrivals: Any, via: str | None
) -> None:
    arrivals(0, 5)
    arrivals(5, 9)
    run(stream(spark, tmp_path), foreach_batch(table, via=via), tmp_path)
    assert values(table) == list(range(9))
    assert table.version == 2
    noted = properties(table)
    assert noted["stream.batch-id"] == "1"
    assert noted["stream.query-id"] in (tmp_path / "checkpoint" / "metadata").read_text()
    assert noted["stream.offsets"]


def test_a_batch_that_spark_repeats_is_not_written_again(
    spark: "SparkSession", table: Table, tmp_path: Path, arrivals: Any
) -> None:
    arrivals(0, 5)
    run(stream(spark, tmp_path), foreach_batch(table), tmp_path)
    forget_last_commit(tmp_path)
    arrivals(5, 9)
    run(stream(spark, tmp_path), foreach_batch(table), tmp_path)
    assert values(table) == list(range(9))
    assert table.version == 2


def test_a_deleted_checkpoint_is_refused_under_the_same_app_id(
    spark: "SparkSession", table: Table, tmp_path: Path, arrivals: Any
) -> None:
    arrivals(0, 5)
    run(stream(spark, tmp_path), foreach_batch(table, app_id="ingest"), tmp_path)
    shutil.rmtree(tmp_path / "checkpoint")
    arrivals(5, 9)
    with pytest.raises(Exception, match=r"was written to plant\.readings by another query") as told:
        run(stream(spark, tmp_path), foreach_batch(table, app_id="ingest"), tmp_path)
    assert "Choose a new app id" in str(told.value)
    assert values(table) == list(range(5))


def test_a_batch_without_rows_is_recorded(
    spark: "SparkSession", table: Table, tmp_path: Path, arrivals: Any
) -> None:
    arrivals(0, 5)
    nothing = stream(spark, tmp_path).where("value < 0")
    run(nothing, foreach_batch(table), tmp_path)
    assert (table.version, values(table)) == (1, [])
    assert properties(table)["stream.batch-id"] == "0"
    assert "stream.event-time-max" not in properties(table)


@pytest.mark.parametrize("via", ["driver", "executors"])
def test_event_times_lateness_and_watermark_are_in_the_commit(
    spark: "SparkSession", table: Table, tmp_path: Path, arrivals: Any, via: str
) -> None:
    sink = foreach_batch(table, via=via)
    arrivals(100, 200)
    run(stream(spark, tmp_path).withWatermark("ts", "5 seconds"), sink, tmp_path)
    first = properties(table)
    assert first["stream.event-time-min"] == "1970-01-01T00:01:40Z"
    assert first["stream.event-time-max"] == "1970-01-01T00:03:19Z"
    assert "stream.lateness-ms-max" not in first, "there was nothing before it"
    arrivals(170, 300)
    run(stream(spark, tmp_path).withWatermark("ts", "5 seconds"), sink, tmp_path)
    second = properties(table)
    assert second["stream.lateness-ms-max"] == "29000"
    assert second["stream.watermark"] == "1970-01-01T00:03:14Z"


def test_a_new_column_is_refused_unless_schemas_are_merged(
    spark: "SparkSession", table: Table, tmp_path: Path, arrivals: Any
) -> None:
    arrivals(0, 5)
    wider = stream(spark, tmp_path).selectExpr("*", "'ok' as status")
    with pytest.raises(Exception, match="columns that the table lacks: status"):
        run(wider, foreach_batch(table), tmp_path)
    run(wider, foreach_batch(table, merge_schema=True), tmp_path)
    assert table.schema.by_name.keys() == {"ts", "value", "status"}
    assert values(table) == list(range(5))


def test_a_query_in_complete_mode_replaces_what_it_wrote(
    spark: "SparkSession", catalog: Catalog, tmp_path: Path, arrivals: Any
) -> None:
    totals = catalog.create_table("plant.totals", pa.schema([("value", pa.int64())]))
    for first in (0, 10):
        arrivals(first, first + 10)
        counted = stream(spark, tmp_path).groupBy().count().selectExpr("count as value")
        run(counted, foreach_batch(totals, mode="overwrite"), tmp_path, output="complete")
    assert values(totals) == [20]


def test_the_sink_opens_its_table_again_in_another_process(table: Table) -> None:
    import pickle

    sink = pickle.loads(pickle.dumps(foreach_batch(table)))
    assert isinstance(sink, BatchSink)
    assert sink.table is not table
    assert sink.table.version == table.version


def test_a_mode_that_streams_do_not_have_is_refused(table: Table) -> None:
    with pytest.raises(lakebed.RequestError, match="cannot be written in mode 'update'"):
        foreach_batch(table, mode="update")
    with pytest.raises(lakebed.RequestError, match="via is 'drivers'"):
        foreach_batch(table, via="drivers")
