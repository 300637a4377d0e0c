"""PostgreSQL as a fixture: one server per session and worker, a schema of its own for each test."""

from collections.abc import Iterator

import pytest

from lakebed.ids import SystemIds
from lakebed.testing.servers import PostgresServer


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture
def postgres_uri(postgres_server: PostgresServer) -> str:
    """An empty schema, made by the first catalog that opens it."""
    return f"{postgres_server.uri}?schema=t{SystemIds().new()}"
