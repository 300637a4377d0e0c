"""The pool: all tasks have ended when the call returns, and an error is not lost."""

import threading

import pytest

from lakebed.storage.pool import run_each


def test_every_item_is_done() -> None:
    done: set[int] = set()
    run_each(done.add, range(50))
    assert done == set(range(50))


def test_one_item_stays_in_the_calling_thread() -> None:
    threads: list[threading.Thread] = []
    run_each(lambda _: threads.append(threading.current_thread()), [1])
    assert threads == [threading.current_thread()]


@pytest.mark.parametrize("broken", [0, 3])
def test_an_error_comes_after_all_have_ended(broken: int) -> None:
    release = threading.Event()
    ended: list[int] = []

    def task(item: int) -> None:
        if item == broken:
            release.set()
            raise ValueError(item)
        release.wait(10)
        ended.append(item)

    with pytest.raises(ValueError, match=str(broken)):
        run_each(task, [broken, *(each for each in range(5) if each != broken)])
    assert len(ended) == 4
