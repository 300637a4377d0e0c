"""A Spark cluster as a fixture; sessions on it are in other processes. Tests asked for by name."""

import os
from collections.abc import Iterator

import pytest

from lakebed.testing.spark_cluster import SparkCluster

ASKED_FOR = {"s3a": "LAKEBED_TEST_S3A"}  # marker: the variable that must be set to 1


@pytest.fixture(scope="module")
def spark_cluster() -> Iterator[SparkCluster]:
    with SparkCluster() as cluster:
        yield cluster


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests that fetch something from the network, unless they are asked for."""
    left_out = {marker for marker, name in ASKED_FOR.items() if os.environ.get(name) != "1"}
    dropped = [item for item in items if left_out & {mark.name for mark in item.iter_markers()}]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if item not in dropped]
