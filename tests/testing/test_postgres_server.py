"""PostgreSQL for tests is gone when the block ends; its proxy does what it says, or tells."""

from pathlib import Path

import psycopg
import pytest
from tests.testing.test_servers import is_open

from lakebed.catalog.postgres import PostgresCatalog
from lakebed.errors import UnavailableError
from lakebed.testing.proxy import Fault, PostgresProxy
from lakebed.testing.servers import PostgresServer


@pytest.mark.postgres
def test_a_postgres_server_and_its_files_end_with_the_block() -> None:
    with PostgresServer({"log_min_messages": "log"}) as server:
        PostgresCatalog(server.uri).close()
        port, directory = server.port, server._directory
        assert is_open(port)
        assert "ready to accept connections" in server.log()
    assert not is_open(port)
    assert not Path(directory).exists()


def test_a_cluster_that_cannot_be_made_shows_why(monkeypatch: pytest.MonkeyPatch) -> None:
    server = PostgresServer()
    monkeypatch.setattr(server, "find", lambda: "/bin/true/postgres")
    with pytest.raises((UnavailableError, NotADirectoryError)), server:
        raise AssertionError
    assert not server._directory.exists()


@pytest.mark.postgres
def test_a_proxy_without_a_fault_changes_nothing(postgres_server: PostgresServer) -> None:
    with PostgresProxy(postgres_server.port) as proxy:
        uri = postgres_server.uri_at(proxy.port)
        with psycopg.connect(uri) as session:
            session.execute("SELECT 1")
            session.commit()
            assert session.execute("SELECT repeat('x', 1000000)").fetchall() == [("x" * 1_000_000,)]


@pytest.mark.postgres
def test_a_fault_that_does_not_fire_is_an_error(postgres_server: PostgresServer) -> None:
    with PostgresProxy(postgres_server.port) as proxy:
        uri = postgres_server.uri_at(proxy.port)
        with (
            pytest.raises(AssertionError, match="no COMMIT"),
            proxy.fault(Fault.CUT),
            psycopg.connect(uri, autocommit=True) as session,
        ):
            session.execute("SELECT 'COMMIT'")
