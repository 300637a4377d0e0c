"""A file's way onto a local disk: complete and durable first, and only then with a name.

    open, nameless or as .tmp-<id>  ->  write  ->  fsync  ->  link to the name  ->  fsync directory
                                    crash: no object       |              crash: all of it or none

A link never replaces what is there, so of several writers one wins. A file without a name
(Linux: O_TMPFILE) leaves nothing behind when its writer is killed and spares the directory two
changes; where the file system has no such thing, a temporary name does the same.
"""

import contextlib
import errno
import fcntl
import os

from lakebed.errors import ObjectExistsError, UnavailableError, UnsafeStoreError
from lakebed.ids import Ids
from lakebed.storage.local_errors import UNSUPPORTED, read_error, write_error

TEMPORARY_PREFIX = ".tmp-"
TEMPORARY_ATTEMPT_COUNT_MAX = 8

_FILE_MODE = 0o666  # less the umask: other engines read the files too
_NAMED_FLAGS = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_NAMELESS_FLAGS = getattr(os, "O_TMPFILE", 0) | os.O_WRONLY | os.O_CLOEXEC
_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DESCRIPTORS = "/proc/self/fd"
_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: fsync alone does not do it


class Staged:
    """A file that is written but has no name yet."""

    __slots__ = ("_descriptor", "_target", "_temporary")

    def __init__(self, descriptor: int, *, target: str, temporary: str | None) -> None:
        self._descriptor = descriptor
        self._target = target
        self._temporary = temporary

    def write(self, data: bytes | memoryview) -> None:
        """Write all of it; the system may take it in several bites."""
        try:
            written = os.write(self._descriptor, data)
            if written == memoryview(data).nbytes:
                return
            rest = memoryview(data).cast("B")[written:]
            while rest:
                written = os.write(self._descriptor, rest)
                if not written:
                    raise OSError(errno.EIO, "nothing was taken")
                rest = rest[written:]
        except OSError as error:
            raise write_error(error, self._target) from error

    def start_writeback(self) -> None:
        """Let the disk begin, so that several files share one journal commit when synced."""
        if hasattr(os, "posix_fadvise"):
            with contextlib.suppress(OSError):  # advice only
                os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_DONTNEED)

    def sync(self) -> None:
        """Make the content durable.

        Called once: after a failed fsync the kernel may count the lost pages as clean, so that
        a second one would succeed and lie.
        """
        try:
            _sync(self._descriptor)
        except OSError as error:
            raise write_error(error, self._target) from error

    def publish(self) -> None:
        """Give it its name if that is free."""
        try:
            self._link()
        except FileExistsError as error:
            if not self._is_linked():
                raise exists_error(self._target) from error
        except OSError as error:
            if error.errno == errno.EPERM or error.errno in UNSUPPORTED:
                raise UnsafeStoreError(
                    f"the file system of {self._target} has no hard links",
                    hint="Without them no file can appear whole and only once: use another"
                    " file system, an object store, or a catalog in a database",
                ) from error
            raise write_error(error, self._target) from error

    def settle(self) -> None:
        """Go the whole way: content, name, and the directory that holds the name."""
        self.sync()
        self.publish()
        sync_directory(os.path.dirname(self._target))

    def close(self) -> None:
        """Let go; without a name the content is gone."""
        if self._temporary is not None:
            with contextlib.suppress(OSError):  # a leftover is not an object, and harmless
                os.unlink(self._temporary)
        with contextlib.suppress(OSError):  # fsync has told all that close could
            os.close(self._descriptor)

    def _link(self) -> None:
        if self._temporary is not None:
            os.link(self._temporary, self._target)
            return
        # A directory descriptor makes Python call linkat, which follows this one link of /proc.
        source = f"{_DESCRIPTORS}/{self._descriptor}"
        os.link(source, self._target, src_dir_fd=self._descriptor, follow_symlinks=True)

    def _is_linked(self) -> bool:
        """Tell whether our own link was made and only the answer got lost, as NFS may do."""
        return os.fstat(self._descriptor).st_nlink > (self._temporary is not None)


def stage_nameless(directory: str, target: str) -> Staged | None:
    """Open a file without a name, or give None where there is no such thing."""
    try:
        descriptor = os.open(directory, _NAMELESS_FLAGS, _FILE_MODE)
    except OSError as error:
        # Kernels that do not know the flag see an attempt to write a directory.
        if error.errno in UNSUPPORTED or error.errno == errno.EISDIR:
            return None
        raise
    return Staged(descriptor, target=target, temporary=None)


def stage_named(directory: str, target: str, ids: Ids) -> Staged:
    """Open a file under a temporary name."""
    for _ in range(TEMPORARY_ATTEMPT_COUNT_MAX):
        temporary = f"{directory}/{TEMPORARY_PREFIX}{ids.new()}"
        try:
            descriptor = os.open(temporary, _NAMED_FLAGS, _FILE_MODE)
        except FileExistsError:
            continue  # seeded ids in two processes, or a leftover
        return Staged(descriptor, target=target, temporary=temporary)
    raise UnavailableError(f"no free temporary name in {directory}", path=directory)


def has_nameless_files() -> bool:
    """Tell whether this system can open a file without a name and name it later."""
    return hasattr(os, "O_TMPFILE") and os.path.isdir(_DESCRIPTORS)


def exists_error(target: str) -> ObjectExistsError:
    """Say that the name is taken."""
    return ObjectExistsError(f"there is already a {target}", path=target)


def sync_file(target: str) -> None:
    """Make the content of a file durable that another program has written."""
    try:
        descriptor = os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            _sync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise read_error(error, target) from error


def sync_directory(directory: str) -> None:
    """Make the names in a directory durable."""
    try:
        descriptor = os.open(directory, _DIRECTORY_FLAGS)
        try:
            _sync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        # Some network file systems know no fsync of a directory: names are durable at once.
        if error.errno not in UNSUPPORTED:
            raise write_error(error, directory) from error


def _sync(descriptor: int) -> None:
    if _FULL_SYNC is None:
        os.fsync(descriptor)
    else:
        fcntl.fcntl(descriptor, _FULL_SYNC)
