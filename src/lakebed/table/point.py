"""A point in a table's history, as people name it: version, snapshot id, time or tag."""

from datetime import UTC, datetime

from lakebed.catalog.backend import CatalogBackend
from lakebed.commit.head import Head, read_head
from lakebed.errors import NotFoundError, PredicateError, RequestError
from lakebed.expr.literals import parse_moment
from lakebed.files.metadata_files import MetadataFiles
from lakebed.format.pointer import Pointer
from lakebed.format.snapshot import version_of

Point = int | str | datetime

_NS_PER_MS = 1_000_000


def at_point(
    backend: CatalogBackend, files: MetadataFiles, head: Head, point: Point | None
) -> Head:
    """Find the version at a point; None is the head itself.

    Text is a tag if there is one of that name, else a version or snapshot id, else a time in ISO
    form, in UTC unless it says otherwise.

    Raises:
        NotFoundError: there is no such version, or the table did not exist at that time.
    """
    if point is None:
        return head
    pointer = _pointer(backend, head, point)
    return head if pointer == head.pointer else read_head(files, pointer)


def _pointer(backend: CatalogBackend, head: Head, point: Point) -> Pointer:
    if isinstance(point, str):
        return _named(backend, head, point)
    if isinstance(point, datetime):
        moment = point if point.tzinfo is not None else point.replace(tzinfo=UTC)
        return backend.at_time(head.pointer, int(moment.timestamp() * 1000))
    if isinstance(point, bool) or not isinstance(point, int):
        raise RequestError(
            f"{point!r} is not a point in the table's history",
            hint="Use a version, a snapshot id, a datetime, ISO text or a tag",
        )
    return _numbered(backend, head, point)


def _numbered(backend: CatalogBackend, head: Head, number: int) -> Pointer:
    version = version_of(number)
    if number < 0 or version is None:
        return backend.at_version(head.pointer, number)
    if version <= head.pointer.version:
        found = backend.at_version(head.pointer, version)
        if found.snapshot_id == number:
            return found
    raise NotFoundError(
        f"table {head.pointer.name} has no snapshot {number}", table=head.pointer.name
    )


def _named(backend: CatalogBackend, head: Head, text: str) -> Pointer:
    if text in head.metadata.tags:
        return backend.at_version(head.pointer, head.metadata.tags[text])
    if text.isascii() and text.isdigit():
        return _numbered(backend, head, int(text))
    try:
        moment = parse_moment(text)
    except PredicateError as error:
        known = ", ".join(sorted(head.metadata.tags)) or "none"
        raise NotFoundError(
            f"{text!r} is neither a tag nor a time",
            hint=f"The tags are: {known}; a time looks like 2026-01-01T12:00:00Z",
        ) from error
    return backend.at_time(head.pointer, moment.ns // _NS_PER_MS)
