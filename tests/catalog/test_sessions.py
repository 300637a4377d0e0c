"""Each thread and process has a connection of its own, and none is used or closed by another."""

import threading
import time
from collections.abc import Iterator
from itertools import count

import pytest

from lakebed.catalog.sessions import Gate, Sessions
from lakebed.testing.contract_catalog_races import at_once, in_child


class Database:
    """Hands out numbers as connections and writes down which were closed."""

    def __init__(self) -> None:
        self._numbers = count()
        self.closed: list[int] = []
        self.let_go: list[int] = []
        self.sessions = Sessions(
            connect=lambda: next(self._numbers),
            disconnect=self.closed.append,
            let_go=self.let_go.append,
        )


@pytest.fixture
def database() -> Iterator[Database]:
    database = Database()
    yield database
    database.sessions.close()


def test_a_thread_keeps_its_connection_and_shares_it_with_none(database: Database) -> None:
    mine = database.sessions.get()
    theirs = at_once([lambda: {database.sessions.get() for _ in range(3)}] * 4)
    assert database.sessions.get() == mine
    assert all(len(each) == 1 for each in theirs)
    assert len({mine}.union(*theirs)) == 5


def test_a_discarded_connection_is_closed_and_replaced(database: Database) -> None:
    first = database.sessions.get()
    database.sessions.discard()
    database.sessions.discard()
    assert database.closed == [first]
    assert database.sessions.get() != first


def test_connections_of_threads_that_ended_are_closed(database: Database) -> None:
    ended = at_once([database.sessions.get] * 3)
    database.sessions.get()
    assert sorted(database.closed) == sorted(ended)


def test_close_closes_those_of_all_threads(database: Database) -> None:
    opened = {database.sessions.get(), *at_once([database.sessions.get] * 2)}
    database.sessions.close()
    assert set(database.closed) == opened
    assert database.sessions.get() not in opened


def test_a_child_lets_go_of_what_it_inherited_and_opens_its_own(database: Database) -> None:
    mine = database.sessions.get()
    assert in_child(
        lambda: (
            database.let_go == [mine] and database.closed == [] and database.sessions.get() != mine
        )
    )
    assert (database.let_go, database.closed) == ([], [])
    assert database.sessions.get() == mine


def test_a_fork_waits_until_no_thread_is_inside() -> None:
    gate = Gate()
    entered, left = threading.Event(), []

    def work() -> None:
        with gate:
            entered.set()
            time.sleep(0.2)
            left.append(1)

    thread = threading.Thread(target=work)
    thread.start()
    assert entered.wait(5)
    gate.shut()
    assert left == [1]
    late = threading.Thread(target=lambda: gate.__enter__())
    late.start()
    late.join(0.1)
    assert late.is_alive()  # Nobody comes in while the fork is under way.
    gate.open()
    late.join(5)
    thread.join(5)
    assert not late.is_alive()


def test_a_fork_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakebed.catalog.sessions.FORK_GRACE_S", 0.1)
    gate = Gate()
    with gate:
        begin = time.monotonic()
        gate.shut()
        assert 0.05 < time.monotonic() - begin < 5
        gate.renew()
    with gate:
        pass
