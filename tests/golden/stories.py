"""The lives of the golden tables: what was done to each, and the rows it had after each step."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from lakebed.files.data_writer import WriterOptions
from lakebed.table.catalog import Catalog
from lakebed.table.rows import RowWriter
from lakebed.table.table import Table

Rows = list[dict[str, Any]]

DAY_US = 86_400_000_000
START_US = 1_767_225_600_000_000  # 2026-01-01
SPLIT_COUNT = 17  # one more than a snapshot lists by itself

EVERY_TYPE = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("flag", pa.bool_()),
        ("small", pa.int32()),
        ("single", pa.float32()),
        ("real", pa.float64()),
        ("money", pa.decimal128(9, 2)),
        ("huge", pa.decimal128(38, 10)),
        ("day", pa.date32()),
        ("clock", pa.time64("us")),
        ("wall", pa.timestamp("us")),
        ("instant", pa.timestamp("us", "UTC")),
        ("wall_ns", pa.timestamp("ns")),
        ("instant_ns", pa.timestamp("ns", "UTC")),
        ("text", pa.string()),
        ("blob", pa.binary()),
        ("four", pa.binary(4)),
        ("point", pa.struct([("x", pa.float64()), ("label", pa.string())])),
        ("numbers", pa.list_(pa.int32())),
        ("counts", pa.map_(pa.string(), pa.int64())),
        ("points", pa.list_(pa.struct([("t", pa.timestamp("ns")), ("v", pa.decimal128(5, 1))]))),
    ]
)
ORDINARY = {
    "id": 1,
    "flag": True,
    "small": -7,
    "single": 1.25,
    "real": 0.1,
    "money": Decimal("-12.30"),
    "huge": Decimal("1234567890123456789012345678.0123456789"),
    "day": 20_454,
    "clock": 43_200_000_001,
    "wall": START_US + 1,
    "instant": START_US + 2,
    "wall_ns": START_US * 1_000 + 3,
    "instant_ns": START_US * 1_000 + 4,
    "text": "Bodensee, 北京, 🌊",
    "blob": b"\x00\xff\x80",
    "four": b"\xde\xad\xbe\xef",
    "point": {"x": 2.5, "label": "here"},
    "numbers": [1, None, -3],
    "counts": [("a", 1), ("b", None)],
    "points": [{"t": 1_000_000_001, "v": Decimal("0.5")}, None],
}
LEAST = {
    "id": -(1 << 63),
    "flag": False,
    "small": -(1 << 31),
    "single": float("-inf"),
    "real": -0.0,
    "money": Decimal("-9999999.99"),
    "huge": Decimal("-9999999999999999999999999999.9999999999"),
    "day": -719_162,  # 0001-01-01
    "clock": 0,
    "wall": -62_135_596_800_000_000,
    "instant": -1,
    "wall_ns": -(1 << 63) + 2,  # the one before is DuckDB's minus infinity
    "instant_ns": -1,
    "text": "",
    "blob": b"",
    "four": bytes(4),
    "point": {"x": None, "label": None},
    "numbers": [],
    "counts": [],
    "points": [],
}
GREATEST = {
    "id": (1 << 63) - 1,
    "flag": True,
    "small": (1 << 31) - 1,
    "single": float("nan"),
    "real": float("nan"),
    "money": Decimal("9999999.99"),
    "huge": Decimal("9999999999999999999999999999.9999999999"),
    "day": 2_932_896,  # 9999-12-31
    "clock": DAY_US - 1,
    "wall": 253_402_300_799_999_999,
    "instant": 253_402_300_799_999_999,
    "wall_ns": (1 << 63) - 2,  # the next one is DuckDB's infinity
    "instant_ns": (1 << 63) - 2,
    "text": "\U0010ffff" * 70,  # longer than a bound, and nothing is greater
    "blob": b"\xff" * 70,
    "four": b"\xff" * 4,
    "point": {"x": float("inf"), "label": "z"},
    "numbers": [(1 << 31) - 1] * 3,
    "counts": [("z", (1 << 63) - 1)],
    "points": [{"t": None, "v": Decimal("9999.9")}],
}
NOTHING = {"id": 0}  # and null in every other column

SENSORS = pa.schema(
    [
        pa.field("ts", pa.timestamp("us", "UTC"), nullable=False),
        ("sensor", pa.string()),
        ("reading", pa.float32()),
        ("count", pa.int32()),
        ("price", pa.decimal128(6, 2)),
        ("note", pa.string()),
    ]
)


class Witness(Protocol):
    """Takes down what a table must be read as: see scripts/make_golden.py."""

    table: Table

    def saw(self, rows: Sequence[dict[str, Any]], before: Rows | None = None) -> None: ...

    def asked(self, predicate: str, holds: Callable[[dict[str, Any]], bool]) -> None: ...


W = TypeVar("W", bound=Witness)


def arrow(rows: Rows, schema: pa.Schema) -> pa.Table:
    """Rows as a user would bring them."""
    return pa.Table.from_pylist(rows, schema=schema)


def tell_types(catalog: Catalog, witness: Callable[[Table], W]) -> W:
    """Each type, with its ends, nulls and what is not a number."""
    table = catalog.create_table("types", EVERY_TYPE, description="each type there is")
    seen = witness(table)
    table.append(arrow([ORDINARY, NOTHING], EVERY_TYPE), token=("loader", 1))
    seen.saw([ORDINARY, NOTHING])
    table.append(arrow([LEAST], EVERY_TYPE))
    seen.saw([ORDINARY, NOTHING, LEAST])
    table.append(arrow([GREATEST], EVERY_TYPE), token=("loader", 20))
    seen.saw([ORDINARY, NOTHING, LEAST, GREATEST])
    seen.asked("small is null", lambda row: row.get("small") is None)
    seen.asked("real = 0", lambda row: row.get("real") == 0)
    seen.asked("money <= -12.30", lambda row: (row.get("money") or 0) <= Decimal("-12.30"))
    seen.asked("text > 'Bodensee'", lambda row: (row.get("text") or "") > "Bodensee")
    seen.asked("wall_ns < '1970-01-01'", lambda row: (row.get("wall_ns") or 0) < 0)
    return seen


def tell_evolved(catalog: Catalog, witness: Callable[[Table], W]) -> W:
    """Columns that come, go and come again; two partitionings; deletes, tags and rollbacks."""
    first = [_reading(0, "a", 1.5, "x"), _reading(0, "b", float("nan"), None)]
    first += [_reading(1, "a", -0.0, "y"), _reading(1, None, None, "x")]
    table = catalog.create_table(
        "evolved", SENSORS, ["day(ts)"], properties={"commit.isolation-level": "serializable"}
    )
    seen = witness(table)
    table.append(arrow(first, SENSORS), token=("loader", 1))
    seen.saw(first)
    sited = [{**_reading(2, "c", 8.0, "z"), "site": "north"}]
    table.append(arrow(sited, SENSORS.append(pa.field("site", pa.string()))), token=("loader", 2))
    seen.saw(narrow := first + sited)

    steps = table.evolve().rename_column("note", "remark").widen_column("reading", "double")
    steps.widen_column("count", "long").widen_column("price", "decimal(12,2)").commit()
    seen.saw(wide := [_renamed(row) for row in narrow])
    table.evolve().drop_column("site").commit()
    wide = [{**row, "site": None} for row in wide]
    seen.saw(wide)
    table.evolve().add_column("site", "string", doc="not the one before").commit()
    seen.saw(wide)
    table.evolve().partition_by(["bucket(4, sensor)", "month(ts)"]).set_properties(
        {"commit.isolation-level": None, "owner": "plant"}
    ).commit()
    seen.saw(wide)
    late = [_renamed({**_reading(40, "d", 1e300, "big"), "count": 1 << 40, "site": "south"})]
    late += [_renamed({**_reading(41, "a", 2.5, "x"), "price": Decimal("9999999999.99")})]
    table.append(arrow(late, table.arrow_schema), token=("other", 9))
    seen.saw(wide + late)
    table.tag("before-delete")
    seen.saw(wide + late)

    table.delete("sensor = 'b'")
    kept = [row for row in wide + late if row["sensor"] != "b"]
    seen.saw(kept)
    newer = [_renamed({**_reading(42, "e", 3.0, "new"), "site": "east"})]
    table.overwrite(arrow(newer, table.arrow_schema), where="ts >= '2026-02-11'")
    kept = [row for row in kept if row["ts"] < START_US + 41 * DAY_US] + newer
    seen.saw(kept)
    overwritten = table.version

    # The column `site` of old is another one than that of now, and is where it was not rewritten.
    table.rollback(2)
    seen.saw(narrow, before=[_as_of_old(row, sited[0]["ts"]) for row in kept])
    table.rollback(overwritten)
    seen.saw(kept, before=[{**_renamed(row), "site": None} for row in narrow])
    more = [_renamed({**_reading(43, "a", 4.0, "last"), "site": None})]
    table.append(arrow(more, table.arrow_schema), token=("loader", 3))
    seen.saw(kept + more)
    table.tag("release", overwritten)
    seen.saw(kept + more)
    seen.asked("sensor = 'a' and ts < '2026-01-02'", lambda row: row is kept[0])
    seen.asked("site is not null", lambda row: row.get("site") is not None)
    seen.asked("ts >= '2026-02-01'", lambda row: row["ts"] >= START_US + 31 * DAY_US)
    seen.asked("reading <= 1.5", lambda row: row["reading"] is not None and row["reading"] <= 1.5)
    return seen


def tell_folded(catalog: Catalog, witness: Callable[[Table], W]) -> W:
    """More files than a snapshot lists: manifests, marks of removal, a compaction."""
    schema = pa.schema([("n", pa.int32()), ("name", pa.string())])
    rows: Rows = [{"n": n, "name": f"row {n:02d}"} for n in range(SPLIT_COUNT)]
    table = catalog.create_table("folded", schema, ["truncate(1, n)"])
    seen = witness(table)
    table.append(arrow(rows, schema))
    seen.saw(rows)
    for n in (100, 101, 102):
        rows = [*rows, {"n": n, "name": "later"}]
        table.append(arrow(rows[-1:], schema))
        seen.saw(rows)
    table.delete("n = 3 or n = 101")
    rows = [row for row in rows if row["n"] not in (3, 101)]
    seen.saw(rows)
    table.evolve().partition_by([]).commit()
    seen.saw(rows)
    rows = [*rows, {"n": None, "name": None}]
    table.append(arrow(rows[-1:], schema))
    seen.saw(rows)
    table.append(arrow([{"n": 103, "name": "later"}], schema))
    rows = [*rows, {"n": 103, "name": "later"}]
    seen.saw(rows)
    _compact_unsplit(table)
    seen.saw(rows)
    table.append(arrow([{"n": 104, "name": "last"}], schema))
    rows = [*rows, {"n": 104, "name": "last"}]
    seen.saw(rows)
    seen.asked("n >= 16", lambda row: (row["n"] or 0) >= 16)
    seen.asked("name = 'later'", lambda row: row["name"] == "later")
    seen.asked("n is null", lambda row: row["n"] is None)
    return seen


def tell_reborn(catalog: Catalog, witness: Callable[[Table], W]) -> W:
    """A name that was dropped and given again: its versions go on behind the tombstone."""
    old = pa.schema([("gone", pa.string())])
    table = catalog.create_table("reborn", old)
    table.append(arrow([{"gone": "never seen again"}], old), token=("loader", 5))
    catalog.drop_table("reborn")
    schema = pa.schema([("n", pa.int64())])
    table = catalog.create_table("reborn", schema)
    seen = witness(table)
    table.append(arrow([{"n": 1}, {"n": 1}, {"n": None}], schema), token=("loader", 5))
    seen.saw([{"n": 1}, {"n": 1}, {"n": None}])
    table.delete("n is null")
    seen.saw([{"n": 1}, {"n": 1}])
    return seen


STORE_STORIES = {
    "types": tell_types,
    "evolved": tell_evolved,
    "folded": tell_folded,
    "reborn": tell_reborn,
}


def tell_sqlite(catalog: Catalog, witness: Callable[[Table], W]) -> list[W]:
    """Two tables of one database, and a commit that changed both; a third one was dropped."""
    readings = catalog.create_table("plant.readings", SENSORS, ["day(ts)"])
    alarms_schema = pa.schema([("ts", pa.timestamp("ns")), ("level", pa.int32())])
    alarms = catalog.create_table("plant.alarms", alarms_schema)
    seen, heard = witness(readings), witness(alarms)
    rows = [_reading(0, "a", 1.5, "x"), _reading(1, "b", float("nan"), None)]
    readings.append(arrow(rows, SENSORS), token=("loader", 1))
    seen.saw(rows)
    later, alarm = [_reading(2, "c", 9.0, "hot")], [{"ts": START_US * 1_000 + 1, "level": 3}]
    with catalog.transaction() as both:
        both.append(readings, arrow(later, SENSORS), token=("loader", 2))
        both.append(alarms, arrow(alarm, alarms_schema), token=("loader", 2))
    seen.saw(rows + later)
    heard.saw(alarm)
    readings.evolve().rename_column("note", "remark").commit()
    rows = [_renamed(row) for row in rows + later]
    seen.saw(rows)
    readings.delete("sensor = 'a'")
    seen.saw(rows[1:])
    readings.tag("clean")
    seen.saw(rows[1:])
    catalog.create_table("plant.dropped", alarms_schema).append(arrow(alarm, alarms_schema))
    catalog.drop_table("plant.dropped")
    return [seen, heard]


def _reading(day: int, sensor: str | None, reading: float | None, note: str | None) -> Any:
    return {
        "ts": START_US + day * DAY_US + 1,
        "sensor": sensor,
        "reading": reading,
        "count": day,
        "price": Decimal(day) / 4,
        "note": note,
    }


def _renamed(row: dict[str, Any]) -> dict[str, Any]:
    """A row after `note` became `remark`."""
    return {("remark" if name == "note" else name): value for name, value in row.items()}


def _as_of_old(row: dict[str, Any], sited_ts: int) -> dict[str, Any]:
    """A row of now under the columns of version 2."""
    site = "north" if row["ts"] == sited_ts else None
    return {**row, "note": row["remark"], "site": site}


def _compact_unsplit(table: Table) -> None:
    """Replace the files of the second partitioning by one that holds the same rows."""
    old = [file for file in table.read_plan().files if file.spec_id == table.spec.id]
    assert len(old) == 2, "there is something to compact"
    writer = RowWriter(
        table.files.store,
        schema=table.schema,
        spec=table.spec,
        ids=table._services.ids,
        options=WriterOptions(),
    )
    writer.write(table.scan("n is null or n = 103").to_arrow())
    table.files.store.create_all(writer.pending)
    table.commit_overwrite(old, writer.files, data_change=False)
