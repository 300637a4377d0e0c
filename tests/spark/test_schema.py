"""Law: a column is of the Spark type that holds each of its values, or is refused by name."""

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DayTimeIntervalType,
    DecimalType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    VarcharType,
)
from tests.property.kinds import KINDS

from lakebed.errors import NotFoundError, RequestError, SchemaMismatchError
from lakebed.files.arrow_schema import from_arrow
from lakebed.spark.schema import (
    FIELD_ID,
    as_frame_rows,
    frame_arrow_schema,
    spark_schema,
    to_arrow,
)

pytestmark = pytest.mark.spark

NS = pa.timestamp("ns", "UTC")
NESTED = pa.schema(
    [
        ("s", pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))])),
        ("m", pa.map_(pa.string(), pa.decimal128(9, 2))),
    ]
)


def test_each_type_of_ours_has_one_of_sparks() -> None:
    schema = from_arrow(pa.schema([(name, kind.arrow) for name, kind in KINDS.items()]))
    found = {f.name: f.dataType.simpleString() for f in spark_schema(schema, nanoseconds="long")}
    assert found == {
        "boolean": "boolean",
        "int": "int",
        "long": "bigint",
        "float": "float",
        "double": "double",
        "decimal(9,2)": "decimal(9,2)",
        "decimal(18,2)": "decimal(18,2)",
        "decimal(38,10)": "decimal(38,10)",
        "date": "date",
        "time": "bigint",
        "timestamp": "timestamp_ntz",
        "timestamptz": "timestamp",
        "timestamp_ns": "bigint",
        "timestamptz_ns": "bigint",
        "string": "string",
        "binary": "binary",
        "fixed[3]": "binary",
        "fixed[70]": "binary",
    }


def test_each_field_carries_its_id_down_to_the_fields_of_structs() -> None:
    schema = from_arrow(NESTED)
    made = spark_schema(schema)
    assert [field.metadata[FIELD_ID] for field in made] == [field.id for field in schema.fields]
    inner = made["s"].dataType
    assert isinstance(inner, StructType)
    assert [field.metadata[FIELD_ID] for field in inner] == [2, 3]
    plain = spark_schema(schema, field_ids=False)
    assert not any(field.metadata for field in plain)


def test_nanoseconds_are_refused_until_somebody_chooses() -> None:
    schema = from_arrow(pa.schema([("a", pa.int64()), ("t", NS), ("w", pa.timestamp("ns"))]))
    with pytest.raises(RequestError, match=r"'t' has nanoseconds.*\"long\".*columns=") as caught:
        spark_schema(schema)
    assert caught.value.fields["column"] == "t"
    assert spark_schema(schema, columns=["a"]).names == ["a"]
    cut = spark_schema(schema, nanoseconds="truncate")
    assert [type(f.dataType) for f in cut][1:] == [TimestampType, TimestampNTZType]
    with pytest.raises(RequestError, match=r"not a choice.*refuse, long, truncate"):
        spark_schema(schema, nanoseconds="round")


def test_nanoseconds_inside_a_nested_column_can_only_be_numbers() -> None:
    schema = from_arrow(pa.schema([("l", pa.list_(pa.struct([("t", NS)])))]))
    with pytest.raises(RequestError, match=r"'l\.element\.t' has nanoseconds"):
        spark_schema(schema)
    with pytest.raises(RequestError, match="cannot be cut"):
        spark_schema(schema, nanoseconds="truncate")
    kind = spark_schema(schema, nanoseconds="long", field_ids=False)["l"].dataType
    assert kind == ArrayType(StructType([StructField("t", LongType())]))


def test_an_unknown_column_is_our_error() -> None:
    with pytest.raises(NotFoundError, match="no column 'nope'"):
        spark_schema(from_arrow(NESTED), columns=["nope"])


def test_sparks_schema_becomes_arrows() -> None:
    kind = StructType(
        [
            StructField("b", ByteType(), nullable=False),
            StructField("v", VarcharType(9)),
            StructField("m", MapType(StringType(), ArrayType(DecimalType(9, 2)))),
            StructField("t", TimestampType()),
            StructField("w", TimestampNTZType()),
        ]
    )
    made = to_arrow(kind)
    assert made.field("b") == pa.field("b", pa.int8(), nullable=False)
    assert made.field("v").type == pa.string()
    assert made.field("m").type.item_type.value_type == pa.decimal128(9, 2)
    assert made.field("t").type == pa.timestamp("us", "UTC")
    assert made.field("w").type == pa.timestamp("us")


@pytest.mark.parametrize("kind", [NullType(), DayTimeIntervalType(), ArrayType(NullType())])
def test_a_type_without_a_place_in_a_table_is_refused_by_name(kind: NullType) -> None:
    with pytest.raises(SchemaMismatchError, match=r"column 'odd.*cannot hold"):
        to_arrow(StructType([StructField("odd", kind)]))


def test_our_rows_fit_what_spark_takes_and_cuts_go_down() -> None:
    rows = pa.table(
        {
            "n": pa.array([-1001, -1, 0, 999, 1000, -(2**63), None], NS),
            "t": pa.array([0, 1, 2, 3, 4, 5, None], pa.time64("us")),
            "f": pa.array([b"abc"] * 7, pa.binary(3)),
            "l": pa.array([[1]] * 7, pa.list_(pa.timestamp("ns"))),
        }
    )
    cut = as_frame_rows(rows, frame_arrow_schema(rows.schema, "truncate").remove(3))
    wanted = [-2, -1, 0, 0, 1, -9223372036854776, None]
    assert cut.column("n").cast(pa.int64()).to_pylist() == wanted
    exact = as_frame_rows(rows, frame_arrow_schema(rows.schema, "long"))
    assert exact.column("n").to_pylist() == [-1001, -1, 0, 999, 1000, -(2**63), None]
    assert exact.column("t").to_pylist() == [0, 1, 2, 3, 4, 5, None]
    assert exact.column("f").type == pa.binary()
    assert exact.column("l").to_pylist() == [[1]] * 7
