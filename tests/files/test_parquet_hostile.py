"""A hostile Parquet file is a typed error within seconds, in little memory, in a living process."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.files import raw_parquet, tables
from tests.files.confined import confined
from tests.files.raw_parquet import (
    BYTE_ARRAY,
    FIXED,
    INT32,
    Column,
    Long,
    Raw,
    closed,
    longs,
    page,
    struct,
    texts,
    varint,
)

from lakebed.errors import BadDataFileError
from lakebed.files.footer import adopt
from lakebed.files.parquet_layout import Layout, read_layout
from lakebed.files.parquet_stats import layout_stats
from lakebed.format.datafile import ColumnStats
from lakebed.format.partition import PartitionSpec
from lakebed.format.schema import Schema
from lakebed.format.types import Field, Kind, Primitive
from lakebed.limits import FOOTER_SIZE_BYTES_MAX
from lakebed.storage.memory import MemoryStore

LONG, TEXT = Primitive(Kind.LONG), Primitive(Kind.STRING)
ORDERS = [(7, [[(1, Raw(12, b"\0"))]])]  # each column in the order that its type defines


def layout(data: bytes) -> Layout:
    return read_layout(pa.BufferReader(data), "x.parquet", len(data))


def one(**changes: Any) -> Column:
    sound: dict[str, Any] = {"name": "c", "pages": page(longs(1, 2, 3))}
    return Column(**(sound | changes))


def test_the_file_that_the_others_change_is_sound() -> None:
    found = layout(raw_parquet.file([one()]))
    assert (found.row_count, found.is_flat, len(found.groups)) == (3, True, 1)
    assert [leaf.name for leaf in found.leaves] == ["c"]


def statistics(low: bytes, high: bytes, nulls: int = 0) -> Any:
    return [(3, Long(nulls)), (5, high), (6, low)]


def test_statistics_are_read_as_they_lie_there() -> None:
    data = raw_parquet.file([one(statistics=statistics(longs(-5), longs(7), 2))])
    assert layout_stats(layout(data), "c", LONG) == ColumnStats(2, None, -5, 7)
    assert layout_stats(layout(data), "other", LONG) == ColumnStats()


def text_file(fields: Any, **options: Any) -> Layout:
    column = one(
        physical=BYTE_ARRAY, converted=0, pages=page(texts("a", "b", "c")), statistics=fields
    )
    return layout(raw_parquet.file([column], **options))


def test_bounds_of_text_count_only_in_the_order_that_the_format_defines() -> None:
    new, old = statistics(b"a", b"c"), [(1, b"c"), (2, b"a"), (3, Long(0))]
    assert layout_stats(text_file(new, more=ORDERS), "c", TEXT) == (ColumnStats(0, None, "a", "c"))
    assert layout_stats(text_file(new), "c", TEXT) == ColumnStats(0)
    assert layout_stats(text_file(old, more=ORDERS), "c", TEXT) == ColumnStats(0)
    numbers = raw_parquet.file([one(statistics=[(1, longs(9)), (2, longs(1)), (3, Long(0))])])
    assert layout_stats(layout(numbers), "c", LONG) == ColumnStats(0, None, 1, 9)


@pytest.mark.parametrize(
    ("low", "high"), [(b"\xff\xfe", b"\xff\xff"), (b"b", b"a"), (b"a", b"\xff")]
)
def test_bounds_that_make_no_sense_are_unknown(low: bytes, high: bytes) -> None:
    found = text_file(statistics(low, high), more=ORDERS)
    assert layout_stats(found, "c", TEXT) == ColumnStats(0)


def element(
    name: str, *, children: int | None = None, kind: int | None = None, length: int = 0
) -> Any:
    fields = [(1, kind), (2, length or None), (4, name), (5, children)]
    return [(number, value) for number, value in fields if value is not None]


def many(count: int, item: Any, first: bytes = b"") -> Raw:
    """A list of equal structs, after a first one of its own."""
    listed = first + struct(item) * count
    return Raw(9, b"\xfc" + varint(count + bool(first)) + listed)


def with_schema(*elements: Any) -> bytes:
    return raw_parquet.file([one()], schema=list(elements))


ROOT, LEAF = element("root", children=1), element("c", kind=2)
HOSTILE: dict[str, bytes] = {
    "negative rows": raw_parquet.file([one()], row_count=-3),
    "rows that do not add up": raw_parquet.file([one()], group_rows=4),
    "statistics too short": raw_parquet.file([one(statistics=statistics(b"", longs(1)))]),
    "statistics too long": raw_parquet.file([one(statistics=statistics(longs(1, 2), longs(1)))]),
    "statistics of a fixed column too short": raw_parquet.file(
        [one(physical=FIXED, length=16, statistics=statistics(b"x", b"y"))]
    ),
    "old statistics too short": raw_parquet.file([one(statistics=[(1, b"\1"), (2, b"\0")])]),
    "a column in another file": raw_parquet.file([one(chunk=((1, "/etc/passwd"),))]),
    "an encrypted column": raw_parquet.file([one(chunk=((8, [(1, Raw(12, b"\0"))]),))]),
    "encrypted metadata": raw_parquet.file([one(chunk=((9, b"secret"),))]),
    "an encrypted footer": closed(b"\0" * 40, b"PARE"),
    "no schema": raw_parquet.file([one()], schema=[element("root")]),
    "a schema that ends too early": with_schema(element("root", children=2), LEAF),
    "a schema that goes on": with_schema(ROOT, LEAF, LEAF),
    "negative children": with_schema(element("root", children=-1), LEAF),
    "two billion children": with_schema(element("root", children=(1 << 31) - 1), LEAF),
    "an unknown type": with_schema(ROOT, element("c", kind=99)),
    "a fixed column of no length": with_schema(ROOT, element("c", kind=7)),
    "a fixed column of negative length": with_schema(ROOT, element("c", kind=7, length=-4)),
    "a name that is no text": with_schema(ROOT, [(1, 2), (4, b"\xff\xfe")]),
    "a row group without columns": raw_parquet.file([one()], groups=[[(3, Long(3))]]),
    "a chunk that is not described": raw_parquet.file(
        [one()], groups=[[(1, [[(2, Long(4))]]), (3, Long(3))]]
    ),
    "a negative offset": raw_parquet.file([one(meta=((11, Long(-1)),))]),
    "nesting without end": b"PAR1" + closed(b"\x1c" * 5000),
    "a list without end": b"PAR1" + closed(struct([(2, Raw(9, b"\xfc" + varint(1 << 40)))])),
    "a text without end": b"PAR1" + closed(struct([(6, Raw(8, varint(1 << 40)))])),
    "a number without end": b"PAR1" + closed(b"\x15" + b"\xff" * 20),
    "a map without end": b"PAR1" + closed(b"\x1b" + varint(1 << 40) + b"\x88"),
    "an unknown kind": b"PAR1" + closed(b"\x1e\x00"),
    "lists of the wrong kind": b"PAR1" + closed(struct([(2, [1, 2, 3])])),
    "nothing": b"PAR1" + closed(b""),
    "a footer longer than the file": b"PAR1" + b"\0" * 20 + b"\0\1\0\0" + b"PAR1",
    "a footer of four gigabytes": b"PAR1" + b"\0" * 20 + b"\xff" * 4 + b"PAR1",
}  # fmt: skip


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_a_footer_that_lies_is_refused(data: bytes) -> None:
    with pytest.raises(BadDataFileError, match=r"x\.parquet"):
        layout(data)


@pytest.mark.parametrize("nulls", [-1, 4, 1 << 62])
def test_more_nulls_than_rows_are_refused(nulls: int) -> None:
    store = MemoryStore()
    data = raw_parquet.file([one(statistics=statistics(longs(1), longs(3), nulls))])
    store.create("data/x.parquet", data)
    schema = Schema(0, (Field(1, "c", LONG),))
    with pytest.raises(BadDataFileError, match="nulls in 3 rows"):
        adopt(store, "data/x.parquet", schema=schema, spec=PartitionSpec(0))


def test_a_footer_above_the_limit_is_refused_unread() -> None:
    class Source:
        def read_at(self, length: int, offset: int) -> bytes:
            assert length == 8, "the footer itself must not be read"
            return (FOOTER_SIZE_BYTES_MAX + 1).to_bytes(4, "little") + b"PAR1"

    with pytest.raises(BadDataFileError, match="claims a footer"):
        read_layout(Source(), "x.parquet", 1 << 40)


@pytest.mark.slow
def test_all_of_them_leave_the_process_alive(tmp_path: Path) -> None:
    for task in ("adopt", "read pushed"):
        place = tmp_path / task
        place.mkdir()
        ends = confined(task, list(HOSTILE.values()), place)
        assert set(ends) <= {"BadDataFileError"}


@pytest.mark.slow
def test_bombs_of_structure_stay_within_a_small_memory(tmp_path: Path) -> None:
    wide = struct(element("root", children=2_000_000))
    bombs = [
        raw_parquet.file([one()], more=[(5, many(1_200_000, [(1, "k")]))]),
        raw_parquet.file([one()], schema=many(2_000_000, LEAF, wide)),
        raw_parquet.file(
            [one()], groups=[[(1, many(900_000, [(3, [(5, Long(3))])])), (3, Long(3))]]
        ),
        raw_parquet.file([one()], groups=many(1_500_000, [(3, Long(0))])),
        raw_parquet.file([one()], more=[(6, b"x" * (60 << 20))]),
        b"PAR1" + closed(struct([(9, Raw(9, b"\xf5" + varint(30 << 20) + b"\0" * (30 << 20)))])),
        raw_parquet.file([one(name="n" * (10 << 20), physical=INT32)]),
    ]
    ends = confined("adopt", bombs, tmp_path)
    assert set(ends) <= {"BadDataFileError", "SchemaMismatchError"}, ends


@pytest.mark.slow
def test_each_cut_of_a_file_is_refused(tmp_path: Path) -> None:
    ((_, data),) = tables.written()
    cuts = [data[:length] for length in range(0, len(data), 13)]
    for task in ("adopt", "read", "read pushed"):
        place = tmp_path / task
        place.mkdir()
        assert set(confined(task, cuts, place)) == {"BadDataFileError"}


@pytest.mark.slow
@pytest.mark.parametrize("task", ["adopt", "read", "read pushed"])
def test_a_flipped_bit_gives_a_typed_error_or_changes_nothing(task: str, tmp_path: Path) -> None:
    # "read" compares the rows. Parquet's checksums do not cover the headers of pages, where the
    # length of a nested column stands twice: a flip there can go unnoticed, at one place of all.
    ((_, data),) = tables.written()
    flips = []
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1 << (3, 1, 0, 5, 7)[place % 5]
        flips.append(bytes(changed))
    ends = confined(task, flips, tmp_path)
    assert set(ends) <= {"ok", "BadDataFileError", "SchemaMismatchError"}
    assert "BadDataFileError" in ends
