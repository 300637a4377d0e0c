"""A pipeline's TOML says what it means, or which key does not and what is allowed there."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from tests.flow.flows import flows

from lakebed.errors import NotFoundError, RequestError
from lakebed.flow.flow import Flow, TriggerKind
from lakebed.flow.placing import on_catalog
from lakebed.flow.sources import FileSource, SensorSource, TableSource, Watermark
from lakebed.flow.toml import parse_flow, read_flow
from lakebed.flow.toml_text import flow_text

TEXT = """\
name = "plant-readings"
checkpoint = "checkpoints/plant"
trigger = "10 seconds"
catalog = "sqlite:///lake/catalog.db"

[source]
kind = "files"
path = "incoming"
format = "csv"
schema = "ts timestamptz, sensor_id string, value double"
options = { header = true, maxColumns = 12 }
watermark = { column = "ts", delay = "10 minutes" }

[[transform]]
name = "clean"
sql = "select * from source where value is not null"

[[transform]]
name = "fresh"
unique_by = ["sensor_id", "ts"]

[[sink]]
table = "plant.readings"
partition_by = ["day(ts)"]

[[sink]]
table = "plant.raw"
input = "source"
create = false

[spark]
master = "local[2]"
sql.shuffle.partitions = 2
"""


def test_a_pipeline_is_read_with_all_its_parts() -> None:
    flow = parse_flow(TEXT)
    assert (flow.name, flow.checkpoint, flow.catalog) == (
        "plant-readings",
        "checkpoints/plant",
        "sqlite:///lake/catalog.db",
    )
    assert (flow.trigger.kind, flow.trigger.interval_ms) == (TriggerKind.INTERVAL, 10_000)
    (source,) = flow.sources
    assert isinstance(source, FileSource)
    assert source.watermark == Watermark("ts", 600_000)
    assert source.options == {"header": "true", "maxColumns": "12"}
    assert source.schema is not None
    assert [str(field.type) for field in source.schema.fields] == [
        "timestamptz",
        "string",
        "double",
    ]
    assert [step.name for step in flow.transforms] == ["clean", "fresh"]
    assert {
        step: [sink.table for sink in sinks] for step, sinks in flow.sinks_by_step().items()
    } == {
        "fresh": ["plant.readings"],
        "source": ["plant.raw"],
    }
    assert flow.engine == {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"}


@settings(max_examples=40)
@given(flows())
def test_a_flow_written_as_toml_is_read_back_the_same(flow: Flow) -> None:
    assert parse_flow(flow_text(flow)) == flow


@pytest.mark.parametrize(
    ("written", "wrong", "said"),
    [
        ('format = "csv"', 'formt = "csv"', "source.formt is not known (did you mean format?)"),
        ('"csv"', '"cvs"', "source.format is 'cvs' (did you mean csv?)"),
        ('kind = "files"', 'kind = "file"', "source.kind is 'file' (did you mean files?)"),
        ('kind = "files"\n', "", "source.kind is missing"),
        ('path = "incoming"', "path = 3", "source.path is a number, not a text"),
        ('path = "incoming"', 'path = " "', "source.path is empty"),
        ("value double", "value dubble", "source.schema cannot be read: "),
        ('"10 minutes"', '"10 parsecs"', "source.watermark.delay cannot be read: '10 parsecs'"),
        ('delay = "10 minutes"', "lag = 1", "source.watermark.lag is not known"),
        ('"10 seconds"', '"avialable now"', "trigger cannot be read: 'avialable now' is no"),
        ('name = "plant-readings"', 'nam = "x"', "nam is not known (did you mean name?)"),
        ('name = "plant-readings"', 'name = "a/b"', "'a/b' cannot be the name of a pipeline"),
        ("checkpoint =", "checkpiont =", "checkpiont is not known (did you mean checkpoint?)"),
        ("[source]", "[sources]", "sources is not known (did you mean source?)"),
        ('name = "clean"', 'name = "a b"', "'a b' cannot be the name of a source or transform"),
        ('name = "clean"', 'name = "previous"', "'previous' cannot be the name of a source or"),
        ('name = "clean"', 'name = "Source"', "two steps of the pipeline are called 'Source'"),
        ('sql = "select', 'sqll = "select', "transform[1].sqll is not known (did you mean sql?)"),
        ("unique_by = [", 'sql = "x"\nunique_by = [', "must have either sql or unique_by"),
        ('unique_by = ["sensor_id", "ts"]', "unique_by = 7", "unique_by is not a list of texts"),
        ("watermark = {", "# watermark = {", "has unique_by, and no source has a"),
        ('"plant.readings"', '"plant readings"', "[sink[1]] 'plant readings' cannot be a table"),
        ('input = "source"', 'input = "claen"', "is no step (did you mean clean?)"),
        ('"plant.raw"\ninput = "source"', '"plant.readings"', "into the same table"),
        ("create = false", 'create = "no"', "sink[2].create is a text, not true or false"),
        ("create = false", 'mode = "overwrite"', "sink[2].mode is 'overwrite'"),
        ("create = false", 'create = false\npartition_by = "ts"', "create is false"),
        ("[spark]", "[spark]\nlist = [1]", "spark.list is not text, a number or a flag"),
        ("[spark]", "[spark", "is not TOML: "),
        ("[[sink]]", "[[snik]]", "snik is not known (did you mean sink?)"),
    ],
)
def test_what_is_wrong_is_told_with_file_and_key(written: str, wrong: str, said: str) -> None:
    assert written in TEXT
    with pytest.raises(RequestError) as caught:
        parse_flow(TEXT.replace(written, wrong), file="plant.toml")
    assert said in caught.value.message
    assert caught.value.message.startswith("plant.toml")
    assert caught.value.fields["file"] == "plant.toml"


@pytest.mark.parametrize("gone", ["[source]", "[[sink]]"])
def test_a_pipeline_without_source_or_sink_is_refused(gone: str) -> None:
    head = 'name = "x"\ncheckpoint = "c"\n'
    rest = {"[source]": '[[sink]]\ntable = "t"', "[[sink]]": '[source]\nkind = "rate"'}
    with pytest.raises(RequestError, match="is missing"):
        parse_flow(head + rest[gone])


def test_tables_alone_that_bring_nothing_new_are_refused() -> None:
    text = 'name = "x"\ncheckpoint = "c"\n[sink]\ntable = "t"\n[source]\nkind = "table"\n'
    with pytest.raises(RequestError, match="brings new rows"):
        parse_flow(text + 'table = "u"\nfollow = false\n')


def test_sensors_are_read_with_their_time() -> None:
    text = 'name = "x"\ncheckpoint = "c"\n[sink]\ntable = "t"\n[source]\nkind = "sensors"\n'
    (source,) = parse_flow(text + "start = 2026-03-01T12:00:00Z\nsensors = 10\n").sources
    assert source == SensorSource(start_ms=1_772_366_400_000, sensors=10)
    for wrong in ("start = 2026-03-01T12:00:00", 'start = "noon"', "start = 7"):
        with pytest.raises(RequestError, match=r"source\.start is"):
            parse_flow(text + wrong)
    with pytest.raises(RequestError, match="sensors is a number above 0"):
        parse_flow(text + "sensors = 0")


def test_relative_paths_start_at_the_file_and_addresses_stay(tmp_path: Path) -> None:
    place = tmp_path / "flows" / "plant.toml"
    place.parent.mkdir()
    place.write_text(TEXT + '\n[storage_options]\nkey = "s3://not/a/path"\n')
    flow = read_flow(place)
    root = str(place.parent)
    assert flow.checkpoint == f"{root}/checkpoints/plant"
    assert flow.catalog == f"sqlite:///{root}/lake/catalog.db"
    (source,) = flow.sources
    assert isinstance(source, FileSource)
    assert source.path == f"{root}/incoming"
    remote = TEXT.replace('"incoming"', '"s3://bucket/in"').replace(
        "sqlite:///lake/catalog.db", "postgresql://host/db"
    )
    place.write_text(remote)
    flow = read_flow(place)
    assert flow.catalog == "postgresql://host/db"
    assert isinstance(flow.sources[0], FileSource)
    assert flow.sources[0].path == "s3://bucket/in"


def test_a_file_that_is_not_there_or_not_text_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no file"):
        read_flow(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    for path in (tmp_path, tmp_path / "bytes.toml"):
        with pytest.raises(RequestError, match="cannot be read"):
            read_flow(path)


def test_a_catalog_is_filled_in_only_where_none_is_named() -> None:
    named = parse_flow(TEXT)
    assert on_catalog(named, "sqlite:///other.db").catalog == named.catalog
    bare = parse_flow(TEXT.replace('catalog = "sqlite:///lake/catalog.db"', ""))
    filled = on_catalog(bare, "sqlite:///other.db", warehouse="w", storage_options={"a": "b"})
    assert (filled.catalog, filled.warehouse) == ("sqlite:///other.db", "w")
    assert filled.storage_options == {"a": "b"}


def test_a_followed_table_is_a_source() -> None:
    text = 'name = "x"\ncheckpoint = "c"\n[sink]\ntable = "t"\n[source]\nkind = "table"\n'
    (source,) = parse_flow(text + 'table = "u"\nstarting_version = 3\n').sources
    assert source == TableSource(table="u", starting_version=3)


@pytest.mark.parametrize("junk", ["", "x", "[[source]]", "source = 1", "sink = [1]", "a.b.c = {}"])
def test_junk_is_a_typed_error(junk: str) -> None:
    with pytest.raises(RequestError):
        parse_flow(junk)


def test_reading_a_flow_loads_no_engine(tmp_path: Path) -> None:
    import subprocess
    import sys

    (tmp_path / "p.toml").write_text(TEXT)
    code = "import sys; from lakebed.flow.toml import read_flow; read_flow(sys.argv[1]); "
    code += "sys.exit(bool({'pyspark', 'pyarrow', 'numpy'} & set(sys.modules)))"
    asked: Any = subprocess.run([sys.executable, "-c", code, str(tmp_path / "p.toml")], check=False)
    assert asked.returncode == 0
