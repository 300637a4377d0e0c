"""Lakebed on Spark: batch and streaming, from a laptop to a cluster.

    from lakebed import spark as lake

    spark = lake.session()
    lake.read(spark, table, where="ts >= '2026-01-01'").groupBy("sensor_id").count()
    lake.write(frame, table, mode="append")

Names are loaded when they are first used, so that a Spark worker pays for what it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakebed.spark.attach import attach
    from lakebed.spark.merge import merge
    from lakebed.spark.pipeline import run
    from lakebed.spark.read import read
    from lakebed.spark.rewrite import delete, update
    from lakebed.spark.session import register, session
    from lakebed.spark.sink import foreach_batch
    from lakebed.spark.stream_read import read_stream
    from lakebed.spark.view import view
    from lakebed.spark.write import write

_HOMES = {
    "attach": "attach",
    "delete": "rewrite",
    "foreach_batch": "sink",
    "merge": "merge",
    "read": "read",
    "read_stream": "stream_read",
    "register": "session",
    "run": "pipeline",
    "session": "session",
    "update": "rewrite",
    "view": "view",
    "write": "write",
}

__all__ = [
    "attach",
    "delete",
    "foreach_batch",
    "merge",
    "read",
    "read_stream",
    "register",
    "run",
    "session",
    "update",
    "view",
    "write",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'lakebed.spark' has no attribute {name!r}")
    return getattr(import_module(f"lakebed.spark.{home}"), name)


def __dir__() -> list[str]:
    return list(__all__)
