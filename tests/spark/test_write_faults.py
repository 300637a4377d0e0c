"""Tasks that fail or die put nothing into a table; those that replace them do, once."""

from pathlib import Path

import pytest
from tests.spark.driving import Drive, drive

from lakebed.testing.spark_cluster import JAVA_OPTIONS

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROWS = 4_000
WAYS = ["native", "workers"]


@pytest.fixture(scope="module")
def troubled(tmp_path_factory: pytest.TempPathFactory) -> Drive:
    place: Path = tmp_path_factory.mktemp("faults")
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        "spark.local.dir": str(place / "local"),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.parquet.outputTimestampType": "INT96",
    }
    argument = {
        "master": "local[2,3]",
        "catalog": f"sqlite:///{place}/lake/catalog.db",
        "settings": settings,
    }
    return drive("drive_write_faults", argument, place / "driver")


@pytest.mark.timeout(600)
@pytest.mark.xdist_group("spark-faults")
class TestTroubledTasks:
    @pytest.mark.parametrize("way", WAYS)
    def test_tasks_that_fail_or_die_write_their_rows_once(self, troubled: Drive, way: str) -> None:
        found = troubled[f"{way} once"]
        assert found["says"] == ""
        assert (found["rows"], found["distinct"]) == (ROWS, ROWS)
        if way == "native":
            assert found["on_disk"] == found["listed"], "Spark has moved what succeeded, only"

    @pytest.mark.parametrize("way", WAYS)
    def test_a_job_that_fails_for_good_leaves_the_table_as_it_was(
        self, troubled: Drive, way: str
    ) -> None:
        found = troubled[f"{way} always"]
        assert "OSError: the disk is gone for good" in found["says"]
        assert "Nothing was changed" in found["says"]
        assert (found["rows"], found["version"]) == (0, 0)
        if way == "native":
            assert found["on_disk"] == 0
