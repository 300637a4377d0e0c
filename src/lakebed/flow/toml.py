"""A flow from TOML, and back.

name = "plant-readings"
checkpoint = "checkpoints/plant-readings"     # relative paths start at this file
trigger = "10 seconds"                        # or "continuous", "available now", "once"

[source]
kind = "files"
path = "incoming"
format = "csv"
schema = "ts timestamptz, sensor_id string, value double"

[[transform]]
name = "clean"
sql = "select * from source where value is not null"

[[sink]]
table = "plant.readings"
partition_by = ["day(ts)"]
"""

import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lakebed.errors import NotFoundError, RequestError
from lakebed.flow.durations import parse_duration
from lakebed.flow.flow import Flow, Sink, Transform, Trigger, TriggerKind, nearest
from lakebed.flow.placing import anchored
from lakebed.flow.section import Section
from lakebed.flow.sources import (
    FileFormat,
    FileSource,
    KafkaFormat,
    KafkaSource,
    KafkaStart,
    RateSource,
    SensorSource,
    Source,
    TableSource,
    Watermark,
)
from lakebed.format.schema_text import parse_schema

_FILE_SIZE_BYTES_MAX = 1 << 20
_SHARED_KEYS = ("kind", "name", "watermark", "options")
_FLOW_KEYS = (
    *("name", "checkpoint", "trigger", "catalog", "warehouse"),
    *("source", "transform", "sink", "storage_options", "spark"),
)
_SINK_KEYS = (
    *("table", "input", "catalog", "warehouse"),
    *("create", "partition_by", "merge_schema", "mode"),
)
_FOR_EVER = {kind.value: kind for kind in TriggerKind if kind is not TriggerKind.INTERVAL}


def read_flow(path: str | os.PathLike[str]) -> Flow:
    """Read a flow from a file; relative paths in it start at the file's directory.

    Raises:
        NotFoundError: there is no such file.
        RequestError: it does not describe a flow; the message says where and what is allowed.
    """
    place = Path(path)
    try:
        if place.stat().st_size > _FILE_SIZE_BYTES_MAX:
            raise RequestError(f"{place} is too large to describe a pipeline")
        text = place.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no file {place}", hint="Name a pipeline's TOML") from error
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise RequestError(f"{place} cannot be read: {error}") from error
    return anchored(parse_flow(text, file=str(place)), place.absolute().parent)


def parse_flow(text: str, *, file: str = "pipeline") -> Flow:
    """Read a flow from text; `file` is what errors call it."""
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise RequestError(f"{file} is not TOML: {error}", file=file) from error
    section = Section(file, "", document, _FLOW_KEYS)
    name = section.text("name")
    checkpoint = section.text("checkpoint")
    trigger = section.converted("trigger", _trigger, section.text("trigger", "continuous"))
    sources = tuple(_each(section, "source", _source, needed=True))
    transforms = tuple(_each(section, "transform", _transform))
    sinks = tuple(_each(section, "sink", _sink, needed=True))
    engine = {f"spark.{key}": value for key, value in section.scalars("spark").items()}
    return section.built(
        lambda: Flow(
            name=name,
            checkpoint=checkpoint,
            trigger=trigger,
            sources=sources,
            transforms=transforms,
            sinks=sinks,
            catalog=section.text("catalog", ""),
            warehouse=section.text("warehouse", ""),
            storage_options=section.scalars("storage_options"),
            engine=engine,
        )
    )


def _each(
    document: Section, key: str, read: Callable[[str, str, Any], Any], *, needed: bool = False
) -> list[Any]:
    found = document.tables(key, needed=needed)
    alone = len(found) == 1
    return [
        read(document.file, key if alone else f"{key}[{number}]", values)
        for number, values in enumerate(found, start=1)
    ]


def _trigger(text: str) -> Trigger:
    if text.replace("_", " ") in _FOR_EVER:
        return Trigger(_FOR_EVER[text.replace("_", " ")])
    try:
        return Trigger(TriggerKind.INTERVAL, parse_duration(text))
    except RequestError as error:
        raise RequestError(
            f"{text!r} is no trigger{nearest(text, _FOR_EVER)}",
            hint=f'Use one of: {", ".join(_FOR_EVER)}, or an interval as in "10 seconds"',
        ) from error


def _transform(file: str, place: str, values: Any) -> Transform:
    section = Section(file, place, values, ("name", "sql", "unique_by"))
    return section.built(
        lambda: Transform(
            name=section.text("name"),
            sql=section.text("sql", ""),
            unique_by=section.texts("unique_by"),
        )
    )


