"""The PostgreSQL catalog: typed as seed 003, made once, and silent about passwords."""

import pickle
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import quote

import psycopg
import pytest

from lakebed.catalog.postgres import PostgresCatalog
from lakebed.catalog.postgres_session import Address
from lakebed.errors import (
    BadMetadataError,
    LakebedError,
    RequestError,
    UnavailableError,
    UnsupportedVersionError,
)
from lakebed.format.pointer import Action, ActionType, Token
from lakebed.ids import SystemIds
from lakebed.testing.contract_catalog_races import at_once
from lakebed.testing.moves import EVERY_COLUMN, create, imposter, next_move
from lakebed.testing.servers import PostgresServer

SEED_003 = {
    "table_id": "uuid",
    "version": "bigint",
    "ordinal": "integer",
    "action_type": "lakebed_action",
    "commit_ts": "timestamp with time zone",
    "commit_user": "text",
    "operation": "text",
    "operation_params": "jsonb",
    "min_reader_version": "integer",
    "min_writer_version": "integer",
    "reader_features": "text[]",
    "writer_features": "text[]",
    "table_name": "text",
    "description": "text",
    "schema_json": "jsonb",
    "partition_columns": "text[]",
    "configuration": "jsonb",
    "path": "text",
    "partition_values": "jsonb",
    "size_bytes": "bigint",
    "modification_time": "timestamp with time zone",
    "data_change": "boolean",
    "num_records": "bigint",
    "stats_json": "jsonb",
    "deletion_time": "timestamp with time zone",
    "app_id": "text",
    "app_version": "bigint",
}


@pytest.fixture
def catalog(postgres_uri: str) -> Iterator[PostgresCatalog]:
    catalog = PostgresCatalog(postgres_uri)
    yield catalog
    catalog.close()


@pytest.fixture
def session(
    catalog: PostgresCatalog, postgres_server: PostgresServer
) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """Plain SQL on the catalog's schema."""
    path = f"-c search_path={catalog._address.schema}"
    with psycopg.connect(postgres_server.uri, options=path, autocommit=True) as session:
        yield session


@pytest.mark.postgres
def test_the_log_has_the_columns_and_types_of_seed_003(
    session: psycopg.Connection[tuple[object, ...]],
) -> None:
    query = """SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
      WHERE attrelid = 'lakebed_log_action'::regclass AND attnum > 0 ORDER BY attnum"""
    assert session.execute(query).fetchall() == list(SEED_003.items())
    query = "SELECT enum_range(NULL::lakebed_action)::text[]"
    kinds = ["protocol", "metadata", "add", "remove", "commit", "txn"]
    assert session.execute(query).fetchall() == [(kinds,)]
    query = """SELECT array_agg(attname::text ORDER BY array_position(indkey::int[], attnum::int))
      FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)
      WHERE indrelid = 'lakebed_log_action'::regclass AND indisprimary"""
    assert session.execute(query).fetchall() == [(["table_id", "version", "ordinal"],)]


@pytest.mark.postgres
def test_the_log_answers_plain_sql(
    catalog: PostgresCatalog, session: psycopg.Connection[tuple[object, ...]]
) -> None:
    assert catalog.swap([next_move(create(catalog, "t"), actions=EVERY_COLUMN)])
    query = """SELECT path, stats_json -> 'max' ->> '1', partition_values ->> 'ts_day',
      extract(epoch FROM modification_time) * 1000 FROM lakebed_log_action
      WHERE action_type = 'add' AND data_change"""
    ((path, bound, day, time),) = session.execute(query).fetchall()
    assert (path, day, time) == ("data/ts_day=2026-01-01/x.parquet", "2026-01-01", -1)
    assert float(str(bound)) == 1e300


@pytest.mark.postgres
@pytest.mark.parametrize("table", ["lakebed_log_action", "lakebed_commit"])
@pytest.mark.parametrize(
    "statement", ["UPDATE {} SET version = 9", "DELETE FROM {}", "TRUNCATE {}"]
)
def test_log_and_commits_are_append_only(
    catalog: PostgresCatalog,
    session: psycopg.Connection[tuple[object, ...]],
    table: str,
    statement: str,
) -> None:
    create(catalog, "t", actions=EVERY_COLUMN)
    with pytest.raises(psycopg.errors.RestrictViolation, match="append-only"):
        session.execute(statement.format(table).encode())
    (count,) = session.execute(f"SELECT count(*) FROM {table}".encode()).fetchall()[0]
    assert count


