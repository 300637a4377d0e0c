"""Law: what the model and the differential once found stays mended."""

import pyarrow as pa
import pytest

import lakebed
from lakebed.errors import RequestError
from lakebed.table.table import Table

_INSTANT = pa.timestamp("ns", "UTC")
_BIG = 1 << 40


def _rolled_back() -> tuple[Table, int]:
    """A table whose column was int, was widened, got a long, and is int again."""
    schema = pa.schema([("a", pa.int32()), ("d", pa.decimal128(9, 2))])
    table = lakebed.connect("memory:").create_table("t", schema)
    table.append(pa.table({"a": pa.array([1], pa.int32())}))
    table.evolve().widen_column("a", "long").widen_column("d", "decimal(18,2)").commit()
    wide = table.append(pa.table({"a": pa.array([_BIG], pa.int64())})).version
    table.rollback(1)
    return table, wide


def test_extremes_are_found_where_python_has_no_datetime() -> None:
    schema = pa.schema([("ts", _INSTANT), ("n", pa.int64())])
    table = lakebed.connect("memory:").create_table("t", schema)
    for number in (-(1 << 63), 1, (1 << 63) - 1):
        table.append(pa.table({"ts": pa.array([number]).cast(_INSTANT), "n": [number]}))
    assert table.scan().min("ts").value == -(1 << 63)
    assert table.scan().max("ts").value == (1 << 63) - 1
    assert table.scan("n < 5").max("ts").value == 1


def test_columns_can_change_after_a_widening_was_rolled_back() -> None:
    table, wide = _rolled_back()
    table.evolve().rename_column("a", "b").add_column("c", "string").commit()
    assert table.scan("b = 1").to_arrow().schema.field("b").type == pa.int32()
    table.rollback(wide)
    assert table.scan("a > 1").to_arrow()["a"].to_pylist() == [_BIG]


def test_extremes_have_the_type_of_the_column_after_a_widening_was_rolled_back() -> None:
    table, _ = _rolled_back()
    assert table.scan().max("a").type == pa.int32()


@pytest.mark.parametrize(("column", "kind"), [("a", "double"), ("d", "decimal(12,2)")])
def test_a_column_is_not_widened_past_what_it_was_before_a_rollback(column: str, kind: str) -> None:
    table, _ = _rolled_back()
    with pytest.raises(RequestError, match="before a rollback"):
        table.evolve().widen_column(column, kind).commit()
    table.evolve().widen_column("a", "long").widen_column("d", "decimal(20,2)").commit()
    assert [str(field.type) for field in table.schema.fields] == ["long", "decimal(20,2)"]


def test_changes_are_wide_enough_for_rows_that_a_rollback_took_away() -> None:
    table, _ = _rolled_back()
    changes = table.changes(1)
    assert changes.added.to_arrow()["a"].to_pylist() == [_BIG]
    assert changes.removed.to_arrow()["a"].to_pylist() == [_BIG]
    assert table.changes(0, 1).schema.field("a").type == pa.int32()
