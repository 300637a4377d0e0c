"""Tells whether anybody opened a file: the kernel says so, whatever library did it."""

import ctypes
import os
import select
import struct
from pathlib import Path
from types import TracebackType
from typing import Self

_IN_OPEN = 0x20
_IN_NONBLOCK = os.O_NONBLOCK
_HEADER = struct.Struct("iIII")
_LIBC = ctypes.CDLL(None, use_errno=True)


class Onlooker:
    """Watches a directory and what is in it, by inotify, for as long as the block lasts."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._names: dict[int, str] = {}
        self._descriptor = -1

    def __enter__(self) -> Self:
        self._descriptor = _LIBC.inotify_init1(_IN_NONBLOCK)
        assert self._descriptor >= 0
        for path in (self._directory, *self._directory.rglob("*")):
            watch = _LIBC.inotify_add_watch(self._descriptor, os.fsencode(path), _IN_OPEN)
            assert watch >= 0
            self._names[watch] = str(path)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._descriptor)

    def seen(self) -> list[str]:
        """What was opened so far."""
        found = []
        while select.select([self._descriptor], [], [], 0)[0]:
            data = os.read(self._descriptor, 1 << 16)
            while data:
                watch, _, _, length = _HEADER.unpack_from(data)
                name = data[_HEADER.size : _HEADER.size + length].rstrip(b"\0")
                found.append(os.path.join(self._names[watch], os.fsdecode(name)))
                data = data[_HEADER.size + length :]
        return found
