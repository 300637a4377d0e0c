"""Rows arrive the same from each format, and a bad file is named."""

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from lakebed.cli.guess import guess_schema
from lakebed.cli.incoming import incoming
from lakebed.cli.readers import FileFormat, Reading, open_source
from lakebed.errors import RequestError

TIME = pa.timestamp("us", tz="UTC")
WANTED = pa.schema([("ts", TIME), ("s", pa.string()), ("v", pa.float64())])
TABLE = pa.table(
    {"ts": pa.array([1, 2, None], TIME), "s": ["a", None, ""], "v": [1.5, 2.0, float("inf")]}
)
CSV = (
    'ts,s,v\n1970-01-01T00:00:00.000001Z,a,1.5\n1970-01-01 01:00:00.000002+01:00,,2\n,"",Infinity\n'
)
LINES = [
    {"ts": "1970-01-01T00:00:00.000001Z", "s": "a", "v": 1.5},
    {"ts": "1970-01-01 01:00:00.000002+01:00", "s": None, "v": 2},
]


def write_all(folder: Any) -> Any:
    pq.write_table(TABLE, folder / "a.parquet")
    feather.write_feather(TABLE, folder / "b.feather")
    with pa.ipc.new_stream(folder / "c.arrows", TABLE.schema) as writer:
        writer.write(TABLE)
    (folder / "d.csv").write_text(CSV)
    with gzip.open(folder / "e.CSV.gz", "wt") as file:
        file.write(CSV)
    return ["a.parquet", "b.feather", "c.arrows", "d.csv", "e.CSV.gz"]


def read(path: Any, **how: Any) -> Any:
    opened = open_source(str(path), Reading(wanted=WANTED, **how))
    return pa.Table.from_batches(list(opened.batches), opened.schema), opened


def test_each_format_gives_the_same_rows(tmp_path: Path) -> None:
    for name in write_all(tmp_path):
        table, opened = read(tmp_path / name, batch_rows=2)
        assert table.select(WANTED.names).equals(TABLE), name
        assert opened.position() == (tmp_path / name).stat().st_size, name


def test_json_lines_and_arrays_give_the_same_rows(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text("\n".join(map(json.dumps, LINES)))
    (tmp_path / "b.json").write_text(json.dumps(LINES, indent=2))
    for name in ("a.ndjson", "b.json"):
        assert read(tmp_path / name)[0].equals(TABLE.slice(0, 2)), name


def test_batches_are_no_larger_than_asked(tmp_path: Path) -> None:
    for name in write_all(tmp_path):
        opened = open_source(str(tmp_path / name), Reading(wanted=WANTED, batch_rows=2))
        assert [batch.num_rows for batch in opened.batches] == [2, 1]


def test_na_is_text_unless_it_was_called_null(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("s\nNA\n")
    assert read(tmp_path / "a.csv")[0].column("s").to_pylist() == ["NA"]
    assert read(tmp_path / "a.csv", null_texts=("NA",))[0].column("s").to_pylist() == [None]


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("a.csv", b"ts\n2026-01-01T00:00:00\n", "2026-01-01T00:00:00Z"),
        ("a.csv", b"v\nwarm\n", "warm"),
        ("a.csv", b"", "cannot be read"),
        ("a.json", b"{", "cannot be read"),
        ("a.json", b"[" * 100_000, "cannot be read"),
        ("a.parquet", b"PAR1 not really PAR1", "cannot be read"),
        ("a.arrow", b"\xff\xff\xff\xff\x00", "cannot be read"),
        ("a.csv.gz", b"not gzip", "cannot be read"),
        ("a.xyz", b"", "--format"),
    ],
)
def test_a_bad_file_is_named_in_a_typed_error(
    tmp_path: Path, name: Any, content: Any, complaint: Any
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(RequestError) as caught:
        read(tmp_path / name)
    assert complaint in str(caught.value)
    assert name in str(caught.value)


def test_absent_file_is_a_request_error(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="there is no file"):
        read(tmp_path / "nope.csv")


class Pipe:
    """Standard input with some bytes in it."""

    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)


def arrow_stream() -> Any:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, TABLE.schema) as writer:
        writer.write(TABLE)
    return sink.getvalue()


def test_standard_input_tells_its_own_format(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Pipe(arrow_stream()))
    assert read("-")[0].equals(TABLE)
    monkeypatch.setattr(sys, "stdin", Pipe("\n".join(map(json.dumps, LINES)).encode()))
    assert read("-")[0].equals(TABLE.slice(0, 2))
    monkeypatch.setattr(sys, "stdin", Pipe(CSV.encode()))
    assert read("-", file_format=FileFormat.CSV)[0].equals(TABLE)


@pytest.mark.parametrize("content", [b"", b"ts,s\n", b"PAR1...."])
def test_standard_input_of_no_known_format_is_refused(
    monkeypatch: pytest.MonkeyPatch, content: Any
) -> None:
    monkeypatch.setattr(sys, "stdin", Pipe(content))
    with pytest.raises(RequestError):
        read("-")


def test_files_of_different_columns_become_one_stream(tmp_path: Path) -> None:
    pq.write_table(TABLE.drop_columns(["v"]), tmp_path / "a.parquet")
    pq.write_table(TABLE.append_column("site", [["x"] * 3]), tmp_path / "b.parquet")
    found = incoming(
        [str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")], Reading(wanted=WANTED)
    )
    seen: list[tuple[int, int]] = []
    table = pa.Table.from_batches(found.batches(lambda done, rows: seen.append((done, rows))))
    assert table.column("v").to_pylist() == [None] * 3 + [1.5, 2.0, float("inf")]
    assert table.column("site").to_pylist() == [None] * 3 + ["x"] * 3
    assert seen[-1] == (found.size_bytes, 6)


def test_files_that_cannot_share_a_schema_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"a": [[1]]}), tmp_path / "b.parquet")
    with pytest.raises(RequestError, match="do not fit together"):
        incoming([str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet")], Reading())


def test_standard_input_cannot_be_read_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RequestError, match="more than once"):
        incoming(["-", "-"], Reading())


def test_guess_keeps_zones_and_needs_no_nanoseconds(tmp_path: Path) -> None:
    text = "a,b,c\n2026-01-01T00:00:00.123456Z,2026-01-01 00:00:00.123456789,1\n"
    (tmp_path / "a.csv").write_text(text)
    assert guess_schema(str(tmp_path / "a.csv")).types == [TIME, pa.timestamp("ns"), pa.int64()]
    lines = [{"a": "2026-01-01T00:00:00Z", "b": "2026-01-01T00:00:00", "c": "x"}]
    (tmp_path / "a.json").write_text(json.dumps(lines))
    assert guess_schema(str(tmp_path / "a.json")).types == [TIME, pa.timestamp("us"), pa.string()]


def test_guess_takes_the_word_of_files_that_have_types(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "a.parquet")
    assert guess_schema(str(tmp_path / "a.parquet")).equals(WANTED)


def test_guess_refuses_a_column_without_values(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,\n")
    with pytest.raises(RequestError, match="'b' has no values"):
        guess_schema(str(tmp_path / "a.csv"))
