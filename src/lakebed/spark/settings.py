"""Settings of a session that hold for the time of one write, and then are as they were.

Some of what a Parquet file looks like can be said to Spark by the session alone. Several threads
may write through one session: the first one in changes it, the last one out puts it back, unless
somebody has set something else in the meantime.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from lakebed.spark.places import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(slots=True)
class _Held:
    """One setting of one session that is ours for now."""

    ours: str
    before: str | None
    user_count: int = 0


@dataclass(frozen=True, slots=True)
class _Ledger:
    lock: Lock = field(default_factory=Lock)
    held: dict[tuple[str, str], _Held] = field(default_factory=dict)


_LEDGER = _Ledger()


@contextmanager
def for_now(spark: "SparkSession", settings: Mapping[str, str]) -> Iterator[None]:
    """Have these settings inside the block."""
    session = _session_id(spark)
    with _LEDGER.lock:
        for name, value in settings.items():
            held = _LEDGER.held.get((session, name))
            if held is None:
                held = _Held(ours=value, before=spark.conf.get(name, None))
                _LEDGER.held[session, name] = held
            held.user_count += 1
            held.ours = value
            spark.conf.set(name, value)
    try:
        yield
    finally:
        with _LEDGER.lock:
            for name in settings:
                _release(spark, session, name)


def _release(spark: "SparkSession", session: str, name: str) -> None:
    held = _LEDGER.held[session, name]
    held.user_count -= 1
    if held.user_count:
        return
    del _LEDGER.held[session, name]
    if spark.conf.get(name, None) != held.ours:
        return  # the user has set it meanwhile
    if held.before is None:
        spark.conf.unset(name)
    else:
        spark.conf.set(name, held.before)


def _session_id(spark: "SparkSession") -> str:
    if is_connect(spark):
        return str(spark.session_id)  # type: ignore[attr-defined]
    return str(spark._jsparkSession.sessionUUID())


__all__ = ["for_now"]
