"""What every test shares; fixtures that start a server live in their own `fix_*.py`."""

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
