"""One thread per actor and one baton: real code, interleaved by a seed.

    actor ── calls store, catalog or clock ──► switch() ── policy picks ──► next actor
                                                  │
                                          exactly one thread runs

An actor is plain synchronous code. It stops only inside `switch`, `sleep_ms` or `wait_until`, so
the order of all steps is a function of the policy's choices and nothing else: same seed, same
run. Time is simulated and moves only when steps are made or everybody sleeps.
"""

import random
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Protocol

STEP_COUNT_MAX = 20_000  # a history takes a few hundred; more is a livelock
_HANG_SECONDS = 60.0


class Crash(BaseException):
    """The actor's process is gone: nothing it calls while unwinding has any effect."""


class Stopped(BaseException):
    """The whole history is being given up."""


@dataclass(slots=True, eq=False)
class Actor:
    """One process of the simulated world."""

    name: str
    worker: "Worker"
    body: Callable[[], None]
    wake_ms: float = 0.0
    ready: Callable[[], bool] | None = None  # what it waits for; None: nothing
    is_dead: bool = False
    is_done: bool = False
    error: BaseException | None = None


class Policy(Protocol):
    """Who runs next."""

    def pick(self, runnable: Sequence[Actor]) -> Actor:
        """Choose one of at least one actor; `runnable` is always in the same order."""


class RandomWalk:
    """Any actor next, each as likely as the other."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def pick(self, runnable: Sequence[Actor]) -> Actor:
        """Throw the dice."""
        return runnable[int(self._chance.random() * len(runnable))]


class PriorityChange:
    """The most important actor runs until, at a few random steps, it becomes the least important.

    Finds races of a given depth with a known chance, where a random walk rarely lets one actor
    get far ahead of the others.
    """

    def __init__(self, chance: random.Random, *, change_count: int, step_count: int) -> None:
        self._chance = chance
        self._changes = {chance.randrange(step_count) for _ in range(change_count)}
        self._step = 0
        self._lowest = 0.0
        self._ranks: dict[str, float] = {}

    def pick(self, runnable: Sequence[Actor]) -> Actor:
        """Take the highest rank, and lower it now and then."""
        best = max(runnable, key=self._rank)
        if self._step in self._changes:
            self._lowest -= 1.0
            self._ranks[best.name] = self._lowest
            best = max(runnable, key=self._rank)
        self._step += 1
        return best

    def _rank(self, actor: Actor) -> float:
        rank = self._ranks.get(actor.name)
        if rank is None:
            rank = self._ranks[actor.name] = self._chance.random()
        return rank


class Worker:
    """A parked thread that runs one actor after another; starting threads is the slow part."""

    def __init__(self) -> None:
        self.gate = threading.Lock()
        self.gate.acquire()
        self.job: Callable[[], None] | None = None
        self._thread = threading.Thread(target=self._work, daemon=True, name="lakebed-actor")
        self._thread.start()

    @property
    def ident(self) -> int | None:
        """The thread's identity."""
        return self._thread.ident

    def _work(self) -> None:
        while True:
            self.gate.acquire()
            job, self.job = self.job, None
            if job is None:
                return
            job()


class Workers:
    """The parked threads of one simulator; grows to the largest history and is then reused."""

    def __init__(self) -> None:
        self._parked: list[Worker] = []

    def take(self, count: int) -> list[Worker]:
        """The first `count` of them."""
        while len(self._parked) < count:
            self._parked.append(Worker())
        return self._parked[:count]

    def close(self) -> None:
        """Let the threads end."""
        for worker in self._parked:
            worker.gate.release()
        self._parked.clear()


class Caught:
    """Keeps whatever the body raised: an actor must hand on the baton, however it ends."""

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def __enter__(self) -> "Caught":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        self.error = error
        return True


@dataclass(slots=True)
class Scheduler:
    """Runs the actors of one history to their end."""

    policy: Policy
    workers: Workers
    chance: random.Random
    now_ms: float = 0.0
    step: int = 0
    step_count_max: int = STEP_COUNT_MAX
    current: Actor | None = None
    stopped_because: str = ""
    actors: list[Actor] = field(default_factory=list)
    _ended: threading.Lock = field(default_factory=threading.Lock)

    def run(self, bodies: Mapping[str, Callable[[], None]]) -> None:
        """Run each body as an actor and return when all have ended; `actors` tells how."""
        workers = self.workers.take(len(bodies))
        self.actors = [
            Actor(name, worker, body)
            for worker, (name, body) in zip(workers, bodies.items(), strict=True)
        ]
        for actor in self.actors:
            actor.worker.job = partial(self._live, actor)
        self._ended.acquire()
        first = self.current = self._pick()
        assert first is not None, "a history has at least one actor"
        first.worker.gate.release()
        if not self._ended.acquire(timeout=_HANG_SECONDS):
            name = self.current.name if self.current else "nobody"
            raise RuntimeError(f"{name} has held the baton for {_HANG_SECONDS} s: a real deadlock")
        self._ended.release()
        self.current = None

    def is_mine(self) -> bool:
        """Whether the calling thread is the actor that has the baton.

        False for a library's own threads and before and after the history: they do not switch.
        """
        current = self.current
        return current is not None and current.worker.ident == threading.get_ident()

    def switch(self) -> None:
        """Let the policy choose who goes on; returns when this actor is chosen again."""
        me = self.current
        assert me is not None, "only an actor can switch"
        self._count()
        if self.stopped_because:
            raise Stopped(self.stopped_because)
        chosen = self._pick()
        if chosen is None:
            self._stop("deadlock: everybody waits")
            chosen = me
        if chosen is not me:
            self.current = chosen
            chosen.worker.gate.release()
            me.worker.gate.acquire()
        if self.stopped_because:
            raise Stopped(self.stopped_because)

    def sleep_ms(self, duration_ms: float) -> None:
        """Let simulated time pass for this actor."""
        me = self.current
        assert me is not None, "only an actor can sleep"
        me.wake_ms = self.now_ms + duration_ms
        self.switch()

    def wait_until(self, ready: Callable[[], bool]) -> None:
        """Switch until `ready()`; what it asks must change only through other actors' steps."""
        me = self.current
        assert me is not None, "only an actor can wait"
        me.ready = ready
        self.switch()
        me.ready = None

    def _count(self) -> None:
        self.step += 1
        self.now_ms += self.chance.random() * 4
        if self.step > self.step_count_max:
            self._stop(f"livelock: more than {self.step_count_max} steps")

    def _stop(self, reason: str) -> None:
        self.stopped_because = self.stopped_because or reason
        for actor in self.actors:
            actor.ready, actor.wake_ms = None, 0.0

    def _pick(self) -> Actor | None:
        waiting = [actor for actor in self.actors if not actor.is_done]
        able = [actor for actor in waiting if actor.ready is None or actor.ready()]
        if not able:
            return None
        now_ms = self.now_ms
        awake = [actor for actor in able if actor.wake_ms <= now_ms]
        if not awake:
            self.now_ms = min(actor.wake_ms for actor in able)
            awake = [actor for actor in able if actor.wake_ms <= self.now_ms]
        return awake[0] if len(awake) == 1 else self.policy.pick(awake)

    def _live(self, actor: Actor) -> None:
        """The whole life of an actor, on its worker's thread."""
        with Caught() as caught:
            if not self.stopped_because:
                actor.body()
        actor.error = caught.error
        actor.is_done = True
        following = self._pick()
        if following is None and not all(each.is_done for each in self.actors):
            self._stop("deadlock: everybody waits")
            following = self._pick()
        if following is None:
            self._ended.release()
            return
        self.current = following
        following.worker.gate.release()
