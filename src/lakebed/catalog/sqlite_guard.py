"""Keeps a WAL where it is while this process uses it, whatever else in the process opens the file.

SQLite's locks belong to the process. A second copy of SQLite in it, be it the standard library's
or DuckDB's, does not meet the locks of ours; when it closes the file it takes itself for the last
user, removes the WAL, and our next commits go into a file without a name. Even a program that
merely copies the file drops our locks when it closes it: POSIX wants it so.

A lock of an open file description belongs to nobody but itself. We hold two, on the bytes where
SQLite says "in use": on the database, so that nobody gets the sole use of it, and on the -shm
file, so that nobody takes it for a leftover. They go before our last connection is closed.

        database   0x40000002 + 510   SHARED: who wants to remove the WAL needs all of it
        -shm       128                who can lock it alone begins the index anew
"""

import fcntl
import os
import struct
import threading
import weakref
from collections.abc import Callable
from pathlib import Path

_SHARED = (0x40000002, 510)
_IN_USE = (128, 1)
_OFD_LOCK: int | None = getattr(fcntl, "F_OFD_SETLK", None)  # Linux
_FLOCK = "hhqqi4x"  # struct flock of 64-bit Linux: type, whence, start, length, pid

_lock = threading.RLock()
_places: dict[tuple[int, int], "_Place"] = {}  # by device and inode


class _Place:
    """The two locks on one database, for all catalogs of this process that have it open."""

    def __init__(self) -> None:
        self.owners: weakref.WeakSet[object] = weakref.WeakSet()
        self._held: list[tuple[int, tuple[int, int]]] = []

    def lock(self, path: Path) -> None:
        """Take what can be had: some file systems know no such locks, and then nobody has them."""
        for name, span in ((path, _SHARED), (Path(f"{path}-shm"), _IN_USE)):
            try:
                descriptor = os.open(name, os.O_RDWR | os.O_CLOEXEC)
            except OSError:
                continue
            self._held.append((descriptor, span))
            _set_lock(descriptor, fcntl.F_RDLCK, span)

    def unlock(self) -> None:
        for descriptor, span in self._held:
            _set_lock(descriptor, fcntl.F_UNLCK, span)

    def close(self) -> None:
        """Close the files: all POSIX locks of this process on them end."""
        for descriptor, _ in self._held:
            os.close(descriptor)
        self._held = []


def _set_lock(descriptor: int, kind: int, span: tuple[int, int]) -> None:
    if _OFD_LOCK is None:
        return
    try:
        fcntl.fcntl(descriptor, _OFD_LOCK, struct.pack(_FLOCK, kind, os.SEEK_SET, *span, 0))
    except OSError:
        return  # The database works without; see the module's first lines for what is lost.


def hold(owner: object, path: Path) -> None:
    """After a connection in WAL mode was opened: keep the WAL until `release`."""
    if _OFD_LOCK is None:
        return
    try:
        info = os.stat(path)
    except OSError:
        return  # Removed a moment ago: there is nothing to keep.
    with _lock:
        _forget_dead()
        place = _places.get((info.st_dev, info.st_ino))
        if place is None:
            place = _places[info.st_dev, info.st_ino] = _Place()
            place.lock(path)
        place.owners.add(owner)


def release(owner: object, close_connections: Callable[[], None]) -> None:
    """Close the owner's connections; if it is the last owner, SQLite may then tidy up."""
    with _lock:
        last = []
        for key, place in list(_places.items()):
            if owner in place.owners:
                place.owners.discard(owner)
                if not place.owners:
                    last.append(_places.pop(key))
        for place in last:
            place.unlock()
        try:
            close_connections()
        finally:
            for place in last:
                place.close()


def _forget_dead() -> None:
    """Owners that were never closed are gone with their connections."""
    for key, place in list(_places.items()):
        if not place.owners:
            _places.pop(key).close()


def _let_go() -> None:
    """In a forked child: a copy of a descriptor would keep the lock after the parent's end."""
    global _lock
    _lock = threading.RLock()
    for place in _places.values():
        place.close()
    _places.clear()


os.register_at_fork(after_in_child=_let_go)
