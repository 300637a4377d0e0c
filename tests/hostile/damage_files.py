"""Ways to make manifests, data files, links and the catalog hostile."""

import os
import shutil
import sqlite3
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tests.hostile.damage_metadata import ELSEWHERE, Damage
from tests.hostile.site import NAME, Document, Site

from lakebed.limits import MANIFEST_SIZE_BYTES_MAX

_BOMB_GROUP_COUNT, _BOMB_GROUP_ROWS = 24, 1 << 20
_LONG = 300 << 20
_BOMB_VALUE_COUNT, _BOMB_VALUE_LENGTH = 90, 20 << 20


# ------------------------------------------------------------------------------------ manifests


def _with(name: str, values: list[object]) -> Damage:
    """A manifest in which the first rows of a column have other values."""

    def write(table: pa.Table, path: Path) -> None:
        column = table.column(name)
        changed = pa.array([*values, *column.to_pylist()[len(values) :]], column.type)
        place = table.schema.get_field_index(name)
        pq.write_table(table.set_column(place, name, changed), path, use_dictionary=False)

    return lambda site: site.forge_manifest(write)


def _without(name: str) -> Damage:
    return lambda site: site.forge_manifest(
        lambda table, path: pq.write_table(table.drop_columns([name]), path, use_dictionary=False)
    )


def _many_rows(site: Site) -> None:
    """Some kilobytes that become more than a gigabyte."""

    def write(table: pa.Table, path: Path) -> None:
        one = table.slice(0, 1)
        numbers = [f for f in one.schema if pa.types.is_integer(f.type)]
        schema = pa.schema([*numbers, pa.field("path", pa.string())])
        arrays = [pa.repeat(one.column(f.name)[0], _BOMB_GROUP_ROWS) for f in numbers]
        arrays.append(pa.repeat(pa.scalar("data/x.parquet"), _BOMB_GROUP_ROWS))
        group = pa.table(arrays, schema=schema)
        with pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=False) as writer:
            for _ in range(_BOMB_GROUP_COUNT):
                writer.write_table(group)

    site.forge_manifest(write, file_count=_BOMB_GROUP_COUNT * _BOMB_GROUP_ROWS, deleted_count=0)


def _long_path(site: Site) -> None:
    """One path of some hundred megabytes, which takes a few kilobytes when packed."""

    def write(table: pa.Table, path: Path) -> None:
        names = ["data/" + "x" * _LONG, *table.column("path").to_pylist()[1:]]
        place = table.schema.get_field_index("path")
        table = table.set_column(place, "path", pa.array(names, pa.string()))
        pq.write_table(table, path, compression="zstd", use_dictionary=False)

    site.forge_manifest(write)


def _damaged_tail(**changes: object) -> Damage:
    return lambda site: site.forge_tail(lambda ref: ref.update(changes))


