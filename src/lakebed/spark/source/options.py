"""The options of `format("lakebed")`: who may say what, and how it is read.

    all              catalog, warehouse, table (or the path of load and save), storage.<key>
    read             versionAsOf, timestampAsOf, tag, filter, columns, nanoseconds
    write            those of `lakebed.spark.write_options`
    stream, read     startingVersion, startingTimestamp, maxFilesPerTrigger, …
    stream, write    checkpointLocation, txnAppId, mergeSchema, eventTime, …

Spark brings names in small letters and never asks whether anybody knows them, so a name that
nobody reads is refused here: a misspelt `versionAsOf` would read the newest version.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import lru_cache

from lakebed.errors import NotFoundError, PredicateError, RequestError
from lakebed.expr.literals import parse_moment
from lakebed.table.catalog import Catalog
from lakebed.table.connect import reconnect
from lakebed.table.point import Point
from lakebed.table.services import Connection
from lakebed.table.table import Table

PLACE = ("catalog", "warehouse", "table", "path")
READ = ("versionAsOf", "timestampAsOf", "tag", "filter", "columns", "nanoseconds")
STREAM_READ = (
    "startingVersion",
    "startingTimestamp",
    "maxFilesPerTrigger",
    "maxBytesPerTrigger",
    "triggerAvailableNow",
    "readChangeFeed",
    "skipChangeCommits",
    "ignoreDeletes",
    "filter",
    "columns",
    "nanoseconds",
)
STREAM_WRITE = (
    "checkpointLocation",
    "txnAppId",
    "mergeSchema",
    "eventTime",
    "userMetadata",
    "partitionBy",
)
STORAGE = "storage."

_USES = {"read": READ, "read a stream": STREAM_READ, "write a stream": STREAM_WRITE}

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NS_PER_US = 1_000
_CATALOGS_KEPT = 8
_OUTSIDE_BRACKETS = re.compile(r",(?![^(]*\))")


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlace:
    """A table as another process finds it."""

    connection: Connection
    name: str

    def open(self) -> Table:
        """Open the table, or raise NotFoundError."""
        return self.catalog().table(self.name)

    def catalog(self) -> Catalog:
        """Open its catalog."""
        connection = self.connection
        keys = tuple(sorted(connection.storage_options.items()))
        return _catalog(connection.uri, connection.warehouse, keys)


@lru_cache(maxsize=_CATALOGS_KEPT)
def _catalog(uri: str, warehouse: str | None, keys: tuple[tuple[str, str], ...]) -> Catalog:
    """A catalog for as long as the process lives: Spark's workers do one task after the other."""
    connection = Connection(uri=uri, warehouse=warehouse, storage_options=dict(keys))
    return reconnect(connection)


