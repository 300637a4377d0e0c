"""Proof by race that a store keeps the promises which commits stand on.

Some servers accept a conditional put and ignore the condition: two writers then both believe
that they made a version, and one of them loses its rows without a word. Asking is not enough, so
many threads try to create the same name at once, and exactly one of them may succeed.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from lakebed.clock import Clock, SystemClock
from lakebed.errors import (
    LakebedError,
    ObjectExistsError,
    ObjectMissingError,
    UnavailableError,
    UnsafeStoreError,
)
from lakebed.ids import Ids
from lakebed.storage.store import Store

PROBE_DIRECTORY = ".lakebed-probe"
PROBE_DURATION_MS_MAX = 60_000
_CONTENT_SIZE_BYTES_MAX = 1 << 10
_HINT = "Use another store, or a catalog in a database: `sqlite` or `postgres`"

_safe: set[str] = set()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreReport:
    """What the probe found; a check that could not be made counts as failed."""

    uri: str
    race_count: int  # names that several threads tried to create
    one_winner: bool  # each of them was created exactly once
    second_create_refused: bool
    first_content_kept: bool  # by the refused create
    read_after_write: bool
    listing_sees_it: bool
    size_is_right: bool
    delete_removes_it: bool
    cleaned_up: bool  # not counted: leftovers are harmless
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Tell whether commits are safe here."""
        return not self.problems


def probe_store(
    store: Store,
    *,
    ids: Ids,
    thread_count: int = 8,
    round_count: int = 10,
    clock: Clock | None = None,
) -> StoreReport:
    """Find out whether a store is safe; takes a second or so, at most about a minute.

    Raises:
        LakebedError: the store does not answer or refuses access, so nothing was found out.
    """
    clock = clock or SystemClock()
    place = store.child(PROBE_DIRECTORY)
    prefix = ids.new()  # other probes may be under way
    deadline_ms = clock.monotonic_ms() + PROBE_DURATION_MS_MAX
    try:
        checks = _check_one_object(place, ids, f"{prefix}-one")
        race_count = 0
        problems: list[str] = []
        # One bad round is proof enough: go on to the next one only while all is well.
        while race_count < round_count and not problems:
            left_ms = deadline_ms - clock.monotonic_ms()
            if left_ms <= 0 and race_count:
                break  # a slow store: the rounds so far must do
            problems += _race(
                place, ids, f"{prefix}-race-{race_count}", thread_count, max(left_ms, 1_000)
            )
            race_count += 1
    finally:
        is_clean = _clean_up(place, prefix)
    return StoreReport(
        uri=store.uri,
        race_count=race_count,
        one_winner=not problems,
        cleaned_up=is_clean,
        problems=(*(text for text, holds in _texts(checks) if not holds), *problems),
        **checks,
    )


def require_safe(store: Store, ids: Ids) -> None:
    """Raise UnsafeStoreError unless the probe succeeds; a success is remembered.

    A success counts for all that has the same `identity`: the server decides, not the prefix.
    """
    identity = str(getattr(store, "identity", store.uri))
    if identity in _safe:
        return
    # Fewer racers than a doctor's visit: some servers make losers wait for seconds.
    report = probe_store(store, ids=ids, thread_count=4, round_count=5)
    if not report.ok:
        raise UnsafeStoreError(
            f"{store.uri} is not safe for commits: {'; '.join(report.problems)}",
            hint=_HINT,
            problems=report.problems,
        )
    _safe.add(identity)


def _check_one_object(place: Store, ids: Ids, path: str) -> dict[str, bool]:
    first, second = ids.new().encode(), ids.new().encode() + b"-second"
    place.create(path, first)
    found = {
        "read_after_write": _read(place, path) == first,
        "size_is_right": place.size(path) == len(first),
        "listing_sees_it": [(i.path, i.size_bytes) for i in place.list(path)]
        == [(path, len(first))],
    }
    try:
        place.create(path, second)
        found["second_create_refused"] = False
    except ObjectExistsError:
        found["second_create_refused"] = True
    found["first_content_kept"] = _read(place, path) == first
    place.delete(path)
    found["delete_removes_it"] = not place.exists(path) and not list(place.list(path))
    return found


def _texts(checks: dict[str, bool]) -> list[tuple[str, bool]]:
    texts = {
        "read_after_write": "an object just created cannot be read back as it was",
        "size_is_right": "the size of an object is not what was written",
        "listing_sees_it": "an object just created is not in the listing",
        "second_create_refused": "a second create of the same name is not refused",
        "first_content_kept": "a second create of the same name changed the object",
        "delete_removes_it": "a deleted object is still there",
    }
    return [(texts[name], holds) for name, holds in checks.items()]


def _race(place: Store, ids: Ids, path: str, thread_count: int, timeout_ms: float) -> list[str]:
    """Let the threads create one name at once and say what was wrong with the outcome."""
    contents = [f"{ids.new()}-{each}".encode() for each in range(thread_count)]
    outcomes: list[LakebedError | None] = [UnavailableError("no answer in time")] * thread_count
    start = threading.Barrier(thread_count)

    def compete(each: int) -> None:
        try:
            start.wait(timeout_ms / 1000)
            place.create(path, contents[each])
        except LakebedError as error:
            outcomes[each] = error
        except threading.BrokenBarrierError:
            return  # a machine too busy to start them all: no answer
        else:
            outcomes[each] = None

    _run(compete, thread_count, timeout_ms)
    winners = [each for each, outcome in enumerate(outcomes) if outcome is None]
    unclear = [each for each in range(thread_count) if _is_unclear(outcomes[each])]
    if len(winners) > 1:
        return [f"{len(winners)} of {thread_count} writers created the same name"]
    stored = _read(place, path)
    possible = winners or unclear  # without an answer, the one who wrote it is the winner
    if not possible:
        return [f"none of {thread_count} writers created a name that was free"]
    if stored not in [contents[each] for each in possible]:
        return ["the object's content is not what its one creator wrote"]
    return []


def _run(task: Callable[[int], None], thread_count: int, timeout_ms: float) -> None:
    # Daemons, not a pool: a call that never returns must not keep the process alive.
    threads = [
        threading.Thread(target=task, args=(each,), daemon=True) for each in range(thread_count)
    ]
    for thread in threads:
        thread.start()
    clock = SystemClock()
    deadline_ms = clock.monotonic_ms() + timeout_ms
    for thread in threads:
        thread.join(max(0.0, deadline_ms - clock.monotonic_ms()) / 1000)


def _is_unclear(outcome: LakebedError | None) -> bool:
    return outcome is not None and not isinstance(outcome, ObjectExistsError)


def _read(place: Store, path: str) -> bytes | None:
    try:
        return place.read(path, size_bytes_max=_CONTENT_SIZE_BYTES_MAX)
    except ObjectMissingError:
        return None


def _clean_up(place: Store, prefix: str) -> bool:
    try:
        for info in list(place.list(prefix)):
            place.delete(info.path)
    except LakebedError:
        return False
    return True
