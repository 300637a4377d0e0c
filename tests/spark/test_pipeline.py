"""A flow on Spark brings each row to each of its tables once, whatever interrupts it."""

import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.spark.pipelines import CSV, HEAD, SINK, Site, Watching

from lakebed.commit.committer import Committer
from lakebed.errors import NotFoundError, RequestError, TokenError, UnavailableError
from lakebed.flow.plant import arrivals
from lakebed.flow.sources import SensorSource
from lakebed.spark.pipeline.run import run
from lakebed.table.connect import connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    # py4j leaves the sockets of threads that have ended to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

DAY = "2026-01-01T00:00:"
STEPS = """
[[transform]]
name = "clean"
sql = "select *, value * 2 as twice from source where value is not null -- of the day"

[[transform]]
name = "hot"
sql = "select ts, sensor from previous where twice > 5;"
"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_files_are_read_once_each_and_a_second_run_goes_on(
    spark: "SparkSession", site: Site
) -> None:
    flow = site.flow(HEAD + CSV + STEPS + SINK + 'partition_by = ["day(ts)"]\n')
    site.arrive("a.csv", (f"{DAY}01Z", "a", 1.0), (f"{DAY}02Z", "b", 3.0))
    site.arrive("b.csv", (f"{DAY}03Z", "c", 4.0), (f"{DAY}04Z", "d", ""))
    watching = Watching()
    first = run(flow, spark, progress=watching)
    assert [row["sensor"] for row in site.rows()] == ["b", "c"]
    # Three, as Spark counts: its reader leaves out what SQL leaves out, where it can.
    assert (first.rows_in, first.rows_out, first.commits, first.batches) == (3, 2, 1, 1)
    assert (first.stopped_by, dict(first.versions)) == ("end", {"plant.readings": 1})
    assert [seen.total_rows_in for seen in watching.seen] == [3]
    assert watching.seen[0].lag_ms > 0
    assert site.table().spec.describe(site.table().schema) == ["day(ts)"]

    site.arrive("c.csv", (f"{DAY}05Z", "e", 9.0))
    second = run(flow, spark)
    assert (second.rows_in, second.rows_out) == (1, 1)
    assert [row["sensor"] for row in site.rows()] == ["b", "c", "e"]
    assert not spark.catalog.tableExists("clean")  # the steps hide nobody's views


def test_a_batch_that_reached_one_of_two_tables_reaches_the_other_and_neither_twice(
    spark: "SparkSession", site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = site.flow(HEAD + CSV + STEPS + SINK + '[[sink]]\ntable = "plant.copy"\n')
    site.arrive("a.csv", (f"{DAY}01Z", "a", 5.0), (f"{DAY}02Z", "b", 6.0))
    commit = Committer.commit

    def failing(self: Committer, targets: Any, *args: Any, **kwargs: Any) -> Any:
        if any(target.base.name == "plant.copy" for target in targets):
            raise UnavailableError("the disk is full")
        return commit(self, targets, *args, **kwargs)

    monkeypatch.setattr(Committer, "commit", failing)
    with pytest.raises(UnavailableError, match="the disk is full"):
        run(flow, spark)
    assert len(site.rows()) == 2
    assert site.rows("plant.copy") == []
    monkeypatch.setattr(Committer, "commit", commit)
    report = run(flow, spark)
    assert (report.commits, report.repeated_commits) == (1, 1)
    assert site.rows() == site.rows("plant.copy")
    assert [row["sensor"] for row in site.rows()] == ["a", "b"]


def test_steps_may_aggregate_and_each_step_may_have_a_table(
    spark: "SparkSession", site: Site
) -> None:
    text = HEAD + CSV + 'watermark = { column = "ts", delay = "10 seconds" }\n'
    text += """
