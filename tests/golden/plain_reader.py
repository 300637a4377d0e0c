"""A second reader, from docs/spec/on-disk.md alone: json, DuckDB and nothing of Lakebed.

    python plain_reader.py <golden directory>

Prints the rows of each version of each table as JSON, spelled as `record` spells them.
"""

import hashlib
import json
import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb

HEAD = re.compile(rb'\{"checksum":"([0-9a-f]{32})",')
SNAPSHOT = "metadata/snap-*.json"
IN_SQL = {
    "date": "({0} - DATE '1970-01-01')",
    "time": "epoch_us({0})",
    "timestamp": "epoch_us({0})",
    "timestamptz": "epoch_us({0})",
    "timestamp_ns": "epoch_ns({0})",
    "timestamptz_ns": "epoch_ns({0})",
    "decimal": "CAST({0} AS VARCHAR)",
    "binary": "lower(hex({0}))",
    "fixed": "lower(hex({0}))",
    "float": "CAST({0} AS DOUBLE)",
    "double": "CAST({0} AS DOUBLE)",
}


def main() -> None:
    root = Path(sys.argv[1])
    found: dict[str, dict[str, Any]] = {}
    for marker in sorted((root / "store/.lakebed/tables").iterdir()):
        table = root / "store" / marker.name
        found[f"store-{marker.name}"] = read_versions(table, sorted(table.glob(SNAPSHOT)))
    with closing(sqlite3.connect(root / "sqlite/catalog.db")) as catalog:
        listed = (
            "SELECT t.name, t.location, c.snapshot_path FROM lakebed_table t"
            " JOIN lakebed_commit c USING (table_id) ORDER BY t.name, c.version"
        )
        for name, location, path in catalog.execute(listed):
            table = root / "sqlite" / location
            versions = read_versions(table, [table / path])
            found.setdefault(f"sqlite-{name}", {}).update(versions)
    strangers = {"lakebed", "pyarrow"} & set(sys.modules)
    assert not strangers, f"this reader must do without {strangers}"
    print(json.dumps(found))


def read_versions(table: Path, paths: list[Path]) -> dict[str, Any]:
    """The rows by version; those before a tombstone belong to a table that is no more."""
    versions: dict[str, Any] = {}
    for path in paths:
        snapshot = unseal(path)
        if snapshot["operation"] == "drop":
            versions.clear()
        else:
            versions[str(snapshot["version"])] = rows_of(table, snapshot)
    return versions


def unseal(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    head = HEAD.match(data)
    assert head, f"{path} has no checksum"
    assert digest(data[head.end() :]) == head[1].decode(), f"{path} is damaged"
    content: dict[str, Any] = json.loads(data)["lakebed"]
    assert content["format_version"] == 1
    return content


def digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def rows_of(table: Path, snapshot: dict[str, Any]) -> list[list[Any]]:
    definition = unseal(table / snapshot["metadata_path"])
    fields = definition["schemas"][snapshot["schema_id"]]["fields"]
    rows: list[list[Any]] = []
    for listed in snapshot.get("manifest_list", []):
        files = live_files(table, listed)
        assert len(files) == listed["file_count"]
        for path in files:
            rows += rows_of_file(table / path, fields)
    return rows


def live_files(table: Path, listed: dict[str, Any]) -> list[str]:
    if "path" not in listed:
        return [e["file"]["path"] for e in listed["entries"] if not e.get("removed_version")]
    manifest = table / listed["path"]
    assert digest(manifest.read_bytes()) == listed["checksum"], f"{manifest} is damaged"
    query = "SELECT path FROM read_parquet(?) WHERE removed_version = 0"
    return [path for (path,) in duckdb.execute(query, [str(manifest)]).fetchall()]


def rows_of_file(path: Path, fields: list[dict[str, Any]]) -> list[list[Any]]:
    names = names_by_id(path)
    wanted = [
        in_sql(quoted(names[field["id"]]), field["type"]) if field["id"] in names else "NULL"
        for field in fields
    ]
    query = f"SELECT {', '.join(wanted)} FROM read_parquet(?)"
    return [
        [in_json(value, field["type"]) for value, field in zip(row, fields, strict=True)]
        for row in duckdb.execute(query, [str(path)]).fetchall()
    ]


def names_by_id(path: Path) -> dict[int, str]:
    """The columns of a data file; parts of nested ones are passed over."""
    query = "SELECT name, field_id, coalesce(num_children, 0) FROM parquet_schema(?)"
    parts = duckdb.execute(query, [str(path)]).fetchall()
    names, place = {}, 1
    while place < len(parts):
        name, field_id, unseen = parts[place]
        names[field_id] = name
        place += 1
        while unseen:
            unseen += parts[place][2] - 1
            place += 1
    return names


def in_sql(value: str, kind: Any, depth: int = 0) -> str:
    """What DuckDB computes, so that no value goes through a type of Python that rounds it."""
    if isinstance(kind, str):
        return IN_SQL.get(re.split(r"[(\[]", kind)[0], "{0}").format(value)
    each = f"x{depth}"
    if "list" in kind:
        inner = in_sql(each, kind["list"]["type"], depth + 1)
        return f"list_transform({value}, lambda {each}: {inner})"
    if "map" in kind:
        key, held = (in_sql(f"{each}.{p['name']}", p["type"], depth + 1) for p in kind["map"])
        pair = f"struct_pack(key := {key}, value := {held})"
        # The entries of a null map are an empty list.
        pairs = f"list_transform(map_entries({value}), lambda {each}: {pair})"
        return f"CASE WHEN {value} IS NOT NULL THEN {pairs} END"
    names = [quoted(part["name"]) for part in kind["struct"]]
    parts = [
        f"{name} := {in_sql(f'{value}.{name}', part['type'], depth + 1)}"
        for name, part in zip(names, kind["struct"], strict=True)
    ]
    return f"CASE WHEN {value} IS NOT NULL THEN struct_pack({', '.join(parts)}) END"


def in_json(value: Any, kind: Any) -> Any:
    if value is None:
        return None
    if isinstance(kind, str):
        return repr(value) if isinstance(value, float) else value
    if "list" in kind:
        return [in_json(each, kind["list"]["type"]) for each in value]
    if "map" in kind:
        key, held = kind["map"]
        return [
            [in_json(each["key"], key["type"]), in_json(each["value"], held["type"])]
            for each in value
        ]
    return {part["name"]: in_json(value[part["name"]], part["type"]) for part in kind["struct"]}


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


if __name__ == "__main__":
    main()
