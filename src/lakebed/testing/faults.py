"""What can go wrong between a client and a store or catalog, drawn from a seed.

    client ──► point ──► request ──► effect ──► point ──► reply ──► client
                 │          │           │          │         │
               crash     refused,     late:      crash     lost
             interrupt     lost     at a later           (lost-reply)
                                      point

Every fault that fires is counted by (step, fault): a simulator that never reached a state has
proven nothing about it. The trace of all that happened is the fingerprint of a run.
"""

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from lakebed.errors import LakebedError, UnavailableError
from lakebed.testing.scheduler import Actor, Crash, Scheduler
from lakebed.testing.scheduler_clock import SimulatedClock

_Result = TypeVar("_Result")

HOUR_MS = 3_600_000
_FULL_STEP_COUNT_MAX = 30


class Fault(StrEnum):
    """The kinds of faults; the values are printed in counters and traces."""

    REFUSED = "refused"  # an error at once: nothing was done, and nothing will be
    LOST_REQUEST = "lost-request"  # no answer: it never arrived
    LOST_REPLY = "lost-reply"  # no answer: it took effect
    LATE = "late"  # no answer: it takes effect at some later point, or never
    LATE_CRASH = "late-crash"  # the client dies while its request is under way
    TORN = "torn"  # of several objects some were stored
    FULL = "full"  # no room, for a while
    STALE = "stale"  # a listing that lacks the newest objects
    CRASH = "crash"  # the process dies at this call, before it
    CRASH_AFTER = "crash-after"  # … after it took effect, before the reply
    INTERRUPT = "interrupt"  # the user stops it: unlike after a crash, clean-up code runs
    CLOCK_JUMP = "clock-jump"  # an hour forth or back


class Interrupted(KeyboardInterrupt):
    """A user's Ctrl-C at a point of the simulator's choice."""


READ: tuple[Fault, ...] = (Fault.REFUSED,)
WRITE: tuple[Fault, ...] = (
    Fault.REFUSED,
    Fault.LOST_REQUEST,
    Fault.LOST_REPLY,
    Fault.LATE,
    Fault.LATE_CRASH,
)


@dataclass(frozen=True, slots=True)
class _Late:
    """A request that is still under way though its client has given up."""

    step: str
    effect: Callable[[], object]


@dataclass(slots=True)
class Faults:
    """The injector of one history: wrappers of store, catalog and clock ask it at each call.

    `rates` gives the chance of each fault per call where it is possible; a fault without a rate
    never fires.
    """

    scheduler: Scheduler
    chance: random.Random
    rates: dict[Fault, float]
    counts: Counter[tuple[str, Fault]] = field(default_factory=Counter)
    steps: Counter[str] = field(default_factory=Counter)
    trace: list[str] = field(default_factory=list)
    clocks: dict[str, SimulatedClock] = field(default_factory=dict)
    is_on: bool = True
    full_until: int = -1
    late: list[_Late] = field(default_factory=list)

    def call(
        self,
        step: str,
        effect: Callable[[], _Result],
        *,
        menu: Sequence[Fault],
        unanswered: Callable[[str], LakebedError] = UnavailableError,
    ) -> _Result:
        """Make one request of the code under test, or what becomes of it."""
        if not self.is_on or not self.scheduler.is_mine():
            return effect()
        self.point(step)
        fault = self.draw(step, menu)
        if fault is Fault.REFUSED or fault is Fault.FULL:
            raise UnavailableError(f"simulated: {step} was {fault.value}")
        if fault is Fault.LOST_REQUEST:
            raise unanswered(f"simulated: {step} never arrived")
        if fault is Fault.LATE or fault is Fault.LATE_CRASH:
            self.late.append(_Late(step, effect))
            if fault is Fault.LATE_CRASH:
                self._kill()
            raise unanswered(f"simulated: {step} is under way")
        if menu is READ:
            return effect()
        return self._answer(step, effect, fault, unanswered)

    def point(self, step: str) -> None:
        """A place where others may run, late requests land, and this actor may die."""
        actor = self.scheduler.current
        assert actor is not None, "points are passed by actors"
        if actor.is_dead:
            raise Crash
        self.steps[step] += 1
        self.trace.append(f"{self.scheduler.step} {actor.name} {step}")
        self.scheduler.switch()
        while self.late and self.chance.random() < 0.2:
            self.land(self.late.pop(int(self.chance.random() * len(self.late))))
        if self.fires(Fault.CLOCK_JUMP, step):
            self.clocks[actor.name].skew_ms += HOUR_MS if self.chance.random() < 0.5 else -HOUR_MS
        if self.fires(Fault.CRASH, step):
            self._kill()
        if self.fires(Fault.INTERRUPT, step):
            raise Interrupted

    def draw(self, step: str, menu: Sequence[Fault]) -> Fault | None:
        """Choose at most one fault of the menu; a full disk stays full for a while."""
        if self.full_until >= self.scheduler.step and Fault.FULL in menu:
            self.note_fault(step, Fault.FULL)
            return Fault.FULL
        for fault in menu:
            if self.fires(fault, step):
                if fault is Fault.FULL:
                    room = self.chance.randrange(1, _FULL_STEP_COUNT_MAX)
                    self.full_until = self.scheduler.step + room
                return fault
        return None

    def land(self, request: _Late) -> None:
        """Let a late request take effect; nobody hears what came of it."""
        self.trace.append(f"{self.scheduler.step} landed {request.step}")
        with suppress(LakebedError):
            request.effect()

    def settle(self) -> None:
        """End all trouble: what is under way lands now or never, and later calls just work."""
        while self.late:
            request = self.late.pop(0)
            if self.chance.random() < 0.5:
                self.land(request)
        self.is_on = False

    def pause(self, duration_ms: float) -> None:
        """Sleep, for a clock of the code under test."""
        if not self.is_on or not self.scheduler.is_mine():
            return
        actor = self.scheduler.current
        assert actor is not None, "is_mine says so"
        if actor.is_dead:
            raise Crash
        self.scheduler.sleep_ms(duration_ms)
        self.point("sleep")

    def note(self, text: str) -> None:
        """Add a line of the caller's own to the trace."""
        actor = self.scheduler.current
        self.trace.append(f"{self.scheduler.step} {actor.name if actor else '-'} {text}")

    def fingerprint(self) -> str:
        """A hash over all that happened."""
        return hashlib.blake2b("\n".join(self.trace).encode(), digest_size=16).hexdigest()

    def fires(self, fault: Fault, step: str) -> bool:
        """Decide whether a fault strikes here, and count it if so."""
        rate = self.rates.get(fault)
        if rate is None or self.chance.random() >= rate:
            return False
        self.note_fault(step, fault)
        return True

    def note_fault(self, step: str, fault: Fault) -> None:
        """Count a fault and leave it in the trace."""
        self.counts[step, fault] += 1
        self.note(f"{step} ** {fault.value}")

    def _answer(
        self,
        step: str,
        effect: Callable[[], _Result],
        fault: Fault | None,
        unanswered: Callable[[str], LakebedError],
    ) -> _Result:
        result: _Result | LakebedError
        try:
            result = effect()
        except LakebedError as error:
            result = error
        self.scheduler.switch()
        if fault is Fault.LOST_REPLY:
            raise unanswered(f"simulated: the reply to {step} was lost")
        if self.fires(Fault.CRASH_AFTER, step):
            self._kill()
        if isinstance(result, LakebedError):
            raise result
        return result

    def _kill(self) -> None:
        actor: Actor | None = self.scheduler.current
        assert actor is not None, "an actor made the call"
        actor.is_dead = True
        raise Crash