@dataclass(frozen=True, slots=True)
class Given:
    """Options under their proper names, and what they are for."""

    purpose: str
    values: Mapping[str, str] = field(default_factory=dict)

    def text(self, name: str) -> str | None:
        """An option as it was given; None if it was not, or is empty."""
        return self.values.get(name) or None

    def flag(self, name: str) -> bool:
        """An option that is true or false; false if it was not given."""
        text = (self.text(name) or "false").lower()
        if text not in ("true", "false"):
            raise RequestError(f"{name} is {text!r}", hint="Use true or false", option=name)
        return text == "true"

    def number(self, name: str, *, least: int = 0) -> int | None:
        """An option that is a whole number."""
        text = self.text(name)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit()) or int(text) < least:
            raise RequestError(
                f"{name} is {text!r}", hint=f"Use a whole number from {least} up", option=name
            )
        return int(text)

    def names(self, name: str) -> list[str] | None:
        """An option that lists columns, or transforms of them: `ts, bucket(4, sensor)`."""
        text = self.text(name)
        if text is None:
            return None
        return [part.strip() for part in _OUTSIDE_BRACKETS.split(text)]

    def moment(self, name: str) -> datetime | None:
        """An option that is a time, in UTC unless it says otherwise."""
        text = self.text(name)
        if text is None:
            return None
        try:
            return _EPOCH + timedelta(microseconds=parse_moment(text).ns // _NS_PER_US)
        except (PredicateError, OverflowError) as error:
            raise RequestError(
                f"{name} is {text!r}, which is not a time",
                hint="Write it as in 2026-01-01T12:00:00Z",
                option=name,
            ) from error

    def one_of(self, *names: str) -> str | None:
        """Which of several options was given, of which only one may be."""
        found = [name for name in names if self.text(name) is not None]
        if len(found) > 1:
            raise RequestError(f"{' and '.join(found)} contradict each other", hint="Use one")
        return found[0] if found else None


def given(options: Mapping[str, str], known: Iterable[str], *, purpose: str) -> Given:
    """Bring options to their proper names.

    Args:
        options: as Spark has them, in small letters.
        known: the names that this purpose knows, besides those that say where the table is.
        purpose: for the error message: "read", "write".

    Raises:
        RequestError: an option is not known.
    """
    names = {name.lower(): name for name in (*PLACE, *known)}
    found = {}
    for key, value in options.items():
        lower = key.lower()
        if lower.startswith(STORAGE):
            continue
        if lower not in names:
            raise _unknown(key, names, purpose)
        found[names[lower]] = str(value)
    return Given(purpose, found)


def _unknown(key: str, names: Mapping[str, str], purpose: str) -> RequestError:
    close = get_close_matches(key.lower(), names, n=1)
    elsewhere = [use for use, known in _USES.items() if key.lower() in map(str.lower, known)]
    if elsewhere:
        hint = f"It is one to {elsewhere[0]}"
    elif close:
        hint = f"Did you mean {names[close[0]]}?"
    else:
        hint = f"There are {', '.join(names.values())} and {STORAGE}<key>"
    return RequestError(f"there is no option {key!r} to {purpose}", hint=hint, option=key)


def place_of(options: Mapping[str, str]) -> TablePlace:
    """Where the table is.

    Raises:
        RequestError: the catalog or the table is not named, or is in another process's memory.
    """
    lower = {key.lower(): str(value) for key, value in options.items()}
    uri, name, path = lower.get("catalog"), lower.get("table"), lower.get("path")
    if not uri:
        raise RequestError(
            "the catalog is not named",
            hint='Add .option("catalog", "sqlite:////lake/catalog.db") or another catalog\'s URI',
        )
    if name and path and name != path:
        raise RequestError(
            f"the table is named twice: {name} and {path}", hint="Name it once, as load(…) does"
        )
    if not (name or path):
        raise RequestError("the table is not named", hint='Name it: .load("plant.readings")')
    keys = {key[len(STORAGE) :]: value for key, value in lower.items() if key.startswith(STORAGE)}
    connection = Connection(uri=uri, warehouse=lower.get("warehouse") or None, storage_options=keys)
    if not connection.is_shared:
        raise RequestError(
            "a catalog in memory is in one process only, and Spark's workers are others",
            hint="Use SQLite, PostgreSQL, or a directory or bucket",
        )
    return TablePlace(connection=connection, name=name or path or "")


def options_of(table: Table) -> dict[str, str]:
    """The options that lead to a table that is open here."""
    connection = table.connection
    found = {"catalog": connection.uri, "table": table.name}
    if connection.warehouse is not None:
        found["warehouse"] = connection.warehouse
    for key, value in connection.storage_options.items():
        found[f"{STORAGE}{key}"] = str(value)
    place_of(found)
    return found


def point_of(said: Given, table: Table) -> Point | None:
    """The version that a read asks for; None if it asks for the newest."""
    which = said.one_of("versionAsOf", "timestampAsOf", "tag")
    if which == "versionAsOf":
        return said.number("versionAsOf")
    if which == "timestampAsOf":
        return said.moment("timestampAsOf")
    tag = said.text("tag")
    if tag is None:
        return None
    tags = table.metadata.tags
    if tag not in tags:
        known = ", ".join(sorted(tags)) or "none"
        raise NotFoundError(f"{table.name} has no tag {tag!r}", hint=f"The tags are: {known}")
    return tags[tag]


__all__ = [
    "PLACE",
    "READ",
    "STORAGE",
    "STREAM_READ",
    "STREAM_WRITE",
    "Given",
    "TablePlace",
    "given",
    "options_of",
    "place_of",
    "point_of",
]
