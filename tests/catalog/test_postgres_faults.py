"""A lost answer of PostgreSQL is "unknown" exactly when a COMMIT was sent, and can be resolved."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import psycopg
import pytest

from lakebed.catalog import postgres_session
from lakebed.catalog.postgres import PostgresCatalog
from lakebed.errors import CommitUnknownError, UnavailableError
from lakebed.format.pointer import Move
from lakebed.testing.contract_catalog_races import at_once, in_child
from lakebed.testing.moves import add_actions, create, first_move, last_move, next_move
from lakebed.testing.proxy import Fault, PostgresProxy
from lakebed.testing.servers import PostgresServer

pytestmark = pytest.mark.postgres


@pytest.fixture
def proxy(postgres_server: PostgresServer) -> Iterator[PostgresProxy]:
    with PostgresProxy(postgres_server.port) as proxy:
        yield proxy


@pytest.fixture
def direct(postgres_uri: str) -> Iterator[PostgresCatalog]:
    """The same catalog without the proxy."""
    catalog = PostgresCatalog(postgres_uri)
    yield catalog
    catalog.close()


@pytest.fixture
def catalog(
    postgres_uri: str, postgres_server: PostgresServer, proxy: PostgresProxy
) -> Iterator[PostgresCatalog]:
    catalog = PostgresCatalog(postgres_uri.replace(f":{postgres_server.port}/", f":{proxy.port}/"))
    yield catalog
    catalog.close()


WORKS: dict[str, Callable[[PostgresCatalog, Move], tuple[Move, Callable[[], object]]]] = {
    "swap": lambda c, base: (m := next_move(base, actions=add_actions(3)), lambda: c.swap([m])),
    "drop": lambda c, base: (m := last_move(base), lambda: c.drop(m)),
    "create": lambda c, base: (m := first_move("new"), lambda: c.create(m)),
}


@pytest.mark.parametrize("work", WORKS)
@pytest.mark.parametrize("fault", Fault)
def test_an_answer_lost_after_commit_was_sent_is_unknown_and_resolved(
    catalog: PostgresCatalog, direct: PostgresCatalog, proxy: PostgresProxy, work: str, fault: Fault
) -> None:
    base = create(direct, "t")
    move, act = WORKS[work](catalog, base)
    with proxy.fault(fault), pytest.raises(CommitUnknownError) as caught:
        act()
    new = move.new
    assert caught.value.fields == {
        "commit_id": new.commit_id,
        "table": new.name,
        "base_version": new.version - 1,
    }
    if fault is Fault.DELAY:
        assert direct.outcome(new.name, new.commit_id, since=new.version - 1).committed is None
        proxy.release()
    outcome = catalog.outcome(new.name, new.commit_id, since=new.version - 1)
    if fault is Fault.CUT:
        assert outcome.committed is None
        assert outcome.head == (None if work == "create" else base.new)
        act()  # The same one again: now it lands.
        outcome = catalog.outcome(new.name, new.commit_id, since=new.version - 1)
    assert outcome.committed == new
    assert outcome.head == (None if work == "drop" else new)
    assert len(list(direct.log(new))) == len(move.actions)


def test_a_swap_sent_again_while_the_first_is_under_way_is_made_once(
    catalog: PostgresCatalog, direct: PostgresCatalog, proxy: PostgresProxy
) -> None:
    step = next_move(create(direct, "t"))
    with proxy.fault(Fault.DELAY), pytest.raises(CommitUnknownError):
        catalog.swap([step])
    answers: list[bool] = []
    again = threading.Thread(target=lambda: answers.append(direct.swap([step])))
    again.start()
    again.join(0.3)
    assert again.is_alive()  # It waits for the one that holds the row.
    proxy.release()
    again.join(10)
    assert answers == [False]
    assert direct.load("t") == step.new
    assert [past.version for past in direct.history(step.new)] == [1, 0]


def test_a_session_ended_while_idle_is_replaced_unnoticed(
    direct: PostgresCatalog, postgres_server: PostgresServer
) -> None:
    step = create(direct, "t")
    for act in (lambda: direct.load("t"), lambda: direct.swap([next_move(step)])):
        assert terminate(postgres_server, direct) == 1
        assert act()
    assert direct.load("t").version == 1


def test_a_writer_whose_session_ends_in_the_line_comes_again(
    direct: PostgresCatalog, postgres_uri: str, postgres_server: PostgresServer
) -> None:
    other = PostgresCatalog(postgres_uri)
    step = next_move(create(direct, "t"))
    answers: list[bool] = []
    writer = threading.Thread(target=lambda: answers.append(other.swap([step])))
    with direct.queue(["t"]):
        writer.start()
        wait_until(lambda: terminate(postgres_server, other, waiting=True) == 1)
        writer.join(0.3)
        assert writer.is_alive()
    writer.join(10)
    assert answers == [True]
    assert direct.load("t") == step.new
    other.close()


def test_a_row_held_for_too_long_is_unavailable_and_nothing_changes(
    direct: PostgresCatalog, postgres_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = create(direct, "t")
    settings = postgres_session._SETTINGS.replace(str(postgres_session.LOCK_TIMEOUT_MS), "100")
    monkeypatch.setattr(postgres_session, "_SETTINGS", settings)
    hurried = PostgresCatalog(postgres_uri)
    holder = postgres_session.connect(postgres_session.Address(postgres_uri))
    with holder.transaction():
        holder.execute("SELECT * FROM lakebed_table FOR UPDATE")
        with pytest.raises(UnavailableError) as caught:
            hurried.swap([next_move(base)])
    assert caught.value.fields["sqlstate"] == "55P03"
    assert hurried.load("t") == base.new
    assert hurried.swap([next_move(base)])
    holder.close()
    hurried.close()


def test_one_who_waits_too_long_in_the_line_goes_on_without(
    direct: PostgresCatalog, postgres_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = postgres_session._SETTINGS.replace(str(postgres_session.LOCK_TIMEOUT_MS), "100")
    monkeypatch.setattr(postgres_session, "_SETTINGS", settings)
    hurried = PostgresCatalog(postgres_uri)
    create(direct, "t")
    with direct.queue(["t"]):
        with hurried.queue(["s", "t", "u"]):
            assert hurried.load("t").version == 0
        assert lock_count(direct) == 1  # What it got of the three was given back.
    assert lock_count(direct) == 0
    hurried.close()


@pytest.mark.slow
def test_of_two_who_wait_for_each_other_one_gives_way(
    direct: PostgresCatalog, postgres_uri: str
) -> None:
    """One queues for a and swaps b too, the other the other way round: nobody hangs."""
    other = PostgresCatalog(postgres_uri)
    steps = {name: create(direct, name) for name in "ab"}
    start = threading.Barrier(2)

    def work(catalog: PostgresCatalog, held: str) -> bool:
        with catalog.queue([held]):
            start.wait(10)
            try:
                return catalog.swap([next_move(steps[name]) for name in "ab"])
            except UnavailableError as error:
                assert error.fields["sqlstate"] == "40P01"
                return False

    assert sorted(at_once([partial(work, direct, "a"), partial(work, other, "b")])) == [False, True]
    assert [direct.load(name).version for name in "ab"] == [1, 1]
    other.close()


def test_the_line_moves_on_when_a_parent_dies_and_its_child_lives(
    direct: PostgresCatalog, postgres_uri: str
) -> None:
    """A child has a copy of the parent's socket; it must not keep the session alive."""
    reader, writer = os.pipe()

    def parent() -> bool:
        catalog = PostgresCatalog(postgres_uri)
        with catalog.queue(["t"]):
            child = os.fork()
            if child == 0:
                time.sleep(60)
            os.write(writer, b"%d" % child)
            os.kill(os.getpid(), signal.SIGKILL)
        return False

    create(direct, "t")
    assert not in_child(parent)
    child = int(os.read(reader, 20))
    try:
        begin = time.monotonic()
        with direct.queue(["t"]):
            assert time.monotonic() - begin < 10
            assert lock_count(direct) == 1
    finally:
        os.kill(child, signal.SIGKILL)
        os.close(reader)
        os.close(writer)


@pytest.mark.slow
def test_a_server_that_is_gone_is_unavailable() -> None:
    with PostgresServer() as server:
        catalog = PostgresCatalog(server.uri)
        base = create(catalog, "t")
    for act in (
        lambda: catalog.load("t"),
        lambda: catalog.swap([next_move(base)]),
        lambda: PostgresCatalog(server.uri),
    ):
        with pytest.raises(UnavailableError) as caught:
            act()
        assert server.password not in str(caught.value) + repr(caught.value.__cause__)
    catalog.close()


def terminate(server: PostgresServer, catalog: PostgresCatalog, *, waiting: bool = False) -> int:
    """End the sessions of this process's thread or, `waiting`, those that wait for a lock."""
    with psycopg.connect(server.uri, autocommit=True) as session:
        if waiting:
            query = "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE NOT granted"
            return len(session.execute(query).fetchall())
        pid = catalog._sessions.get().info.backend_pid
        return len(session.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,)).fetchall())


def lock_count(catalog: PostgresCatalog) -> int:
    query = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
    return int(catalog._read(query, ())[0][0])


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)
