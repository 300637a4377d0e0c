"""`format("lakebed")`: Lakebed as a data source of Spark's.

    spark.read.format("lakebed").option("catalog", "sqlite:////lake/catalog.db").load("plant.readings")

Spark makes an object of this class for each frame and pickles it from process to process: all it
knows is its options.
"""

from pyspark.sql.datasource import DataSource


class LakebedSource(DataSource):
    """What Spark finds under the name "lakebed"."""

    @classmethod
    def name(cls) -> str:
        """The name that `format()` takes."""
        return "lakebed"