[[transform]]
name = "per_minute"
sql = '''
select window.start as minute, sensor, count(*) as n
from source group by window(ts, '1 minute'), sensor'''
"""
    text += SINK + 'input = "source"\n[[sink]]\ntable = "plant.minutes"\n'
    flow = site.flow(text)
    site.arrive("a.csv", (f"{DAY}01Z", "a", 1.0), (f"{DAY}02Z", "a", 2.0))
    run(flow, spark)
    site.arrive("b.csv", ("2026-01-01T00:05:00Z", "a", 1.0))
    run(flow, spark)
    assert len(site.rows()) == 3
    assert [(row["sensor"], row["n"]) for row in site.rows("plant.minutes")] == [("a", 2)]


def plant_text(**more: Any) -> str:
    values = {"sensors": 20, "seconds_per_batch": 10, "late_every": 5, "delay_seconds": 6} | more
    keys = "".join(f"{key} = {value}\n" for key, value in values.items())
    return HEAD.replace("available now", "continuous") + f'[source]\nkind = "sensors"\n{keys}'


def test_a_signal_lets_the_batch_finish_and_the_next_run_goes_on_to_the_end(
    spark: "SparkSession", site: Site
) -> None:
    flow = site.flow(plant_text(seconds=60, silent_sensor=3, silent_from_second=20) + SINK)
    before = signal.getsignal(signal.SIGTERM)
    watching = Watching(2, lambda: os.kill(os.getpid(), signal.SIGTERM))
    stopped = run(flow, spark, progress=watching)
    assert watching.reasons == ["SIGTERM"] == [stopped.stopped_by]
    assert 2 <= stopped.batches < 6
    assert stopped.commits == stopped.batches == site.table().version
    assert signal.getsignal(signal.SIGTERM) == before
    checkpoint = Path(flow.checkpoint) / "source"
    assert len(list((checkpoint / "commits").glob("[0-9]*"))) == stopped.batches

    finished = run(flow, spark)
    assert finished.stopped_by == "end"
    assert stopped.batches + finished.batches == 6
    assert (finished.repeated_commits, site.table().version) == (0, 6)
    (plant,) = flow.sources
    assert isinstance(plant, SensorSource)
    expected = arrivals(plant, 0, 60).sort_by(
        [("arrived_at", "ascending"), ("sensor_id", "ascending"), ("ts", "ascending")]
    )
    found = (
        site.table()
        .scan()
        .to_arrow()
        .sort_by([("arrived_at", "ascending"), ("sensor_id", "ascending"), ("ts", "ascending")])
    )
    assert found.equals(expected.cast(found.schema))


def test_a_timeout_ends_a_pipeline_that_has_no_end(spark: "SparkSession", site: Site) -> None:
    flow = site.flow(plant_text() + SINK)
    report = run(flow, spark, timeout=3)
    assert report.stopped_by == "timeout"
    assert report.rows_out == len(site.rows()) > 0


def test_repeats_within_the_watermark_are_dropped(spark: "SparkSession", site: Site) -> None:
    text = plant_text(seconds=40, duplicate_every=2)
    text += 'watermark = { column = "ts", delay = "30 seconds" }\n'
    text += '[[transform]]\nname = "unique"\nunique_by = ["sensor_id", "ts"]\n' + SINK
    flow = site.flow(text)
    report = run(flow, spark)
    (plant,) = flow.sources
    assert isinstance(plant, SensorSource)
    readings = arrivals(plant, 0, 40).group_by(["sensor_id", "ts"]).aggregate([])
    assert report.rows_in > readings.num_rows
    rows = site.rows("plant.readings", "sensor_id", "ts")
    assert len(rows) == len({tuple(row.values()) for row in rows}) == readings.num_rows


def test_a_lost_checkpoint_is_refused_instead_of_writing_all_again(
    spark: "SparkSession", site: Site
) -> None:
    flow = site.flow(HEAD + CSV + SINK)
    site.arrive("a.csv", (f"{DAY}01Z", "a", 1.0))
    run(flow, spark)
    shutil.rmtree(flow.checkpoint)
    with pytest.raises(TokenError, match="checkpoint was deleted"):
        run(flow, spark)
    assert len(site.rows()) == 1


def test_columns_that_were_learned_stay(spark: "SparkSession", site: Site) -> None:
    text = HEAD + "\n".join(line for line in CSV.splitlines() if "schema" not in line) + SINK
    flow = site.flow(text)
    with pytest.raises(RequestError, match=r"columns of .*incoming cannot be learned"):
        run(flow, spark)
    site.arrive("a.csv", (f"{DAY}01Z", "a", 1.0))
    run(flow, spark)
    site.arrive("b.csv", (f"{DAY}02Z", "b", 2.0))
    (site.root / "incoming" / "a.csv").unlink()
    run(flow, spark)
    assert [str(field.type) for field in site.table().schema.fields] == [
        *("timestamptz", "string", "double")
    ]
    assert [row["value"] for row in site.rows()] == [1.0, 2.0]


def test_a_value_that_does_not_fit_stops_the_pipeline(spark: "SparkSession", site: Site) -> None:
    flow = site.flow(HEAD + CSV + SINK)
    site.arrive("a.csv", (f"{DAY}01Z", "a", "much"))
    with pytest.raises(RequestError, match="much") as caught:
        run(flow, spark)
    assert "\n" not in caught.value.message
    assert site.rows() == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("from source", "from sauce", r"the SQL of 'clean': .*`sauce` cannot be found"),
        ("value * 2", "valu * 2", r"the SQL of 'clean': .*`valu` cannot be resolved"),
        ("select *, value", "selct *, value", r"the SQL of 'clean': .*[Ss]yntax error"),
        ("select *,", "drop table x; select *,", r"the SQL of 'clean': .*[Ss]yntax error"),
        ('path = "incoming"', 'path = "nowhere"', "does not exist"),
        ('input = "hot"', 'input = "hot"\ncreate = false', "plant.readings"),
        ("select ts, sensor", "select ts, interval 1 day as d", "which a table cannot hold"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(
    spark: "SparkSession", site: Site, old: str, new: str, said: str
) -> None:
    text = HEAD + CSV + STEPS + SINK + 'input = "hot"\n'
    assert old in text
    with pytest.raises(RequestError, match=said) as caught:
        run(site.flow(text.replace(old, new)), spark)
    assert "\n" not in caught.value.message
    assert "SQLSTATE" not in caught.value.message


def test_a_table_is_followed_and_another_is_joined_to_it(spark: "SparkSession", site: Site) -> None:
    catalog = connect(f"sqlite:///{site.root}/lake/catalog.db")
    readings = catalog.create_table("raw", pa.schema([("sensor", "string"), ("value", "float64")]))
    rooms = catalog.create_table("rooms", pa.schema([("sensor", "string"), ("room", "string")]))
    rooms.append([{"sensor": "a", "room": "north"}, {"sensor": "b", "room": "south"}])
    readings.append([{"sensor": "a", "value": 1.0}])
    text = (
        HEAD
        + """
