"""S3 servers as fixtures: one of each kind per session and worker, started when first used."""

from collections.abc import Iterator

import pytest

from lakebed.ids import SystemIds
from lakebed.storage.open import open_store
from lakebed.storage.store import Store
from lakebed.testing.servers import RcloneServer, S3Server


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    with S3Server() as server:
        yield server


@pytest.fixture(scope="session")
def rclone_server() -> Iterator[RcloneServer]:
    with RcloneServer() as server:
        yield server


@pytest.fixture
def s3_store(s3_server: S3Server) -> Store:
    """An empty store of its own for each test, on the server that all share."""
    return open_store(f"{s3_server.uri}/{SystemIds().new()}", s3_server.storage_options)
