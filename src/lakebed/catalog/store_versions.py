"""The versions of one name as files: found without a listing, read once, kept because immutable.

    snap-0 … snap-7   one table
    snap-8            its tombstone
    snap-9 …          another table

N+1 is created only by one who has seen N, and cleaning up starts at the oldest version of a table
and spares tombstones. So what is missing is missing at the very beginning or right after a
tombstone, and only there a listing is needed.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from lakebed.catalog.rows import is_tombstone
from lakebed.errors import BadMetadataError, ObjectMissingError
from lakebed.format.paths import snapshot_path
from lakebed.format.pointer import Pointer, Token
from lakebed.format.snapshot import decode_snapshot
from lakebed.limits import JSON_SIZE_BYTES_MAX
from lakebed.storage.store import Store

KEPT_COUNT_MAX = 4_096  # versions kept per name: a few hundred bytes each

_PREFIX = snapshot_path(0)[:-25]
assert snapshot_path(0) == f"{_PREFIX}{0:020d}.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """What the catalog needs of one snapshot file."""

    pointer: Pointer
    tokens: dict[str, tuple[int, int]]  # app -> its last token, the version that has it
    tokens_complete: bool


class Versions:
    """All files of one name; safe to use from several threads."""

    def __init__(self, store: Store, name: str) -> None:
        self.store = store
        self._name = name
        self._lock = threading.Lock()
        self._kept: dict[int, Version] = {}
        self._newest = -1  # a version that is there for sure; -1: none is known

    def read(self, version: int) -> Version | None:
        """One version, or None if there is no such file."""
        with self._lock:
            kept = self._kept.get(version)
        if kept is not None:
            return kept
        path = snapshot_path(version)
        try:
            content = self.store.read(path, size_bytes_max=JSON_SIZE_BYTES_MAX)
        except ObjectMissingError:
            return None
        found = self.decode(content, version)
        self.keep(found)
        return found

    def decode(self, document: bytes, version: int) -> Version:
        """Turn the content of a version's file into what is needed of it."""
        path = snapshot_path(version)
        snapshot = decode_snapshot(document, path)
        if snapshot.version != version:
            raise BadMetadataError(f"{path} holds version {snapshot.version}", path=path)
        tokens = dict(snapshot.tokens)
        if snapshot.token is not None:
            tokens[snapshot.token.app] = snapshot.token.version, version
        pointer = Pointer(
            name=self._name,
            table_id=snapshot.table_id,
            location=self._name,
            version=version,
            snapshot_id=snapshot.snapshot_id,
            snapshot_path=path,
            commit_id=snapshot.commit_id,
            timestamp_ms=snapshot.timestamp_ms,
            operation=snapshot.operation.value,
        )
        return Version(pointer=pointer, tokens=tokens, tokens_complete=snapshot.tokens_complete)

    def keep(self, found: Version) -> None:
        """Remember a version that is there."""
        with self._lock:
            while len(self._kept) >= KEPT_COUNT_MAX:
                del self._kept[next(iter(self._kept))]  # the one read longest ago
            self._kept[found.pointer.version] = found
            self._newest = max(self._newest, found.pointer.version)

    def head(self) -> Version | None:
        """The newest version, or None if there never was one.

        It was the newest at the moment when the file after it was found absent.
        """
        with self._lock:
            newest = self._newest
        if newest < 0:
            newest = self._cold_start()
            if newest < 0:
                return None
        found = self._last_from(newest)
        if found is not None and is_tombstone(found.pointer):
            listed = self._listed()
            if listed > found.pointer.version:
                found = self._last_from(listed)
        if found is None:
            raise BadMetadataError(
                f"the newest version of {self._name} was there a moment ago",
                hint="Somebody deletes metadata files of a table in use",
                table=self._name,
            )
        return found

    def first_of(self, pointer: Pointer) -> int:
        """The oldest version there is of the pointer's table."""
        low, high = -1, pointer.version  # the answer is in (low, high]
        while high - low > 1:
            middle = (low + high) // 2
            if self._is_of(middle, pointer.table_id):
                high = middle
            else:
                low = middle
        return high

    def last_of(self, pointer: Pointer) -> Version | None:
        """The newest version of the pointer's table, which may have been dropped since."""
        head = self.head()
        if head is None or head.pointer.table_id == pointer.table_id:
            return head
        if not self._is_of(pointer.version, pointer.table_id):
            return None
        low, high = pointer.version, head.pointer.version  # the answer is in [low, high)
        while high - low > 1:
            middle = (low + high) // 2
            if self._is_of(middle, pointer.table_id):
                low = middle
            else:
                high = middle
        return self.read(low)

    def last_token(self, since: Version, app: str) -> tuple[Token, int] | None:
        """The last token of `app` not after a version, and the version that has it."""
        table_id = since.pointer.table_id
        at: Version | None = since
        while at is not None and at.pointer.table_id == table_id:
            found = at.tokens.get(app)
            if found is not None:
                return Token(app, found[0]), found[1]
            if at.tokens_complete:
                return None
            at = self.read(at.pointer.version - 1) if at.pointer.version else None
        return None

    def _last_from(self, version: int) -> Version | None:
        """The last version in the row that a version which is there belongs to."""
        return self.read(_last(version, lambda each: self.store.exists(snapshot_path(each))))

    def _is_of(self, version: int, table_id: str) -> bool:
        found = self.read(version)
        return found is not None and found.pointer.table_id == table_id

    def _cold_start(self) -> int:
        """Some version that is there; version 0 unless it has been cleaned up."""
        return 0 if self.store.exists(snapshot_path(0)) else self._listed()

    def _listed(self) -> int:
        """The newest version in a listing, which takes a request for each thousand of them."""
        newest = -1
        for info in self.store.list(_PREFIX):
            digits = info.path.removeprefix(_PREFIX).removesuffix(".json")
            if digits.isascii() and digits.isdigit() and info.path == snapshot_path(int(digits)):
                newest = max(newest, int(digits))
        return newest


def _last(known: int, is_there: Callable[[int], bool]) -> int:
    """The last number that is there, by galloping and halving: O(log) questions."""
    step = 1
    while is_there(known + step):
        known += step
        step *= 2
    low, high = known, known + step  # low is there, high is not
    while high - low > 1:
        middle = (low + high) // 2
        if is_there(middle):
            low = middle
        else:
            high = middle
    return low
