"""The sources of a flow as frames of Spark, nearly all of them streaming."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakebed.errors import RequestError
from lakebed.flow.durations import duration_text
from lakebed.flow.flow import Flow, TriggerKind
from lakebed.flow.plant import (
    REPEAT_SECONDS,
    late_lanes,
    name_digits,
    slots_per_second,
)
from lakebed.flow.sources import (
    FileFormat,
    FileSource,
    KafkaFormat,
    KafkaSource,
    RateSource,
    SensorSource,
    Source,
    TableSource,
)
from lakebed.spark.failures import plain_message
from lakebed.spark.schema import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

# A value that does not fit its column stops the pipeline; Spark would make a null of it.
_STRICT = {"mode": "FAILFAST"}
_FORMAT_OPTIONS = {
    FileFormat.CSV: _STRICT | {"header": "true"},
    FileFormat.JSON: _STRICT,
    FileFormat.PARQUET: {},
}
_ERROR_CLASS = re.compile(r"\[[A-Z][A-Z0-9_.]{3,}\] [^\n]+")
_KAFKA_PACKAGE = "org.apache.spark:spark-sql-kafka-0-10_2.13"


def source_frame(spark: "SparkSession", flow: Flow, source: Source) -> "DataFrame":
    """The rows of a source, with its watermark."""
    frame = _frame(spark, flow, source)
    if source.watermark is None:
        return frame
    delay = duration_text(source.watermark.delay_ms)
    return frame.withWatermark(source.watermark.column, delay)


def _frame(spark: "SparkSession", flow: Flow, source: Source) -> "DataFrame":
    match source:
        case FileSource():
            return _files(spark, flow, source)
        case KafkaSource():
            return _kafka(spark, source)
        case RateSource():
            options = {"rowsPerSecond": str(source.rows_per_second)} | dict(source.options)
            return spark.readStream.format("rate").options(**options).load()
        case SensorSource():
            return _sensors(spark, source)
        case TableSource():
            return _table(spark, flow, source)
    raise AssertionError(f"a source of a kind nobody thought of: {source}")


def batch_limit(flow: Flow) -> int | None:
    """After how many batches a flow is over; None if its source does not end."""
    sources = [source for source in flow.sources if source.follows]
    ends = [
        -(-source.seconds // source.seconds_per_batch)
        for source in sources
        if isinstance(source, SensorSource) and source.seconds is not None
    ]
    return max(ends) if len(ends) == len(sources) else None


# ---------------------------------------------------------------------------------------- files


def _files(spark: "SparkSession", flow: Flow, source: FileSource) -> "DataFrame":
    options = _FORMAT_OPTIONS[source.format] | dict(source.options)
    if source.files_per_batch is not None:
        options["maxFilesPerTrigger"] = str(source.files_per_batch)
    columns = (
        _learned(spark, flow, source)
        if source.schema is None
        else spark_schema(source.schema, field_ids=False)
    )
    reader = spark.readStream.format(source.format.value).schema(columns)
    return reader.options(**options).load(source.path)


def _learned(spark: "SparkSession", flow: Flow, source: FileSource) -> "StructType":
    """The columns of a sample; what was learned once stays, whatever the next files hold."""
    from pyspark.sql.types import StructType

    kept = Path(flow.checkpoint) / f"{source.name}.schema.json"
    is_local = "://" not in flow.checkpoint
    if is_local and kept.is_file():
        return StructType.fromJson(json.loads(kept.read_text(encoding="utf-8")))
    from pyspark.errors import AnalysisException

    options = _FORMAT_OPTIONS[source.format] | {"inferSchema": "true"} | dict(source.options)
    place = source.sample or source.path
    try:
        found = spark.read.format(source.format.value).options(**options).load(place).schema
    except AnalysisException as error:
        raise RequestError(
            f"the columns of {place} cannot be learned: {cause(error)}",
            hint=f'Put a file there, or name them: schema = "ts timestamptz, …" in [{source.name}]',
        ) from error
    if is_local:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(found.json(), encoding="utf-8")
    return found


# ---------------------------------------------------------------------------------------- Kafka


def _kafka(spark: "SparkSession", source: KafkaSource) -> "DataFrame":
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as F  # noqa: N812 (Spark's own usage)

    options = {
        "kafka.bootstrap.servers": source.servers,
        "subscribe": source.topic,
        "startingOffsets": source.starting.value,
    } | dict(source.options)
    if source.rows_per_batch is not None:
        options["maxOffsetsPerTrigger"] = str(source.rows_per_batch)
    try:
        messages = spark.readStream.format("kafka").options(**options).load()
    except AnalysisException as error:
        if "kafka" not in str(error).lower():
            raise
        raise RequestError(
            "this Spark has no connector for Kafka",
            hint=f'Add to the pipeline: [spark] jars.packages = "{_KAFKA_PACKAGE}:{spark.version}"',
        ) from error
    if source.format is KafkaFormat.RAW:
        return messages
    assert source.schema is not None, "a source of JSON has a schema"
    columns = spark_schema(source.schema, field_ids=False)
    value = F.from_json(F.col("value").cast("string"), columns, dict(_STRICT))
    return messages.select(value.alias("value")).select("value.*")


# ----------------------------------------------------------------------------------- the others


def _table(spark: "SparkSession", flow: Flow, source: TableSource) -> "DataFrame":
    catalog, warehouse = catalog_of(flow, source)
    if not source.follow:
        from lakebed.spark.reading.read import read
        from lakebed.table.connect import connect

        opened = connect(
            catalog, warehouse=warehouse or None, storage_options=flow.storage_options or None
        )
        return read(spark, opened.table(source.table))
    ends = flow.trigger.kind is TriggerKind.AVAILABLE_NOW
    options = {"catalog": catalog, "triggerAvailableNow": str(ends).lower()}
    if warehouse:
        options["warehouse"] = warehouse
    if source.starting_version is not None:
        options["startingVersion"] = str(source.starting_version)
    if source.files_per_batch is not None:
        options["maxFilesPerTrigger"] = str(source.files_per_batch)
    options |= {f"storage.{key}": value for key, value in flow.storage_options.items()}
    options |= dict(source.options)
    return spark.readStream.format("lakebed").options(**options).load(source.table)


def catalog_of(flow: Flow, part: Any) -> tuple[str, str]:
    """The catalog and warehouse of a sink or source: its own, or else the flow's."""
    if part.catalog:
        return part.catalog, part.warehouse
    if not flow.catalog:
        raise RequestError(
            f"{part.table}: no catalog is named",
            hint='Write catalog = "sqlite:///lake/catalog.db" into the pipeline',
        )
    return flow.catalog, part.warehouse or flow.warehouse


