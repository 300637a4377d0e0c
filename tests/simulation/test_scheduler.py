"""The scheduler runs exactly one actor at a time, in an order that the seed alone decides."""

import random
from collections.abc import Callable, Iterator

import pytest

from lakebed.testing.scheduler import (
    Crash,
    Policy,
    PriorityChange,
    RandomWalk,
    Scheduler,
    Workers,
)

WALK = "walk"
PRIORITY = "priority"


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    made = Workers()
    yield made
    made.close()


def policy(name: str, chance: random.Random) -> Policy:
    if name == WALK:
        return RandomWalk(chance)
    return PriorityChange(chance, change_count=3, step_count=40)


def scheduler(workers: Workers, seed: int = 1, name: str = WALK) -> Scheduler:
    chance = random.Random(seed)
    return Scheduler(policy=policy(name, chance), workers=workers, chance=chance)


def steps(world: Scheduler, seen: list[str], name: str, count: int) -> Callable[[], None]:
    def body() -> None:
        for number in range(count):
            seen.append(f"{name}{number}")
            world.switch()

    return body


def order(workers: Workers, seed: int, name: str) -> list[str]:
    world = scheduler(workers, seed, name)
    seen: list[str] = []
    world.run({actor: steps(world, seen, actor, 10) for actor in "abc"})
    assert [actor.error for actor in world.actors] == [None] * 3
    return seen


@pytest.mark.parametrize("name", [WALK, PRIORITY])
def test_same_seed_gives_the_same_order(workers: Workers, name: str) -> None:
    orders = [order(workers, seed, name) for seed in (1, 2, 1, 2)]
    assert orders[:2] == orders[2:]
    assert orders[0] != orders[1]


@pytest.mark.parametrize("name", [WALK, PRIORITY])
def test_each_actor_makes_its_own_steps_in_order(workers: Workers, name: str) -> None:
    seen = order(workers, 7, name)
    for actor in "abc":
        assert [step for step in seen if step[0] == actor] == [f"{actor}{n}" for n in range(10)]


def test_a_random_walk_reaches_every_order_of_three_single_steps(workers: Workers) -> None:
    found = set()
    for seed in range(200):
        world = scheduler(workers, seed)
        seen: list[str] = []
        world.run({actor: steps(world, seen, actor, 1) for actor in "abc"})
        found.add("".join(step[0] for step in seen))
    assert len(found) == 6


def test_priority_change_lets_one_actor_get_far_ahead(workers: Workers) -> None:
    firsts = [[step[0] for step in order(workers, seed, PRIORITY)[:8]] for seed in range(20)]
    assert any(len(set(first)) == 1 for first in firsts)


def test_threads_are_reused_between_histories(workers: Workers) -> None:
    order(workers, 1, WALK)
    before = [worker.ident for worker in workers.take(3)]
    order(workers, 2, WALK)
    assert [worker.ident for worker in workers.take(3)] == before


def test_sleep_takes_no_real_time_and_wakes_in_order(workers: Workers) -> None:
    world = scheduler(workers)
    seen: list[str] = []

    def sleeper(name: str, duration_ms: float) -> Callable[[], None]:
        def body() -> None:
            world.sleep_ms(duration_ms)
            seen.append(name)

        return body

    hour_ms = 3_600_000.0
    world.run({"long": sleeper("long", 2 * hour_ms), "short": sleeper("short", hour_ms)})
    assert seen == ["short", "long"]
    assert world.now_ms >= 2 * hour_ms


def test_an_actor_that_waits_runs_only_when_it_is_ready(workers: Workers) -> None:
    for seed in range(20):
        world = scheduler(workers, seed)
        seen: list[str] = []

        def waits(world: Scheduler = world, seen: list[str] = seen) -> None:
            world.wait_until(lambda: "b4" in seen)
            seen.append("a")

        world.run({"a": waits, "b": steps(world, seen, "b", 6)})
        assert seen.index("a") > seen.index("b4")


def test_what_an_actor_raises_is_kept_and_the_others_go_on(workers: Workers) -> None:
    world = scheduler(workers)
    seen: list[str] = []

    def fails() -> None:
        world.switch()
        raise ValueError("mine")

    def dies() -> None:
        raise Crash

    world.run({"a": fails, "b": steps(world, seen, "b", 5), "c": dies})
    assert [type(actor.error) for actor in world.actors] == [ValueError, type(None), Crash]
    assert len(seen) == 5


def test_everybody_waiting_is_a_deadlock_and_ends(workers: Workers) -> None:
    world = scheduler(workers)
    world.run({name: lambda: world.wait_until(lambda: False) for name in "ab"})
    assert world.stopped_because.startswith("deadlock")


def test_going_on_for_ever_is_a_livelock_and_ends(workers: Workers) -> None:
    world = scheduler(workers)
    world.step_count_max = 100

    def body() -> None:
        while True:
            world.switch()

    world.run({"a": body, "b": body})
    assert world.stopped_because.startswith("livelock")
    assert world.step < 110
