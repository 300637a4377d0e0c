"""Random flows that are sound, for laws over all of them."""

from typing import Any

from hypothesis import strategies as st

from lakebed.flow.flow import Flow, Sink, Transform, Trigger, TriggerKind
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

counts = st.integers(1, 1 << 20)
texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=12).filter(str.strip)
paths = st.sampled_from(["in", "/data/in", "s3://bucket/in", "with space/é", 'quo"te\\\n\x7f'])
schemas = st.sampled_from(
    ["ts timestamptz not null, v double", 'a list<map<string, int>>, "b c" decimal(9,2)']
).map(parse_schema)
watermarks = st.none() | st.builds(Watermark, texts, st.integers(0, 10**9))
options = st.dictionaries(texts, texts, max_size=3)
tables = st.sampled_from(["readings", "plant.readings", "a-b.c_d"])


def sources(name: str) -> st.SearchStrategy[Source]:
    shared: dict[str, Any] = {
        "name": st.just(name),
        "watermark": watermarks,
        "options": options,
    }
    files = st.builds(
        FileSource,
        **shared,
        path=paths,
        format=st.sampled_from(FileFormat),
        schema=schemas,
        files_per_batch=st.none() | counts,
    )
    kafka = st.builds(
        KafkaSource,
        **shared,
        servers=texts,
        topic=texts,
        schema=schemas,
        starting=st.sampled_from(KafkaStart),
        rows_per_batch=st.none() | counts,
    )
    raw = st.builds(
        KafkaSource, **shared, servers=texts, topic=texts, format=st.just(KafkaFormat.RAW)
    )
    rate = st.builds(RateSource, **shared, rows_per_second=counts)
    sensors = st.builds(
        SensorSource,
        **shared,
        sensors=st.integers(10, 5_000),
        seed=st.integers(0, 99),
        start_ms=st.integers(0, 4 * 10**12),
        seconds=st.none() | counts,
        seconds_per_batch=counts,
        silent_sensor=st.none() | st.integers(0, 9),
    )
    table = st.builds(
        TableSource,
        **shared,
        table=tables,
        catalog=st.sampled_from(["", "sqlite:///c.db"]),
        starting_version=st.none() | st.integers(0, 99),
    )
    return st.one_of(files, kafka, raw, rate, sensors, table)


@st.composite
def flows(draw: st.DrawFn) -> Flow:
    names = draw(st.lists(st.sampled_from(["a", "b", "C_1"]), min_size=1, max_size=3, unique=True))
    found = tuple(draw(sources(name)) for name in names)
    steps = tuple(
        Transform(name=f"step{n}", sql=draw(texts)) for n in range(draw(st.integers(1, 3)))
    )
    if any(source.watermark for source in found) and draw(st.booleans()):
        unique_by = tuple(draw(st.lists(texts, min_size=1, max_size=3)))
        steps = (*steps, Transform(name="unique", unique_by=unique_by))
    sinks = tuple(
        Sink(
            table=f"plant.t{n}",
            input=draw(st.sampled_from(["", *names])),
            partition_by=tuple(draw(st.lists(texts, max_size=2))),
            merge_schema=draw(st.booleans()),
        )
        for n in range(draw(st.integers(1, 3)))
    )
    interval = st.builds(Trigger, st.just(TriggerKind.INTERVAL), st.integers(1, 10**9))
    others = st.sampled_from([k for k in TriggerKind if k is not TriggerKind.INTERVAL])
    return Flow(
        name=draw(st.sampled_from(["p", "plant-readings", "1.2_x"])),
        sources=found,
        transforms=steps,
        sinks=sinks,
        checkpoint=draw(paths),
        trigger=draw(st.one_of(interval, st.builds(Trigger, others))),
        catalog=draw(st.sampled_from(["", "sqlite:///lake/catalog.db"])),
        storage_options=draw(options),
        engine=draw(st.dictionaries(texts.map("spark.{}".format), texts, max_size=2)),
    )