[[source]]
name = "raw"
kind = "table"
table = "raw"
files_per_batch = 1

[[source]]
name = "rooms"
kind = "table"
table = "rooms"
follow = false

[[transform]]
name = "placed"
sql = "select room, value from raw join rooms using (sensor)"
"""
    )
    flow = site.flow(text + SINK)
    assert run(flow, spark).commits == 1
    readings.append([{"sensor": "b", "value": 2.0}])
    readings.append([{"sensor": "c", "value": 3.0}])
    run(flow, spark)
    assert site.rows() == [{"room": "north", "value": 1.0}, {"room": "south", "value": 2.0}]


def test_new_columns_come_in_only_if_they_are_let_in(spark: "SparkSession", site: Site) -> None:
    flow = site.flow(HEAD + CSV + SINK)
    site.arrive("a.csv", (f"{DAY}01Z", "a", 1.0))
    run(flow, spark)
    wider = site.flow(
        HEAD.replace('"test"', '"wider"').replace('"checkpoint"', '"c2"')
        + CSV
        + STEPS
        + SINK
        + 'input = "clean"'
    )
    with pytest.raises(RequestError, match="twice"):
        run(wider, spark)
    run(replace(wider, sinks=(replace(wider.sinks[0], merge_schema=True),)), spark)
    assert [row["twice"] for row in site.rows()] == [2.0, None]


def test_kafka_without_its_connector_says_how_to_get_it(spark: "SparkSession", site: Site) -> None:
    source = '[source]\nkind = "kafka"\nservers = "h:9092"\ntopic = "t"\nschema = "a int"\n'
    with pytest.raises(RequestError, match="no connector for Kafka") as caught:
        run(site.flow(HEAD + source + SINK), spark)
    assert f"spark-sql-kafka-0-10_2.13:{spark.version}" in caught.value.hint


def test_a_table_that_must_be_there_is_missed_by_name(spark: "SparkSession", site: Site) -> None:
    with pytest.raises(NotFoundError, match=r"plant\.readings") as caught:
        run(site.flow(HEAD + CSV + SINK + "create = false\n"), spark)
    assert "create = true" in caught.value.hint
