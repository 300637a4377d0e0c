"""A Spark session with Delta in it, rows for it, and the batches of a stream."""

import time
from collections.abc import Callable
from typing import Any

from lakebed import spark as lake

DELTA_PACKAGE = "io.delta:delta-spark_4.1_2.13:4.4.0"
_BATCH_ROWS = 1_000
_START = "timestamp'2026-01-01 00:00:00'"


def start() -> Any:
    """One session for all systems, tuned by nobody for any of them."""
    return lake.session(
        "local[2]",
        **{
            "spark.driver.memory": "6g",
            "spark.jars.packages": DELTA_PACKAGE,
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        },
    )


def frame(spark: Any, count: int, *, days: int) -> Any:
    """Readings of 1,000 sensors in order of time, spread over some days."""
    step_us = days * 86_400_000_000 // count
    return spark.range(0, count, 1, 8 if count > 100_000 else 1).selectExpr(
        f"timestamp_micros(unix_micros({_START}) + id * {step_us}) as ts",
        "concat('sensor-', lpad(cast(id % 1000 as string), 4, '0')) as sensor_id",
        "round(20 + 10 * sin(id / 50.0) + (id * 7919 % 100) / 100, 2) as value",
        "cast(id * 31 % 4 as int) as status",
    )


def stream_batches_ms(
    spark: Any, sink: Callable[[Any], Any], checkpoint: str, count: int
) -> list[float]:
    """How long Spark's step `addBatch` took in each micro-batch, after the first few."""
    source = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", _BATCH_ROWS)
        .option("numPartitions", 1)
        .load()
        .selectExpr(
            "timestamp as ts",
            "concat('sensor-', lpad(cast(value % 1000 as string), 4, '0')) as sensor_id",
            "cast(value % 100 as double) as value",
            "cast(value % 4 as int) as status",
        )
    )
    writer = source.writeStream.option("checkpointLocation", checkpoint)
    query = sink(writer).trigger(processingTime="0 seconds").start()
    warm_up = 5
    found: dict[int, float] = {}
    while len(found) < count + warm_up:
        time.sleep(0.05)
        if not query.isActive:
            raise RuntimeError(f"the stream ended: {query.exception()}")
        for progress in query.recentProgress:
            if progress["numInputRows"]:
                found[progress["batchId"]] = float(progress["durationMs"]["addBatch"])
    query.stop()
    return [found[batch] for batch in sorted(found)][warm_up:]
