"""`writeStream.format("lakebed")`: what Spark calls, called here, with a checkpoint as Spark's."""

import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lakebed
from lakebed.spark.schema import spark_schema
from lakebed.spark.source.source import LakebedSource
from lakebed.spark.streaming.query import checkpoint_batch
from lakebed.spark.streaming.sink import foreach_batch
from lakebed.table.catalog import Catalog
from lakebed.table.table import Table

pytestmark = pytest.mark.spark

COLUMNS = pa.schema([("ts", pa.timestamp("us", "UTC")), ("n", pa.int64())])


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return lakebed.connect(f"sqlite:///{tmp_path}/lake/catalog.db")


@pytest.fixture
def table(catalog: Catalog) -> Table:
    return catalog.create_table("plant.readings", COLUMNS)


def rows(*numbers: int) -> pa.Table:
    seconds = pa.array(numbers, pa.int64()).cast(pa.timestamp("s"))
    return pa.table({"ts": seconds.cast(COLUMNS.field("ts").type), "n": list(numbers)}, COLUMNS)


class Query:
    """A query as its sink sees it: options, a checkpoint, and calls in processes of their own."""

    def __init__(self, table: Table, checkpoint: Path, query_id: str = "q-1", **options: str):
        self.checkpoint = checkpoint
        (checkpoint / "offsets").mkdir(parents=True, exist_ok=True)
        (checkpoint / "metadata").write_text(json.dumps({"id": query_id}))
        place = {"catalog": table.connection.uri, "path": table.name}
        given = place | {"checkpointLocation": str(checkpoint)} | options
        self.options = {key.lower(): value for key, value in given.items() if value}
        self.schema = spark_schema(table.schema)

    def plan(self, number: int, offset: str, watermark_ms: int = 0) -> None:
        noted = json.dumps({"batchWatermarkMs": watermark_ms})
        (self.checkpoint / "offsets" / str(number)).write_text(f"v1\n{noted}\n{offset}")

    def writer(self, *, overwrite: bool = False) -> Any:
        source = pickle.loads(pickle.dumps(LakebedSource(self.options)))
        return source.streamWriter(self.schema, overwrite)

    def batch(self, number: int, *tasks: pa.Table, overwrite: bool = False) -> None:
        worker = pickle.loads(pickle.dumps(self.writer(overwrite=overwrite)))
        messages = [worker.write(iter(task.to_batches())) for task in tasks]
        self.writer(overwrite=overwrite).commit(pickle.loads(pickle.dumps(messages)), number)


def numbers(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow().column("n").to_pylist())


def noted(table: Table) -> dict[str, str]:
    return table.current_snapshot().parameters


def test_a_batch_is_committed_once_with_what_is_known_of_it(table: Table, tmp_path: Path) -> None:
    query = Query(table, tmp_path / "checkpoint")
    query.plan(0, '{"offset":1}')
    query.plan(1, '{"offset":2}', watermark_ms=90_000)
    query.batch(0, rows(100, 200), rows(150))
    query.batch(1, rows(170), rows())
    query.batch(1, rows(170), rows())  # Spark has not noted its end
    assert numbers(table) == [100, 150, 170, 200]
    assert table.version == 2
    assert noted(table) == {
        "stream.query-id": "q-1",
        "stream.batch-id": "1",
        "stream.offsets": checkpoint_batch(str(tmp_path / "checkpoint"), 1).offsets,
        "stream.event-time-min": "1970-01-01T00:02:50Z",
        "stream.event-time-max": "1970-01-01T00:02:50Z",
        "stream.lateness-ms-max": "30000",
        "stream.watermark": "1970-01-01T00:01:30Z",
    }


def test_a_batch_without_rows_is_recorded(table: Table, tmp_path: Path) -> None:
    Query(table, tmp_path / "checkpoint").batch(0, rows(), rows())
    assert table.version == 1
    assert noted(table) == {"stream.query-id": "q-1", "stream.batch-id": "0"}


def test_a_deleted_checkpoint_is_refused_under_the_same_app_id(
    table: Table, tmp_path: Path
) -> None:
    Query(table, tmp_path / "one", txnAppId="ingest").batch(0, rows(1))
    other = Query(table, tmp_path / "two", "q-2", txnAppId="ingest")
    with pytest.raises(lakebed.TokenError, match="by another query, q-1") as told:
        other.batch(0, rows(1))
    assert told.value.fields["query_id"] == "q-1"
    assert numbers(table) == [1]
    Query(table, tmp_path / "two", "q-2", txnAppId="ingest-2").batch(0, rows(2))
    assert numbers(table) == [1, 2]


