"""Walking a directory in order of path, without ever following a link."""

import os
from collections.abc import Iterator

from lakebed.errors import UnsafePathError
from lakebed.format.paths import check_path
from lakebed.storage.local_errors import NOT_THERE, read_error
from lakebed.storage.local_write import TEMPORARY_PREFIX
from lakebed.storage.store import ObjectInfo

_Entry = tuple[str, os.DirEntry[str]]


def walk(directory: str, above: str, start: str) -> Iterator[ObjectInfo]:
    """All files below `directory`; its own entries only if they start with `start`.

    `above` is what comes before their names: empty, or ending in a slash. A directory that
    cannot be read raises; one that vanishes meanwhile has no files.
    """
    stack = _entries(directory, above, start)
    while stack:
        path, entry = stack.pop()
        if path.endswith("/"):
            stack += _entries(entry.path, path, "")
            continue
        try:
            info = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue  # deleted while we walked
        except OSError as error:
            raise read_error(error, entry.path) from error
        yield ObjectInfo(path, info.st_size, info.st_mtime_ns // 1_000_000)


def _entries(directory: str, above: str, start: str) -> list[_Entry]:
    """What is in a directory, last first; directories end in a slash and sort by it."""
    found: list[_Entry] = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if not entry.name.startswith(start) or not _is_object_name(above, entry.name):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    found.append((f"{above}{entry.name}/", entry))
                elif entry.is_file(follow_symlinks=False):
                    found.append((above + entry.name, entry))
    except OSError as error:
        if error.errno in NOT_THERE:
            return []
        raise read_error(error, directory) from error
    found.sort(key=lambda pair: pair[0], reverse=True)
    return found


def _is_object_name(above: str, name: str) -> bool:
    """Tell whether a path can have that name: others cannot be read or deleted through us."""
    if name.startswith(TEMPORARY_PREFIX):
        return False
    try:
        check_path(above + name)
    except UnsafePathError:
        return False
    return True
