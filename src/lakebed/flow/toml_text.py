"""A flow as TOML text: what `lakebed.flow.toml.parse_flow` reads back as the same value."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from datetime import UTC, datetime, timedelta
from typing import Any

from lakebed.flow.durations import duration_text
from lakebed.flow.flow import Flow, Trigger, TriggerKind
from lakebed.flow.sources import (
    FileSource,
    KafkaSource,
    RateSource,
    SensorSource,
    Source,
    TableSource,
    Watermark,
)
from lakebed.format.schema import Schema
from lakebed.format.schema_text import schema_text

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KINDS = {
    FileSource: "files",
    KafkaSource: "kafka",
    RateSource: "rate",
    SensorSource: "sensors",
    TableSource: "table",
}


def flow_text(flow: Flow) -> str:
    """Write a flow; what has its default is left out."""
    return "\n".join(_lines(flow)) + "\n"


def _lines(flow: Flow) -> Iterator[str]:
    yield f"name = {_text(flow.name)}"
    yield f"checkpoint = {_text(flow.checkpoint)}"
    yield f"trigger = {_text(_trigger_text(flow.trigger))}"
    if flow.catalog:
        yield f"catalog = {_text(flow.catalog)}"
    if flow.warehouse:
        yield f"warehouse = {_text(flow.warehouse)}"
    for source in flow.sources:
        yield from ("", "[[source]]", f"kind = {_text(kind_of(source))}")
        yield from _keys(source)
    for transform in flow.transforms:
        yield from ("", "[[transform]]", *_keys(transform))
    for sink in flow.sinks:
        yield from ("", "[[sink]]", *_keys(sink))
    if flow.storage_options:
        yield from ("", "[storage_options]", *_pairs(flow.storage_options))
    if flow.engine:
        yield from ("", "[spark]")
        yield from _pairs({key.removeprefix("spark."): v for key, v in flow.engine.items()})


def kind_of(source: Source) -> str:
    """The word for a source in TOML."""
    return _KINDS[type(source)]


def _trigger_text(trigger: Trigger) -> str:
    if trigger.kind is TriggerKind.INTERVAL:
        return duration_text(trigger.interval_ms)
    return trigger.kind.value


def _keys(part: Any) -> Iterator[str]:
    for each in fields(part):
        value = getattr(part, each.name)
        default = each.default if each.default_factory is MISSING else each.default_factory()
        if value == default:
            continue
        if each.name == "start_ms":
            yield f"start = {(_EPOCH + timedelta(milliseconds=value)).isoformat()}"
        else:
            yield f"{each.name} = {_value(value)}"


def _value(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case str():
            return _text(value)
        case tuple():
            return f"[{', '.join(_text(each) for each in value)}]"
        case Schema():
            return _text(schema_text(value))
        case Watermark():
            delay = _text(duration_text(value.delay_ms))
            return f"{{ column = {_text(value.column)}, delay = {delay} }}"
    assert isinstance(value, Mapping), "a flow has no other kinds of values"
    return f"{{ {', '.join(_pairs(value))} }}"


def _pairs(values: Mapping[str, str]) -> Iterator[str]:
    for key, value in values.items():
        yield f"{_text(key)} = {_text(value)}"


def _text(text: str) -> str:
    """A basic string: JSON's escapes are TOML's, but for one character that TOML escapes too."""
    return json.dumps(str(text), ensure_ascii=False).replace("\x7f", "\\u007f")
