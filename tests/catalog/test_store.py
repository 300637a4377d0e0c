"""The store catalog: a lost answer is read back, a head is found in few requests, files rule."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from lakebed.catalog.store import MARKERS, StoreCatalog
from lakebed.errors import (
    BadMetadataError,
    CommitUnknownError,
    NotFoundError,
    ObjectMissingError,
    RequestError,
    UnavailableError,
    UnsafeStoreError,
)
from lakebed.format.paths import snapshot_path
from lakebed.format.pointer import Token
from lakebed.ids import SystemIds
from lakebed.storage.memory import MemoryStore
from lakebed.storage.store import ObjectInfo
from lakebed.testing.moves import create, drop, first_move, grow, next_move

IDS = SystemIds()


class NoWait:
    """A clock that counts the waits and does not wait."""

    def __init__(self) -> None:
        self.sleep_count = 0

    def now_ms(self) -> int:
        return 0

    def monotonic_ms(self) -> float:
        return 0.0

    def sleep_ms(self, duration_ms: float) -> None:
        self.sleep_count += 1


@dataclass
class Faults:
    """What a store and its children lose: the request, the answer, the next reads."""

    lost: str = ""
    unreadable_count: int = 0


class LossyStore(MemoryStore):
    """Loses what it is told to lose, and counts what it is asked."""

    def __init__(self) -> None:
        super().__init__(IDS.new())
        self.faults = Faults()
        self.calls: dict[str, int] = {}

    def create(self, path: str, data: bytes | memoryview) -> None:
        lost = self.faults.lost if "snap-" in path else ""
        if lost != "request":
            super().create(path, data)
        if lost:
            raise UnavailableError("no answer")

    def read(self, path: str, *, size_bytes_max: int) -> bytes:
        self._count("read")
        if self.faults.unreadable_count:
            self.faults.unreadable_count -= 1
            raise UnavailableError("no answer")
        return super().read(path, size_bytes_max=size_bytes_max)

    def exists(self, path: str) -> bool:
        self._count("exists")
        return super().exists(path)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        self._count("list")
        return super().list(prefix)

    def _count(self, name: str) -> None:
        self.calls[name] = self.calls.get(name, 0) + 1


@pytest.fixture
def store() -> LossyStore:
    return LossyStore()


@pytest.fixture
def catalog(store: LossyStore) -> StoreCatalog:
    return StoreCatalog(store, IDS, NoWait())


def test_a_put_whose_answer_was_lost_is_read_back_as_ours(
    catalog: StoreCatalog, store: LossyStore
) -> None:
    step = next_move(create(catalog, "t"))
    store.faults.lost = "answer"
    assert catalog.swap([step])
    assert catalog.load("t") == step.new


def test_a_put_whose_request_was_lost_is_unknown_until_sent_again(
    catalog: StoreCatalog, store: LossyStore
) -> None:
    base = create(catalog, "t")
    step = next_move(base)
    store.faults.lost = "request"
    with pytest.raises(CommitUnknownError) as caught:
        catalog.swap([step])
    assert caught.value.fields == {
        "commit_id": step.new.commit_id,
        "table": "t",
        "base_version": 0,
    }
    outcome = catalog.outcome("t", step.new.commit_id, since=0)
    assert (outcome.head, outcome.committed) == (base.new, None)
    store.faults.lost = ""
    assert catalog.swap([step])


def test_a_put_without_answer_is_lost_when_another_has_the_version(
    catalog: StoreCatalog, store: LossyStore
) -> None:
    base = create(catalog, "t")
    winner, loser = next_move(base), next_move(base)
    assert catalog.swap([winner])
    store.faults.lost = "request"
    assert not StoreCatalog(store, IDS, NoWait()).swap([loser])


def test_a_put_that_cannot_be_read_back_is_unknown(store: LossyStore) -> None:
    clock = NoWait()
    catalog = StoreCatalog(store, IDS, clock)
    step = next_move(create(catalog, "t"))
    store.faults.lost, store.faults.unreadable_count = "answer", 100
    with pytest.raises(CommitUnknownError):
        catalog.swap([step])
    assert clock.sleep_count > 1
    store.faults.lost, store.faults.unreadable_count = "", 0
    assert catalog.outcome("t", step.new.commit_id, since=0).committed == step.new


def test_a_read_that_fails_once_does_not_leave_the_outcome_open(
    catalog: StoreCatalog, store: LossyStore
) -> None:
    step = next_move(create(catalog, "t"))
    store.faults.lost, store.faults.unreadable_count = "answer", 2
    assert catalog.swap([step])


@pytest.mark.parametrize("lost", ["answer", "request"])
def test_a_create_without_answer_is_told_like_a_swap(
    catalog: StoreCatalog, store: LossyStore, lost: str
) -> None:
    move = first_move("t")
    store.faults.lost = lost
    if lost == "answer":
        catalog.create(move)
        assert catalog.load("t") == move.new
    else:
        with pytest.raises(CommitUnknownError):
            catalog.create(move)
        assert catalog.tables() == []


def test_a_late_put_of_ours_is_no_loss(catalog: StoreCatalog, store: LossyStore) -> None:
    """Sent, given up, landed after all: the same swap again finds its own file."""
    step = next_move(create(catalog, "t"))
    store.child("t").create(step.new.snapshot_path, step.document)
    assert catalog.swap([step])
    assert not catalog.swap([next_move(step, commit_id=step.new.commit_id)])


def test_a_head_is_found_with_few_questions(catalog: StoreCatalog, store: LossyStore) -> None:
    moves = grow(catalog, "t", 300)
    cold = StoreCatalog(store, IDS)
    counted(cold, store)
    assert cold.load("t") == moves[-1].new
    calls = dict(cold._versions("t").store.calls)  # type: ignore[attr-defined]
    assert calls.pop("read") == 1
    assert calls.pop("exists") <= 20  # 1 + 2 log2(300)
    assert calls == {}
    counted(cold, store)
    assert cold.load("t") == moves[-1].new
    assert cold._versions("t").store.calls == {"exists": 1}  # type: ignore[attr-defined]


def test_a_writer_that_knows_the_head_reads_nothing(
    catalog: StoreCatalog, store: LossyStore
) -> None:
    moves = grow(catalog, "t", 3)
    counted(catalog, store)
    assert catalog.swap([next_move(moves[-1])])
    assert catalog._versions("t").store.calls == {}  # type: ignore[attr-defined]


def test_a_table_whose_oldest_versions_are_gone_is_still_read(
    catalog: StoreCatalog, store: LossyStore
) -> None:
    moves = grow(catalog, "t", 40)
    place = store.child("t")
    for version in range(25):
        place.delete(snapshot_path(version))
    for name in ("metadata/snap-x.json", "metadata/snap-99.json", f"{snapshot_path(99)}.tmp"):
        place.create(name, b"not ours")
    cold = StoreCatalog(store, IDS)
    head = cold.load("t")
    assert head == moves[-1].new
    assert [past.version for past in cold.history(head)] == list(range(39, 24, -1))
    assert cold.at_time(head, moves[30].new.timestamp_ms) == moves[30].new
    assert cold.find_commit(moves[25].new.commit_id) == [moves[25].new]
    assert cold.find_commit(moves[24].new.commit_id) == []
    with pytest.raises(NotFoundError):
        cold.at_version(head, 24)
    with pytest.raises(NotFoundError):
        cold.at_time(head, moves[24].new.timestamp_ms)


def test_a_table_behind_one_that_was_cleaned_up_is_found(
    catalog: StoreCatalog, store: LossyStore
) -> None:
    """Between two tombstones nothing may be left; no version is made again for that."""
    drop(catalog, grow(catalog, "t", 4)[-1])
    second = grow(catalog, "t", 4)
    drop(catalog, second[-1])
    for move in second:
        store.child("t").delete(move.new.snapshot_path)
    cold = StoreCatalog(store, IDS)
    assert cold.next_version("t") == 10
    assert cold.tables() == []
    third = grow(cold, "t", 3)
    colder = StoreCatalog(store, IDS)
    assert colder.load("t") == third[-1].new
    assert list(colder.history(third[-1].new)) == [m.new for m in reversed(third)]
    assert colder.at_time(third[-1].new, third[1].new.timestamp_ms) == third[1].new


def test_tokens_that_left_the_snapshot_are_found_in_older_ones(catalog: StoreCatalog) -> None:
    """A snapshot carries the last token of a few writers only; then it says so."""
    step = next_move(create(catalog, "t"), token=Token("old", 4))
    first = step
    assert catalog.swap([step])
    for number in range(5):
        step = next_move(
            step,
            token=Token("new", number),
            tokens={"new": (number, step.new.version + 1)},
            tokens_complete=False,
        )
        assert catalog.swap([step])
    assert catalog.find_token(step.new, Token("old", 4)) == first.new
    assert catalog.last_token(step.new, "old") == Token("old", 4)
    assert catalog.find_token(step.new, Token("old", 3)) is None
    assert catalog.last_token(step.new, "never") is None
    assert not catalog.swap([next_move(step, token=Token("old", 4))])


def test_a_store_that_overwrites_is_refused_before_the_first_write() -> None:
    class Overwriting(MemoryStore):
        def create(self, path: str, data: bytes | memoryview) -> None:
            self.delete(path)
            super().create(path, data)

    store = Overwriting(IDS.new())
    catalog = StoreCatalog(store, IDS)
    with pytest.raises(UnsafeStoreError):
        catalog.create(first_move("t"))
    assert [info.path for info in store.list()] == []


def test_a_damaged_version_is_told_and_not_passed_over(
    catalog: StoreCatalog, store: LossyStore
) -> None:
    moves = grow(catalog, "t", 3)
    place = store.child("t")
    for content in (b"", moves[2].document[:-9], moves[1].document):
        place.delete(snapshot_path(2))
        place.create(snapshot_path(2), content)
        with pytest.raises(BadMetadataError):
            StoreCatalog(store, IDS).load("t")


def test_a_file_that_vanishes_while_in_use_is_told(
    catalog: StoreCatalog, store: LossyStore
) -> None:
    grow(catalog, "t", 3)
    fresh = StoreCatalog(store, IDS)
    fresh._versions("t")._newest = 7
    with pytest.raises(BadMetadataError, match="deletes"):
        fresh.load("t")


def test_a_name_without_versions_is_no_table(catalog: StoreCatalog, store: LossyStore) -> None:
    """Its writer died between the marker and the first version."""
    store.create(MARKERS + "t", b"")
    assert catalog.tables() == []
    assert catalog.find_commit("0" * 32) == []
    move = create(catalog, "t")
    assert catalog.load("t") == move.new


def test_the_next_table_of_a_name_begins_after_the_tombstone(
    catalog: StoreCatalog, store: LossyStore
) -> None:
    tombstone = drop(catalog, grow(catalog, "t", 3)[-1])
    assert catalog.next_version("t") == tombstone.new.version + 1 == 4
    again = create(catalog, "t")
    assert StoreCatalog(store, IDS).load("t") == again.new
    assert [info.path for info in store.list(MARKERS)] == [MARKERS + "t"]


def test_a_table_elsewhere_is_refused(catalog: StoreCatalog, store: LossyStore) -> None:
    move = first_move("t")
    new = replace(move.new, location="s3://elsewhere/t")
    with pytest.raises(RequestError, match="directory of its name"):
        catalog.create(replace(move, new=new, expected=new))
    assert catalog.tables() == []
    with pytest.raises(ObjectMissingError):
        store.read("t/" + snapshot_path(0), size_bytes_max=1 << 20)


def counted(catalog: StoreCatalog, store: LossyStore) -> None:
    """Begin to count anew what the catalog asks of the table's part of the store."""
    place = catalog._versions("t").store
    assert isinstance(place, LossyStore)
    place.calls = {}
