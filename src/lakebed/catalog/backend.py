"""What the commit protocol needs from a catalog, and nothing more."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from lakebed.format.pointer import Action, Move, Outcome, Pointer, Token


class CatalogBackend(Protocol):
    """The place where one version of a table becomes the next.

    Linearizable: once `swap` has returned True, each later read from any process sees the new
    pointers or newer ones. A version is never reused, also not after drop and create: the
    table's id is part of the comparison. All methods may be called from several threads, and
    after a fork from the child (which opens its own connection). Executable form:
    `lakebed.testing.contract_catalog`.

    Every method may raise UnavailableError when the catalog did not answer and nothing was
    changed; only `create`, `drop`, `swap` and `restore` can leave an outcome open, and then they
    raise CommitUnknownError.
    """

    uri: str  # carries no password
    decides_by_snapshot: bool  # True: `swap` itself creates the snapshot file, put-if-absent
    multi_table: bool  # whether `swap` takes several moves
    keeps_log: bool  # whether `log` has rows

    def warehouse(self, given: str | None) -> str | None:
        """Say where the tables' directories are; remember `given` if nothing is remembered yet.

        `given` wins for this session and never replaces what is remembered. None: nobody ever
        said, and the backend has no place of its own.
        """

    def next_version(self, name: str) -> int:
        """The version at which a new table of that name begins.

        0, but for a catalog whose files are the versions: there a tombstone keeps its place.
        """

    def create(self, move: Move) -> None:
        """Enter a table: `move.new` has `next_version`; `move.expected` is not compared.

        Raises:
            AlreadyExistsError: the name is taken.
        """

    def restore(self, moves: Sequence[Move]) -> None:
        """Enter the whole history of one table, oldest first, in one transaction.

        The last one becomes the head, unless it is a tombstone.

        Raises:
            AlreadyExistsError: the name or the table id is known here.
            RequestError: the backend's files are the catalog, so there is nothing to restore.
        """

    def drop(self, move: Move) -> bool:
        """Forget the name if `move.expected` is still its head; log and history rows stay.

        `move.new` is the tombstone: one version more, operation "drop". Its commit and action
        rows land in the same transaction. False: as for `swap`.
        """

    def tables(self) -> list[str]:
        """The names of all tables, in order."""

    def load(self, name: str) -> Pointer:
        """Read the head of a table, or raise NotFoundError."""

    def swap(self, moves: Sequence[Move]) -> bool:
        """Make every step, if every `expected` (table id and version) is still the head.

        In the same transaction: the action rows, the tokens, the schema history, and the commit
        id, which is unique. False: somebody was first, or the commit id or token is already in
        the catalog; nothing was changed. A swap that was made and is sent again changes nothing
        either; a backend that knows it for its own may answer True.

        Raises:
            CommitUnknownError: the request may have been sent and no answer came.
        """

    def outcome(self, name: str, commit_id: str, *, since: int) -> Outcome:
        """Read the head and whether `commit_id` is in the name's history, in ONE atomic read.

        The commit id can only be in versions after `since`; a backend may look no further back.
        A name that is not there is no error: `Outcome.head` is None.
        """

    def find_commit(self, commit_id: str) -> list[Pointer]:
        """The version that a commit id made, for each table it touched; empty if none."""

    def find_token(self, pointer: Pointer, token: Token) -> Pointer | None:
        """The version that committed exactly this token, if any version did.

        Looks at the history of `pointer.table_id` up to now, which may be past `pointer`.
        """

    def last_token(self, pointer: Pointer, app: str) -> Token | None:
        """The highest token of `app` in the table."""

    def at_version(self, pointer: Pointer, version: int) -> Pointer:
        """One version of the table that `pointer` heads, or NotFoundError."""

    def at_time(self, pointer: Pointer, timestamp_ms: int) -> Pointer:
        """The last version not later than the moment, or NotFoundError."""

    def history(self, pointer: Pointer) -> Iterator[Pointer]:
        """Every version from `pointer` back to the table's first."""

    def log(
        self, pointer: Pointer, since: int = -1, until: int | None = None
    ) -> Iterator[tuple[int, int, Action]]:
        """(version, ordinal, action) of versions in (since, until], in order.

        A backend that keeps no log (the store) yields nothing: `keeps_log` is False.
        """

    def queue(self, names: Sequence[str]) -> AbstractContextManager[None]:
        """Wait in line for the sole right to swap these tables; advisory, never held for long.

        Within the block, `load` and `swap` work as usual and no other process's swap on these
        tables comes in between, where the backend can promise that. A backend without locks
        returns at once.
        """

    def close(self) -> None:
        """Release connections; the backend is not used afterwards."""