@pytest.mark.postgres
def test_many_who_open_an_empty_schema_at_once_all_get_in(postgres_uri: str) -> None:
    catalogs = at_once([lambda: PostgresCatalog(postgres_uri)] * 6)
    move = create(catalogs[0], "t")
    assert [each.load("t") for each in catalogs] == [move.new] * 6
    for each in catalogs:
        each.close()


@pytest.mark.postgres
def test_schemas_are_catalogs_of_their_own(postgres_server: PostgresServer) -> None:
    suffix = SystemIds().new()
    names = [f"One {suffix}", f'"{suffix}', f"größe{suffix}"]
    catalogs = [PostgresCatalog(f"{postgres_server.uri}?schema={quote(name)}") for name in names]
    for number, each in enumerate(catalogs):
        create(each, f"t{number}")
    assert [each.tables() for each in catalogs] == [["t0"], ["t1"], ["t2"]]
    again = PostgresCatalog(catalogs[1].uri.replace("@", f":{postgres_server.password}@", 1))
    assert again.tables() == ["t1"]
    for each in (*catalogs, again):
        each.close()


@pytest.mark.postgres
def test_a_search_path_in_the_options_is_respected(
    catalog: PostgresCatalog, postgres_server: PostgresServer
) -> None:
    create(catalog, "t")
    path = quote(f"-c search_path={catalog._address.schema}")
    other = PostgresCatalog(f"{postgres_server.uri}?options={path}")
    assert other.tables() == ["t"]
    other.close()
    with pytest.raises(RequestError, match="schema"):
        PostgresCatalog(f"{postgres_server.uri}?options={quote('-c search_path=nowhere')}")


@pytest.mark.postgres
def test_a_foreign_table_of_our_name_is_refused_unchanged(postgres_server: PostgresServer) -> None:
    schema = f"t{SystemIds().new()}"
    with psycopg.connect(postgres_server.uri, autocommit=True) as session:
        session.execute(f"CREATE SCHEMA {schema}".encode())
        session.execute(f"CREATE TABLE {schema}.lakebed_property (key text, value text)".encode())
        with pytest.raises(BadMetadataError):
            PostgresCatalog(f"{postgres_server.uri}?schema={schema}")
        query = "SELECT count(*) FROM pg_tables WHERE schemaname = %s"
        assert session.execute(query, (schema,)).fetchall() == [(1,)]


@pytest.mark.postgres
def test_a_catalog_of_a_later_version_is_refused(
    catalog: PostgresCatalog,
    session: psycopg.Connection[tuple[object, ...]],
    postgres_uri: str,
) -> None:
    session.execute("UPDATE lakebed_property SET value = '2' WHERE key = 'catalog_version'")
    with pytest.raises(UnsupportedVersionError, match="Upgrade"):
        PostgresCatalog(postgres_uri)


@pytest.mark.postgres
def test_a_session_commits_durably_whatever_the_server_is_set_to(
    postgres_uri: str,
) -> None:
    for given, expected in (("off", "on"), ("remote_apply", "remote_apply")):
        options = quote(f"-c synchronous_commit={given}")
        catalog = PostgresCatalog(f"{postgres_uri}&options={options}")
        session = catalog._sessions.get()
        assert session.execute("SHOW synchronous_commit").fetchall() == [(expected,)]
        assert session.execute("SHOW lock_timeout").fetchall() == [("30s",)]
        assert session.execute("SHOW statement_timeout").fetchall() == [("1min",)]
        catalog.close()


@pytest.mark.postgres
def test_one_without_rights_is_refused(
    catalog: PostgresCatalog,
    session: psycopg.Connection[tuple[object, ...]],
    postgres_server: PostgresServer,
) -> None:
    base = create(catalog, "t")
    schema, role = catalog._address.schema, f"r{SystemIds().new()}"
    session.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'p'".encode())
    session.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}".encode())
    session.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}".encode())
    reader = PostgresCatalog(
        f"postgresql://{role}:p@127.0.0.1:{postgres_server.port}/postgres?schema={schema}"
    )
    assert reader.load("t") == base.new
    with pytest.raises(RequestError) as caught:
        reader.swap([next_move(base)])
    assert caught.value.fields["sqlstate"] == "42501"
    assert reader.load("t") == base.new
    reader.close()


