"""What every test shares; fixtures that start a server live in their own `fix_*.py`."""

import pytest
from hypothesis import settings

pytest_plugins = [
    "tests.fix_catalogs",
    "tests.fix_postgres",
    "tests.fix_s3",
    "tests.fix_spark",
    "tests.fix_spark_cluster",
]

# A deadline measures the machine, not the code: two workers on two cores would trip over it.
settings.register_profile("lakebed", deadline=None)
settings.load_profile("lakebed")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give all tests of the shared Spark session to one process: a second JVM costs more."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))
