"""One database connection per thread and process, and forks that find no call under way.

A forked child must neither use nor close what it inherited: closing would end the parent's
session, and using SQLite's copy of the parent's lock state could damage the file. So the child
keeps inherited connections unused for ever, and a fork waits until no thread is inside a call.
"""

import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")

FORK_GRACE_S = 5.0  # a fork goes on after this long, whoever is still inside

_abandoned: list[Any] = []  # inherited connections: never closed, never collected
_every: "weakref.WeakSet[Sessions[Any]]" = weakref.WeakSet()


class Gate:
    """Counts the calls that are inside a database library; a fork waits for zero."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._inside_count = 0
        self._fork_count = 0

    def __enter__(self) -> None:
        with self._changed:
            while self._fork_count:
                self._changed.wait(FORK_GRACE_S)
            self._inside_count += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._inside_count -= 1
            if self._fork_count:
                self._changed.notify_all()

    def shut(self) -> None:
        """Before a fork: let nobody in and wait until all are out."""
        with self._changed:
            self._fork_count += 1
            self._changed.wait_for(lambda: self._inside_count == 0, FORK_GRACE_S)

    def open(self) -> None:
        """After a fork, in the parent."""
        with self._changed:
            self._fork_count -= 1
            self._changed.notify_all()

    def renew(self) -> None:
        """After a fork, in the child, which has one thread."""
        self._changed = threading.Condition(threading.Lock())
        self._inside_count = self._fork_count = 0


class Sessions(Generic[T]):
    """A connection for each thread, opened when it is first needed and then kept."""

    def __init__(
        self,
        *,
        connect: Callable[[], T],
        disconnect: Callable[[T], None],
        let_go: Callable[[T], None] | None = None,
    ) -> None:
        self._connect = connect
        self._disconnect = disconnect
        self._let_go = let_go  # what a forked child may do to an inherited connection
        self._start()
        _every.add(self)

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._mine = threading.local()
        self._owned: dict[int, tuple[weakref.ref[threading.Thread], T]] = {}

    def get(self) -> T:
        """This thread's connection."""
        session: T | None = getattr(self._mine, "session", None)
        return self._open() if session is None else session

    def discard(self) -> None:
        """Close this thread's connection; the next `get` opens another."""
        session: T | None = getattr(self._mine, "session", None)
        if session is not None:
            self._mine.session = None
            with self._lock:
                self._owned.pop(threading.get_ident(), None)
            self._disconnect(session)

    def close(self) -> None:
        """Close every thread's connection."""
        with self._lock:
            owned = [session for _, session in self._owned.values()]
            self._owned = {}
            self._mine = threading.local()
        for session in owned:
            self._disconnect(session)

    def _open(self) -> T:
        session = self._connect()
        thread = threading.current_thread()
        with self._lock:
            ended = [
                ident
                for ident, (owner, _) in self._owned.items()
                if (alive := owner()) is None or not alive.is_alive()
            ]
            stale = [self._owned.pop(ident)[1] for ident in ended]
            self._owned[threading.get_ident()] = weakref.ref(thread), session
            self._mine.session = session
        for old in stale:
            self._disconnect(old)
        return session

    def abandon(self) -> None:
        """In a forked child: forget the inherited connections, neither used nor closed."""
        _abandoned.append((self._owned, self._mine))
        if self._let_go is not None:
            for _, session in self._owned.values():
                self._let_go(session)
        self._start()


def _abandon_all() -> None:
    for sessions in list(_every):
        sessions.abandon()


GATE = Gate()
os.register_at_fork(before=GATE.shut, after_in_parent=GATE.open, after_in_child=GATE.renew)
os.register_at_fork(after_in_child=_abandon_all)
