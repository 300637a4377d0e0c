"""Paths inside a table: always relative, always inside it."""

import re
from urllib.parse import quote

from lakebed.errors import UnsafePathError
from lakebed.limits import PATH_LENGTH_BYTES_MAX

DATA = "data"
METADATA = "metadata"

# For `re` and for RE2, which checks whole columns of paths.
UNSAFE_PATTERN = r"[\x00-\x1f\x7f\\]|^/|^[A-Za-z][A-Za-z0-9+.-]*:|(?:^|/)\.{0,2}(?:/|$)|%2[eE]"
_UNSAFE = re.compile(UNSAFE_PATTERN)


def check_path(path: str) -> str:
    """Return the path if it can only lead to a place inside the table.

    Refused: absolute paths, schemes, `.` and `..`, empty segments, backslashes, control
    characters, percent-encoded dots, text that is not UTF-8, more than 1,024 bytes.
    """
    try:
        length = len(path) if path.isascii() else len(path.encode())
    except UnicodeEncodeError as error:
        raise UnsafePathError(f"the path {path!a} is not valid text") from error
    if length > PATH_LENGTH_BYTES_MAX:
        raise UnsafePathError(
            f"the path {path[:60]!r}… has {length} bytes, more than {PATH_LENGTH_BYTES_MAX}"
        )
    if _UNSAFE.search(path):
        raise UnsafePathError(
            f"the path {path!r} does not stay inside the table",
            hint="Metadata names files relative to the table; nothing was opened",
            path=path,
        )
    return path


def snapshot_path(version: int, suffix: str = "") -> str:
    """Where a version's snapshot is; stores that decide by name have no suffix."""
    return f"{METADATA}/snap-{version:020d}{'-' + suffix if suffix else ''}.json"


def manifest_path(identifier: str) -> str:
    """Where a manifest is."""
    return f"{METADATA}/manifest-{identifier}.parquet"


def table_path(identifier: str) -> str:
    """Where a state of the table's schemas, specs, tags and properties is."""
    return f"{METADATA}/table-{identifier}.json"


def data_path(identifier: str, partition: str = "") -> str:
    """Where a data file is; `partition` is a readable directory such as `ts_day=2026-01-01`."""
    return f"{DATA}/{partition + '/' if partition else ''}{identifier}.parquet"


def path_segment(text: str) -> str:
    """Encode `column=value` as one readable path segment; the path is for people, never parsed."""
    return quote(text, safe=" .-_=:+,@")[:64]
