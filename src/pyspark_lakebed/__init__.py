"""Where Spark looks: it imports modules named `pyspark_*` and registers their `DefaultSource`."""

from lakebed.spark.source.source import LakebedSource as DefaultSource

__all__ = ["DefaultSource"]
