"""A directory of the local file system as a store.

Safe against symbolic links: each directory is resolved once, when first used, and below the root
nothing may be a link; files are opened without following one. Whoever can swap directories while
we run can do as they like: that is what permissions are for.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from copy import copy
from itertools import islice
from typing import Any

from lakebed.errors import (
    LimitExceededError,
    ObjectMissingError,
    RequestError,
    UnavailableError,
    UnsafePathError,
)
from lakebed.format.paths import check_path
from lakebed.ids import Ids, SystemIds
from lakebed.storage.local_errors import NOT_THERE, read_error, symlink_error, write_error
from lakebed.storage.local_list import walk
from lakebed.storage.local_write import (
    TEMPORARY_PREFIX,
    Staged,
    exists_error,
    has_nameless_files,
    stage_named,
    stage_nameless,
    sync_directory,
    sync_file,
)
from lakebed.storage.pool import run_each
from lakebed.storage.store import ObjectInfo

STAGED_COUNT_MAX = 64  # files open at once
KNOWN_DIRECTORY_COUNT_MAX = 1 << 16

# Without O_NONBLOCK, opening a pipe would wait for its other end.
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class LocalStore:
    """Objects as plain files below `root`, which is made when the first one is created.

    `fsync=False` gives up durability, not atomicity: for tests and throw-away data.
    """

    def __init__(
        self, root: str | os.PathLike[str], *, fsync: bool = True, ids: Ids | None = None
    ) -> None:
        try:
            canonical = os.path.realpath(os.fspath(root) or "\0")
        except ValueError as error:
            raise RequestError(f"{root!r} is not the path of a directory") from error
        self._top = canonical
        self._fsync = fsync
        self._ids = ids or SystemIds()
        self._is_nameless = has_nameless_files()
        # Shared with children. Known: canonical and there. Ready: its own name is durable too.
        self._known: set[str] = set()
        self._ready: set[str] = set()
        self._settle(canonical)

    def __repr__(self) -> str:
        return f"LocalStore({self.uri!r})"

    @property
    def identity(self) -> str:
        """What decides whether the store is safe: here the directory it was opened at."""
        return self._top

    def create(self, path: str, data: bytes | memoryview) -> None:
        """Store a file durably if there is none of that name, all of it or nothing."""
        self.create_all(((path, data),))

    def create_all(self, objects: Iterable[tuple[str, bytes | memoryview]]) -> None:
        """Store files; their fsyncs run at once, and each directory is synced once at the end."""
        directories: set[str] = set()
        remaining = iter(objects)
        while group := list(islice(remaining, STAGED_COUNT_MAX)):
            directories |= self._create_group(group)
        if self._fsync and directories:
            run_each(sync_directory, directories)

    def settle(self, paths: Iterable[str]) -> None:
        """Sync files that another program wrote, and each directory between them and the root."""
        targets = []
        for path in paths:
            self.size(path)  # raises if it is not there, or is no plain file
            targets.append(self._locate(path)[1])
        if not self._fsync or not targets:
            return
        run_each(sync_file, targets)
        above = {parent for target in targets for parent in self._parents(target)}
        run_each(sync_directory, above)

    def read(self, path: str, *, size_bytes_max: int) -> bytes:
        """Fetch a whole file; its size is looked at first."""
        _, target = self._locate(path)
        try:
            descriptor = os.open(target, _READ_FLAGS)
            try:
                info = os.fstat(descriptor)
                _require_regular(info, target)
                if info.st_size > size_bytes_max:
                    raise LimitExceededError(
                        f"{target} has {info.st_size} bytes, more than {size_bytes_max}",
                        path=path,
                    )
                return _read_exactly(descriptor, info.st_size, target)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise read_error(error, target) from error

    def size(self, path: str) -> int:
        """Tell a file's length in bytes."""
        _, target = self._locate(path)
        try:
            info = os.lstat(target)
        except OSError as error:
            raise read_error(error, target) from error
        _require_regular(info, target)
        return info.st_size

    def exists(self, path: str) -> bool:
        """Tell whether there is a file of that name."""
        try:
            self.size(path)
        except ObjectMissingError:
            return False
        return True

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """All files whose path starts with `prefix`, in order of path.

        Links, pipes, temporary files and names that no path can have are not objects.
        """
        if prefix:
            check_path(prefix.removesuffix("/"))
        above, slash, start = prefix.rpartition("/")
        directory = self._inside + above if above else self._root
        self._check_directory(directory)
        return walk(directory, above + slash, start)

    def delete(self, path: str) -> None:
        """Remove a regular file and refuse anything else; none of that name is no error."""
        _, target = self._locate(path)
        try:
            info = os.lstat(target)
            if stat.S_ISDIR(info.st_mode):
                raise UnsafePathError(f"{target} is a directory, not an object", path=path)
            _require_regular(info, target)
            os.unlink(target)
        except OSError as error:
            if error.errno not in NOT_THERE:
                raise write_error(error, target) from error

    def child(self, path: str) -> "LocalStore":
        """The store whose root is the directory `path`."""
        self._locate(path)
        root = self._inside + path
        self._check_directory(root)
        child = copy(self)
        child._settle(root)
        return child

    def arrow_filesystem(self) -> tuple[Any, str]:
        """The file system of pyarrow itself: it reads files without the detour over Python."""
        from pyarrow.fs import LocalFileSystem

        return LocalFileSystem(), self._inside

    def _settle(self, root: str) -> None:
        self.uri = root
        self._root = root
        self._inside = root.rstrip("/") + "/"

    def _locate(self, path: str) -> tuple[str, str]:
        """Turn a path into its directory and file, both absolute and inside the root."""
        check_path(path)
        if f"/{TEMPORARY_PREFIX}" in f"/{path}":
            raise UnsafePathError(f"{path!r} is a name for temporary files", path=path)
        above, _, _ = path.rpartition("/")
        directory = self._inside + above if above else self._root
        self._check_directory(directory)
        return directory, self._inside + path

    def _parents(self, target: str) -> Iterator[str]:
        """The directories above a file, up to the root."""
        while target != self._root and len(target) > len(self._root):
            target = os.path.dirname(target)
            yield target

    def _check_directory(self, directory: str) -> None:
        if directory in self._known:
            return
        if os.path.realpath(directory) != directory:
            raise symlink_error(directory)
        if os.path.isdir(directory):  # what is missing may yet become a link
            _remember(self._known, directory)

    def _create_group(self, group: Iterable[tuple[str, bytes | memoryview]]) -> set[str]:
        """Store some files and return the directories that now have to be synced."""
        directories = set()
        staged: list[Staged] = []
        try:
            for path, data in group:
                directory, target = self._locate(path)
                _refuse_existing(target)  # a loser of a race is spared the writing
                file = self._stage(directory, target)
                staged.append(file)
                file.write(data)
                directories.add(directory)
            if self._fsync and len(staged) > 1:
                for file in staged:
                    file.start_writeback()
            if self._fsync and len(staged) == len(directories):
                # As in most commits: each goes its whole way by itself, and nobody waits twice.
                run_each(Staged.settle, staged)
                return set()
            if self._fsync:
                run_each(Staged.sync, staged)
            for file in staged:
                file.publish()
        finally:
            for file in staged:
                file.close()
        return directories

    def _stage(self, directory: str, target: str) -> Staged:
        if directory not in self._ready:
            self._make_ready(directory)
        try:
            return self._open_staged(directory, target)
        except FileNotFoundError:
            # Somebody removed the directory since we saw it: forget all we knew, and make it.
            self._ready.clear()
            self._known.clear()
        except OSError as error:
            raise write_error(error, target) from error
        self._make_ready(directory)
        try:
            return self._open_staged(directory, target)
        except OSError as error:
            raise write_error(error, target) from error

    def _open_staged(self, directory: str, target: str) -> Staged:
        if self._is_nameless:
            staged = stage_nameless(directory, target)
            if staged is not None:
                return staged
            self._is_nameless = False
        return stage_named(directory, target, self._ids)

    def _make_ready(self, directory: str) -> None:
        """Make the directory and those above it, each with a durable name.

        A directory that is there may have been made just now by a process that has not synced
        it yet, so the one above it is synced in either case; only the root and what is above
        it count as durable when found.
        """
        missing = []
        above = directory
        while above not in self._ready:
            missing.append(above)
            if len(above) <= len(self._top) and os.path.isdir(above):
                break
            above = os.path.dirname(above)
        for each in reversed(missing):
            try:
                os.mkdir(each)
            except FileExistsError:
                if len(each) <= len(self._top):
                    _remember(self._ready, each)
                    continue
            except OSError as error:
                raise write_error(error, each) from error
            self._check_directory(each)
            if self._fsync:
                sync_directory(os.path.dirname(each))
            _remember(self._ready, each)