@pytest.mark.postgres
@pytest.mark.parametrize(
    "action",
    [
        Action(action_type=ActionType.ADD, path="a\x00b"),
        Action(action_type=ActionType.ADD, path="\ud800"),
        Action(action_type=ActionType.ADD, size_bytes=1 << 63),
        Action(action_type=ActionType.ADD, modification_time_ms=1 << 60),
        Action(action_type=ActionType.ADD, stats_json={"x": object()}),
    ],
    ids=["nul", "surrogate", "integer", "time", "object"],
)
def test_a_value_that_cannot_be_stored_is_refused_and_nothing_changes(
    catalog: PostgresCatalog, action: Action
) -> None:
    base = create(catalog, "t")
    with pytest.raises(RequestError):
        catalog.swap([next_move(base, actions=(action,))])
    assert catalog.load("t") == base.new
    assert catalog.swap([next_move(base)])


@pytest.mark.postgres
def test_a_session_works_after_any_number_of_refusals(catalog: PostgresCatalog) -> None:
    """What the server did not get to see in an aborted pipeline is not taken for known to it."""
    base = create(catalog, "t")
    unfit = (Action(action_type=ActionType.ADD, size_bytes=1 << 63),)
    for _ in range(10):
        with pytest.raises(RequestError):
            catalog.swap([next_move(base, actions=unfit, token=Token("app", 1))])
    assert catalog.swap([next_move(base, actions=EVERY_COLUMN, token=Token("app", 1))])


@pytest.mark.postgres
def test_a_table_id_that_is_no_uuid_is_refused(catalog: PostgresCatalog) -> None:
    move = create(catalog, "t")
    for table_id in ("t1", "0" * 31, "A" * 32, "00000000-0000-0000-0000-000000000000"):
        new = replace(move.new, name="u", table_id=table_id)
        with pytest.raises(RequestError):
            catalog.create(replace(imposter(move), expected=new, new=new))


@pytest.mark.postgres
def test_no_error_shows_the_password(postgres_server: PostgresServer) -> None:
    secret = "pa55 w@rd/%"
    address = f"postgres:{quote(secret, safe='')}@127.0.0.1:{postgres_server.port}/postgres"
    for uri in (f"postgresql://{address}", f"postgresql://{address}?sslpassword={quote(secret)}"):
        with pytest.raises(UnavailableError) as caught:
            PostgresCatalog(uri)
        for text in shown(caught.value):
            assert secret not in text
            assert quote(secret, safe="") not in text


@pytest.mark.postgres
def test_a_missing_password_is_asked_for(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setenv("PGPASSFILE", "/dev/null")
    with pytest.raises(RequestError, match="PGPASSWORD"):
        PostgresCatalog(f"postgresql://postgres@127.0.0.1:{postgres_server.port}/postgres")


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("postgresql://u:secret@h:5/d", "postgresql://u@h:5/d"),
        ("postgres://u:secret@h/d?schema=a%20b", "postgresql://u@h/d?schema=a%20b"),
        (
            "postgresql://u@h/d?password=secret&sslmode=require",
            "postgresql://u@h/d?sslmode=require",
        ),
        ("postgresql://h", "postgresql://h/"),
        ("postgresql:///d?host=/run/pg&user=u", "postgresql://u@/d?host=%2Frun%2Fpg"),
        ("postgresql://a:1,b:2/d", "postgresql:///d?host=a%2Cb&port=1%2C2"),
        (
            "postgresql://u%40x:se%40cret@[::1]:7/d%2Fe",
            "postgresql://u%40x@/d%2Fe?host=%3A%3A1&port=7",
        ),
    ],
)
def test_a_uri_is_shown_without_its_password_and_opens_the_same(uri: str, expected: str) -> None:
    address = Address(uri)
    assert address.uri == expected
    assert "secret" not in repr(address)
    again = Address(address.uri)
    secrets = ("password", "sslpassword")
    kept = {key: value for key, value in address.parameters.items() if key not in secrets}
    assert (again.parameters, again.schema) == (kept, address.schema)


@pytest.mark.parametrize(
    "uri",
    [
        "postgresql://u:secret@rest@h/d",
        "postgresql://u:secret@h/d?secret=1",
        "postgresql://u:%zzsecret@h/d",
        "postgresql://u:secret@[h/d",
    ],
)
def test_a_uri_that_cannot_be_read_is_not_quoted(uri: str) -> None:
    with pytest.raises(RequestError, match="no PostgreSQL URI") as caught:
        Address(uri)
    assert not any("secret" in text for text in shown(caught.value))


def shown(error: LakebedError) -> list[str]:
    """All that a log could show of an error."""
    chain: list[BaseException] = [error]
    while (cause := chain[-1].__cause__) is not None:
        chain.append(cause)
    texts = [text for each in chain for text in (str(each), repr(each))]
    return [*texts, repr(error.fields), repr(pickle.dumps(error))]
