"""Lakebed on Spark: batch and streaming, from a laptop to a cluster.

    from lakebed import spark as lake

    spark = lake.session()
    lake.read(spark, table, where="ts >= '2026-01-01'").groupBy("sensor_id").count()
    lake.write(frame, table, mode="append")

Names are loaded when they are first used, so that a Spark worker pays for what it needs.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakebed.spark.attach import attach
    from lakebed.spark.merge import merge
    from lakebed.spark.pipeline import run
    from lakebed.spark.read import read
    from lakebed.spark.rewrite import delete, rewrite, update
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
    "rewrite": "rewrite",
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
    "rewrite",
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


class _Facade(ModuleType):
    """Keeps `lakebed.spark.write` a function: the import of a module of that name would hide it."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Facade
