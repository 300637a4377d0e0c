"""Whatever speaks Arrow comes in as the same rows; what does not is refused and says what would."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from lakebed.errors import RequestError
from lakebed.files.arrow_schema import INFERRED
from lakebed.files.intake import batches_of

ROWS: list[dict[str, Any]] = [{"a": 1, "b": "x"}, {"a": 2, "b": None}, {"a": 3, "b": "z"}]
TABLE = pa.table({"a": [1, 2, 3], "b": ["x", None, "z"]})


class Capsule:
    """Something of a library we never heard of."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return TABLE.__arrow_c_stream__(requested_schema)


class BatchCapsule:
    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return TABLE.to_batches()[0].__arrow_c_array__(requested_schema)


def taken(data: Any) -> list[dict[str, Any]]:
    schema, batches = batches_of(data)
    return list(pa.Table.from_batches(list(batches), schema).to_pylist())


def batches() -> Iterator[Any]:
    yield from TABLE.to_batches(max_chunksize=2)


MAKERS: dict[str, Any] = {
    "table": lambda: TABLE,
    "batch": lambda: TABLE.to_batches()[0],
    "reader": lambda: TABLE.to_reader(max_chunksize=1),
    "dataset": lambda: ds.dataset(TABLE),
    "scanner": lambda: ds.dataset(TABLE).scanner(batch_size=2),
    "pandas": lambda: pd.DataFrame({"a": [1, 2, 3], "b": ["x", None, "z"]}),
    "polars": lambda: pl.DataFrame({"a": [1, 2, 3], "b": ["x", None, "z"]}),
    "polars lazy": lambda: pl.LazyFrame({"a": [1, 2, 3], "b": ["x", None, "z"]}),
    "duckdb": lambda: duckdb.connect().sql(
        "select * from (values (1, 'x'), (2, null), (3, 'z')) t(a, b)"
    ),
    "dict of lists": lambda: {"a": [1, 2, 3], "b": ["x", None, "z"]},
    "dict of arrays": lambda: {"a": np.array([1, 2, 3]), "b": pa.array(["x", None, "z"])},
    "list of dicts": lambda: ROWS,
    "rows with other keys": lambda: [{"a": 1, "b": "x"}, {"a": 2}, {"b": "z", "a": 3}],
    "generator of batches": batches,
    "list of tables": lambda: [TABLE.slice(0, 1), TABLE.slice(1)],
    "generator of dicts of lists": lambda: ({"a": [r["a"]], "b": [r["b"]]} for r in ROWS),
    "generator of lists of rows": lambda: (rows for rows in (ROWS[:1], ROWS[1:])),
    "stream capsule": Capsule,
    "array capsule": BatchCapsule,
}  # fmt: skip


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_rows_come_in_from_anything_that_has_them(make: Any) -> None:
    assert taken(make()) == ROWS


def test_files_of_a_dataset_come_in(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "x.parquet")
    assert taken(ds.dataset(tmp_path)) == ROWS


def test_a_key_that_only_a_later_row_has_is_a_column() -> None:
    assert taken([{"a": 1}, {"a": 2, "b": "x"}]) == [{"a": 1, "b": None}, {"a": 2, "b": "x"}]


def test_an_iterator_is_taken_piece_by_piece() -> None:
    pulled = []

    def pieces() -> Iterator[Any]:
        for number in range(3):
            pulled.append(number)
            yield TABLE.slice(number, 1)

    _, stream = batches_of(pieces())
    assert pulled == [0]
    next(stream)
    assert pulled == [0]
    next(stream)
    assert pulled == [0, 1]


@pytest.mark.parametrize(
    ("make", "guessed"),
    [
        (lambda: {"a": [1]}, True),
        (lambda: [{"a": 1}], True),
        (lambda: {"a": np.array([1])}, False),
        (lambda: TABLE, False),
        (lambda: pd.DataFrame({"a": [1]}), False),
    ],
)
def test_types_that_were_guessed_from_python_values_are_marked(make: Any, guessed: bool) -> None:
    schema, _ = batches_of(make())
    assert (INFERRED in (schema.metadata or {})) is guessed


def test_an_index_with_a_name_is_a_column_and_one_without_is_not() -> None:
    frame = pd.DataFrame({"a": [1, 2]})
    assert taken(frame) == [{"a": 1}, {"a": 2}]
    named = frame.set_index(pd.Index(["x", "y"], name="i"))
    assert taken(named) == [{"a": 1, "i": "x"}, {"a": 2, "i": "y"}]
    both = frame.set_index(pd.MultiIndex.from_tuples([(7, "x"), (8, "y")], names=[None, "i"]))
    assert taken(both) == [{"a": 1, "i": "x"}, {"a": 2, "i": "y"}]


@pytest.mark.parametrize(
    "data",
    [
        *(None, 7, 1.5, "text", b"bytes", object(), [], (), {1, 2}, iter(())),
        *([1, 2], ["a"], [[1, 2]], [None], [{"a": 1}, None], [{"a": 1}, 5], {"a": 1}),
        *({"a": [1], "b": [1, 2]}, {"a": [1, "x"]}, [{"a": 1}, {"a": "x"}], {"a": [object()]}),
        *({"a": [1 << 70]}, [{"a": 1 << 70}], {"a": ["\ud800"]}, pa.array([1, 2])),
        *(pl.Series([1, 2]), pd.Series([1, 2]), np.array([1, 2]), ({"a": 1} for _ in range(2))),
    ],
    ids=lambda data: type(data).__name__,
)
def test_what_holds_no_rows_is_refused(data: Any) -> None:
    with pytest.raises(RequestError):
        taken(data)


def test_a_refusal_says_what_would_be_taken() -> None:
    with pytest.raises(RequestError, match=r"a int does not hold rows.*pyarrow Table"):
        batches_of(7)


def test_pieces_whose_columns_only_stand_in_another_order_are_taken() -> None:
    other = TABLE.select(["b", "a"])
    assert taken([TABLE, other]) == ROWS + ROWS


def test_a_piece_of_nulls_and_guessed_integers_among_floats_are_taken() -> None:
    pieces = iter([{"a": [1.5]}, {"a": [2]}, {"a": [None]}])
    assert taken(pieces) == [{"a": 1.5}, {"a": 2.0}, {"a": None}]


@pytest.mark.parametrize(
    "second",
    [
        pa.table({"a": [1]}),
        pa.table({"a": [1], "b": ["x"], "c": [1]}),
        pa.table({"a": ["1"], "b": ["x"]}),
        pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]}),
        "text",
    ],
)
def test_a_piece_that_is_unlike_the_first_is_refused(second: Any) -> None:
    with pytest.raises(RequestError):
        taken([TABLE, second])


def test_an_error_of_the_stream_is_typed_and_one_of_the_callers_own_is_left_alone() -> None:
    def failing() -> Iterator[Any]:
        yield TABLE.to_batches()[0]
        raise pa.ArrowInvalid("broken")

    def own() -> Iterator[Any]:
        yield TABLE
        raise KeyError("mine")

    reader = pa.RecordBatchReader.from_batches(TABLE.schema, failing())
    with pytest.raises(RequestError, match="broken"):
        taken(reader)
    with pytest.raises(KeyError, match="mine"):
        taken(own())


def test_no_rows_with_columns_are_no_rows() -> None:
    assert taken(TABLE.slice(0, 0)) == []
    assert taken({"a": []}) == []
