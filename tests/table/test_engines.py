"""Other engines read a table and a scan as if they were their own."""

from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from tests.table.samples import SCHEMA, create, minutes, paths, readings

from lakebed.errors import RequestError
from lakebed.table.catalog import Catalog
from lakebed.table.table import Table


@pytest.fixture
def table(memory: Catalog) -> Table:
    made = create(memory)
    for day in range(3):
        made.append(readings(day))
    return made


def test_pyarrow_reads_a_table_and_a_scan(table: Table) -> None:
    assert pa.table(table).sort_by("ts") == table.scan().to_arrow().sort_by("ts")
    scan = table.scan("status = 1", columns=["value", "ts"])
    found = pa.table(scan)
    assert found.column_names == ["value", "ts"]
    assert found.num_rows == 6
    assert pa.table(scan).num_rows == 6, "a scan is answered any number of times"
    assert pa.RecordBatchReader.from_stream(table).schema == SCHEMA
    assert pa.schema(scan).names == ["value", "ts"]


def test_polars_reads_a_table_and_a_scan(table: Table) -> None:
    assert pl.DataFrame(table).shape == (12, 4)
    assert pl.DataFrame(table.scan("status = 1")).shape == (6, 4)
    assert table.scan().to_polars()["value"].sum() == pytest.approx(13.8)


def test_duckdb_reads_a_table_and_a_scan_by_the_name_of_a_variable(table: Table) -> None:
    scan = table.scan("ts >= '2026-01-02'")
    assert duckdb.execute("select count(*), max(value) from scan").fetchall() == [(8, 2.3)]
    readings_table = table
    assert duckdb.execute("select count(*) from readings_table").fetchall() == [(12,)]
    assert readings_table is table
    connection = duckdb.connect()
    assert scan.to_duckdb(connection).aggregate("count(*)").fetchall() == [(8,)]
    assert scan.to_duckdb().aggregate("sum(status)").fetchall() == [(4,)]


def test_pandas_reads_a_scan(table: Table) -> None:
    frame = table.scan(columns=["value", "status"]).to_pandas()
    assert list(frame.columns) == ["value", "status"]
    assert frame["status"].sum() == 6


def test_columns_come_in_the_order_asked_for(table: Table) -> None:
    assert table.scan(columns=["status", "ts"]).to_arrow().column_names == ["status", "ts"]
    assert table.scan("value > 1", columns=["ts"]).to_arrow().column_names == ["ts"]
    with pytest.raises(RequestError, match="nowhere"):
        table.scan(columns=["nowhere"])


@pytest.mark.parametrize(("limit", "count"), [(0, 0), (1, 1), (5, 5), (12, 12), (99, 12)])
def test_a_limit_cuts_rows_and_counts(table: Table, limit: int, count: int) -> None:
    scan = table.scan(limit=limit)
    assert scan.to_arrow().num_rows == scan.count() == count


def test_a_limit_opens_no_more_files_than_it_needs(table: Table) -> None:
    for path in sorted(paths(table))[1:]:
        table.files.store.delete(path)
    assert table.scan(limit=3).to_arrow().num_rows == 3


def test_a_limit_below_zero_is_refused(table: Table) -> None:
    with pytest.raises(RequestError):
        table.scan(limit=-1)


def test_batches_come_as_a_stream(table: Table) -> None:
    batches = table.scan().to_batches()
    assert next(batches).num_rows == 4
    assert sum(batch.num_rows for batch in batches) == 8
    assert table.scan().to_reader().read_all().num_rows == 12


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("ts < '2026-01-01 00:02:00'", [0, 1]),
        ("ts between '2026-01-01 00:01:00' and '2026-01-01 00:02:00'", [1, 2]),
        ("value = 1.2 or value = 2.3", [1442, 2883]),
        ("not (ts >= '2026-01-01 00:01:00')", [0]),
        ("sensor_id like 's2%' and ts < '2026-01-02'", [2]),
        ("sensor_id in ('s1') and value is not null and ts < '2026-01-03'", [1, 1441]),
        ("false", []),
        ("sensor_id is null", []),
    ],
)
def test_a_predicate_gives_the_rows_it_is_true_for(
    table: Table, where: str, expected: list[int]
) -> None:
    scan = table.scan(where)
    assert minutes(scan) == expected
    assert scan.count() == len(expected)


# ------------------------------------------------------------------------------------------ cards


def test_a_card_shows_what_a_table_is(table: Table) -> None:
    card = table._repr_html_()
    for part in ("plant.readings", "day(ts)", "<td>rows</td><td>12</td>", "sensor_id"):
        assert part in card
    card = table.scan("value > 1.5")._repr_html_()
    for part in ("scan of plant.readings", "value &gt; 1.5", "of 3"):
        assert part in card


HOSTILE = "<script>alert('&')</script>"


def test_names_on_a_card_are_text_and_never_markup(memory: Catalog) -> None:
    rows: Any = pa.table({HOSTILE: ["x"]})
    table = memory.create_table("t", rows.schema)
    table.append(rows)
    scan = table.scan(f"\"{HOSTILE}\" = '<b>'")
    for card in (table._repr_html_(), scan._repr_html_()):
        assert "<script" not in card
        assert "<b>'" not in card
        assert "&lt;script&gt;" in card
    assert "&lt;b&gt;" in scan._repr_html_()


def test_a_card_of_very_many_columns_is_short(memory: Catalog) -> None:
    table = memory.create_table("t", pa.schema([(f"c{n}", pa.int64()) for n in range(200)]))
    card = table._repr_html_()
    assert "170 more" in card
    assert "c199" not in card


def test_a_handle_says_what_it_is(table: Table) -> None:
    assert repr(table) == "Table('plant.readings')"
    assert repr(table.scan("status=1")) == "Scan(plant.readings version 3 where status = 1)"
    assert repr(table.changes(1)) == "Changes(1 .. 3)"
