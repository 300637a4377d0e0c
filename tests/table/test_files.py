"""A file that somebody else put in place is taken as it is, or refused for what is wrong."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace
from tests.around import interrupted
from tests.table.samples import NAME, SCHEMA, create, minutes, paths, put, readings

from lakebed.errors import (
    BadDataFileError,
    CommitConflictError,
    LakebedError,
    ObjectMissingError,
    RequestError,
    SchemaMismatchError,
    UnsafePathError,
)
from lakebed.format.datafile import DataFile
from lakebed.format.snapshot import Operation
from lakebed.table.catalog import Catalog
from lakebed.table.table import Table


def lay(table: Table, rows: Any, path: str = "data/foreign.parquet", **options: Any) -> str:
    """Write a plain Parquet file, as another tool would."""
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, **options)
    table.files.store.create(path, sink.getvalue().to_pybytes())
    return path


def untouched(table: Table, version: int = 0) -> bool:
    return table.version == version


# ------------------------------------------------------------------------------------ add_files


def test_a_foreign_file_is_adopted_with_statistics_from_its_footer(catalog: Catalog) -> None:
    table = create(catalog)
    path = lay(table, readings(1), "incoming/today.parquet")
    commit = table.add_files([path])
    assert (commit.operation, commit.added_rows) == (Operation.APPEND, 4)
    assert paths(table) == {path}
    assert table.scan().to_arrow() == readings(1)
    assert table.scan("ts < '2026-01-02'").plan.file_count == 0
    assert table.scan("value < 0.5").plan.file_count == 0
    assert table.scan("status >= 0").plan.certain_row_count == 4
    # Parquet does not count NaN, so of floats it is never certain that all rows match.
    assert table.scan("value >= 1.0").plan.certain_row_count == 0
    assert table.scan("value >= 1.0").count() == 4


def test_a_foreign_file_may_order_its_columns_as_it_likes_and_leave_some_out(
    catalog: Catalog,
) -> None:
    table = create(catalog)
    table.add_files(lay(table, readings().select(["value", "ts"])))
    found = table.scan().to_arrow()
    assert found.schema == SCHEMA
    assert found.column("status").null_count == 4


def test_a_file_is_named_by_its_absolute_path_as_well(catalog: Catalog) -> None:
    table = create(catalog)
    path = lay(table, readings())
    table.add_files([f"{table.location}/{path}"])
    assert paths(table) == {path}


def test_a_file_of_several_partitions_is_refused(catalog: Catalog) -> None:
    table = create(catalog)
    path = lay(table, pa.concat_tables([readings(0), readings(1)]))
    with pytest.raises(SchemaMismatchError, match="several partitions"):
        table.add_files([path])
    assert untouched(table)


def test_a_file_with_another_type_is_refused_by_name(catalog: Catalog) -> None:
    table = create(catalog)
    path = lay(table, readings().set_column(2, "value", pa.array(["a"] * 4)))
    with pytest.raises(SchemaMismatchError, match=r"foreign\.parquet.*value"):
        table.add_files([path])
    assert untouched(table)


def test_one_bad_file_among_good_ones_stops_all(catalog: Catalog) -> None:
    table = create(catalog)
    good = lay(table, readings(), "data/good.parquet")
    table.files.store.create("data/bad.parquet", b"PAR1 no such thing PAR1")
    with pytest.raises(BadDataFileError, match=r"bad\.parquet"):
        table.add_files([good, "data/bad.parquet"])
    assert untouched(table)


def test_a_file_that_is_not_there_is_said_to_be_missing(catalog: Catalog) -> None:
    table = create(catalog)
    with pytest.raises(ObjectMissingError, match="nowhere"):
        table.add_files(["data/nowhere.parquet"])
    assert untouched(table)


@pytest.mark.parametrize(
    "path", ["../other/data/a.parquet", "/etc/passwd", "data/../../up.parquet", "data//a", ""]
)
def test_a_path_out_of_the_table_is_never_opened(catalog: Catalog, path: str) -> None:
    table = create(catalog)
    with pytest.raises((UnsafePathError, RequestError)):
        table.add_files([path])
    assert untouched(table)


def test_a_file_named_twice_is_refused(catalog: Catalog) -> None:
    table = create(catalog)
    path = lay(table, readings())
    with pytest.raises(RequestError, match="more than once"):
        table.add_files([path, path])
    assert untouched(table)


@pytest.mark.parametrize("through", ["add_files", "commit_append"])
def test_a_file_that_is_in_the_table_already_is_refused(catalog: Catalog, through: str) -> None:
    """Else its rows would count twice, and could not be removed once."""
    table = create(catalog)
    young, old = put(table, readings()), put(table, readings(1))
    others = [
        DataFile(path=f"data/{n}", row_count=1, size_bytes=1, partition=(n,)) for n in range(20)
    ]
    table.commit_append([old, *others], verify=False)
    table.commit_append([young])
    for file in (young, old):
        with pytest.raises(RequestError, match=file.path):
            if through == "add_files":
                table.add_files([file.path])
            else:
                table.commit_append([file])
    assert untouched(table, 2)


def test_a_file_that_another_writer_adopts_at_the_same_time_is_taken_once(
    catalog: Catalog,
) -> None:
    table = create(catalog)
    file = put(table, readings())
    slow = interrupted(catalog, lambda: table.commit_append([file])).table(NAME)
    with pytest.raises(RequestError, match="already"):
        slow.add_files([file.path])
    assert minutes(table) == [0, 1, 2, 3]


# --------------------------------------------------------------------------------- commit_append


def test_a_description_that_is_not_true_is_refused(catalog: Catalog) -> None:
    table = create(catalog)
    file = put(table, readings())
    lies: list[tuple[DataFile, str]] = [
        (replace(file, row_count=5), "row_count"),
        (replace(file, size_bytes=file.size_bytes + 1), "size_bytes"),
        (replace(file, partition=(1,)), "partition"),
    ]
    for lie, what in lies:
        with pytest.raises(BadDataFileError, match=what):
            table.commit_append([lie])
    assert untouched(table)
    table.commit_append([file])
    assert minutes(table) == [0, 1, 2, 3]


def test_without_verification_a_description_is_believed(catalog: Catalog) -> None:
    table = create(catalog)
    table.commit_append(
        [DataFile(path="data/x.parquet", row_count=9, size_bytes=9, partition=(20_454,))],
        verify=False,
    )
    assert table.scan().count() == 9


@pytest.mark.parametrize("change", [{"spec_id": 7}, {"schema_id": 7}, {"path": "../x"}], ids=str)
def test_a_description_that_cannot_be_is_refused_even_unverified(
    memory: Catalog, change: dict[str, Any]
) -> None:
    table = create(memory)
    file = replace(put(table, readings()), **change)
    with pytest.raises(LakebedError):
        table.commit_append([file], verify=False)
    assert untouched(table)
    assert table.scan().count() == 0


# ------------------------------------------------------------------------------ commit_overwrite


def test_files_are_replaced_by_others_in_one_version(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(readings(0))
    table.append(readings(1))
    old = table.read_plan("ts < '2026-01-02'").files
    new = put(table, readings(0, count=2, first=50))
    commit = table.commit_overwrite(old, [new])
    assert (commit.operation, commit.version) == (Operation.OVERWRITE, 3)
    assert minutes(table) == [50, 51, 1440, 1441, 1442, 1443]


def test_a_file_that_the_table_does_not_have_cannot_be_removed(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(readings())
    stranger = put(table, readings(1))
    with pytest.raises(CommitConflictError, match="does not have") as raised:
        table.commit_overwrite([stranger], [])
    assert raised.value.fields["verdict"] == "BOTH_REMOVED"
    assert untouched(table, 1)


def test_of_two_replacements_of_one_file_the_second_is_refused(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(readings())
    old = table.read_plan().files
    left, right = put(table, readings(first=100)), put(table, readings(first=200))
    slow = interrupted(catalog, lambda: table.commit_overwrite(old, [left]))
    with pytest.raises(CommitConflictError, match="removed by another commit"):
        slow.table(NAME).commit_overwrite(old, [right])
    assert paths(table) == {left.path}


def test_replacements_of_different_files_both_land(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(readings(0))
    table.append(readings(1))
    first, second = sorted(table.read_plan().files, key=lambda file: file.partition)
    left, right = put(table, readings(0, first=100)), put(table, readings(1, first=100))
    slow = interrupted(catalog, lambda: table.commit_overwrite([first], [left]))
    assert slow.table(NAME).commit_overwrite([second], [right]).attempts == 2
    assert paths(table) == {left.path, right.path}


def test_a_decision_made_on_an_old_version_is_checked_against_all_since(catalog: Catalog) -> None:
    table = create(catalog)
    table.append(readings())
    base = table.current_snapshot()
    old = table.read_plan().files
    new = put(table, readings(first=100))
    table.append(readings(1))
    table.delete("ts = '2026-01-01'")
    with pytest.raises(CommitConflictError, match=r"version 3 \(delete\)"):
        table.commit_overwrite(old, [new], base=base)
    assert untouched(table, 3)


def test_a_rewrite_says_that_the_rows_are_the_same(catalog: Catalog) -> None:
    table = create(catalog)
    for minute in range(3):
        table.append(readings(count=1, first=minute))
    new = put(table, readings(count=3))
    commit = table.commit_overwrite(table.read_plan().files, [new], data_change=False)
    assert commit.operation is Operation.REWRITE
    assert not table.current_snapshot().data_change
    assert minutes(table) == [0, 1, 2]


def test_dates_and_other_types_keep_their_values_through_adoption(memory: Catalog) -> None:
    rows = pa.table(
        {
            "day": pa.array([dt.date(1969, 12, 31), dt.date(2026, 1, 1)]),
            "price": pa.array([Decimal(-1), Decimal("2.50")], pa.decimal128(9, 2)),
            "raw": pa.array([b"\x00", b"\xff" * 80]),
        }
    )
    table = memory.create_table("t", rows.schema)
    table.add_files(lay(table, rows))
    assert table.scan().to_arrow() == rows
    assert table.scan("day < '1970-01-01'").count() == 1
    assert table.scan("price = -1").count() == 1
    assert table.scan().min("day").as_py() == dt.date(1969, 12, 31)
    assert table.scan().max("raw").as_py() == b"\xff" * 80