# The manifest is not read by those who only add to the table.
MANIFEST: dict[str, Damage] = {
    "empty": lambda site: os.truncate(site.manifest(), 0),
    "cut in half": lambda site: os.truncate(site.manifest(), site.manifest().stat().st_size // 2),
    "missing": lambda site: site.manifest().unlink(),
    "larger than the limit": lambda site: os.truncate(site.manifest(), MANIFEST_SIZE_BYTES_MAX + 1),
    "not Parquet": lambda site: site.forge_manifest(
        lambda _, path: path.write_bytes(b"PAR1" + b"\xff" * 500 + b"PAR1")
    ),
    "a path twice": lambda site: site.forge_manifest(
        lambda table, path: pq.write_table(
            pa.concat_tables([table.slice(0, 1), table.slice(0, table.num_rows - 1)]),
            path,
            use_dictionary=False,
        )
    ),
    "no path column": _without("path"),
    "no row counts": _without("row_count"),
    "more rows than it says": _with("row_count", [1_000_000]),
    "a negative count": _with("row_count", [-1]),
    "a version of the future": _with("added_version", [7_000]),
    "more nulls than rows": _with("null_1", [5_000_000]),
    "fewer files than the snapshot says": lambda site: site.forge_ref(file_count=99),
    "fewer rows than the snapshot says": lambda site: site.forge_ref(row_count=99_999),
    "a size that is not so": lambda site: site.forge_ref(size_bytes=5),
    "very many rows": _many_rows,
    "a very long path": _long_path,
    "a pipe": lambda site: _pipe(site.manifest()),
    **{f"a path {where}": _with("path", [f"{path}.parquet"]) for where, path in ELSEWHERE.items()},
}

# What the snapshot itself says is read by all.
TAIL: dict[str, Damage] = {
    "counts that lie": _damaged_tail(file_count=1),
    "rows that lie": _damaged_tail(row_count=1_000),
    "an unknown partition spec": _damaged_tail(spec_id=12),
    "a file of a spec that is not its own": lambda site: site.forge_entry(spec_id=3),
    "negative rows": lambda site: site.forge_entry(row_count=-1),
    "a file added in the future": lambda site: site.forge_tail(
        lambda ref: ref["entries"][-1].update(added_version=99)
    ),
    "a file twice": lambda site: site.forge_tail(
        lambda ref: ref.update(
            entries=[ref["entries"][0]] * 2,
            file_count=2,
            row_count=2 * ref["entries"][0]["file"]["row_count"],
        )
    ),
    "statistics for text": lambda site: site.forge_entry(stats={"n": [0]}),
    **{
        f"a file {where}": lambda site, path=path: site.forge_entry(path=f"{path}.parquet")  # type: ignore[misc]
        for where, path in ELSEWHERE.items()
    },
    **{
        f"a manifest {where}": lambda site, path=path: site.forge_ref(path=f"{path}.parquet")  # type: ignore[misc]
        for where, path in ELSEWHERE.items()
    },
}

# --------------------------------------------------------------------------------- data and links


def _replace_data(site: Site, data: bytes) -> None:
    site.data().write_bytes(data)
    site.forge_entry(size_bytes=len(data))


def _flip_data(site: Site) -> None:
    """Change the last byte of a page."""
    chunk = pq.read_metadata(site.data()).row_group(0).column(0)
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    data = bytearray(site.data().read_bytes())
    data[start + chunk.total_compressed_size - 1] ^= 0xFF
    site.data().write_bytes(data)


def _data_bomb(site: Site) -> None:
    """A value of some megabytes that is there once, and named by each of many rows."""
    table = pq.read_table(site.data())
    table = pa.concat_tables([table.slice(0, 1)] * _BOMB_VALUE_COUNT).combine_chunks()
    place = table.schema.get_field_index("sensor_id")
    indices = pa.repeat(pa.scalar(0, pa.int32()), _BOMB_VALUE_COUNT)
    values = pa.DictionaryArray.from_arrays(indices, pa.array(["x" * _BOMB_VALUE_LENGTH]))
    kind = pa.field("sensor_id", values.type, metadata=table.schema.field(place).metadata)
    pq.write_table(table.set_column(place, kind, values), site.data(), compression="zstd")

    _claim_rows(site, _BOMB_VALUE_COUNT)
    site.forge_entry(size_bytes=site.data().stat().st_size)


def _claim_rows(site: Site, row_count: int) -> None:
    """Say of the newest data file that it has so many rows."""

    def edit(ref: Document) -> None:
        file = ref["entries"][-1]["file"]
        ref["row_count"] += row_count - file["row_count"]
        file.update(row_count=row_count)

    site.forge_tail(edit)


def _other_columns(site: Site) -> None:
    pq.write_table(pa.table({"x": [1, 2]}), site.data())
    site.forge_entry(size_bytes=site.data().stat().st_size)


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _dangling(site: Site) -> None:
    site.data().unlink()
    site.data().symlink_to(site.outside / "nothing")


def _link(what: Path, to: Path) -> None:
    """Put what is there outside, and a link to it in its place."""
    kept = to / what.name
    shutil.move(what, kept)
    what.symlink_to(kept)


DATA: dict[str, Damage] = {
    "very long values": _data_bomb,
    "empty": lambda site: os.truncate(site.data(), 0),
    "cut in half": lambda site: os.truncate(site.data(), site.data().stat().st_size // 2),
    "missing": lambda site: site.data().unlink(),
    "one byte wrong": _flip_data,
    "not Parquet": lambda site: _replace_data(site, b"PAR1" + b"\xff" * 300 + b"PAR1"),
    "other columns": _other_columns,
    "fewer rows than it should have": lambda site: _claim_rows(site, 7),
    "a schema that is not there": lambda site: site.forge_entry(schema_id=44),
    "a pipe": lambda site: _pipe(site.data()),
    "a directory": lambda site: _directory(site.data()),
    "a link": lambda site: _link(site.data(), site.outside),
    "a link to nowhere": _dangling,
}

LINKS: dict[str, Damage] = {
    "the table": lambda site: _link(site.table, site.outside),
    "its metadata": lambda site: _link(site.table / "metadata", site.outside),
    "its data": lambda site: _link(site.table / "data", site.outside),
    "the newest snapshot": lambda site: _link(site.snapshot(), site.outside),
    "the definition": lambda site: _link(site.definition(), site.outside),
}

# ------------------------------------------------------------------------------------ the catalog


def _row(column: str, value: object) -> Damage:
    return lambda site: site.sql(
        f"UPDATE lakebed_table SET {column} = ? WHERE name = ?", value, NAME
    )


def _another_database(site: Site) -> None:
    site.database.unlink()
    connection = sqlite3.connect(site.database)
    with connection:
        connection.execute("CREATE TABLE cats (name TEXT)")
    connection.close()


def _damaged_pages(site: Site) -> None:
    data = bytearray(site.database.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    site.database.write_bytes(data)


CATALOG: dict[str, Damage] = {
    "no database": lambda site: site.database.write_text("hello " * 1_000),
    "a cut database": lambda site: os.truncate(site.database, 5_000),
    "damaged pages": _damaged_pages,
    "another database": _another_database,
    "a directory": lambda site: _directory(site.database),
    "a database of the future": lambda site: site.sql("PRAGMA user_version = 9"),
    "no table in it": lambda site: site.sql("DELETE FROM lakebed_table"),
    "a place above": _row("location", f"../outside/{NAME}"),
    "a place of no name": _row("location", ""),
    "a place with a zero byte": _row("location", "plant\0readings"),
    "a place that is a number": _row("location", 7),
    "another table's place": _row("location", "plant.others"),
    "another version": _row("version", 3),
    "text for a version": _row("version", "six"),
    "a negative version": _row("version", -6),
    "another commit": _row("commit_id", "0" * 32),
    "another table's id": _row("table_id", "0" * 32),
    "bytes for a path": _row("snapshot_path", b"\xff\xfe"),
    "text for a time": _row("timestamp_ms", "noon"),
    **{f"a snapshot {where}": _row("snapshot_path", path) for where, path in ELSEWHERE.items()},
}
