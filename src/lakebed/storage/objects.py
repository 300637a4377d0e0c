"""A bucket of S3, Google Cloud Storage or Azure, or a prefix in it, as a store.

Put-if-absent is the service's own conditional put, one request per object. A put whose answer was
lost is repeated; if the repeat finds the name taken, the object may be ours from before:

    put -> 200               created
        -> 412               taken: by us if an earlier put of this call is in doubt and the
                             content is ours, else by somebody else
        -> 409               a race is not decided yet: ask again
        -> lost, 5xx         in doubt: ask again, a bounded number of times

Equal content means ours because no two objects of a table are alike: each carries an id drawn for
it. Whoever creates objects without one must expect that two of several equal creates succeed,
though only after a lost answer.
"""

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from typing import Any

import obstore
from obstore.exceptions import AlreadyExistsError, NotSupportedError

from lakebed.clock import Clock, SystemClock
from lakebed.errors import (
    LimitExceededError,
    ObjectExistsError,
    ObjectMissingError,
    UnsafePathError,
)
from lakebed.format.paths import check_path
from lakebed.ids import Ids, SystemIds
from lakebed.storage.object_client import (
    CLIENT_ERRORS,
    Clients,
    connect,
    is_beyond_end,
    is_conflict,
    read_error,
    write_error,
)
from lakebed.storage.pool import run_each
from lakebed.storage.store import ObjectInfo

CREATE_ATTEMPT_COUNT_MAX = 6
CREATE_BACKOFF_MS_MIN = 50
CREATE_BACKOFF_MS_MAX = 2_000
CREATE_DURATION_MS_MAX = 60_000
LIST_CHUNK_COUNT = 1_000


