"""A catalog that is nothing but files: version N+1 exists when its file could be created.

    <root>/.lakebed/tables/plant.readings                   the name was used, once
    <root>/plant.readings/metadata/snap-<version>.json      put-if-absent: the compare-and-swap

The store's conditional put is the only decision, so a store that breaks that promise is refused
before the first write. A dropped table leaves a tombstone as its last version, and the next table
of that name begins after it: no version is ever made twice.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress

from lakebed.catalog.absent import name_taken, no_moment, no_table, no_version
from lakebed.catalog.rows import check_distinct, check_step, is_tombstone
from lakebed.catalog.store_versions import Version, Versions
from lakebed.clock import Clock, SystemClock
from lakebed.errors import (
    BadTableError,
    CommitUnknownError,
    ObjectExistsError,
    RequestError,
    UnavailableError,
)
from lakebed.format.paths import check_path, snapshot_path
from lakebed.format.pointer import Action, Move, Outcome, Pointer, Token
from lakebed.ids import Ids
from lakebed.storage.doctor import require_safe
from lakebed.storage.store import Store

MARKERS = ".lakebed/tables/"
READ_BACK_ATTEMPT_COUNT = 4
READ_BACK_PAUSE_MS = 50


class StoreCatalog:
    """Tables in a store with no database; `location` of each is its name.

    A simulator, which has one thread, turns `probes` off: the probe is a race of threads.
    """

    decides_by_snapshot: bool = True
    multi_table: bool = False
    keeps_log: bool = False

    def __init__(
        self, store: Store, ids: Ids, clock: Clock | None = None, *, probes: bool = True
    ) -> None:
        self.uri: str = store.uri
        self._store = store
        self._ids = ids
        self._clock = clock or SystemClock()
        self._probes = probes
        self._lock = threading.Lock()
        self._names: dict[str, Versions] = {}

    def __repr__(self) -> str:
        return f"StoreCatalog({self.uri!r})"

    def warehouse(self, given: str | None) -> str:  # noqa: ARG002 - the files are the catalog
        """Say where the tables are: here, whatever was given."""
        return self._store.uri

    def next_version(self, name: str) -> int:
        """The version at which a new table of that name begins: after the last tombstone."""
        head = self._versions(name).head()
        return 0 if head is None else head.pointer.version + 1

    def create(self, move: Move) -> None:
        """Enter a table."""
        new = move.new
        versions = self._versions(new.name)
        head = versions.head()
        is_taken = head is not None and not is_tombstone(head.pointer)
        if is_taken or new.version != (0 if head is None else head.pointer.version + 1):
            raise name_taken(new.name)
        self._prepare_write()
        with suppress(ObjectExistsError):  # Of an earlier table, or of one that never came to be.
            self._store.create(MARKERS + check_path(new.name), b"")
        if not self._put(versions, move):
            raise name_taken(new.name)

    def restore(self, moves: Sequence[Move]) -> None:  # noqa: ARG002 - part of the contract
        """Refuse: the files are the catalog."""
        raise RequestError(
            f"{self.uri} has no catalog besides the files, so there is nothing to restore",
            hint="Open the tables as they are",
        )

    def drop(self, move: Move) -> bool:
        """Put the tombstone after the last version."""
        check_step(move)
        assert is_tombstone(move.new), "the last version says that it is the last"
        return self._step(move)

    def tables(self) -> list[str]:
        """The names of all tables, in order."""
        names = [info.path.removeprefix(MARKERS) for info in self._store.list(MARKERS)]
        return sorted(name for name in names if self._head(name) is not None)

    def load(self, name: str) -> Pointer:
        """Read the head of a table."""
        head = self._head(name)
        if head is None:
            raise no_table(name)
        return head

    def swap(self, moves: Sequence[Move]) -> bool:
        """Create the next version's file."""
        if len(moves) != 1:
            raise RequestError(
                f"{self.uri} cannot commit {len(moves)} tables at once",
                hint="Use a catalog in a database: `sqlite` or `postgresql`",
            )
        check_distinct(moves)
        return self._step(moves[0])

    def outcome(self, name: str, commit_id: str, *, since: int) -> Outcome:
        """Read the head, then the versions before it, which cannot change any more."""
        versions = self._versions(name)
        newest = versions.head()
        if newest is None:
            return Outcome(head=None)
        found = _search(versions, newest.pointer.version, commit_id, since=since)
        head = None if is_tombstone(newest.pointer) else newest.pointer
        return Outcome(head=head, committed=found)

    def find_commit(self, commit_id: str) -> list[Pointer]:
        """Search the versions of all names, the newest first."""
        found = []
        for info in self._store.list(MARKERS):
            versions = self._versions(info.path.removeprefix(MARKERS))
            head = versions.head()
            if head is not None:
                made = _search(versions, head.pointer.version, commit_id, since=-1)
                found += [] if made is None else [made]
        return found

    def find_token(self, pointer: Pointer, token: Token) -> Pointer | None:
        """The version that committed exactly this token; each look skips to an older one."""
        versions = self._versions(pointer.name)
        at = versions.last_of(pointer)
        while at is not None and at.pointer.table_id == pointer.table_id:
            found = versions.last_token(at, token.app)
            if found is None or found[0].version < token.version:
                return None
            if found[0].version == token.version:
                return self.at_version(pointer, found[1])
            at = versions.read(found[1] - 1) if found[1] else None
        return None

    def last_token(self, pointer: Pointer, app: str) -> Token | None:
        """The highest token of `app`."""
        versions = self._versions(pointer.name)
        last = versions.last_of(pointer)
        found = None if last is None else versions.last_token(last, app)
        return None if found is None else found[0]

    def at_version(self, pointer: Pointer, version: int) -> Pointer:
        """One version of the table."""
        found = self._versions(pointer.name).read(version) if version >= 0 else None
        if found is None or found.pointer.table_id != pointer.table_id:
            raise no_version(pointer, version)
        return found.pointer

    def at_time(self, pointer: Pointer, timestamp_ms: int) -> Pointer:
        """The last version not later than the moment, by halving."""
        versions = self._versions(pointer.name)
        last = versions.last_of(pointer)
        if last is None:
            raise no_table(pointer.name)
        low, high = versions.first_of(pointer), last.pointer.version + 1  # the answer: [low, high)
        if self.at_version(pointer, low).timestamp_ms > timestamp_ms:
            raise no_moment(pointer, timestamp_ms)
        while high - low > 1:
            middle = (low + high) // 2
            if self.at_version(pointer, middle).timestamp_ms <= timestamp_ms:
                low = middle
            else:
                high = middle
        return self.at_version(pointer, low)

    def history(self, pointer: Pointer) -> Iterator[Pointer]:
        """Every version from `pointer` back to the oldest that is there."""
        versions = self._versions(pointer.name)
        for version in range(pointer.version, -1, -1):
            found = versions.read(version)
            if found is None or found.pointer.table_id != pointer.table_id:
                return
            yield found.pointer

    def log(
        self,
        pointer: Pointer,  # noqa: ARG002 - part of the contract
        since: int = -1,  # noqa: ARG002
        until: int | None = None,  # noqa: ARG002
    ) -> Iterator[tuple[int, int, Action]]:
        """Nothing: what a version did is in its file."""
        return iter(())

    def queue(self, names: Sequence[str]) -> AbstractContextManager[None]:  # noqa: ARG002
        """Return at once: a store has no line to wait in."""
        return nullcontext()

    def close(self) -> None:
        """Nothing to release."""

    def _versions(self, name: str) -> Versions:
        with self._lock:
            found = self._names.get(name)
            if found is None:
                found = self._names[name] = Versions(self._store.child(check_path(name)), name)
            return found

    def _head(self, name: str) -> Pointer | None:
        newest = self._versions(name).head()
        return None if newest is None or is_tombstone(newest.pointer) else newest.pointer

    def _prepare_write(self) -> None:
        if self._probes:
            require_safe(self._store, self._ids)

    def _step(self, move: Move) -> bool:
        """Create the next version's file, if the expected one is there and is what it should be.

        Without that look a caller with a wrong idea could leave a hole between two versions.
        """
        versions = self._versions(move.new.name)
        expected = versions.read(move.expected.version)
        if expected is None or is_tombstone(expected.pointer):
            return False
        if expected.pointer.table_id != move.expected.table_id:
            return False
        if expected.pointer.commit_id == move.new.commit_id:
            return False
        if move.token is not None:
            last = versions.last_token(expected, move.token.app)
            if last is not None and last[0].version >= move.token.version:
                return False  # Tokens only grow: this one is there, or came too late.
        self._prepare_write()
        return self._put(versions, move)

    def _put(self, versions: Versions, move: Move) -> bool:
        """True: the file holds this move's version; False: it holds somebody else's."""
        new = move.new
        if new.location != new.name or new.snapshot_path != snapshot_path(new.version):
            raise RequestError(
                f"{self.uri} keeps each table in the directory of its name",
                hint="Leave `location` out, or use a catalog in a database",
                table=new.name,
            )
        mine = versions.decode(move.document, new.version)
        assert mine.pointer == new, "the document says what the pointer says"
        try:
            versions.store.create(new.snapshot_path, move.document)
        except ObjectExistsError:
            # Perhaps it is ours, sent before and landed late: that is no loss.
            found = versions.read(new.version)
            return found is not None and found.pointer.commit_id == new.commit_id
        except UnavailableError as error:
            found = self._read_back(versions, new.version)
            if found is None:
                raise CommitUnknownError(
                    f"no answer came to the commit of {new.name} ({error.message})",
                    hint="catalog.resolve tells whether it is in the table",
                    commit_id=new.commit_id,
                    table=new.name,
                    base_version=new.version - 1,
                ) from error
            return found.pointer.commit_id == new.commit_id
        versions.keep(mine)
        return True

    def _read_back(self, versions: Versions, version: int) -> Version | None:
        """Look for a file whose creation got no answer; None leaves it open."""
        for attempt in range(READ_BACK_ATTEMPT_COUNT):
            try:
                return versions.read(version)
            except UnavailableError:
                self._clock.sleep_ms(READ_BACK_PAUSE_MS << attempt)
            except BadTableError:
                return None
        return None


def _search(versions: Versions, newest: int, commit_id: str, *, since: int) -> Pointer | None:
    """The version in (since, newest] that a commit id made."""
    for version in range(newest, since, -1):
        found = versions.read(version)
        if found is None:
            return None  # Cleaned up, like all before it.
        if found.pointer.commit_id == commit_id:
            return found.pointer
    return None