def _sensors(spark: "SparkSession", plant: SensorSource) -> "DataFrame":
    """`lakebed.flow.plant` in SQL, on a source whose offsets mean the same after a restart."""
    width = slots_per_second(plant)
    options = {
        "rowsPerBatch": str(width * plant.seconds_per_batch),
        "startTimestamp": str(plant.start_ms),
        "advanceMillisPerBatch": str(plant.seconds_per_batch * 1_000),
    } | dict(plant.options)
    numbers = spark.readStream.format("rate-micro-batch").options(**options).load()
    if plant.seconds is not None:
        numbers = numbers.where(f"value < {plant.seconds * width}")
    count, late = plant.sensors, late_lanes(plant)  # slots beyond these are for repeats
    late_offset = f"pmod(second * 7919 + {plant.seed * 104_729}, {count})"
    slots = numbers.selectExpr(f"value div {width} as now", f"value % {width} as slot")
    seconds = slots.selectExpr(
        "now",
        "slot",
        f"case when slot < {count} then now "
        f"when slot < {count + late} "
        f"then now - 1 - pmod((slot - {count}) * 37 + {plant.seed}, {plant.delay_seconds}) "
        f"else now - {REPEAT_SECONDS} end as second",
    )
    repeat_offset = f"pmod(second * 6101 + {plant.seed * 15_485_863 + 13}, {count})"
    readings = seconds.selectExpr(
        *("now", "slot", "second"),
        f"case when slot < {count} then slot when slot < {count + late} "
        f"then pmod({late_offset} + {plant.late_every} * (slot - {count}), {count}) "
        f"else pmod({repeat_offset} + {plant.duplicate_every} * (slot - {count + late}), {count}) "
        "end as sensor",
    ).where("second >= 0")
    if late:
        place = f"pmod(sensor - {late_offset}, {count})"
        held_back = f"{place} % {plant.late_every} = 0 and {place} div {plant.late_every} < {late}"
        readings = readings.where(f"slot >= {count} or not ({held_back})")
    if plant.silent_sensor is not None:
        silent = f"sensor = {plant.silent_sensor} and second >= {plant.silent_from_second}"
        readings = readings.where(f"not ({silent})")
    return readings.selectExpr(*_reading_columns(plant))


def _reading_columns(plant: SensorSource) -> tuple[str, ...]:
    phase = "((second + sensor * 7) % 3600)"
    half = f"({phase} % 1800)"
    arc = f"({half} * (1800 - {half}) div 270)"
    mixed = f"(second * 31 + sensor * 17 + {plant.seed})"
    folded = f"({mixed} % 10007)"
    noise = f"(({folded} * {folded} * 7919 + {mixed}) % 1009)"
    swing = f"if({phase} < 1800, {arc}, -{arc})"
    start = plant.start_ms
    return (
        f"timestamp_millis({start} + second * 1000 + sensor * 997 % 1000) as ts",
        f"concat('sensor-', lpad(cast(sensor as string), {name_digits(plant)}, '0')) as sensor_id",
        f"cast(20000 + sensor % 50 * 200 + {swing} + {noise} as double) / 1000d as value",
        f"cast({noise} >= 1000 as int) as status",
        f"timestamp_millis({start} + (now + 1) * 1000) as arrived_at",
    )


def cause(error: BaseException) -> str:
    """What Spark says in one line: the last cause it names, without codes, plan and stack."""
    text = str(error)
    named = _ERROR_CLASS.findall(text)
    return plain_message(named[-1] if named else text)


__all__ = ["batch_limit", "catalog_of", "cause", "source_frame"]
