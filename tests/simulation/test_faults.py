"""Each fault does to a request exactly what its name says, and is counted."""

import random
from collections.abc import Callable, Iterator

import pytest

from lakebed.errors import LakebedError, ObjectExistsError, UnavailableError
from lakebed.storage.memory import MemoryStore
from lakebed.testing.faults import Fault, Faults, Interrupted
from lakebed.testing.faults_store import FaultyStore
from lakebed.testing.scheduler import Crash, RandomWalk, Scheduler, Workers
from lakebed.testing.scheduler_clock import EPOCH_MS, SimulatedClock, SimulatedIds, serial_of

PATH = "t/data/a"
STEP = "create data"


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    made = Workers()
    yield made
    made.close()


class World:
    """One actor, a store, and one fault that always fires."""

    def __init__(self, workers: Workers, *faults: Fault, rate: float = 1.0) -> None:
        chance = random.Random(3)
        self.scheduler = Scheduler(policy=RandomWalk(chance), workers=workers, chance=chance)
        self.faults = Faults(self.scheduler, chance, dict.fromkeys(faults, rate))
        self.clock = SimulatedClock(self.scheduler, self.faults.pause)
        self.faults.clocks["a"] = self.clock
        self.inner = MemoryStore(clock=self.clock)
        self.store = FaultyStore(self.inner, self.faults)

    def run(self, body: Callable[[], object]) -> BaseException | None:
        def whole() -> None:
            body()

        self.scheduler.run({"a": whole})
        return self.scheduler.actors[0].error

    def create(self) -> BaseException | None:
        return self.run(lambda: self.store.create(PATH, b"x"))


def test_without_faults_the_store_is_the_inner_one(workers: Workers) -> None:
    world = World(workers)
    assert world.create() is None
    assert world.inner.read(PATH, size_bytes_max=1) == b"x"
    assert not world.faults.counts


@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.LOST_REQUEST, Fault.FULL])
def test_a_request_that_never_arrives_leaves_nothing(workers: Workers, fault: Fault) -> None:
    world = World(workers, fault)
    assert isinstance(world.create(), UnavailableError)
    world.faults.settle()
    assert not world.inner.exists(PATH)
    assert world.faults.counts == {(STEP, fault): 1}


def test_a_lost_reply_leaves_the_effect(workers: Workers) -> None:
    world = World(workers, Fault.LOST_REPLY)
    assert isinstance(world.create(), UnavailableError)
    assert world.inner.exists(PATH)


def test_a_lost_refusal_is_no_answer_either(workers: Workers) -> None:
    world = World(workers, Fault.LOST_REPLY)
    world.inner.create(PATH, b"first")
    assert isinstance(world.create(), UnavailableError)


def test_a_refusal_is_passed_on(workers: Workers) -> None:
    world = World(workers)
    world.inner.create(PATH, b"first")
    assert isinstance(world.create(), ObjectExistsError)


def test_a_late_request_lands_at_a_later_point(workers: Workers) -> None:
    world = World(workers, Fault.LATE)

    def body() -> None:
        with pytest.raises(UnavailableError):
            world.store.create(PATH, b"x")
        assert not world.inner.exists(PATH)
        world.faults.rates = {}
        for _ in range(100):
            world.faults.point("wait")

    assert world.run(body) is None
    assert world.inner.exists(PATH)


def test_a_late_request_lands_when_trouble_ends_or_never(workers: Workers) -> None:
    landed = set()
    for seed in range(20):
        world = World(workers, Fault.LATE)
        world.create()
        world.faults.chance.seed(seed)
        world.faults.settle()
        landed.add(world.inner.exists(PATH))
    assert landed == {True, False}


