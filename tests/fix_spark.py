"""One Spark session for each test process, started when first used and stopped at the end."""

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from lakebed.spark.sessions import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Tests start many short jobs: the first compiler alone halves the time until the first of them.
_SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.driver.memory": "2g",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """A session of `lakebed.spark.session` on two cores; tests share it, so they leave no views."""
    places = tmp_path_factory.mktemp("spark")
    settings = _SETTINGS | {
        "spark.sql.warehouse.dir": str(places / "warehouse"),
        "spark.local.dir": str(places / "local"),
    }
    with warnings.catch_warnings():
        # pyspark warns at its import that it does not know pandas 3 yet.
        warnings.simplefilter("ignore")
        started = session("local[2]", **settings)
    yield started
    started.stop()
