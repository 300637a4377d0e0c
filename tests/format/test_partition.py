"""Partition fields are read from text, printed as text that reads back, and fit their columns."""

import pytest

from lakebed.errors import BadMetadataError, NotFoundError, RequestError
from lakebed.format.partition import (
    PartitionField,
    PartitionSpec,
    TransformName,
    check_spec,
    check_transform,
    parse_spec,
    result_type,
)
from lakebed.format.schema import Schema
from lakebed.format.types import Field, Kind, ListOf, Primitive

SCHEMA = Schema(
    0,
    (
        Field(1, "ts", Primitive(Kind.TIMESTAMPTZ)),
        Field(2, "sensor_id", Primitive(Kind.STRING)),
        Field(3, "value", Primitive(Kind.DOUBLE)),
        Field(4, "site", Primitive(Kind.INT)),
        Field(5, "born", Primitive(Kind.DATE)),
        Field(6, "list", ListOf(Field(7, "element", Primitive(Kind.INT)))),
        Field(8, "a, b", Primitive(Kind.LONG)),
    ),
)


def parse(*texts: str) -> PartitionSpec:
    return parse_spec(list(texts), SCHEMA, spec_id=3, first_field_id=1005)


def test_fields_get_ids_in_order_and_names_of_their_column_and_transform() -> None:
    assert parse("hour(ts)", "bucket(16, sensor_id)", "site") == PartitionSpec(
        3,
        (
            PartitionField(1005, 1, TransformName.HOUR, "ts_hour"),
            PartitionField(1006, 2, TransformName.BUCKET, "sensor_id_bucket", 16),
            PartitionField(1007, 4, TransformName.IDENTITY, "site"),
        ),
    )


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("days(ts)", "day(ts)"),
        ("DATE( ts )", "day(ts)"),
        ("months(ts)", "month(ts)"),
        ("year(ts)", "year(ts)"),
        ("bucket(sensor_id, 8)", "bucket(8, sensor_id)"),
        ("truncate( 4 , sensor_id )", "truncate(4, sensor_id)"),
        ("  site ", "site"),
        ("identity(site)", "site"),
        ("day(ts)", "day(ts)"),
        ("truncate(10, a, b)", "truncate(10, a, b)"),
    ],
)
def test_what_is_printed_reads_back(text: str, printed: str) -> None:
    spec = parse(text)
    assert spec.describe(SCHEMA) == [printed]
    assert parse(printed) == spec


def test_a_column_whose_name_looks_like_a_transform_is_the_column() -> None:
    odd = Schema(0, (*SCHEMA.fields, Field(9, "day(ts)", Primitive(Kind.DATE))))
    spec = parse_spec(["day(ts)"], odd, spec_id=0, first_field_id=1000)
    assert spec.fields == (PartitionField(1000, 9, TransformName.IDENTITY, "day(ts)"),)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("zorder(ts)", "not a partition transform"),
        ("value", "not defined for a column of type double"),
        ("bucket(4, value)", "not defined"),
        ("day(sensor_id)", "not defined"),
        ("hour(born)", "not defined"),
        ("truncate(4, ts)", "not defined"),
        ("bucket(sensor_id)", "not defined"),
        ("bucket(0, sensor_id)", "not defined"),
        ("truncate(0, sensor_id)", "not defined"),
        ("bucket(2147483648, sensor_id)", "width"),
        ("month(3, ts)", "no number"),
        ("list", "nested"),
    ],
)
def test_a_transform_that_makes_no_sense_is_refused(text: str, why: str) -> None:
    with pytest.raises(RequestError, match=why):
        parse(text)


@pytest.mark.parametrize("text", ["nothing", "year(nothing)", "bucket(99999999999999, ts)", ""])
def test_a_column_that_is_not_there_is_named(text: str) -> None:
    with pytest.raises(NotFoundError, match="there is no column"):
        parse(text)


def test_two_fields_of_one_name_are_refused() -> None:
    with pytest.raises(RequestError, match="not all different"):
        parse("bucket(4, sensor_id)", "bucket(8, sensor_id)")


ALLOWED = {
    TransformName.IDENTITY: set(Kind) - {Kind.FLOAT, Kind.DOUBLE},
    TransformName.BUCKET: set(Kind) - {Kind.FLOAT, Kind.DOUBLE, Kind.BOOLEAN},
    TransformName.TRUNCATE: {Kind.INT, Kind.LONG, Kind.STRING, Kind.BINARY, Kind.DECIMAL},
    TransformName.HOUR: {kind for kind in Kind if kind.startswith("timestamp")},
    **{
        name: {kind for kind in Kind if kind.startswith("timestamp")} | {Kind.DATE}
        for name in (TransformName.YEAR, TransformName.MONTH, TransformName.DAY)
    },
}


@pytest.mark.parametrize("transform", TransformName)
@pytest.mark.parametrize("kind", Kind)
def test_each_transform_takes_exactly_the_types_it_is_defined_for(
    transform: TransformName, kind: Kind
) -> None:
    source = Primitive(
        kind,
        precision=5 if kind is Kind.DECIMAL else 0,
        length=3 if kind is Kind.FIXED else 0,
    )
    width = 4 if transform in (TransformName.BUCKET, TransformName.TRUNCATE) else 0
    if kind in ALLOWED[transform]:
        check_transform(transform, source, width)
        return
    with pytest.raises(RequestError, match="not defined"):
        check_transform(transform, source, width)


def test_partition_values_have_the_type_of_their_transform() -> None:
    source = Primitive(Kind.DECIMAL, 9, 2)
    found = {
        name: str(result_type(PartitionField(1000, 1, name, "p", 4), source))
        for name in TransformName
    }
    assert found == {
        "identity": "decimal(9,2)", "truncate": "decimal(9,2)", "day": "date",
        "year": "int", "month": "int", "hour": "int", "bucket": "int",
    }  # fmt: skip


def test_a_spec_on_a_dropped_column_is_sound_and_prints_its_id() -> None:
    spec = PartitionSpec(0, (PartitionField(1000, 1, TransformName.DAY, "ts_day"),))
    later = Schema(1, (Field(2, "sensor_id", Primitive(Kind.STRING)),))
    check_spec(spec, (SCHEMA, later))
    assert spec.describe(later) == ["day(#1)"]
    with pytest.raises(BadMetadataError, match="no column"):
        check_spec(spec, (later,))
