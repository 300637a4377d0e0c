"""Servers of tests: gone when the block ends, and a failure shows what they said."""

import socket
from pathlib import Path

import pytest

from lakebed.errors import RequestError, UnavailableError
from lakebed.storage.open import open_store
from lakebed.testing.servers import GRPC_PORT_OFFSET, RcloneServer, S3Server


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.s3
def test_a_server_and_its_traces_end_with_the_block() -> None:
    with S3Server() as server:
        open_store(server.uri, server.storage_options).create("a", b"x")
        ports = list(server.ports)
        assert is_open(server.port)
        assert server.log()
    assert not any(is_open(port) for port in ports)
    for port in ports:
        assert not list(Path("/tmp").glob(f"seaweedfs-*-{port + GRPC_PORT_OFFSET}.sock"))


def test_a_server_that_dies_shows_its_log() -> None:
    class Dying(RcloneServer):
        binary = "sh"

        def command(self, binary: str, directory: Path, ports: list[int]) -> list[str]:
            return [binary, "-c", "echo out of luck; exit 3"]

    with pytest.raises(UnavailableError, match="out of luck"), Dying():
        raise AssertionError


def test_a_missing_server_is_a_hint() -> None:
    class Missing(RcloneServer):
        binary = "no-such-binary-here"

    with pytest.raises(RequestError, match="pip install"), Missing():
        raise AssertionError
