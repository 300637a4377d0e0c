"""One report, three forms: JSON and CSV are exact, tables are harmless."""

import csv
import io
import json
from typing import Any

import pyarrow as pa
import pytest

from lakebed.cli.output import Column, Form, Output
from lakebed.cli.values import plain_rows

COLUMNS = (
    Column(key="name", title="name"),
    Column(key="n", title="n", right=True),
    Column(key="x"),
)
ROWS = [{"name": "a", "n": 1, "x": None}, {"name": 'b,"\x1b[31m', "n": 20, "x": {"k": ""}}]


def emitted(capsys: pytest.CaptureFixture[str], form: Any, **attributes: Any) -> Any:
    Output(form=form, **attributes).rows(COLUMNS, ROWS)
    return capsys.readouterr().out


def test_json_is_an_array_that_holds_everything(capsys: pytest.CaptureFixture[str]) -> None:
    out = emitted(capsys, Form.JSON)
    assert json.loads(out) == ROWS
    assert "\x1b" not in out


def test_json_of_nothing_is_an_empty_array(capsys: pytest.CaptureFixture[str]) -> None:
    Output(form=Form.JSON).rows(COLUMNS, [])
    assert capsys.readouterr().out == "[]\n"


def test_csv_has_a_header_and_exact_values(capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.reader(io.StringIO(emitted(capsys, Form.CSV))))
    assert rows == [["name", "n", "x"], ["a", "1", ""], ['b,"\x1b[31m', "20", '{"k": ""}']]


def test_csv_on_a_terminal_is_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    assert "\x1b" not in emitted(capsys, Form.CSV, terminal=True)


def test_csv_tells_nothing_from_empty_text(capsys: pytest.CaptureFixture[str]) -> None:
    Output(form=Form.CSV).rows(COLUMNS, [{"name": "", "n": None, "x": 1}])
    assert capsys.readouterr().out.splitlines()[1] == '"",,1'


def test_plain_table_is_aligned_and_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    assert emitted(capsys, Form.TABLE).splitlines() == [
        "name          n",
        "a             1",
        'b,"\\x1b[31m  20',
    ]


def test_terminal_table_takes_data_for_text_and_not_for_markup(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Output(form=Form.TABLE, terminal=True, color=False).rows(
        COLUMNS, [{"name": "[red]:smile:", "n": 1, "x": 0}]
    )
    out = capsys.readouterr().out
    assert "[red]:smile:" in out
    assert "\x1b" not in out


def test_quiet_silences_the_sentence_but_not_the_record(capsys: pytest.CaptureFixture[str]) -> None:
    Output(form=Form.TABLE, quiet=True).done({"a": 1}, "done")
    assert capsys.readouterr().out == ""
    Output(form=Form.JSON, quiet=True).done({"a": 1}, "done")
    assert json.loads(capsys.readouterr().out) == {"a": 1}


def test_a_late_wide_cell_moves_its_own_line_only(capsys: pytest.CaptureFixture[str]) -> None:
    batch = pa.record_batch({"a": ["x"] * 1000 + ["y" * 30], "b": [1] * 1001})
    Output(form=Form.TABLE).arrow(batch.schema, [batch])
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "x  1"
    assert lines[-1] == "y" * 30 + "  1"


def test_terminal_shows_a_hundred_rows_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    batch = pa.record_batch({"a": list(range(250))})
    Output(form=Form.TABLE, terminal=True).arrow(batch.schema, [batch], cut=True)
    shown = capsys.readouterr()
    assert shown.out.splitlines()[-1] == "99"
    assert "--limit" in shown.err


@pytest.mark.parametrize(
    ("array", "plain"),
    [
        (pa.array([0, 1_500_000, None], pa.timestamp("us", tz="UTC")),
         ["1970-01-01T00:00:00Z", "1970-01-01T00:00:01.5Z", None]),
        (pa.array([-1], pa.timestamp("ns")), ["1969-12-31T23:59:59.999999999"]),
        (pa.array([10], pa.timestamp("s")), ["1970-01-01T00:00:10"]),
        (pa.array([-1], pa.date32()), ["1969-12-31"]),
        (pa.array([3_600_000_000], pa.time64("us")), ["01:00:00"]),
        (pa.array([1.5, float("nan"), float("-inf")]), [1.5, "NaN", "-Infinity"]),
        (pa.array([b"\x00\xff"]), ["00ff"]),
        (pa.array([1], pa.decimal128(5, 2)), ["1.00"]),
        (pa.array(["a", "b"]).dictionary_encode(), ["a", "b"]),
        (pa.array([[1, None]], pa.list_(pa.timestamp("ns"))),
         [["1970-01-01 00:00:00.000000001", None]]),
        (pa.array([{"a": float("nan")}]), [{"a": "NaN"}]),
        (pa.array([[("k", b"\x01")]], pa.map_(pa.string(), pa.binary())), [[["k", "01"]]]),
        (pa.array([True, None]), [True, None]),
    ],
)  # fmt: skip
def test_arrow_values_become_plain_and_stay_exact(array: Any, plain: Any) -> None:
    batch = pa.record_batch({"c": array})
    assert [row[0] for row in plain_rows(batch)] == plain
    json.dumps(plain, allow_nan=False)


def test_a_row_too_wide_for_the_terminal_becomes_lines_of_its_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    columns = [Column(key=f"column{i}", title=f"column{i}") for i in range(12)]
    row = {column.key: f"value {i:02d}" for i, column in enumerate(columns)}
    Output(form=Form.TABLE, terminal=True).rows(columns[:3], [row])
    assert "column0   column1   column2" in capsys.readouterr().out
    Output(form=Form.TABLE, terminal=True).rows(columns, [row, row])
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["row 1", "  column0   value 00"]
    assert len(lines) == 2 * 13
