"""The SQL of both databases, written once; they differ in the mark for a value.

Nothing from outside is ever part of a statement: only the column names of `rows` and the marks.
"""
# ruff: noqa: S608

from collections.abc import Sequence
from dataclasses import dataclass

from lakebed.catalog.rows import LOG_COLUMNS, MOVED_COLUMNS, POINTER_COLUMNS


def _list(columns: Sequence[str], prefix: str = "") -> str:
    return ", ".join(prefix + column for column in columns)


@dataclass(frozen=True, slots=True)
class Statements:
    """Every statement but the DDL; the comment says which values it takes."""

    insert_table: str  # POINTER_COLUMNS
    move_table: str  # MOVED_COLUMNS, then name, table_id, version
    drop_table: str  # name, table_id, version
    insert_commit: str  # POINTER_COLUMNS
    insert_action: str  # LOG_COLUMNS
    insert_token: str  # table_id, app, token version, version
    insert_schema: str  # table_id, schema id, version, schema
    names: str
    load: str  # name
    outcome: str  # name, commit_id, name
    find_commit: str  # commit_id
    find_token: str  # table_id, app, token version
    last_token: str  # table_id, app
    at_version: str  # table_id, version
    at_time: str  # table_id, moment
    history: str  # table_id, last version, row count
    log: str  # table_id, version and ordinal to start after, last version, row count
    property: str  # key
    insert_property: str  # key, value; one that is there already stays


def statements(mark: str) -> Statements:
    """The statements with `mark` for each value."""
    pointer, marks = _list(POINTER_COLUMNS), ", ".join(mark for _ in POINTER_COLUMNS)
    changes = ", ".join(f"{column} = {mark}" for column in MOVED_COLUMNS)
    is_head = f"name = {mark} AND table_id = {mark} AND version = {mark}"
    commits = f"SELECT {pointer} FROM lakebed_commit"
    return Statements(
        insert_table=f"INSERT INTO lakebed_table ({pointer}) VALUES ({marks})",
        move_table=f"UPDATE lakebed_table SET {changes} WHERE {is_head}",
        drop_table=f"DELETE FROM lakebed_table WHERE {is_head}",
        insert_commit=f"INSERT INTO lakebed_commit ({pointer}) VALUES ({marks})",
        insert_action=f"INSERT INTO lakebed_log_action ({_list(LOG_COLUMNS)})"
        f" VALUES ({', '.join(mark for _ in LOG_COLUMNS)})",
        insert_token="INSERT INTO lakebed_txn (table_id, app_id, app_version, version)"
        f" VALUES ({mark}, {mark}, {mark}, {mark})",
        insert_schema="INSERT INTO lakebed_schema (table_id, schema_id, version, schema_json)"
        f" VALUES ({mark}, {mark}, {mark}, {mark})",
        names="SELECT name FROM lakebed_table",
        load=f"SELECT {pointer} FROM lakebed_table WHERE name = {mark}",
        outcome=f"SELECT {_list(POINTER_COLUMNS, 't.')}, {_list(POINTER_COLUMNS, 'c.')}"
        f" FROM (SELECT 1) AS one LEFT JOIN lakebed_table t ON t.name = {mark}"
        f" LEFT JOIN lakebed_commit c ON c.commit_id = {mark} AND c.name = {mark}",
        find_commit=f"{commits} WHERE commit_id = {mark}",
        find_token=f"SELECT {_list(POINTER_COLUMNS, 'c.')} FROM lakebed_txn x"
        " JOIN lakebed_commit c ON c.table_id = x.table_id AND c.version = x.version"
        f" WHERE x.table_id = {mark} AND x.app_id = {mark} AND x.app_version = {mark}",
        last_token=f"SELECT app_version FROM lakebed_txn WHERE table_id = {mark}"
        f" AND app_id = {mark} ORDER BY app_version DESC LIMIT 1",
        at_version=f"{commits} WHERE table_id = {mark} AND version = {mark}",
        at_time=f"{commits} WHERE table_id = {mark} AND timestamp_ms <= {mark}"
        " ORDER BY version DESC LIMIT 1",
        history=f"{commits} WHERE table_id = {mark} AND version <= {mark}"
        f" ORDER BY version DESC LIMIT {mark}",
        log=f"SELECT {_list(LOG_COLUMNS)} FROM lakebed_log_action WHERE table_id = {mark}"
        f" AND (version, ordinal) > ({mark}, {mark}) AND version <= {mark}"
        f" ORDER BY version, ordinal LIMIT {mark}",
        property=f"SELECT value FROM lakebed_property WHERE key = {mark}",
        insert_property=f"INSERT INTO lakebed_property (key, value) VALUES ({mark}, {mark})"
        " ON CONFLICT DO NOTHING",
    )
