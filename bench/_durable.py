"""Syncs what a system wrote and did not sync, so that durable is compared with durable.

Delta-rs and pyiceberg leave their files in the page cache: a power failure right after an append
loses it. This adds what they leave out, file by file and then each directory, and times only the
syncing, not the search for what is new.
"""

import os
import time
from pathlib import Path


class Synced:
    """The files of one directory tree that were already synced."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: set[str] = set()
        self.sync_ms()

    def sync_ms(self) -> float:
        """Sync what is new; how long that took."""
        found = {
            os.path.join(directory, name)
            for directory, _, names in os.walk(self._root)
            for name in names
        }
        new = sorted(found - self._known)
        self._known = found
        directories = sorted({os.path.dirname(path) for path in new})
        start = time.perf_counter()
        for path in (*new, *directories):
            _sync(path)
        return (time.perf_counter() - start) * 1000


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
