"""A Spark session that suits Lakebed, and any other session made to know it.

`session` starts one for a laptop or a cluster. `register` takes one that is there already; it
changes nothing that could change what the user's other queries mean.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakebed.require import require
from lakebed.spark.java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOPBACK = "127.0.0.1"
_LAPTOP_MASTER = "local[*]"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_LOG_FILE = Path(__file__).with_name("log4j2.properties")
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
}


def session(master: str | None = None, **conf: object) -> "SparkSession":
    """Start a Spark session with settings that suit Lakebed.

    If one runs already, that one is given, with `conf` and nothing else set on it.

    Args:
        master: `local[4]`, `spark://host:7077`, `sc://host:15002` (Spark Connect), …; all cores
            of this machine if None, unless `SPARK_MASTER` names another.
        conf: settings of Spark; they win over ours. Write `_` for `.`, or give a dictionary:
            `session(**{"spark.executor.memory": "4g"})`.

    Raises:
        RequestError: pyspark or Java is missing; the message says how to get it.
    """
    require("pyspark", extra="spark")
    from pyspark.sql import SparkSession

    given = {_spelt(name): _text(value) for name, value in conf.items()}
    running = SparkSession.getActiveSession()
    if running is not None:
        for name, value in given.items():
            running.conf.set(name, value)
        return running
    place = master or os.environ.get("SPARK_MASTER") or _LAPTOP_MASTER
    builder: Any = SparkSession.builder.appName("lakebed")
    if place.startswith("sc://"):
        builder, settings = builder.remote(place), given
    else:
        _prepare_environment(place)
        builder, settings = builder.master(place), _settings(place, given)
    for name, value in settings.items():
        builder = builder.config(name, value)
    started: SparkSession = builder.getOrCreate()
    return started


def register(spark: "SparkSession") -> "SparkSession":
    """Make `format("lakebed")` known to a session.

    Spark finds it without this where the package is installed for the driver's Python. Call it
    where it was shipped with `addPyFile`, or where only a Connect client has it.
    """
    from lakebed.spark.source.source import LakebedSource

    spark.dataSource.register(LakebedSource)
    return spark


def _prepare_environment(master: str) -> None:
    """What Spark takes from the environment of the process that starts it."""
    ensure_java()
    # The workers' Python must be the driver's: they unpickle each other's objects.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", _LOOPBACK)


def _settings(master: str, given: Mapping[str, str]) -> dict[str, str]:
    """Our settings with the caller's over them."""
    settings = dict(_SETTINGS)
    if master.startswith("local"):
        settings |= _LAPTOP_SETTINGS
        settings["spark.sql.shuffle.partitions"] = str(os.cpu_count() or 1)
    settings |= given
    quiet = f"-Dlog4j2.configurationFile={_LOG_FILE.as_uri()}"
    if "log4j" not in settings.get(_JAVA_OPTIONS, ""):
        settings[_JAVA_OPTIONS] = f"{quiet} {given.get(_JAVA_OPTIONS, '')}".strip()
    return settings


def _spelt(name: str) -> str:
    return name if "." in name else name.replace("_", ".")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


__all__ = ["register", "session"]