def _remember(directories: set[str], directory: str) -> None:
    if len(directories) >= KNOWN_DIRECTORY_COUNT_MAX:
        directories.clear()
    directories.add(directory)


def _refuse_existing(target: str) -> None:
    try:
        info = os.lstat(target)
    except OSError:
        return  # if it is more than absence, writing will say so
    if stat.S_ISLNK(info.st_mode):
        raise symlink_error(target)
    raise exists_error(target)


def _require_regular(info: os.stat_result, target: str) -> None:
    if stat.S_ISREG(info.st_mode):
        return
    if stat.S_ISDIR(info.st_mode):
        raise ObjectMissingError(f"{target} is a directory, not an object", path=target)
    if stat.S_ISLNK(info.st_mode):
        raise symlink_error(target)
    raise UnsafePathError(f"{target} is not a regular file", path=target)


def _read_exactly(descriptor: int, size_bytes: int, target: str) -> bytes:
    data = os.read(descriptor, size_bytes)
    if len(data) == size_bytes:
        return data
    chunks = [data]
    missing = size_bytes - len(data)
    while missing:
        chunk = os.read(descriptor, missing)
        if not chunk:
            raise UnavailableError(f"{target} became shorter while it was read", path=target)
        chunks.append(chunk)
        missing -= len(chunk)
    return b"".join(chunks)
