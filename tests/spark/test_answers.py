"""An answer of a worker says what the worker meant, and reading it runs no code."""

from decimal import Decimal

import pytest

from lakebed.errors import RequestError, SchemaMismatchError
from lakebed.format.datafile import ColumnStats, DataFile
from lakebed.format.partition import PartitionSpec, parse_spec
from lakebed.format.schema import Schema
from lakebed.format.types import Field, Kind, Primitive
from lakebed.spark.writing.answers import answered_files, files_answer, problem_answer

SCHEMA = Schema(
    0,
    (
        Field(1, "price", Primitive(Kind.DECIMAL, precision=10, scale=2)),
        Field(2, "key", Primitive(Kind.BINARY)),
        Field(3, "value", Primitive(Kind.DOUBLE)),
        Field(4, "ts", Primitive(Kind.TIMESTAMPTZ)),
    ),
)
SPEC: PartitionSpec = parse_spec(
    ["price", "key", "day(ts)"], SCHEMA, spec_id=0, first_field_id=1000
)


def test_files_come_back_with_every_value_of_its_own_kind() -> None:
    file = DataFile(
        path="data/a.parquet",
        row_count=3,
        size_bytes=100,
        partition=(Decimal("1.50"), b"\xff\x00", None),
        stats={
            1: ColumnStats(0, None, Decimal("1.50"), Decimal("1.50")),
            2: ColumnStats(0, None, b"\xff\x00", b"\xff\x00"),
            3: ColumnStats(1, 1, float("-inf"), 2.5),
            4: ColumnStats(3),
        },
    )
    assert answered_files(files_answer([file]), SCHEMA, SPEC) == [file]
    assert answered_files(files_answer([]), SCHEMA, SPEC) == []


def test_a_problem_is_raised_as_what_it_was() -> None:
    error = SchemaMismatchError("the rows do not fit", hint="Cast them", problems=["a: int"])
    with pytest.raises(SchemaMismatchError, match=r"do not fit\. Cast them") as raised:
        answered_files(problem_answer(error), SCHEMA, SPEC)
    assert raised.value.fields == {"problems": ["a: int"]}
    with pytest.raises(RequestError, match="no room"):
        answered_files(problem_answer(RequestError("no room", path="x")), SCHEMA, SPEC)
