"""Reads what a history left behind from the bytes alone, as a stranger with `json` would.

None of the product's readers is used: a bug in them must not hide itself.
"""

import hashlib
import io
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow.parquet as pq

from lakebed.testing.history import Link, Row

_CHECKSUM_BYTES = 16
_HEAD_LENGTH = len('{"checksum":"') + 2 * _CHECKSUM_BYTES + len('",')
_PARQUET_MAGIC = b"PAR1"

_manifests: dict[str, list[tuple[str, int]]] = {}  # by checksum: histories share their beginnings


class DamageError(Exception):
    """An object is not what its checksum or its place says."""


def read_chain(
    objects: Mapping[str, bytes], table: str, paths: Iterable[str], serial_of: Callable[[str], int]
) -> list[Link]:
    """The versions of a table, given the paths of their snapshot files, oldest first."""
    return [_link(objects, table, path, serial_of) for path in paths]


def read_rows(content: bytes) -> tuple[Row, ...]:
    """The rows of a data file: a real Parquet file, or the simulator's small stand-in."""
    if content.startswith(_PARQUET_MAGIC):
        columns = pq.read_table(io.BytesIO(content), columns=["key", "serial", "number"])
        return tuple(Row(*row.values()) for row in columns.to_pylist())
    return tuple(Row(*values) for values in json.loads(content))


def write_rows(rows: Iterable[Row]) -> bytes:
    """The content of a stand-in for a data file."""
    return json.dumps(sorted(rows)).encode()


def _link(
    objects: Mapping[str, bytes], table: str, path: str, serial_of: Callable[[str], int]
) -> Link:
    snapshot = _document(objects, f"{table}/{path}")
    definition_path = f"{table}/{snapshot['metadata_path']}"
    definition = _document(objects, definition_path)
    needs = {f"{table}/{path}", definition_path}
    listed: list[str] = []
    for manifest in snapshot.get("manifest_list", ()):
        if manifest.get("path"):
            needs.add(f"{table}/{manifest['path']}")
        listed += [file for file, removed in _entries(objects, table, manifest) if not removed]
    needs.update(f"{table}/{file}" for file in listed)
    token = snapshot.get("token")
    summary = snapshot.get("summary", {})
    names = ("added_files", "removed_files", "total_files")
    return Link(
        version=snapshot["version"],
        snapshot_id=snapshot["snapshot_id"],
        parent_id=snapshot.get("parent_id"),
        table_id=snapshot["table_id"],
        commit_id=snapshot["commit_id"],
        serial=serial_of(snapshot["commit_id"]),
        timestamp_ms=snapshot["timestamp_ms"],
        operation=snapshot["operation"],
        files=frozenset(listed),
        duplicates=tuple(sorted({file for file in listed if listed.count(file) > 1})),
        needs=frozenset(needs),
        token=tuple(token) if token else None,
        tags=frozenset(definition.get("tags", ())),
        columns=tuple(
            field["name"] for field in definition["schemas"][snapshot["schema_id"]]["fields"]
        ),
        summary=tuple(summary.get(name, 0) for name in names),
    )


def _document(objects: Mapping[str, bytes], path: str) -> dict[str, Any]:
    content = objects.get(path)
    if content is None:
        raise DamageError(f"{path} is not there")
    whole = json.loads(content)
    if _checksum(content[_HEAD_LENGTH:]) != whole["checksum"]:
        raise DamageError(f"{path} does not match its checksum")
    document: dict[str, Any] = whole["lakebed"]
    return document


def _entries(
    objects: Mapping[str, bytes], table: str, manifest: dict[str, Any]
) -> list[tuple[str, int]]:
    """(path, version that removed it or 0) of each file in a manifest."""
    path = manifest.get("path")
    if not path:
        return [
            (entry["file"]["path"], entry.get("removed_version", 0))
            for entry in manifest.get("entries", ())
        ]
    checksum = manifest["checksum"]
    found = _manifests.get(checksum)
    content = objects.get(f"{table}/{path}")
    if content is None or _checksum(content) != checksum:
        raise DamageError(f"{table}/{path} is not there or does not match its checksum")
    if found is None:
        columns = pq.read_table(io.BytesIO(content), columns=["path", "removed_version"])
        found = [(row["path"], row["removed_version"]) for row in columns.to_pylist()]
        _manifests[checksum] = found
    return found


def _checksum(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=_CHECKSUM_BYTES).hexdigest()