@pytest.mark.parametrize(
    ("fault", "lands"), [(Fault.CRASH, False), (Fault.CRASH_AFTER, True), (Fault.INTERRUPT, False)]
)
def test_an_actor_dies_before_or_after_the_effect(
    workers: Workers, fault: Fault, lands: bool
) -> None:
    world = World(workers, fault)
    assert isinstance(world.create(), Interrupted if fault is Fault.INTERRUPT else Crash)
    assert world.inner.exists(PATH) is lands


def test_what_a_dead_actor_calls_has_no_effect(workers: Workers) -> None:
    world = World(workers, Fault.CRASH)

    def body() -> None:
        try:
            world.store.create(PATH, b"x")
        finally:
            world.faults.rates = {}
            world.store.delete("t/data/kept")

    world.inner.create("t/data/kept", b"x")
    assert isinstance(world.run(body), Crash)
    assert world.inner.exists("t/data/kept")


def test_a_client_that_dies_with_a_request_under_way_may_still_be_heard(workers: Workers) -> None:
    world = World(workers, Fault.LATE_CRASH)
    assert isinstance(world.create(), Crash)
    assert [late.step for late in world.faults.late] == [STEP]


def test_a_torn_create_all_stores_some(workers: Workers) -> None:
    world = World(workers, Fault.TORN)
    objects = [(f"t/data/{n}", b"x") for n in range(8)]
    assert isinstance(world.run(lambda: world.store.create_all(objects)), UnavailableError)
    assert 0 <= len(list(world.inner.list())) < 8


def test_a_full_disk_has_room_again_later(workers: Workers) -> None:
    world = World(workers, Fault.FULL)

    def body() -> None:
        with pytest.raises(UnavailableError):
            world.store.create(PATH, b"x")
        world.faults.rates = {}
        with pytest.raises(UnavailableError):
            world.store.create(PATH, b"x")
        for _ in range(40):
            world.faults.point("wait")
        world.store.create(PATH, b"x")

    world.scheduler.chance.seed(1)
    assert world.run(body) is None


def test_a_stale_listing_lacks_what_is_new_and_has_what_is_old(workers: Workers) -> None:
    world = World(workers, Fault.STALE)
    world.inner.create("t/old", b"")
    world.scheduler.now_ms += 10_000
    world.inner.create("t/new", b"")
    found: list[str] = []
    assert world.run(lambda: found.extend(info.path for info in world.store.list())) is None
    assert found == ["t/old"]


def test_a_clock_jumps_an_hour_and_time_that_only_grows_does_not(workers: Workers) -> None:
    world = World(workers, Fault.CLOCK_JUMP)
    assert world.create() is None
    assert abs(world.clock.now_ms() - EPOCH_MS) > 3_500_000
    assert world.clock.monotonic_ms() < 1_000


def test_other_threads_and_other_times_meet_no_faults(workers: Workers) -> None:
    world = World(workers, Fault.REFUSED)
    world.store.create(PATH, b"x")
    assert world.store.exists(PATH)


def test_the_fingerprint_tells_runs_apart(workers: Workers) -> None:
    prints = [World(workers), World(workers), World(workers, Fault.LOST_REPLY)]
    for world in prints:
        world.create()
    first, again, other = (world.faults.fingerprint() for world in prints)
    assert first == again != other


def test_errors_are_of_the_kind_that_the_caller_names(workers: Workers) -> None:
    world = World(workers, Fault.LOST_REPLY)

    def call() -> None:
        world.faults.call("x", lambda: None, menu=(Fault.LOST_REPLY,), unanswered=LakebedError)

    assert type(world.run(call)) is LakebedError


def test_ids_lead_back_to_their_operation(workers: Workers) -> None:
    world = World(workers)
    ids = SimulatedIds(world.clock, random.Random(1))
    drawn = []
    for serial in (1, 2, 65_535):
        ids.serial = serial
        drawn += [ids.new(), ids.new()]
    assert [serial_of(each) for each in drawn] == [1, 1, 2, 2, 65_535, 65_535]
    assert len(set(drawn)) == 6
    assert all(len(each) == 32 for each in drawn)
