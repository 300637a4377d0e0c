"""A Spark session that suits Lakebed, and any other session made to know it.

`session` starts one for a laptop or a cluster. `register` takes one that is there already; it
changes nothing that could change what the user's other queries mean.
"""

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lakebed.require import require
from lakebed.spark.java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOPBACK = "127.0.0.1"
_LAPTOP_MASTER = "local[*]"
_SETTINGS: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    # Without it timestamps are INT96, which have no statistics: nothing could be pruned.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
_LAPTOP_SETTINGS: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": _LOOPBACK,
    "spark.driver.bindAddress": _LOOPBACK,
    "spark.log.level": "ERROR",
}


def session(master: str | None = None, **conf: object) -> "SparkSession":
    """Start a Spark session with settings that suit Lakebed, or give the one that runs.

    Args:
        master: `local[4]`, `spark://host:7077`, …; all cores of this machine if None, unless
            `SPARK_MASTER` or a setting of Spark's own names one.
        conf: settings of Spark. Python has no dots in names, so write `_` for `.` where that is
            unambiguous, or pass a dictionary: `session(**{"spark.executor.memory": "4g"})`.
            They win over ours.

    Raises:
        RequestError: pyspark or Java is missing; the message says how to get it.
    """
    require("pyspark", extra="spark")
    ensure_java()
    # The workers' Python must be the driver's: they unpickle each other's objects.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    from pyspark.sql import SparkSession

    place = master or os.environ.get("SPARK_MASTER") or _LAPTOP_MASTER
    builder: Any = SparkSession.builder.appName("lakebed").master(place)
    for name, value in _defaults(place, conf).items():
        builder = builder.config(name, value)
    started: SparkSession = builder.getOrCreate()
    return register(started)


def register(spark: "SparkSession") -> "SparkSession":
    """Make `format("lakebed")` known to a session; needed only where Spark finds no packages."""
    from lakebed.spark.source import LakebedSource

    spark.dataSource.register(LakebedSource)
    return spark


def _defaults(master: str, conf: Mapping[str, object]) -> dict[str, str]:
    """Our settings with the caller's over them."""
    settings = dict(_SETTINGS)
    if master.startswith("local"):
        settings |= _LAPTOP_SETTINGS
        settings["spark.sql.shuffle.partitions"] = str(os.cpu_count() or 1)
    given = {_spelt(name): _text(value) for name, value in conf.items()}
    return settings | given


def _spelt(name: str) -> str:
    return name if "." in name else name.replace("_", ".")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


__all__ = ["register", "session"]
