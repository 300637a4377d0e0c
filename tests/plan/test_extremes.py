"""Counts and extremes come from metadata where that is exact, and are right everywhere."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.table.samples import START, create, paths, readings

from lakebed.errors import ObjectMissingError, RequestError
from lakebed.table.catalog import Catalog
from lakebed.table.table import Table


def hide_data(table: Table) -> None:
    """Make every data file unreadable."""
    for path in paths(table):
        table.files.store.delete(path)


def test_a_table_whose_files_cannot_be_read_still_counts_and_knows_its_extremes(
    catalog: Catalog,
) -> None:
    table = create(catalog)
    for day in range(20):
        table.append(readings(day))
    hide_data(table)
    scan = table.scan()
    assert scan.count() == 80
    assert scan.min("ts").as_py() == START
    assert scan.max("ts").as_py() == START + dt.timedelta(days=19, minutes=3)
    assert (scan.min("value").as_py(), scan.max("value").as_py()) == (0.0, 19.3)
    assert (scan.min("status").as_py(), scan.max("status").as_py()) == (0, 1)
    with pytest.raises(ObjectMissingError):
        scan.to_arrow()


def test_a_range_of_whole_files_is_answered_from_metadata_too(catalog: Catalog) -> None:
    table = create(catalog)
    for day in range(5):
        table.append(readings(day))
    hide_data(table)
    scan = table.scan("ts >= '2026-01-02' and ts < '2026-01-04'")
    assert scan.count() == 8
    assert (scan.min("value").as_py(), scan.max("value").as_py()) == (1.0, 2.3)


def test_only_files_at_the_edge_of_a_range_are_opened(catalog: Catalog) -> None:
    table = create(catalog)
    for day in range(5):
        table.append(readings(day))
    scan = table.scan("ts >= '2026-01-02 00:02:00'")
    (edge,) = scan.plan.edge_files
    for path in paths(table) - {edge.path}:
        table.files.store.delete(path)
    assert scan.count() == 14
    assert (scan.min("value").as_py(), scan.max("value").as_py()) == (1.2, 4.3)


def test_text_is_always_read_because_its_bounds_are_cut(memory: Catalog) -> None:
    long = "x" * 100
    table = memory.create_table("t", pa.schema([("s", pa.string())]))
    table.append(pa.table({"s": [long + "a", long + "b"]}))
    assert table.scan().max("s").as_py() == long + "b"
    assert table.scan().min("s").as_py() == long + "a"
    hide_data(table)
    with pytest.raises(ObjectMissingError):
        table.scan().max("s")


NAN, INF = float("nan"), float("inf")
COLUMNS: dict[str, tuple[Any, list[list[Any]]]] = {
    "int": (pa.int32(), [[3, None], [-5, 7], [None, None]]),
    "long": (pa.int64(), [[1 << 62, 0], [-(1 << 63), 5]]),
    "float": (pa.float32(), [[1.5, NAN], [NAN, NAN], [-2.5, None]]),
    "double": (pa.float64(), [[-0.0, 0.0], [INF, -INF], [NAN, None]]),
    "decimal": (pa.decimal128(20, 3), [[Decimal("1.500")], [Decimal("-99999999999.999"), None]]),
    "date": (pa.date32(), [[dt.date(1969, 12, 31)], [dt.date(2026, 1, 1), None]]),
    "time": (pa.time64("us"), [[dt.time(23, 59, 59, 999_999)], [dt.time(0)]]),
    "timestamp": (pa.timestamp("us"), [[dt.datetime(1960, 1, 1)], [dt.datetime(2026, 1, 1)]]),  # noqa: DTZ001
    "nanoseconds": (pa.timestamp("ns", "UTC"), [[1_767_225_600_000_000_001], [999, None]]),
    "far away": (pa.timestamp("us", "UTC"), [[-(1 << 62)], [1 << 62, 0]]),
    "bool": (pa.bool_(), [[True, None], [False]]),
    "text": (pa.string(), [["b", None], ["a" * 90, "c" * 90]]),
    "bytes": (pa.binary(), [[b"\x00"], [b"\xff" * 90, None]]),
    "nothing": (pa.int64(), [[None], [None, None]]),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_an_extreme_is_that_of_the_rows(memory: Catalog, kind: str) -> None:
    """Of many files, some told by metadata and some read; NaN and null do not count."""
    arrow, parts = COLUMNS[kind]
    schema = pa.schema([("n", pa.int64()), ("x", arrow)])
    table = memory.create_table("t", schema)
    pieces = []
    for number, values in enumerate(parts):
        column = pa.array(values, arrow)
        rows = pa.table({"n": pa.array([number] * len(values)), "x": column}, schema=schema)
        table.append(rows)
        pieces.append(column)
    whole = pa.concat_arrays(pieces)
    if pa.types.is_floating(arrow):
        whole = whole.filter(pc.invert(pc.is_nan(whole)))
    for scan in (table.scan(), table.scan("n >= 0"), table.scan("n >= 0 or x is null")):
        for which, found in (("min", scan.min("x")), ("max", scan.max("x"))):
            assert found.type == arrow
            assert found.equals(pc.min_max(whole)[which]), which


def test_a_column_that_some_files_lack_has_the_extremes_of_the_others(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(readings())
    table.append(readings(1).append_column("q", pa.array([5, 3, None, 4])))
    assert (table.scan().min("q").as_py(), table.scan().max("q").as_py()) == (3, 5)
    assert table.scan("ts < '2026-01-02'").max("q").as_py() is None


def test_a_renamed_and_widened_column_keeps_its_extremes(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(readings())
    table.evolve().rename_column("status", "s").widen_column("s", "long").commit()
    hide_data(table)
    found = table.scan().max("s")
    assert (found.as_py(), found.type) == (1, pa.int64())


def test_no_rows_have_no_extreme(catalog: Catalog) -> None:
    table = create(catalog)
    assert table.scan().max("value").as_py() is None
    table.append(readings())
    assert table.scan("value > 100").min("ts").as_py() is None
    assert table.scan("value > 100").count() == 0


def test_what_has_no_extreme_is_refused(memory: Catalog) -> None:
    table = create(memory)
    table.append(readings())
    with pytest.raises(RequestError, match="limit"):
        table.scan(limit=3).max("value")
    with pytest.raises(RequestError, match="nowhere"):
        table.scan().max("nowhere")


def test_rows_that_were_deleted_do_not_count(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(readings())
    table.delete("value > 0.15")
    assert table.scan().count() == 2
    assert table.scan().max("value").as_py() == 0.1
