"""Through Spark Connect the client plans and commits; what needs the JVM is refused by name."""

import pytest
from tests.spark.driving import Drive, drive
from tests.spark.test_shipping import python_without_the_package

from lakebed.testing.spark_cluster import ConnectServer

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.xdist_group("spark-cluster"),
    pytest.mark.timeout(600),
]

ALL = list(range(2_000))


@pytest.fixture(scope="module")
def driven(tmp_path_factory: pytest.TempPathFactory) -> Drive:
    place = tmp_path_factory.mktemp("connect")
    python = python_without_the_package(place / "bare")
    argument = {
        "catalog": f"sqlite:///{place}/lake/catalog.db",
        "scratch": str(place),
        "installed": str(python.with_name("installed")),
    }
    with ConnectServer(environment={"PYSPARK_PYTHON": str(python)}) as server:
        env = {"SPARK_CONNECT_AUTHENTICATE_TOKEN": server.token}
        return drive("drive_connect", argument | {"url": server.url}, place / "driver", env)


def test_the_session_is_one_of_connect(driven: Drive) -> None:
    assert driven["session"]["is connect"]
    assert not driven["session"]["has a JVM"]


def test_the_client_plans_and_the_server_reads(driven: Drive) -> None:
    assert driven["read native"]["values"] == list(range(1_500, 2_000))


@pytest.mark.parametrize(
    ("way", "maker"),
    [("native", "parquet-mr"), ("driver", "parquet-cpp"), ("workers", "parquet-cpp")],
)
def test_a_frame_is_written(driven: Drive, way: str, maker: str) -> None:
    assert driven[f"write {way}"]["values"] == ALL
    assert driven[f"write {way}"]["makers"] == [maker]


def test_workers_of_the_server_get_the_package_from_the_client(driven: Drive) -> None:
    assert "No module named 'lakebed'" in driven["read workers before"]["message"]
    assert driven["read workers"]["count"] == 2_000


def test_the_format_is_known_after_shipping(driven: Drive) -> None:
    assert driven["format"]["values"] == ALL
    assert driven["format"]["count"] == 2_000


def test_a_stream_writes_each_batch_once(driven: Drive) -> None:
    assert driven["stream"]["values"] == ALL
    assert driven["stream"]["version"] == 2


def test_attaching_is_refused_with_what_to_do_instead(driven: Drive) -> None:
    assert driven["attach"]["error type"] == "RequestError"
    assert "Connect" in driven["attach"]["message"]
