"""The contract between the library and the place where bytes rest."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One object in a listing; `modified_ms` is by the store's clock."""

    path: str
    size_bytes: int
    modified_ms: int


class Store(Protocol):
    """A directory or prefix of immutable objects.

    Paths are relative, checked by `format.paths.check_path` before anything is touched, and
    can only lead to objects below the root: symbolic links out of it raise UnsafePathError.
    Objects are created once and never changed. Called from several threads. Executable form:
    `lakebed.testing.contract_store`.
    """

    uri: str  # where it is, for people and for opening it again; carries no secret

    def create(self, path: str, data: bytes | memoryview) -> None:
        """Store an object durably if there is none of that name, all of it or nothing.

        When this returns, a power failure cannot lose the object. Of several callers racing for
        one name exactly one returns.

        Raises:
            ObjectExistsError: there is an object of that name; it was not changed.
            UnavailableError: no answer, or no room; the object may or may not be there.
        """

    def create_all(self, objects: Iterable[tuple[str, bytes | memoryview]]) -> None:
        """Like `create` for each, in any order or at once; on error any of them may be there."""

    def settle(self, paths: Iterable[str]) -> None:
        """Make objects durable that another program has put below the root.

        Raises:
            ObjectMissingError: one of them is not there.
        """

    def read(self, path: str, *, size_bytes_max: int) -> bytes:
        """Fetch a whole object.

        Raises:
            ObjectMissingError: there is none.
            LimitExceededError: it is larger than `size_bytes_max`; nothing was fetched.
        """

    def size(self, path: str) -> int:
        """Tell an object's length in bytes, or raise ObjectMissingError."""

    def exists(self, path: str) -> bool:
        """Tell whether there is an object of that name."""

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """All objects whose path starts with `prefix`, in order of path; never a partial list.

        Temporary files of writers that are under way or died are not objects.
        """

    def delete(self, path: str) -> None:
        """Remove an object; none of that name is no error."""

    def child(self, path: str) -> "Store":
        """The store whose root is `path` below this one."""

    def arrow_filesystem(self) -> tuple[Any, str]:
        """A `pyarrow.fs.FileSystem` for reading, and the prefix to put before our paths."""