class ObjectStore:
    """Objects of a cloud bucket below a prefix; children share its connections.

    `location` is `scheme://bucket`; `options` have the names of the object_store crate, in any
    case: `AWS_ENDPOINT_URL`, `aws_access_key_id`, `google_service_account`, `timeout`.
    """

    def __init__(
        self,
        location: str,
        prefix: str = "",
        *,
        options: Mapping[str, Any] | None = None,
        ids: Ids | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._clients: Clients = connect(location, options or {})
        self._ids = ids or SystemIds()
        self._clock = clock or SystemClock()
        self._prefix = f"{check_path(prefix)}/" if prefix else ""
        self.uri = f"{location}/{prefix}" if prefix else location

    def __repr__(self) -> str:
        return f"ObjectStore({self.uri!r})"

    @property
    def identity(self) -> str:
        """What decides whether the store is safe: the bucket and the server it is on."""
        return self._clients.identity

    def create(self, path: str, data: bytes | memoryview) -> None:
        """Store an object if there is none of that name; see the drawing of this module."""
        key = self._key(path)
        content = memoryview(data).cast("B")
        deadline_ms = self._clock.monotonic_ms() + CREATE_DURATION_MS_MAX
        is_doubtful = False
        for attempt in range(CREATE_ATTEMPT_COUNT_MAX):
            try:
                obstore.put(self._clients.writer, key, content, mode="create", use_multipart=False)
            except CLIENT_ERRORS as error:
                if isinstance(error, AlreadyExistsError) and not is_conflict(error):
                    if is_doubtful and self._holds(path, content):
                        return
                    raise ObjectExistsError(
                        f"there is already a {path} in {self.uri}", path=path
                    ) from None
                failure = write_error(error, self._place(path), self._clients.secrets)
                is_doubtful = is_doubtful or not is_conflict(error)
            else:
                return
            is_last = attempt + 1 == CREATE_ATTEMPT_COUNT_MAX
            if is_last or not failure.retryable or self._clock.monotonic_ms() > deadline_ms:
                raise failure
            self._wait(attempt)

    def create_all(self, objects: Iterable[tuple[str, bytes | memoryview]]) -> None:
        """Store objects at once."""
        every = list(objects)
        if every:
            run_each(lambda each: self.create(*each), every)

    def settle(self, paths: Iterable[str]) -> None:
        """An object that can be seen is durable."""
        for path in paths:
            self.size(path)

    def read(self, path: str, *, size_bytes_max: int) -> bytes:
        """Fetch a whole object in one request; a large one is dropped after its header."""
        key = self._key(path)
        try:
            found = obstore.get(self._clients.reader, key)
            size_bytes = found.meta["size"]
            if size_bytes > size_bytes_max:
                raise LimitExceededError(
                    f"{self._place(path)} has {size_bytes} bytes, more than {size_bytes_max}",
                    path=path,
                )
            return found.bytes().to_bytes()
        except CLIENT_ERRORS as error:
            raise self._read_error(error, path) from None

    def read_range(self, path: str, start: int, length: int) -> Any:
        """Fetch a part of an object; see `arrow_files.RangeStore`."""
        key = self._key(path)
        try:
            return obstore.get_range(self._clients.reader, key, start=start, length=length)
        except CLIENT_ERRORS as error:
            raise self._read_error(error, path) from None

    def read_tail(self, path: str, length: int) -> tuple[Any, int]:
        """Fetch the end of an object and its size, in one request where the service can."""
        key = self._key(path)
        try:
            found = obstore.get(self._clients.reader, key, options={"range": {"suffix": length}})
            return found.bytes(), found.meta["size"]
        except CLIENT_ERRORS as error:
            # Azure has no ranges from the end, and an empty object has no range at all.
            if not isinstance(error, NotSupportedError) and not is_beyond_end(error):
                raise self._read_error(error, path) from None
        size_bytes = self.size(path)
        length = min(length, size_bytes)
        return (self.read_range(path, size_bytes - length, length) if length else b""), size_bytes

    def size(self, path: str) -> int:
        """Tell an object's length in bytes."""
        key = self._key(path)
        try:
            return obstore.head(self._clients.reader, key)["size"]
        except CLIENT_ERRORS as error:
            raise self._read_error(error, path) from None

    def exists(self, path: str) -> bool:
        """Tell whether there is an object of that name."""
        try:
            self.size(path)
        except ObjectMissingError:
            return False
        return True

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """All objects whose path starts with `prefix`, in order of path.

        The service lists by directory, and not every one in order, so all pages are fetched
        first: a page that fails leaves no partial list.
        """
        if prefix:
            check_path(prefix.removesuffix("/"))
        start = self._prefix + prefix
        directory = start.rpartition("/")[0] or None
        skipped = len(self._prefix)
        found = []
        try:
            pages = obstore.list(self._clients.reader, directory, chunk_size=LIST_CHUNK_COUNT)
            for page in pages:
                found += [_info(meta, skipped) for meta in page if _is_object(meta, start)]
        except CLIENT_ERRORS as error:
            raise self._read_error(error, prefix) from None
        return iter(sorted(found, key=lambda info: info.path))

    def delete(self, path: str) -> None:
        """Remove an object; none of that name is no error."""
        key = self._key(path)
        try:
            obstore.delete(self._clients.reader, key)
        except FileNotFoundError:
            return
        except CLIENT_ERRORS as error:
            raise self._read_error(error, path) from None

    def child(self, path: str) -> "ObjectStore":
        """The store whose root is `path` below this one."""
        key = self._key(path)
        child = copy(self)
        child._prefix = f"{key}/"
        child.uri = f"{self.uri}/{path}"
        return child

    def arrow_filesystem(self) -> tuple[Any, str]:
        """A view of the objects for pyarrow, read by range."""
        from lakebed.storage.arrow_files import arrow_filesystem

        return arrow_filesystem(self), ""

    def _key(self, path: str) -> str:
        return self._prefix + check_path(path)

    def _place(self, path: str) -> str:
        return f"{self.uri}/{path}"

    def _read_error(self, error: Exception, path: str) -> Exception:
        return read_error(error, self._place(path), self._clients.secrets)

    def _holds(self, path: str, content: memoryview) -> bool:
        try:
            return self.read(path, size_bytes_max=len(content)) == content
        except (LimitExceededError, ObjectMissingError):
            return False

    def _wait(self, attempt: int) -> None:
        longest_ms = min(CREATE_BACKOFF_MS_MIN << attempt, CREATE_BACKOFF_MS_MAX)
        self._clock.sleep_ms(longest_ms * (0.5 + self._ids.fraction() / 2))


def _is_object(meta: Any, start: str) -> bool:
    """Leave out what others put there under names that no path can have."""
    path = meta["path"]
    if not path.startswith(start):
        return False
    try:
        check_path(path)
    except UnsafePathError:
        return False
    return True


def _info(meta: Any, skipped: int) -> ObjectInfo:
    modified_ms = int(meta["last_modified"].timestamp() * 1000)
    return ObjectInfo(meta["path"][skipped:], meta["size"], modified_ms)
