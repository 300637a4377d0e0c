"""The tables in PostgreSQL: the same as in SQLite, with the types that seed 003 gives the log."""

from typing import Any, LiteralString

from psycopg import Connection
from psycopg.sql import SQL, Identifier

from lakebed.errors import BadMetadataError, RequestError, UnsupportedVersionError

SCHEMA_VERSION = 1
CREATION_LOCK = 0x4C6B4264  # an advisory lock: one session at a time looks and creates

_VERSION_KEY = "catalog_version"
_POINTER_DDL: LiteralString = """
  name          TEXT   NOT NULL,
  table_id      UUID   NOT NULL,
  location      TEXT   NOT NULL,
  version       BIGINT NOT NULL,
  snapshot_id   BIGINT NOT NULL,
  snapshot_path TEXT   NOT NULL,
  commit_id     TEXT   NOT NULL,
  timestamp_ms  BIGINT NOT NULL,
  operation     TEXT   NOT NULL,"""
_LOG_DDL: LiteralString = """
CREATE TABLE lakebed_log_action (
  table_id           UUID           NOT NULL,
  version            BIGINT         NOT NULL,
  ordinal            INT            NOT NULL,
  action_type        lakebed_action NOT NULL,
  commit_ts          TIMESTAMPTZ,
  commit_user        TEXT,
  operation          TEXT,
  operation_params   JSONB,
  min_reader_version INT,
  min_writer_version INT,
  reader_features    TEXT[],
  writer_features    TEXT[],
  table_name         TEXT,
  description        TEXT,
  schema_json        JSONB,
  partition_columns  TEXT[],
  configuration      JSONB,
  path               TEXT,
  partition_values   JSONB,
  size_bytes         BIGINT,
  modification_time  TIMESTAMPTZ,
  data_change        BOOLEAN,
  num_records        BIGINT,
  stats_json         JSONB,
  deletion_time      TIMESTAMPTZ,
  app_id             TEXT,
  app_version        BIGINT,
  PRIMARY KEY (table_id, version, ordinal)
)"""
_APPEND_ONLY: LiteralString = """
CREATE FUNCTION lakebed_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$"""


def _guard(table: LiteralString) -> LiteralString:
    return (
        f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}"
        " FOR EACH STATEMENT EXECUTE FUNCTION lakebed_append_only()"
    )


DDL: tuple[LiteralString, ...] = (
    "CREATE TYPE lakebed_action AS ENUM ('protocol', 'metadata', 'add', 'remove', 'commit', 'txn')",
    # The head row changes with each commit: room in its page keeps the index out of it.
    f"CREATE TABLE lakebed_table ({_POINTER_DDL}\n  PRIMARY KEY (name)\n) WITH (fillfactor = 50)",
    f"CREATE TABLE lakebed_commit ({_POINTER_DDL}\n  PRIMARY KEY (table_id, version)\n)",
    "CREATE UNIQUE INDEX lakebed_commit_id ON lakebed_commit (commit_id, table_id)",
    "CREATE TABLE lakebed_txn (table_id UUID NOT NULL, app_id TEXT NOT NULL,"
    " app_version BIGINT NOT NULL, version BIGINT NOT NULL,"
    " PRIMARY KEY (table_id, app_id, app_version))",
    "CREATE TABLE lakebed_schema (table_id UUID NOT NULL, schema_id INT NOT NULL,"
    " version BIGINT NOT NULL, schema_json JSONB NOT NULL, PRIMARY KEY (table_id, version))",
    _LOG_DDL,
    "CREATE TABLE lakebed_property (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL)",
    _APPEND_ONLY,
    _guard("lakebed_log_action"),
    _guard("lakebed_commit"),
)


def prepare(session: Connection[Any], schema: str) -> None:
    """Choose the schema and see that our tables are in it, made by whoever comes first."""
    if schema:
        quoted = '"' + schema.replace('"', '""') + '"'
        session.execute("SELECT set_config('search_path', %s, false)", (quoted,))
    if _is_ours(session):
        return
    with session.transaction():
        session.execute("SELECT pg_advisory_xact_lock(%s)", (CREATION_LOCK,))
        if schema:
            session.execute(SQL("CREATE SCHEMA IF NOT EXISTS {}").format(Identifier(schema)))
        if not _is_ours(session):  # Nobody else was first.
            _create(session)


def _is_ours(session: Connection[Any]) -> bool:
    """True: our tables are there, in a version that we know; False: none of them is."""
    query = "SELECT to_regclass('lakebed_property') IS NOT NULL"
    if session.execute(query).fetchall() != [(True,)]:
        return False
    query = "SELECT value FROM lakebed_property WHERE key = %s"
    found = session.execute(query, (_VERSION_KEY,)).fetchall()
    if not found or not found[0][0].isdecimal():
        raise BadMetadataError(
            "the database has a table lakebed_property, but no Lakebed catalog",
            hint="Choose another schema: ?schema=… in the URI; nothing was changed",
        )
    if int(found[0][0]) > SCHEMA_VERSION:
        raise UnsupportedVersionError(
            f"the catalog has version {found[0][0]}; this library knows {SCHEMA_VERSION}",
            hint="Upgrade lakebed: pip install -U lakebed",
        )
    return True


def _create(session: Connection[Any]) -> None:
    if session.execute("SELECT current_schema()").fetchall() == [(None,)]:
        raise RequestError(
            "no schema of the search path exists",
            hint="Name one in the URI: ?schema=…; it is made if it is not there",
        )
    for statement in DDL:
        session.execute(statement)
    session.execute(
        "INSERT INTO lakebed_property (key, value) VALUES (%s, %s)",
        (_VERSION_KEY, str(SCHEMA_VERSION)),
    )
