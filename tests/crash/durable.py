"""What would be left of a directory if the power failed now: only what was synced.

A file survives if its content was synced after the last write to it, its name is in a directory
that was synced after the name was given, and the same holds for each directory above it.
"""

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


class Disk:
    """Listens to the calls that change files below `root`; a sync is noted and not waited for."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self._root = root
        self._unsynced: set[int] = set()  # files, by inode
        self._names: dict[str, set[str]] = {}  # of each directory, as of its last sync
        self._write, self._sync = os.write, os.fsync
        patch.setattr(os, "write", self._on_write)
        patch.setattr(os, "fsync", self._on_sync)

    def _on_write(self, descriptor: int, data: Any) -> int:
        self._unsynced.add(os.fstat(descriptor).st_ino)
        return self._write(descriptor, data)

    def _on_sync(self, descriptor: int) -> None:
        info = os.fstat(descriptor)
        if stat.S_ISDIR(info.st_mode):
            directory = os.readlink(f"/proc/self/fd/{descriptor}")
            self._names[directory] = set(os.listdir(directory))
        else:
            self._unsynced.discard(info.st_ino)

    def survivors(self) -> list[Path]:
        """The files that a power failure would leave, from the root."""
        return [
            path.relative_to(self._root)
            for path in self._root.rglob("*")
            if path.is_file() and path.stat().st_ino not in self._unsynced and self._is_named(path)
        ]

    def _is_named(self, path: Path) -> bool:
        while path != self._root:
            if path.name not in self._names.get(str(path.parent), ()):
                return False
            path = path.parent
        return True

    def after_power_failure(self, image: Path, keep: Callable[[Path], bool]) -> None:
        """Copy what survives; `keep` says what survives for other reasons."""
        others = [p.relative_to(self._root) for p in self._root.rglob("*") if p.is_file()]
        for path in {*self.survivors(), *filter(keep, others)}:
            (image / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(self._root / path, image / path)
