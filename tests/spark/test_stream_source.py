"""A stream gives each row of a table once, in the order of its versions, and hides no hole.

Most tests call the reader as Spark 4.1 does (the order was seen in its own calls): a new query
asks for the latest offset, then for the initial one, then for the partitions; a restarted one
first asks for the empty range where it stands. The last tests are real queries.
"""

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import lakebed
from lakebed.clock import SystemClock
from lakebed.spark.source.source import LakebedSource
from lakebed.spark.source.stream_read import read_stream
from lakebed.spark.source.stream_reader import LakebedStreamReader
from lakebed.spark.writing.change_labels import key_note, update_note
from lakebed.table.catalog import Catalog
from lakebed.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = [
    pytest.mark.spark,
    # pyspark leaves sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

COLUMNS = pa.schema([("n", pa.int64()), ("kind", pa.string())])


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return lakebed.connect(f"sqlite:///{tmp_path}/lake/catalog.db")


@pytest.fixture
def table(catalog: Catalog) -> Table:
    return catalog.create_table("plant.readings", COLUMNS)


def rows(*numbers: int, kind: str = "a") -> pa.Table:
    return pa.table({"n": list(numbers), "kind": [kind] * len(numbers)}, COLUMNS)


class Query:
    """A query on Spark 4.1, as far as its source can tell; `log` is its checkpoint."""

    def __init__(self, table: Table, log: list[Any] | None = None, **options: Any) -> None:
        place = {"catalog": table.connection.uri, "table": table.name}
        given = {key.lower(): str(value) for key, value in (place | options).items()}
        source = pickle.loads(pickle.dumps(_with_schema(given)))
        self.reader: LakebedStreamReader = source.streamReader(source.schema())
        self.log: list[Any] = log if log is not None else []
        self.ended = len(self.log)
        if self.log:
            self.reader.partitions(self.log[-1], self.log[-1])

    def plan(self) -> bool:
        """Note the next batch, as Spark does before it runs it; False if there is nothing new."""
        end = json.loads(json.dumps(self.reader.latestOffset()))
        if self.log and end == self.log[-1]:
            return False
        self.log.append(end)
        return True

    def run(self) -> list[dict[str, Any]]:
        """Run the last batch that was noted."""
        place = len(self.log) - 1
        start = self.log[place - 1] if place else self.reader.initialOffset()
        worker = pickle.loads(pickle.dumps(self.reader))
        found: list[dict[str, Any]] = []
        for partition in self.reader.partitions(start, self.log[place]):
            for batch in worker.read(pickle.loads(pickle.dumps(partition))):
                found.extend(batch.to_pylist())
        return found

    def batch(self) -> list[dict[str, Any]] | None:
        return self.run() if self.plan() else None

    def numbers(self) -> list[int] | None:
        found = self.batch()
        return None if found is None else sorted(row["n"] for row in found)


def _with_schema(options: dict[str, str]) -> LakebedSource:
    source = LakebedSource(options)
    source.schema()
    return source


# --------------------------------------------------------------------------- snapshot, then log


def test_a_stream_begins_with_what_is_there_and_goes_on_with_each_version(table: Table) -> None:
    table.append(rows(1, 2))
    table.append(rows(3))
    query = Query(table)
    assert query.numbers() == [1, 2, 3]
    assert query.numbers() is None
    table.append(rows(4))
    table.append(rows(5))
    assert query.numbers() == [4, 5]


def test_the_form_of_an_offset_is_for_ever(table: Table) -> None:
    table.append(rows(1))
    query = Query(table)
    query.batch()
    table_id = table.head().pointer.table_id
    assert query.log == [{"table": table_id, "version": 2, "index": 0, "initial": False}]


def test_a_first_batch_that_is_repeated_has_the_rows_it_had(table: Table) -> None:
    """Spark asks anew where a query begins as long as no batch has ended."""
    table.append(rows(1))
    query = Query(table)
    query.plan()
    table.append(rows(2))
    again = Query(table, query.log)
    assert [row["n"] for row in again.run()] == [1]
    assert again.numbers() == [2]


def test_a_first_batch_of_a_part_of_the_snapshot_is_repeated_too(table: Table) -> None:
    for number in (1, 2, 3):
        table.append(rows(number))
    limits: dict[str, Any] = {"maxFilesPerTrigger": 2, "triggerAvailableNow": False}
    query = Query(table, **limits)
    query.plan()
    table.append(rows(4))
    again = Query(table, query.log, **limits)
    assert [row["n"] for row in again.run()] == [1, 2]
    assert [again.numbers(), again.numbers(), again.numbers()] == [[3], [4], None]


@pytest.mark.parametrize("files", [1, 2, 3, 7])
def test_every_row_comes_once_whatever_the_limit_and_wherever_it_is_restarted(
    table: Table, files: int
) -> None:
    table.append(rows(0))
    for first in (1, 2):
        table.append(rows(first))
    limits: dict[str, Any] = {"maxFilesPerTrigger": files, "triggerAvailableNow": False}
    query = Query(table, **limits)
    found: list[int] = []
    sizes = []
    for turn in range(12):
        numbers = query.numbers()
        found += numbers or []
        sizes.append(len(numbers or []))
        if turn < 3:
            table.append(rows(10 + turn))
        if turn % 2:
            query = Query(table, query.log, **limits)
    assert sorted(found) == [0, 1, 2, 10, 11, 12]
    assert max(sizes) <= files


def test_a_batch_can_end_inside_of_a_version(catalog: Catalog) -> None:
    split = catalog.create_table("plant.split", COLUMNS, partition_by=["n"])
    split.append(rows(1, 2, 3))
    split.append(rows(4))
    options: dict[str, Any] = {"startingVersion": 1, "maxFilesPerTrigger": 2}
    query = Query(split, triggerAvailableNow=False, **options)
    first = query.numbers() or []
    again = Query(split, query.log, triggerAvailableNow=False, **options)
    assert len(first) == 2
    assert sorted([*first, *(again.numbers() or [])]) == [1, 2, 3, 4]
    assert again.numbers() is None


def test_bytes_limit_a_batch_and_one_file_always_fits(table: Table) -> None:
    for number in range(3):
        table.append(rows(number))
    query = Query(table, maxBytesPerTrigger=1, triggerAvailableNow=False)
    assert [query.numbers() for _ in range(4)] == [[0], [1], [2], None]


def test_under_available_now_one_batch_goes_all_the_way(table: Table) -> None:
    for number in range(3):
        table.append(rows(number))
    options: dict[str, Any] = {"maxFilesPerTrigger": 1, "triggerAvailableNow": True}
    query = Query(table, **options)
    assert query.numbers() == [0, 1, 2]
    table.append(rows(3))
    table.append(rows(4))
    assert Query(table, query.log, **options).numbers() == [3, 4]


def test_a_limit_is_refused_where_spark_does_not_tell_the_trigger(table: Table) -> None:
    with pytest.raises(lakebed.RequestError, match="needs to know the trigger"):
        Query(table, maxFilesPerTrigger=1)


# --------------------------------------------------------------------------------- where to begin


def test_a_stream_can_begin_at_a_version_a_time_or_now(table: Table) -> None:
    for number in (1, 2, 3):
        table.append(rows(number))
    second = table.snapshot(2).timestamp_ms / 1000
    assert Query(table, startingVersion=2).numbers() == [2, 3]
    moment = lakebed_time(second)
    assert Query(table, startingTimestamp=moment).numbers() == [2, 3]
    assert Query(table, startingTimestamp="1999-01-01T00:00:00Z").numbers() == [1, 2, 3]
    latest = Query(table, startingVersion="latest")
    assert latest.numbers() == []
    table.append(rows(4))
    assert latest.numbers() == [4]


def lakebed_time(seconds: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC).isoformat()


def test_a_beginning_that_is_not_there_yet_is_an_error(table: Table) -> None:
    with pytest.raises(lakebed.NotFoundError, match="has no version 9 yet"):
        Query(table, startingVersion=9).batch()
    with pytest.raises(lakebed.NotFoundError, match="committed at 2100"):
        Query(table, startingTimestamp="2100-01-01T00:00:00Z").batch()


def test_filter_and_columns_belong_to_the_stream(table: Table) -> None:
    table.append(rows(1, 2, 3))
    query = Query(table, filter="n > 1", columns="n")
    assert query.batch() == [{"n": 2}, {"n": 3}]


# ------------------------------------------------------------------------ what is not an append


def test_compaction_is_not_given_out_again(table: Table) -> None:
    table.append(rows(1))
    table.append(rows(2))
    query = Query(table)
    query.batch()
    old = table.read_plan().files
    staging = table.stage()
    merged = staging.write_task().write(COLUMNS, rows(1, 2).to_batches())
    staging.commit(merged, removed=old, where="true", operation=lakebed_rewrite())
    table.append(rows(3))
    assert query.numbers() == [3]


def lakebed_rewrite() -> Any:
    from lakebed.format.snapshot import Operation

    return Operation.REWRITE


def test_a_commit_that_takes_rows_out_ends_a_plain_stream_with_the_choices(table: Table) -> None:
    table.append(rows(1, 2))
    query = Query(table)
    query.batch()
    table.delete("n = 1")
    table.append(rows(3))
    with pytest.raises(lakebed.RequestError, match=r"version 2 .* took rows out") as told:
        query.batch()
    for choice in ("skipChangeCommits", "ignoreDeletes", "readChangeFeed"):
        assert choice in str(told.value)
    with pytest.raises(lakebed.RequestError, match="took rows out"):
        Query(table, query.log, ignoreDeletes=True).run()
    assert [row["n"] for row in Query(table, query.log, skipChangeCommits=True).run()] == [3]


def test_a_commit_that_only_deletes_files_can_be_ignored(table: Table) -> None:
    table.append(rows(1, 2))
    query = Query(table)
    query.batch()
    table.delete("true")
    table.append(rows(3))
    assert Query(table, query.log, ignoreDeletes=True).numbers() == [3]


def test_a_rollback_ends_a_plain_stream(table: Table) -> None:
    table.append(rows(1))
    table.append(rows(2))
    query = Query(table)
    query.batch()
    table.rollback(1)
    table.rollback(2)
    with pytest.raises(lakebed.RequestError, match=r"version 3 .* is a rollback"):
        query.batch()
    table.append(rows(3))
    assert Query(table, query.log, skipChangeCommits=True).numbers() == [3]


def test_a_rollback_that_brings_rows_back_ends_a_plain_stream_too(table: Table) -> None:
    table.append(rows(1))
    query = Query(table)
    query.batch()
    table.delete("true")
    table.rollback(1)
    with pytest.raises(lakebed.RequestError, match=r"version 3 .* is a rollback"):
        Query(table, query.log, ignoreDeletes=True).batch()


def test_a_table_that_was_made_anew_is_not_taken_for_the_old_one(
    table: Table, catalog: Catalog
) -> None:
    table.append(rows(1))
    query = Query(table)
    query.batch()
    catalog.drop_table(table.name)
    anew = catalog.create_table(table.name, COLUMNS)
    for number in range(5):
        anew.append(rows(number))
    with pytest.raises(lakebed.NotFoundError, match="checkpoint belongs to the former table"):
        Query(anew, query.log).batch()


def test_a_version_that_is_gone_is_an_error_and_not_a_hole(table: Table) -> None:
    table.append(rows(1))
    query = Query(table)
    query.batch()
    table.append(rows(2))
    table.append(rows(3))
    gone = table.snapshot(2)
    path = next(
        p.path
        for p in table.files.store.list("metadata/")
        if "snap-" in p.path and table.files.snapshot(p.path).snapshot_id == gone.snapshot_id
    )
    table.files.store.delete(path)
    with pytest.raises(lakebed.NotFoundError, match="where the stream stands, is gone") as told:
        Query(table, query.log).batch()
    assert "startingVersion" in str(told.value)


def test_an_older_copy_of_the_table_is_noticed(table: Table) -> None:
    table.append(rows(1))
    query = Query(table)
    query.batch()
    query.log[-1]["version"] = 9
    with pytest.raises(lakebed.NotFoundError, match="an older copy of the table was restored"):
        Query(table, query.log)


def test_new_columns_end_the_query_and_a_restart_goes_on_with_them(table: Table) -> None:
    table.append(rows(1))
    query = Query(table)
    query.batch()
    table.append(rows(2))
    table.append(pa.table({"n": [3], "kind": ["b"], "extra": [0.5]}))
    with pytest.raises(lakebed.RequestError, match=r"columns of .* were changed at version 3"):
        query.batch()
    again = Query(table, query.log[:1])
    found = again.batch()
    assert found == [
        {"n": 2, "kind": "a", "extra": None},
        {"n": 3, "kind": "b", "extra": 0.5},
    ]


def test_a_checkpoint_of_another_source_is_refused(table: Table) -> None:
    with pytest.raises(lakebed.RequestError, match="no offset of a Lakebed table"):
        Query(table, [{"logOffset": 3}])


# ---------------------------------------------------------------------------------- change feed


def fates(found: list[dict[str, Any]] | None) -> list[tuple[str, int, int]]:
    return sorted((r["_change_type"], r["n"], r["_commit_version"]) for r in found or [])


def test_the_change_feed_tells_what_became_of_each_row(table: Table) -> None:
    table.append(rows(1, 2, 3))
    query = Query(table, readChangeFeed=True)
    assert fates(query.batch()) == [("insert", 1, 1), ("insert", 2, 1), ("insert", 3, 1)]
    table.delete("n = 2")  # rewrites a file: 1 and 3 are only moved
    table.append(rows(4))
    table.overwrite(rows(5, 3))
    assert fates(query.batch()) == [
        ("delete", 1, 4),
        ("delete", 2, 2),
        ("delete", 4, 4),
        ("insert", 4, 3),
        ("insert", 5, 4),
    ]


def test_an_update_has_its_two_images(table: Table) -> None:
    table.append(rows(1, 2))
    query = Query(table, readChangeFeed=True, startingVersion=2)
    query.batch()
    table.overwrite(pa.concat_tables([rows(1), rows(2, kind="b")]), properties=update_note())
    found = query.batch() or []
    assert [(r["_change_type"], r["n"], r["kind"]) for r in found] == [
        ("update_preimage", 2, "a"),
        ("update_postimage", 2, "b"),
    ]


def test_a_merge_is_told_apart_by_its_keys(table: Table) -> None:
    table.append(rows(1, 2))
    query = Query(table, readChangeFeed=True, startingVersion="latest")
    query.batch()
    merged = pa.concat_tables([rows(2, kind="b"), rows(3)])
    table.overwrite(merged, properties=key_note(["n"]))
    assert fates(query.batch()) == [
        ("delete", 1, 2),
        ("insert", 3, 2),
        ("update_postimage", 2, 2),
        ("update_preimage", 2, 2),
    ]


def test_the_feed_has_the_time_of_the_commit(table: Table) -> None:
    table.append(rows(1))
    found = Query(table, readChangeFeed=True).batch() or []
    assert found[0]["_commit_timestamp"].timestamp() * 1000 == table.snapshot(1).timestamp_ms


# -------------------------------------------------------------------------------------- options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"startingVersion": 1, "startingTimestamp": "2026-01-01"}, "contradict each other"),
        ({"startingVersion": "first"}, "startingVersion is 'first'"),
        ({"maxFilesPerTrigger": 0, "triggerAvailableNow": "true"}, "maxFilesPerTrigger is '0'"),
        ({"readChangeFeed": "yes"}, "readChangeFeed is 'yes'"),
        ({"readChangeFeed": "true", "ignoreDeletes": "true"}, "readChangeFeed shows all changes"),
        ({"startVersion": 1}, "Did you mean startingVersion?"),
        (
            {"versionAsOf": 0},
            "there is no option 'versionasof' to read a stream. It is one to read",
        ),
    ],
)
def test_options_that_make_no_sense_are_refused_when_the_stream_is_made(
    table: Table, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(lakebed.RequestError) as told:
        Query(table, **options)
    assert message in str(told.value)


def test_a_feed_of_a_table_with_such_a_column_is_refused(catalog: Catalog) -> None:
    made = catalog.create_table("plant.odd", pa.schema([("_change_type", pa.string())]))
    with pytest.raises(lakebed.RequestError, match="a name that the change feed gives out"):
        Query(made, readChangeFeed=True)


# --------------------------------------------------------------------------------- real queries


def collect(
    frame: "DataFrame", checkpoint: Path, found: dict[int, list[int]], **trigger: Any
) -> "StreamingQuery":
    def take(batch: "DataFrame", number: int) -> None:  # may be called again for the same batch
        found[number] = sorted(row.n for row in batch.select("n").collect())

    writer = frame.writeStream.option("checkpointLocation", str(checkpoint)).foreachBatch(take)
    return writer.trigger(**trigger).start()


def until(condition: Callable[[], bool]) -> None:
    clock = SystemClock()
    for _ in range(600):
        if condition():
            return
        clock.sleep_ms(100)
    raise AssertionError("it did not happen in a minute")


def test_a_running_query_reads_within_its_limit_and_goes_on_after_a_restart(
    spark: "SparkSession", table: Table, tmp_path: Path
) -> None:
    for number in (1, 2, 3):
        table.append(rows(number))
    found: dict[int, list[int]] = {}
    for more in (4, 5):
        frame = read_stream(spark, table, max_files=2, available_now=False)
        query = collect(frame, tmp_path / "checkpoint", found, processingTime="0 seconds")
        try:
            table.append(rows(more))
            until(lambda more=more: sum(map(len, found.values())) == more)  # type: ignore[misc]
        finally:
            query.stop()
    assert sorted(number for batch in found.values() for number in batch) == [1, 2, 3, 4, 5]
    assert max(map(len, found.values())) == 2


def test_available_now_reads_up_to_the_newest_version_also_after_a_restart(
    spark: "SparkSession", table: Table, tmp_path: Path
) -> None:
    found: dict[int, list[int]] = {}
    for turn in range(2):
        table.append(rows(turn))
        table.append(rows(10 + turn))
        frame = read_stream(spark, table, max_files=1, available_now=True)
        collect(frame, tmp_path / "checkpoint", found, availableNow=True).awaitTermination()
    assert found == {0: [0, 10], 1: [1, 11]}


def test_from_table_to_table_each_row_arrives_once_though_spark_forgets_an_end(
    spark: "SparkSession", table: Table, catalog: Catalog, tmp_path: Path
) -> None:
    """Source and sink of the format; the note that the second batch has ended is lost."""

    def run() -> list[int]:
        reader = spark.readStream.format("lakebed").option("catalog", catalog.connection.uri)
        writer = (
            reader.load(table.name)
            .writeStream.format("lakebed")
            .options(
                catalog=catalog.connection.uri, checkpointLocation=str(tmp_path / "checkpoint")
            )
        )
        writer.trigger(availableNow=True).start("plant.copy").awaitTermination()
        copied = catalog.table("plant.copy").scan().to_arrow()
        return sorted(copied.column("n").to_pylist())

    table.append(rows(0))
    assert run() == [0]
    table.append(rows(1))
    assert run() == [0, 1]
    for name in ("1", ".1.crc"):
        (tmp_path / "checkpoint" / "commits" / name).unlink()
    table.append(rows(2))
    assert run() == [0, 1], "Spark 4.1 repeats the batch, and that is its one batch"
    assert run() == [0, 1, 2]
    assert catalog.table("plant.copy").current_snapshot().parameters["stream.batch-id"] == "2"
