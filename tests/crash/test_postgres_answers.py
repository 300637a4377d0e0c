"""An append whose COMMIT got no answer is in the table once, or the truth is found out later."""

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.commit.policy import RetryPolicy
from lakebed.errors import CommitUnknownError
from lakebed.table.catalog import Catalog
from lakebed.table.resolution import Fate
from lakebed.table.table import Table
from lakebed.testing.proxy import Fault, PostgresProxy
from lakebed.testing.servers import PostgresServer

pytestmark = [pytest.mark.postgres, pytest.mark.crash]

NAME = "plant.readings"
FIRST = pa.table({"n": [1, 2]})
SECOND = pa.table({"n": [3, 4, 5]})
WAIT_S_MAX = 20
Open = Callable[[PostgresProxy | None], Catalog]


class Vanishing(PostgresProxy):
    """After the fault nobody gets through any more: the catalog is gone for good."""

    def _take(self) -> Fault | None:
        fault = super()._take()
        if fault is not None:
            self._listener.shutdown(socket.SHUT_RDWR)
        return fault


@pytest.fixture
def opened(postgres_uri: str, postgres_server: PostgresServer, tmp_path: Path) -> Iterator[Open]:
    """Opens the catalog, through a proxy or straight; the table is there."""
    catalogs: list[Catalog] = []

    def open_one(proxy: PostgresProxy | None) -> Catalog:
        uri = postgres_uri
        if proxy is not None:
            uri = uri.replace(f":{postgres_server.port}/", f":{proxy.port}/")
        policy = RetryPolicy(answer_count_max=4, backoff_ms_max=20)
        catalogs.append(lakebed.connect(uri, warehouse=tmp_path / "tables", policy=policy))
        return catalogs[-1]

    table = open_one(None).create_table(NAME, FIRST.schema)
    table.append(FIRST)
    yield open_one
    for catalog in catalogs:
        catalog.close()


def numbers(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow().column("n").to_pylist())


@pytest.mark.parametrize("fault", [Fault.SWALLOW, Fault.CUT])
@pytest.mark.parametrize("token", [None, ("app", 1)])
def test_a_lost_answer_leaves_the_append_in_the_table_once(
    opened: Open, postgres_server: PostgresServer, fault: Fault, token: tuple[str, int] | None
) -> None:
    with PostgresProxy(postgres_server.port) as proxy:
        table = opened(proxy).table(NAME)
        with proxy.fault(fault):
            commit = table.append(SECOND, token=token)
    straight = opened(None).table(NAME)
    assert numbers(straight) == [1, 2, 3, 4, 5]
    assert [s.commit_id for s in straight.history()].count(commit.commit_id) == 1
    assert straight.version == commit.version == 2
    assert not commit.repeated


def test_a_commit_that_arrives_late_is_not_made_twice(
    opened: Open, postgres_server: PostgresServer
) -> None:
    with PostgresProxy(postgres_server.port) as proxy:
        table = opened(proxy).table(NAME)
        commits: list[lakebed.Commit] = []
        writer = threading.Thread(target=lambda: commits.append(table.append(SECOND)))
        with proxy.fault(Fault.DELAY):
            writer.start()
            writer.join(0.5)
            assert writer.is_alive(), "the same swap, sent again, waits for the first"
            proxy.release()
            writer.join(WAIT_S_MAX)
    assert [commit.version for commit in commits] == [2]
    assert numbers(opened(None).table(NAME)) == [1, 2, 3, 4, 5]


def lost(opened: Open, server: PostgresServer, fault: Fault) -> CommitUnknownError:
    """Append through a catalog that goes away with the answer."""
    with Vanishing(server.port) as proxy:
        table = opened(proxy).table(NAME)
        with proxy.fault(fault), pytest.raises(CommitUnknownError) as caught:
            table.append(SECOND, token=("app", 1))
        if fault is Fault.SWALLOW:
            assert proxy._landed.wait(WAIT_S_MAX)
    return caught.value


def test_a_commit_that_was_made_is_found_from_a_new_connection(
    opened: Open, postgres_server: PostgresServer
) -> None:
    error = lost(opened, postgres_server, Fault.SWALLOW)
    catalog = opened(None)
    for asked in (error, error.commit_id):
        told = catalog.resolve(asked)
        assert told.fate is Fate.COMMITTED
        assert [(c.version, c.commit_id) for c in told.commits] == [(2, error.commit_id)]
    assert numbers(catalog.table(NAME)) == [1, 2, 3, 4, 5]
    assert catalog.table(NAME).append(SECOND, token=("app", 1)).repeated
    assert numbers(catalog.table(NAME)) == [1, 2, 3, 4, 5]


def test_a_commit_that_was_not_made_is_undecided_until_another_takes_its_place(
    opened: Open, postgres_server: PostgresServer
) -> None:
    error = lost(opened, postgres_server, Fault.CUT)
    catalog = opened(None)
    assert catalog.resolve(error).fate is Fate.UNDECIDED
    assert catalog.doctor(NAME).ok
    assert catalog.doctor(NAME).unlisted_count == 1, "what is unknown is not deleted"
    again = catalog.table(NAME).append(SECOND, token=("app", 1))
    assert not again.repeated
    assert catalog.resolve(error).fate is Fate.FAILED
    assert catalog.resolve(error.commit_id).fate is Fate.UNDECIDED, "the id alone tells less"
    assert numbers(catalog.table(NAME)) == [1, 2, 3, 4, 5]
