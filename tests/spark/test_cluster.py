"""On a cluster of a master and two workers everything is as on a laptop, killed executors too."""

from collections.abc import Callable

import pytest
from tests.spark.driving import Drive, drive, listening

from lakebed.clock import SystemClock
from lakebed.testing.spark_cluster import SparkCluster

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ALL = [20_000, 20_000, 199_990_000]  # rows, different values, their sum
ON_CLUSTER = [pytest.mark.xdist_group("spark-cluster"), pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def driven(spark_cluster: SparkCluster, tmp_path_factory: pytest.TempPathFactory) -> Drive:
    place = tmp_path_factory.mktemp("cluster")
    argument = {
        "master": spark_cluster.url,
        "settings": spark_cluster.settings,
        "catalog": f"sqlite:///{place}/lake/catalog.db",
        "scratch": str(place),
    }
    return drive("drive_cluster", argument, place / "driver")


class TestOnCluster:
    pytestmark = ON_CLUSTER

    def test_tasks_run_on_both_executors(self, driven: Drive) -> None:
        assert driven["executors"]["daemons"] == 2
        assert driven["executors"]["master"].startswith("spark://127.0.0.1:")

    def test_a_read_finds_what_the_embedded_reader_finds(self, driven: Drive) -> None:
        found = driven["read"]
        assert found["native"] == found["workers"] == [20_000, 199_990_000, 7]
        assert found["native filter"] == found["workers filter"]
        assert found["native filter"][:2] == found["embedded filter"] == [1_000, 9_499_500]

    @pytest.mark.parametrize(
        ("way", "maker"),
        [
            ("native", "parquet-mr"),
            ("driver", "parquet-cpp"),
            ("workers", "parquet-cpp"),
            ("format", "parquet-cpp"),
        ],
    )
    def test_a_frame_is_written(self, driven: Drive, way: str, maker: str) -> None:
        assert driven[f"write {way}"]["held"] == ALL
        assert driven[f"write {way}"]["makers"] == [maker]

    def test_the_format_reads(self, driven: Drive) -> None:
        assert driven["format"]["read"] == [20_000, 199_990_000, 7]

    def test_a_stream_writes_each_batch_once(self, driven: Drive) -> None:
        assert driven["stream"]["held"] == ALL
        assert driven["stream"]["version"] == 3

    @pytest.mark.crash
    @pytest.mark.parametrize("way", ["native", "workers", "format"])
    def test_an_executor_killed_while_it_writes_costs_no_row_and_doubles_none(
        self, driven: Drive, way: str
    ) -> None:
        found = driven[f"killed {way}"]
        assert found["attempts"] == ["attempt-0", "attempt-1"], "it was killed, and tried again"
        assert found["held"] == ALL
        assert found["version"] == 1

    def test_it_listens_on_the_loopback_only(
        self, spark_cluster: SparkCluster, driven: Drive
    ) -> None:
        servers = {place for each in spark_cluster.processes() for place in listening(each.pid)}
        assert servers == {"127.0.0.1"}, "master and workers"
        assert driven["executors"]["listen at"] == ["127.0.0.1"], "executors and the driver"

    def test_no_executor_outlives_its_driver(
        self, spark_cluster: SparkCluster, driven: Drive
    ) -> None:
        assert driven["executors"]
        eventually(lambda: not spark_cluster.executors())


def eventually(is_so: Callable[[], bool]) -> None:
    clock = SystemClock()
    deadline_ms = clock.monotonic_ms() + 20_000
    while not is_so():
        assert clock.monotonic_ms() < deadline_ms
        clock.sleep_ms(50)
