"""Rows of any shape that speaks Arrow go in whole, or not at all with the exact difference."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from tests.around import interrupted, watched
from tests.fix_catalogs import Opener
from tests.table.samples import NAME, SCHEMA, START, create, minutes, paths, readings

from lakebed.errors import CommitConflictError, RequestError, SchemaMismatchError
from lakebed.format.snapshot import Operation
from lakebed.table.catalog import Catalog


class Stream:
    """Something of which nothing is known but that it speaks Arrow."""

    def __init__(self, rows: Any) -> None:
        self._rows = rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._rows.__arrow_c_stream__(requested_schema)


def pieces(rows: Any) -> Iterator[Any]:
    yield from rows.to_batches(max_chunksize=2)


def relation(rows: Any) -> Any:
    return duckdb.connect().from_arrow(rows)


SHAPES: dict[str, Callable[[Any], Any]] = {
    "table": lambda rows: rows,
    "record batch": lambda rows: rows.to_batches()[0],
    "reader": lambda rows: rows.to_reader(),
    "dataset": ds.dataset,
    "scanner": lambda rows: ds.dataset(rows).scanner(),
    "pandas": lambda rows: rows.to_pandas(),
    "pandas with a named index": lambda rows: rows.to_pandas().set_index("ts"),
    "polars": pl.from_arrow,
    "polars, lazily": lambda rows: pl.LazyFrame(pl.from_arrow(rows)),
    "duckdb relation": relation,
    "dict of columns": lambda rows: rows.to_pydict(),
    "dict of arrays": lambda rows: {name: rows.column(name) for name in rows.column_names},
    "list of dicts": lambda rows: rows.to_pylist(),
    "generator of batches": pieces,
    "list of batches": lambda rows: list(pieces(rows)),
    "generator of frames": lambda rows: (pl.from_arrow(batch) for batch in pieces(rows)),
    "arrow stream": Stream,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_rows_of_any_shape_are_the_same_rows(memory: Catalog, shape: str) -> None:
    table = create(memory)
    rows = readings(count=5)
    commit = table.append(SHAPES[shape](rows))
    assert (commit.operation, commit.added_rows) == (Operation.APPEND, 5)
    assert table.scan().to_arrow().sort_by("ts") == rows
    assert table.arrow_schema == SCHEMA


def test_a_table_and_a_scan_can_be_appended_to_another_table(catalog: Catalog) -> None:
    source, target = create(catalog, "a"), create(catalog, "b")
    source.append(readings(count=5))
    target.append(source)
    target.append(source.scan("status = 1"))
    assert minutes(target) == [0, 1, 1, 2, 3, 3, 4]


def test_an_append_is_one_commit_with_a_file_per_partition(catalog: Catalog) -> None:
    table = create(catalog)
    rows = pa.concat_tables([readings(day) for day in (0, 1, 2)])
    commit = table.append(rows)
    assert (commit.version, commit.added_files, commit.added_rows) == (1, 3, 12)
    assert {path.split("/")[1] for path in paths(table)} == {
        "ts_day=2026-01-01",
        "ts_day=2026-01-02",
        "ts_day=2026-01-03",
    }
    assert table.scan().to_arrow().sort_by("ts") == rows


def test_more_files_than_wait_in_memory_are_written_as_they_come(memory: Catalog) -> None:
    table = create(memory, by=["hour(ts)"])
    times = [START + timedelta(hours=n) for n in range(100)]
    count = len(times)
    rows = pa.table(
        [times, ["s"] * count, [0.0] * count, [0] * count],
        schema=SCHEMA,
    )
    commit = table.append(batch for batch in rows.to_batches(max_chunksize=30))
    assert commit.added_rows == table.scan().count() == count
    assert commit.added_files == len(paths(table)) >= count


def test_no_rows_are_a_commit_without_files(catalog: Catalog) -> None:
    table = create(catalog)
    commit = table.append(SCHEMA.empty_table())
    assert (commit.version, commit.added_files, commit.added_rows) == (1, 0, 0)
    assert table.scan().count() == 0


def test_columns_go_by_name_and_those_left_out_are_null(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(readings().select(["value", "ts"]))
    found = table.scan().to_arrow()
    assert found.schema == SCHEMA
    assert found.column("value").to_pylist() == [0.0, 0.1, 0.2, 0.3]
    assert found.column("status").null_count == 4


def test_narrower_types_are_taken_and_widened(memory: Catalog) -> None:
    table = create(memory)
    rows = readings()
    rows = rows.set_column(2, "value", rows.column("value").cast(pa.float32()))
    rows = rows.set_column(3, "status", rows.column("status").cast(pa.int8()))
    table.append(rows)
    assert table.scan().to_arrow().schema == SCHEMA
    assert table.scan(columns=["status"]).to_arrow().column(0).to_pylist() == [0, 1, 0, 1]


# ---------------------------------------------------------------------------------- new columns


def with_column(rows: Any, name: str, value: object) -> Any:
    return rows.append_column(name, pa.array([value] * rows.num_rows))


def test_a_new_column_comes_in_with_the_rows_in_one_commit(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(readings())
    commit = table.append(with_column(readings(1), "unit", "bar"))
    assert (commit.version, commit.operation) == (2, Operation.APPEND)
    assert table.arrow_schema.names == [*SCHEMA.names, "unit"]
    units = table.scan().to_arrow().sort_by("ts").column("unit").to_pylist()
    assert units == [None] * 4 + ["bar"] * 4
    assert table.scan(as_of=1).to_arrow().schema == SCHEMA


def test_appends_that_bring_different_columns_at_once_both_land(catalog: Catalog) -> None:
    table = create(catalog)
    slow = interrupted(catalog, lambda: table.append(with_column(readings(1), "unit", "bar")))
    commit = slow.table(NAME).append(with_column(readings(), "batch", 7))
    assert commit.version == 2
    assert table.arrow_schema.names == [*SCHEMA.names, "unit", "batch"]
    found = table.scan().to_arrow().sort_by("ts")
    assert found.column("unit").to_pylist() == [None] * 4 + ["bar"] * 4
    assert found.column("batch").to_pylist() == [7] * 4 + [None] * 4
    ids = [field.id for field in table.schema.fields]
    assert len(set(ids)) == len(ids)


def test_appends_that_bring_the_same_column_at_once_share_it(catalog: Catalog) -> None:
    table = create(catalog)
    slow = interrupted(catalog, lambda: table.append(with_column(readings(1), "unit", "bar")))
    slow.table(NAME).append(with_column(readings(), "unit", "psi"))
    assert table.arrow_schema.names == [*SCHEMA.names, "unit"]
    units = table.scan().to_arrow().sort_by("ts").column("unit").to_pylist()
    assert units == ["psi"] * 4 + ["bar"] * 4


def test_appends_that_bring_one_column_with_two_types_do_not_both_land(catalog: Catalog) -> None:
    table = create(catalog)
    slow = interrupted(catalog, lambda: table.append(with_column(readings(1), "unit", "bar")))
    with pytest.raises(SchemaMismatchError, match="unit"):
        slow.table(NAME).append(with_column(readings(), "unit", 7))
    assert minutes(table) == [1440, 1441, 1442, 1443]


def test_rows_that_can_be_read_once_are_not_read_again(catalog: Catalog) -> None:
    """With new columns they would have to be encoded anew; the caller must send them again."""
    table = create(catalog)
    slow = interrupted(catalog, lambda: table.append(with_column(readings(1), "unit", "bar")))
    once = iter(with_column(readings(), "batch", 7).to_batches())
    with pytest.raises(CommitConflictError, match="bring new columns") as raised:
        slow.table(NAME).append(once)
    assert "again" in raised.value.hint
    assert table.version == 1


def test_an_append_without_new_columns_goes_past_an_evolution(catalog: Catalog) -> None:
    table = create(catalog)
    slow = interrupted(
        catalog,
        lambda: table.evolve().rename_column("value", "celsius").add_column("q", "int").commit(),
    )
    assert slow.table(NAME).append(readings()).attempts == 2
    found = table.scan().to_arrow()
    assert found.schema.names == ["ts", "sensor_id", "celsius", "status", "q"]
    assert found.column("celsius").to_pylist() == [0.0, 0.1, 0.2, 0.3]


# ------------------------------------------------------------------------------------- refusals


def refused(table: Any, rows: Any) -> SchemaMismatchError:
    """What an append was refused with; nothing may have changed by it."""
    backend = table._services.backend
    before = backend.load(table.name)
    watch = watched(table)
    with pytest.raises(SchemaMismatchError) as raised:
        table.append(rows)
    assert backend.load(table.name) == before
    assert watch.created == []
    return raised.value


def test_each_difference_of_a_mismatch_is_named(catalog: Catalog) -> None:
    table = create(catalog)
    rows = pa.table(
        {
            "ts": ["yesterday"],
            "sensor_id": ["s"],
            "value": ["warm"],
            "status": [True],
        }
    )
    error = refused(table, rows)
    problems = error.fields["problems"]
    assert isinstance(problems, list)
    assert len(problems) == 3
    for name in ("ts", "value", "status"):
        assert any(f"{name}" in problem for problem in problems), problems
        assert name in str(error)
    assert "sensor_id" not in str(error)


def test_a_required_column_takes_no_null(memory: Catalog) -> None:
    schema = pa.schema([pa.field("ts", pa.timestamp("us", "UTC"), nullable=False), ("v", "int32")])
    table = memory.create_table(NAME, schema)
    rows = pa.table({"ts": [START, None], "v": [1, 2]}, schema=pa.schema(list(schema)).remove(0)
                    .insert(0, pa.field("ts", pa.timestamp("us", "UTC"))))  # fmt: skip
    assert "ts" in str(refused(table, rows))
    assert "ts" in str(refused(table, rows.select(["v"])))
    table.append(rows.slice(0, 1))
    assert table.scan().count() == 1


def test_values_that_do_not_fit_are_refused_not_cut(memory: Catalog) -> None:
    table = create(memory)
    rows = readings().set_column(3, "status", pa.array([1, 2, 3, 1 << 40]))
    assert "status" in str(refused(table, rows))


def test_a_new_column_that_cannot_be_null_is_refused(memory: Catalog) -> None:
    table = create(memory)
    rows = readings().append_column(
        pa.field("unit", pa.string(), nullable=False), pa.array(["bar"] * 4)
    )
    with pytest.raises(SchemaMismatchError, match="unit"):
        table.append(rows)
    assert table.version == 0


@pytest.mark.parametrize(
    "data", [None, 7, "rows", b"rows", object(), [], [1, 2]], ids=lambda data: type(data).__name__
)
def test_what_has_no_rows_is_refused_with_a_list_of_what_has(memory: Catalog, data: Any) -> None:
    table = create(memory)
    with pytest.raises(RequestError) as raised:
        table.append(data)
    assert "pyarrow" in raised.value.hint
    assert table.version == 0


def test_an_iterator_that_fails_half_way_commits_nothing(catalog: Catalog) -> None:
    table = create(catalog)

    def half() -> Iterator[Any]:
        yield from readings().to_batches()
        raise OSError("the wire broke")

    with pytest.raises(OSError, match="wire"):
        table.append(half())
    assert table.version == 0


def test_an_append_on_one_session_is_seen_by_another_at_once(opener: Opener) -> None:
    here = create(opener())
    there = opener().table(NAME)
    for day in range(3):
        here.append(readings(day))
        assert there.version == here.version == day + 1
        assert there.scan().count() == 4 * (day + 1)


def test_a_pandas_frame_without_named_index_brings_no_index_column(memory: Catalog) -> None:
    table = create(memory)
    frame = readings().to_pandas()
    frame.index = pd.Index([7, 8, 9, 10])
    table.append(frame)
    assert table.arrow_schema == SCHEMA
