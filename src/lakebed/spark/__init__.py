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
    from lakebed.spark.pipeline.run import run
    from lakebed.spark.reading.attach import attach
    from lakebed.spark.reading.read import read
    from lakebed.spark.reading.view import view
    from lakebed.spark.sessions import register, session
    from lakebed.spark.ship import ship
    from lakebed.spark.source.stream_read import read_stream
    from lakebed.spark.streaming.sink import foreach_batch
    from lakebed.spark.writing.merge import merge
    from lakebed.spark.writing.rewrite import delete, rewrite, update
    from lakebed.spark.writing.write import write

_HOMES = {
    "attach": "reading.attach",
    "delete": "writing.rewrite",
    "foreach_batch": "streaming.sink",
    "merge": "writing.merge",
    "read": "reading.read",
    "read_stream": "source.stream_read",
    "register": "sessions",
    "rewrite": "writing.rewrite",
    "run": "pipeline.run",
    "session": "sessions",
    "ship": "ship",
    "update": "writing.rewrite",
    "view": "reading.view",
    "write": "writing.write",
}

__all__ = [
    "attach",
    "delete",
    "foreach_batch",
    "merge",
    "read",
    "read_stream",
    "register",
    "rewrite",
    "run",
    "session",
    "ship",
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