def test_an_older_copy_of_a_checkpoint_is_refused(table: Table, tmp_path: Path) -> None:
    query = Query(table, tmp_path / "checkpoint")
    query.plan(0, '{"offset":5}')
    query.batch(0, rows(1))
    query.plan(0, '{"offset":7}')  # what Spark cuts when its note of the batch is lost
    with pytest.raises(lakebed.TokenError, match="with other rows: the checkpoint is an older"):
        query.batch(0, rows(1, 2))
    assert numbers(table) == [1]


def test_complete_mode_replaces_everything(table: Table, tmp_path: Path) -> None:
    query = Query(table, tmp_path / "checkpoint")
    query.batch(0, rows(1, 2), overwrite=True)
    query.batch(1, rows(3), overwrite=True)
    assert numbers(table) == [3]


def test_a_table_that_is_missing_is_made(table: Table, catalog: Catalog, tmp_path: Path) -> None:
    query = Query(table, tmp_path / "checkpoint", path="plant.new", partitionBy="day(ts)")
    query.batch(0, rows(1, 100_000))
    made = catalog.table("plant.new")
    assert numbers(made) == [1, 100_000]
    assert made.spec.describe(made.schema) == ["day(ts)"]


def test_columns_that_others_add_meanwhile_are_not_mixed_up(table: Table, tmp_path: Path) -> None:
    """Files know columns by number; two writers that add one each give out the same number."""
    query = Query(table, tmp_path / "checkpoint", mergeSchema="true")
    query.schema = query.schema.add("mine", "long")
    wider = rows(1).append_column("mine", pa.array([1], pa.int64()))
    message = query.writer().write(iter(wider.to_batches()))
    table.append(rows(2).append_column("theirs", pa.array([2], pa.int64())))
    with pytest.raises(lakebed.CommitConflictError, match="were changed while the query was"):
        query.writer().commit([message], 0)
    query.batch(0, wider)
    assert numbers(table) == [1, 2]


def test_a_table_made_anew_gets_no_files_of_the_old_one(
    table: Table, catalog: Catalog, tmp_path: Path
) -> None:
    query = Query(table, tmp_path / "checkpoint")
    message = query.writer().write(iter(rows(1).to_batches()))
    catalog.drop_table(table.name)
    catalog.create_table(table.name, COLUMNS)
    with pytest.raises(lakebed.NotFoundError, match="dropped and created anew while"):
        query.writer().commit([message], 0)


def test_abort_deletes_nothing_once_a_commit_may_have_been_tried(
    table: Table, tmp_path: Path
) -> None:
    query = Query(table, tmp_path / "checkpoint")
    message = query.writer().write(iter(rows(1).to_batches()))

    def files() -> list[str]:
        return [found.path for found in table.files.store.list("data/")]

    query.writer().abort([message], 0)
    assert len(files()) == 1
    query.writer().abort([message, None], 0)
    assert files() == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"txnAppID": "a", "replaceWhere": "n = 1"}, "no option 'replacewhere' to write a stream"),
        ({"mergeSchema": "perhaps"}, "mergeSchema is 'perhaps'"),
        ({"checkpointLocation": "s3a://bucket/checkpoint"}, "cannot be told: its checkpoint"),
        ({"checkpointLocation": ""}, "cannot be told: its checkpoint"),
    ],
)
def test_what_cannot_be_written_is_said_when_the_query_starts(
    table: Table, tmp_path: Path, options: dict[str, str], message: str
) -> None:
    with pytest.raises(lakebed.RequestError) as told:
        Query(table, tmp_path / "checkpoint", **options).writer()
    assert message in str(told.value)


def test_an_event_time_must_be_a_time(table: Table, tmp_path: Path) -> None:
    query = Query(table, tmp_path / "checkpoint", eventTime="n")
    with pytest.raises(lakebed.RequestError, match="the event time 'n' is a column of type long"):
        query.writer()
    with pytest.raises(lakebed.RequestError, match="the event time 'n' is a column of type long"):
        foreach_batch(table, event_time="n")
