"""A line to wait in: one lock on a file, held by one thread of one process at a time.

It is manners, not safety: the database's own lock decides. Writers that wait here sleep in the
kernel and wake when it is their turn, where SQLite's busy handler would nap up to 100 ms at a
time. The kernel releases the lock of a holder that dies; where files cannot be locked, or a
holder hangs for a minute, writers go on without.
"""

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

WAIT_S_MAX = 60.0

_held: set[int] = set()  # descriptors that a forked child must close: it did not wait in line


class Turnstile:
    """Mutual exclusion between threads and processes by `flock`; a holder may enter again."""

    def __init__(self, path: str, *, wait_s_max: float = WAIT_S_MAX) -> None:
        self._path = path
        self._wait_s_max = wait_s_max
        self._mine = threading.local()

    @contextmanager
    def pass_through(self) -> Iterator[bool]:
        """Wait, hold and release; yields False when the lock could not be had."""
        if getattr(self._mine, "pid", 0) == os.getpid():
            yield True  # This thread is inside already.
            return
        descriptor = self._acquire()
        try:
            if descriptor >= 0:
                self._mine.pid = os.getpid()
            yield descriptor >= 0
        finally:
            if descriptor >= 0 and self._mine.pid == os.getpid():
                self._mine.pid = 0
                _unlock(descriptor)

    def _acquire(self) -> int:
        """A locked descriptor, or -1."""
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(self._path, flags, 0o600)
        except OSError:
            return -1
        _held.add(descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return descriptor if _Waiter(descriptor).wait(self._wait_s_max) else -1
        except OSError:
            _close(descriptor)
            return -1
        return descriptor


class _Waiter:
    """Sleeps in `flock` on a thread of its own, so that the wait can end early."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._locked = self._given_up = False

    def wait(self, timeout_s: float) -> bool:
        """Whether the lock is ours; if not, the descriptor closes itself."""
        waited = False
        threading.Thread(target=self._block, name="lakebed-queue", daemon=True).start()
        try:
            waited = self._done.wait(timeout_s)
        finally:  # Also when Ctrl-C ends the wait.
            with self._lock:
                self._given_up = not (waited and self._locked)
                ended = self._done.is_set()
            if self._given_up and ended:
                _close(self._descriptor)
        return not self._given_up

    def _block(self) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            locked = True
        except OSError:
            locked = False
        with self._lock:
            self._locked = locked
            self._done.set()
            late = self._given_up
        if late:
            _close(self._descriptor)


def _unlock(descriptor: int) -> None:
    """Release at once, even if a child that is about to exec still has a copy."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        _close(descriptor)


def _close(descriptor: int) -> None:
    if descriptor in _held:
        _held.discard(descriptor)
        os.close(descriptor)


def _let_go() -> None:
    """In a forked child: a copy of a descriptor would keep the lock after the parent's death."""
    for descriptor in list(_held):
        _close(descriptor)


os.register_at_fork(after_in_child=_let_go)
