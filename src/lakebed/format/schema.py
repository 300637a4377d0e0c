"""A schema: named columns with ids that are never given twice."""

import re
from dataclasses import dataclass
from functools import cached_property

from lakebed.errors import BadMetadataError, IdentifierError, LimitExceededError, NotFoundError
from lakebed.format.types import Field, walk
from lakebed.limits import COLUMN_COUNT_MAX, IDENTIFIER_LENGTH_MAX

_CONTROL = re.compile(r"[\x00-\x1f\x7f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_NAME_PART = re.compile(r"[^\W\d]\w*(?:-\w+)*")


@dataclass(frozen=True)
class Schema:
    """The columns of a table at some time; `id` counts the table's schemas from 0."""

    id: int
    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        if len(self.fields) > COLUMN_COUNT_MAX:
            raise LimitExceededError(
                f"{len(self.fields)} columns are more than the {COLUMN_COUNT_MAX} allowed"
            )
        ids = [field.id for field in walk(self.fields)]
        if len(set(ids)) != len(ids) or any(i < 1 for i in ids):
            raise BadMetadataError(f"schema {self.id} has field ids that repeat or are below 1")
        folded = [field.name.casefold() for field in self.fields]
        if len(set(folded)) != len(folded):
            twice = sorted({name for name in folded if folded.count(name) > 1})
            raise BadMetadataError(f"schema {self.id} names {', '.join(twice)} more than once")

    @cached_property
    def by_id(self) -> dict[int, Field]:
        """Top-level columns by field id."""
        return {field.id: field for field in self.fields}

    @cached_property
    def by_name(self) -> dict[str, Field]:
        """Top-level columns by name."""
        return {field.name: field for field in self.fields}

    @cached_property
    def last_id(self) -> int:
        """The highest field id in use here, nested fields included."""
        return max((field.id for field in walk(self.fields)), default=0)

    def field(self, name: str) -> Field:
        """Find a column by its name."""
        found = self.by_name.get(name)
        if found is None:
            raise NotFoundError(
                f"there is no column {name!r}",
                hint=f"The columns are: {', '.join(self.by_name) or 'none'}",
                column=name,
            )
        return found


def check_column_name(name: str) -> str:
    """Return the name if it can be a column's; any text will do but control characters."""
    if not name or name != name.strip() or _CONTROL.search(name) or not _encodable(name):
        raise IdentifierError(
            f"{name!r} cannot be a column name",
            hint="Use text without control characters and without spaces at its ends",
        )
    return _check_length(name)


def check_table_name(name: str) -> str:
    """Return `namespace.table` if each part is a word: letters, digits, underscore, dash."""
    words = name.split(".")
    if not all(_NAME_PART.fullmatch(word) for word in words) or not _encodable(name):
        raise IdentifierError(
            f"{name!r} cannot be a table name",
            hint="Use words of letters, digits, '_' and '-' joined by dots, as in plant.readings",
        )
    if len(name.encode()) > IDENTIFIER_LENGTH_MAX:  # it becomes the name of a directory
        raise IdentifierError(
            f"the name {name[:40]!r}… has {len(name.encode())} bytes",
            hint=f"Use at most {IDENTIFIER_LENGTH_MAX}",
        )
    return name


def check_tag_name(name: str) -> str:
    """Return the name if it can be a tag's: not empty, not a number, no odd characters."""
    if not re.fullmatch(r"(?=.*[^\W\d])[\w.-]+", name):
        raise IdentifierError(
            f"{name!r} cannot be a tag",
            hint="Use letters, digits, '.', '_' and '-' with at least one letter",
        )
    return _check_length(name)


def _check_length(name: str) -> str:
    if len(name) > IDENTIFIER_LENGTH_MAX:
        raise IdentifierError(
            f"the name {name[:40]!r}… has {len(name)} characters",
            hint=f"Use at most {IDENTIFIER_LENGTH_MAX}",
        )
    return name


def _encodable(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
