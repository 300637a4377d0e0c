"""Every error the library raises on purpose, in one tree.

    LakebedError
    ├── RequestError                 what was asked cannot be done; nothing was changed
    │   ├── IdentifierError          a name of a table, column or tag
    │   ├── PredicateError           a `where` that cannot be read or does not fit the schema
    │   ├── SchemaMismatchError      rows or files that do not fit the table
    │   ├── NotFoundError            no such table, snapshot, tag
    │   ├── AlreadyExistsError       the name is taken
    │   └── TokenError               an exactly-once token out of order
    ├── CommitError
    │   ├── CommitConflictError      another commit came first and cannot be reconciled
    │   └── CommitUnknownError       the answer was lost; `catalog.resolve(commit_id)` tells
    ├── StorageError
    │   ├── ObjectExistsError        put-if-absent found the object there
    │   ├── ObjectMissingError       a file that should be there is not
    │   ├── UnavailableError         storage or catalog did not answer; try again
    │   └── UnsafeStoreError         the store breaks a promise that commits stand on
    └── BadTableError                what is on disk is not a sound table
        ├── BadMetadataError
        ├── BadDataFileError
        ├── LimitExceededError
        ├── UnsafePathError
        └── UnsupportedVersionError

The message is for people and ends with the next step; `fields` are for programs. Errors survive
pickling because Spark carries them from executors to the driver.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

__all__ = [
    "AlreadyExistsError",
    "BadDataFileError",
    "BadMetadataError",
    "BadTableError",
    "CommitConflictError",
    "CommitError",
    "CommitUnknownError",
    "IdentifierError",
    "LakebedError",
    "LimitExceededError",
    "NotFoundError",
    "ObjectExistsError",
    "ObjectMissingError",
    "PredicateError",
    "RequestError",
    "SchemaMismatchError",
    "StorageError",
    "TokenError",
    "UnavailableError",
    "UnsafePathError",
    "UnsafeStoreError",
    "UnsupportedVersionError",
]


class LakebedError(Exception):
    """Base of all errors; catch this to catch everything from the library."""

    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str = "", **fields: object) -> None:
        super().__init__(f"{message}. {hint}" if hint else message)
        self.message = message
        self.hint = hint
        self.fields = fields

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.hint, self.fields)


def _rebuild(
    kind: type[LakebedError], message: str, hint: str, fields: Mapping[str, object]
) -> LakebedError:
    return kind(message, hint=hint, **fields)


class RequestError(LakebedError):
    """What was asked for cannot be done; nothing was changed."""


class IdentifierError(RequestError):
    """A name that cannot be used for a table, a column or a tag."""


class PredicateError(RequestError):
    """A `where` that cannot be read, or that does not fit the table's schema."""


class SchemaMismatchError(RequestError):
    """Rows or files that do not fit the table's schema."""


class NotFoundError(RequestError):
    """There is no table, snapshot, version or tag of that name."""


class AlreadyExistsError(RequestError):
    """The name is taken."""


class TokenError(RequestError):
    """An exactly-once token that goes back behind one already committed."""


class CommitError(LakebedError):
    """A commit that did not, or may not, have taken effect."""


class CommitConflictError(CommitError):
    """Another commit came first and this one cannot be placed after it; nothing was changed."""

    retryable = True


class CommitUnknownError(CommitError):
    """The swap was sent and no answer came: the commit may be in the table or may yet be.

    `fields` carry `commit_id`, `table` and `base_version`. No file of the attempt was deleted.
    """

    @property
    def commit_id(self) -> str:
        """The id to hand to `catalog.resolve`."""
        return str(self.fields.get("commit_id", ""))


class StorageError(LakebedError):
    """Bytes could not be stored or fetched."""


class ObjectExistsError(StorageError):
    """Put-if-absent found an object of that name."""


class ObjectMissingError(StorageError):
    """A file that should be there is not."""


class UnavailableError(StorageError):
    """Storage or catalog did not answer; the same call may succeed later."""

    retryable = True


class UnsafeStoreError(StorageError):
    """The store breaks a promise that commits stand on."""


class BadTableError(LakebedError):
    """What is on disk is not a sound table."""


class BadMetadataError(BadTableError):
    """A metadata file or catalog row is damaged or contradicts itself."""


class BadDataFileError(BadTableError):
    """A data file is damaged, or is not what the manifest says it is."""


class LimitExceededError(BadTableError):
    """A file asks for more memory, depth or length than any sound table needs."""


class UnsafePathError(BadTableError):
    """A path that leads out of the table's own directory."""


class UnsupportedVersionError(BadTableError):
    """Written by a newer format than this library reads."""
