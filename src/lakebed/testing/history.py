"""What happened in one simulated history, as its actors saw it; plain values for the oracle.

Moments are ticks of one counter, so that "A had ended before B began" can be told. Rows are
tuples `(key, serial, number)`: the key is what predicates select by, the rest makes them unique.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class Row(NamedTuple):
    """One row: unique in its history."""

    key: int
    serial: int
    number: int


class Kind(StrEnum):
    """What a writer wanted."""

    CREATE = "create"  # a table that others want to create too
    APPEND = "append"
    OVERWRITE = "overwrite"  # of files that it saw
    REWRITE = "rewrite"  # of files that it saw: other files, same rows
    DELETE = "delete"  # of the rows with one key
    REPLACE = "replace"  # of the rows with one key, by others
    TAG = "tag"
    EVOLVE = "evolve"
    ROLLBACK = "rollback"


class Result(StrEnum):
    """What the writer was told."""

    COMMITTED = "committed"
    IDLE = "idle"  # there was nothing to do: `versions` tells where
    FAILED = "failed"  # a definite no
    UNKNOWN = "unknown"  # the answer was lost, and this was said
    ABANDONED = "abandoned"  # the writer died before it was told anything


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What an attempt wanted of one table."""

    rows: frozenset[Row] = frozenset()  # to be added
    removed: frozenset[str] = frozenset()  # files to be removed
    key: int | None = None  # rows to be removed, where files are not named
    target: int | None = None  # the version to go back to
    name: str = ""  # of the tag or column


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """An answer to "what became of this commit?": versions by table, empty for "nothing"."""

    commit_id: str
    versions: dict[str, int]
    is_final: bool  # False: it may still land


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One call that meant to change tables; `serial` is in each id drawn during the call."""

    serial: int
    actor: str
    kind: Kind
    parts: dict[str, Part]  # by table
    token: tuple[str, int] | None = None
    began: int = 0
    ended: int | None = None
    result: Result = Result.ABANDONED
    reason: str = ""
    commit_id: str = ""
    versions: dict[str, int] = field(default_factory=dict)  # by table, when committed or idle
    is_repeated: bool = False  # the token had been committed by an earlier attempt
    claims: list[Claim] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One read: which files, or which rows, of which version."""

    actor: str
    incarnation: int
    table: str
    began: int
    ended: int
    version: int
    files: frozenset[str] | None = None
    rows: tuple[Row, ...] | None = None
    is_past: bool = False  # an old version was asked for


@dataclass(slots=True)
class History:
    """All that the actors of one run did and saw."""

    is_serializable: bool = False  # the tables' isolation level
    attempts: dict[int, Attempt] = field(default_factory=dict)
    looks: list[Look] = field(default_factory=list)
    _now: int = 0
    _last_serial: int = 0

    def tick(self) -> int:
        """The next moment."""
        self._now += 1
        return self._now

    def begin(
        self, actor: str, kind: Kind, parts: dict[str, Part], token: tuple[str, int] | None = None
    ) -> Attempt:
        """Enter an attempt that is about to be made, before anybody can see its effect."""
        self._last_serial += 1
        attempt = Attempt(
            serial=self._last_serial,
            actor=actor,
            kind=kind,
            parts=parts,
            token=token,
            began=self.tick(),
        )
        self.attempts[attempt.serial] = attempt
        return attempt

    def next_serial(self) -> int:
        """The serial number that `begin` will give next."""
        return self._last_serial + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One version as it is in the store, read without the product's code."""

    version: int
    snapshot_id: int
    parent_id: int | None
    table_id: str
    commit_id: str
    serial: int  # of the attempt that made it; 0: from before the history
    timestamp_ms: int
    operation: str
    files: frozenset[str]
    duplicates: tuple[str, ...] = ()  # files that are listed twice
    needs: frozenset[str] = frozenset()  # every object without which it cannot be read
    token: tuple[str, int] | None = None
    tags: frozenset[str] = frozenset()
    columns: tuple[str, ...] = ()
    summary: tuple[int, int, int] = (0, 0, 0)  # files added, removed, there


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The state after a history, when all trouble is over."""

    chains: dict[str, list[Link]]  # by table, oldest first
    rows: dict[str, tuple[Row, ...]]  # what each file holds, by path within the table
    present: frozenset[str]  # every object of the store, by `table/path`
    heads: dict[str, tuple[int, str]]  # what the catalog says: version and commit id
    told: dict[str, list[tuple[int, str]]]  # what the product says of all versions, oldest first