def _sink(file: str, place: str, values: Any) -> Sink:
    section = Section(file, place, values, _SINK_KEYS)
    mode = section.text("mode", "append")
    if mode != "append":
        raise section.error("mode", f"is {mode!r}", hint="A pipeline appends: leave mode out")
    return section.built(
        lambda: Sink(
            table=section.text("table"),
            input=section.text("input", ""),
            catalog=section.text("catalog", ""),
            warehouse=section.text("warehouse", ""),
            create=section.flag("create", default=True),
            partition_by=section.texts("partition_by"),
            merge_schema=section.flag("merge_schema", default=False),
        )
    )


# -------------------------------------------------------------------------------------- sources


def _source(file: str, place: str, values: Any) -> Source:
    kind = values.get("kind") if isinstance(values, dict) else None
    keys, read = _KINDS.get(kind, ((), None)) if isinstance(kind, str) else ((), None)
    if read is None:
        everything = [key for more, _ in _KINDS.values() for key in more]
        section = Section(file, place, values, (*_SHARED_KEYS, *dict.fromkeys(everything)))
        given = section.text("kind")
        raise section.error(
            "kind",
            f"is {given!r}{nearest(given, _KINDS)}",
            hint=f"Use one of: {', '.join(_KINDS)}",
        )
    section = Section(file, place, values, (*_SHARED_KEYS, *keys))
    shared = {
        "name": section.text("name", "source"),
        "watermark": _watermark(section),
        "options": section.scalars("options"),
    }
    made: Source = section.built(lambda: read(section, shared))
    return made


def _watermark(section: Section) -> Watermark | None:
    if "watermark" not in section.values:
        return None
    inner = Section(
        section.file,
        f"{section.place}.watermark",
        section.values["watermark"],
        ("column", "delay"),
    )
    return inner.built(lambda: Watermark(inner.text("column"), inner.duration_ms("delay")))


def _schema(section: Section) -> Any:
    if "schema" not in section.values:
        return None
    return section.converted("schema", parse_schema, section.text("schema"))


def _files(section: Section, shared: dict[str, Any]) -> Source:
    return FileSource(
        **shared,
        path=section.text("path"),
        format=section.choice("format", FileFormat),
        schema=_schema(section),
        sample=section.text("sample", ""),
        files_per_batch=section.number("files_per_batch", None),
    )


def _kafka(section: Section, shared: dict[str, Any]) -> Source:
    return KafkaSource(
        **shared,
        servers=section.text("servers"),
        topic=section.text("topic"),
        format=section.choice("format", KafkaFormat, KafkaFormat.JSON),
        schema=_schema(section),
        starting=section.choice("starting", KafkaStart, KafkaStart.EARLIEST),
        rows_per_batch=section.number("rows_per_batch", None),
    )


def _rate(section: Section, shared: dict[str, Any]) -> Source:
    return RateSource(**shared, rows_per_second=section.number("rows_per_second", 1) or 0)


def _sensors(section: Section, shared: dict[str, Any]) -> Source:
    given: dict[str, Any] = {
        key: section.number(key, None) for key in _SENSOR_NUMBERS if key in section.values
    }
    if "start" in section.values:
        given["start_ms"] = section.time_ms("start", 0)
    return SensorSource(**shared, **given)


def _table(section: Section, shared: dict[str, Any]) -> Source:
    return TableSource(
        **shared,
        table=section.text("table"),
        catalog=section.text("catalog", ""),
        warehouse=section.text("warehouse", ""),
        follow=section.flag("follow", default=True),
        starting_version=section.number("starting_version", None),
        files_per_batch=section.number("files_per_batch", None),
    )


_SENSOR_NUMBERS = (
    *("sensors", "seed", "seconds", "seconds_per_batch", "late_every", "delay_seconds"),
    *("duplicate_every", "silent_sensor", "silent_from_second"),
)
_KINDS: dict[str, tuple[tuple[str, ...], Callable[[Section, dict[str, Any]], Source]]] = {
    "files": (("path", "format", "schema", "sample", "files_per_batch"), _files),
    "kafka": (("servers", "topic", "format", "schema", "starting", "rows_per_batch"), _kafka),
    "rate": (("rows_per_second",), _rate),
    "sensors": (("start", *_SENSOR_NUMBERS), _sensors),
    "table": (
        ("table", "catalog", "warehouse", "follow", "starting_version", "files_per_batch"),
        _table,
    ),
}
