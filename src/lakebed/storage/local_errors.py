"""What an error of the operating system means for a store."""

import errno

from lakebed.errors import (
    LakebedError,
    ObjectMissingError,
    StorageError,
    UnavailableError,
    UnsafePathError,
)

NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
NOT_ALLOWED = {errno.EACCES, errno.EPERM, errno.EROFS}
NOT_THERE = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG}
UNSUPPORTED = {errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL}


def read_error(error: OSError, place: str) -> LakebedError:
    """Say why something could not be read."""
    if error.errno in NOT_THERE:
        return ObjectMissingError(f"there is no {place}", path=place)
    return _other_error(error, "read", place)


def write_error(error: OSError, place: str) -> LakebedError:
    """Say why something could not be written; it may or may not be there."""
    if error.errno in NO_ROOM:
        return UnavailableError(
            f"no room left on the disk of {place}",
            hint="Free some space or raise the quota, then try again",
            path=place,
        )
    if error.errno == errno.ENOTDIR:
        return StorageError(f"cannot write {place}: a file is in the way of its directory")
    if error.errno == errno.ENAMETOOLONG:
        return StorageError(f"cannot write {place}: the name is too long for this file system")
    return _other_error(error, "write", place)


def symlink_error(place: str) -> UnsafePathError:
    """Refuse to go through a symbolic link."""
    return UnsafePathError(
        f"{place} leads through a symbolic link",
        hint="Below the root of a store there must be none: replace it by what it points to",
        path=place,
    )


def _other_error(error: OSError, action: str, place: str) -> LakebedError:
    reason = error.strerror or str(error)
    if error.errno == errno.ELOOP:
        return symlink_error(place)
    if error.errno in NOT_ALLOWED:
        return StorageError(
            f"not allowed to {action} {place}: {reason}",
            hint="Check the owner and mode of the file and its directories",
            path=place,
        )
    return UnavailableError(f"cannot {action} {place}: {reason}", path=place)
