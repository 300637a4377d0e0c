"""One small pool of threads for waiting: fsync and network calls release the GIL.

Tasks given to it must never wait for other tasks of it.
"""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

THREAD_COUNT_MAX = 8

Item = TypeVar("Item")

_pool: ThreadPoolExecutor | None = None


def run_each(task: Callable[[Item], object], items: Iterable[Item]) -> None:
    """Run the task on each item at once; return when all have ended, or raise the first error.

    The calling thread takes the first item, so one item costs no hand-over.
    """
    first, *others = items
    futures = [_shared().submit(task, item) for item in others]
    try:
        task(first)
    finally:
        # Nobody may close a file or free a buffer that a thread still works on.
        wait(futures)
    for future in futures:
        future.result()


def _shared() -> ThreadPoolExecutor:
    global _pool
    if _pool is None:
        # Two threads may both get here: the loser's pool has no threads yet and is forgotten.
        _pool = ThreadPoolExecutor(THREAD_COUNT_MAX, thread_name_prefix="lakebed-store")
    return _pool


def _forget() -> None:
    global _pool
    _pool = None


# A forked child inherits the pool's queue but none of its threads: it would wait for ever.
os.register_at_fork(after_in_child=_forget)
