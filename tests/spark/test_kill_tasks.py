"""Tasks that fail, die or lag behind their own copies add no row and lose none: messages count.

On a cluster with speculation on: a local Spark neither repeats tasks nor doubles them. Spark puts
a copy of a task on another host only, so the two workers call this machine by two names.
"""

from collections.abc import Iterator

import pytest
from tests.spark.driving import Drive, drive

from lakebed.testing.spark_cluster import SparkCluster

pytestmark = [
    pytest.mark.spark,
    pytest.mark.crash,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("spark-cluster"),
]

SINKS = ("driver", "executors", "format")
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "1s",
    "spark.locality.wait": "0s",
}
ALL = list(range(400))


@pytest.fixture(scope="module")
def two_hosts() -> Iterator[SparkCluster]:
    with SparkCluster(hosts=("127.0.0.1", "127.0.0.2")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def driven(two_hosts: SparkCluster, tmp_path_factory: pytest.TempPathFactory) -> Drive:
    place = tmp_path_factory.mktemp("faults")
    argument = {
        "master": two_hosts.url,
        "settings": two_hosts.settings | SPECULATION,
        "scratch": str(place),
        "parts": [f"{fault}_{sink}" for fault in ("raises", "dies", "lags") for sink in SINKS],
    }
    return drive("drive_faults", argument, place / "driver")


def check(driven: Drive, name: str) -> None:
    found = driven[name]
    assert {"attempt-0", "attempt-1"} <= set(found["attempts"]), "it was tried twice"
    assert sorted(found["values"]) == ALL
    assert found["version"] == 1
    assert driven[f"{name} later"]["version"] == 1


@pytest.mark.parametrize("sink", SINKS)
def test_a_task_that_fails_after_it_gave_its_rows_is_repeated(driven: Drive, sink: str) -> None:
    check(driven, f"raises_{sink}")


@pytest.mark.parametrize("sink", SINKS)
def test_a_python_worker_that_is_killed_is_replaced(driven: Drive, sink: str) -> None:
    check(driven, f"dies_{sink}")


@pytest.mark.parametrize("sink", SINKS)
def test_of_a_task_and_its_speculative_copy_one_counts(driven: Drive, sink: str) -> None:
    check(driven, f"lags_{sink}")
