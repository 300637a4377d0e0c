"""One at a time passes, a dead holder lets go, and nobody waits for ever."""

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lakebed.catalog.turnstile import Turnstile
from lakebed.testing.contract_catalog_races import at_once, in_child


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "queue")


def test_threads_pass_one_at_a_time(path: str) -> None:
    inside: list[int] = []
    most: list[int] = []

    def pass_through() -> bool:
        turnstile = Turnstile(path)
        for _ in range(10):
            with turnstile.pass_through() as has_lock:
                assert has_lock
                inside.append(1)
                most.append(len(inside))
                time.sleep(0.001)
                inside.pop()
        return True

    assert at_once([pass_through] * 6) == [True] * 6
    assert max(most) == 1


def test_a_holder_may_enter_again_and_leaves_when_the_outermost_block_ends(path: str) -> None:
    turnstile = Turnstile(path)
    with turnstile.pass_through(), turnstile.pass_through() as has_lock:
        assert has_lock
        assert not passes(path)
    with turnstile.pass_through():
        with turnstile.pass_through():
            pass
        assert not passes(path)
    assert passes(path)


def test_an_error_inside_lets_go(path: str) -> None:
    with pytest.raises(ZeroDivisionError), Turnstile(path).pass_through():
        raise ZeroDivisionError
    assert passes(path)


def test_one_who_waits_too_long_goes_on_without(path: str) -> None:
    with Turnstile(path).pass_through():
        begin = time.monotonic()
        with Turnstile(path, wait_s_max=0.1).pass_through() as has_lock:
            assert not has_lock
        assert time.monotonic() - begin < 5
    assert eventually(lambda: passes(path))  # The one who gave up does not take it later.


def test_a_place_without_locks_is_passed_without(tmp_path: Path) -> None:
    with Turnstile(str(tmp_path / "no" / "such" / "directory")).pass_through() as has_lock:
        assert not has_lock
    target = tmp_path / "target"
    (tmp_path / "link").symlink_to(target)
    with Turnstile(str(tmp_path / "link")).pass_through() as has_lock:
        assert not has_lock
    assert not target.exists()  # A link leads nowhere.


def test_another_process_waits_its_turn(path: str) -> None:
    with Turnstile(path).pass_through():
        assert in_child(lambda: not passes(path))
    assert in_child(lambda: passes(path))


def test_a_holder_that_dies_lets_go_also_when_its_child_lives(path: str) -> None:
    reader, writer = os.pipe()

    def parent() -> bool:
        with Turnstile(path).pass_through():
            child = os.fork()
            if child == 0:
                time.sleep(60)
            os.write(writer, b"%d" % child)
            os.kill(os.getpid(), signal.SIGKILL)
        return False

    assert not in_child(parent)
    child = int(os.read(reader, 20))
    try:
        assert passes(path)
    finally:
        os.kill(child, signal.SIGKILL)
        os.close(reader)
        os.close(writer)


def test_a_child_of_a_holder_is_not_inside(path: str) -> None:
    turnstile = Turnstile(path, wait_s_max=0.1)

    def is_inside() -> bool:
        with turnstile.pass_through() as has_lock:
            return has_lock

    with turnstile.pass_through():
        assert in_child(lambda: not is_inside())


def passes(path: str) -> bool:
    """Whether another thread gets through at once."""
    found: list[bool] = []

    def run() -> None:
        with Turnstile(path, wait_s_max=0.1).pass_through() as has_lock:
            found.append(has_lock)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def eventually(holds: Callable[[], bool]) -> bool:
    for _ in range(40):
        if holds():
            return True
        time.sleep(0.05)
    return False
