"""Small worlds, searched completely: every order with few preemptions, every place of one fault.

    two writers, one order each  x  every schedule with at most N forced switches
                                 x  no fault, or one fault at its 1st, 2nd, 3rd … opportunity

Random histories are wide; this is deep. A bug that needs one bad moment cannot hide behind luck.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lakebed.testing.faults import Fault, Faults
from lakebed.testing.history import Kind
from lakebed.testing.scheduler import Actor, Workers
from lakebed.testing.simulate_run import Report, play
from lakebed.testing.simulate_setting import TABLES, Backend, Beginning, Order, Setting
from lakebed.testing.simulate_world import World

PLACED_FAULTS: tuple[Fault, ...] = (
    Fault.REFUSED,
    Fault.LOST_REQUEST,
    Fault.LOST_REPLY,
    Fault.LATE,
    Fault.LATE_CRASH,
    Fault.CRASH,
    Fault.CRASH_AFTER,
    Fault.INTERRUPT,
)


@dataclass(slots=True)
class Enumerated:
    """A policy that follows a list of choices, and notes what else there was to choose.

    Choice 0 goes on with the actor that ran last; another one, while that actor could go on, is a
    preemption, and there are only `preemption_count_max` of them.
    """

    choices: list[int]
    preemption_count_max: int
    options: list[int] = field(default_factory=list)
    _last: str = ""
    _preemption_count: int = 0

    def pick(self, runnable: Sequence[Actor]) -> Actor:
        """Take the next choice of the list, or go on."""
        others = [actor for actor in runnable if actor.name != self._last]
        can_go_on = len(others) < len(runnable)
        order = [actor for actor in runnable if actor.name == self._last] + others
        is_bound = can_go_on and self._preemption_count >= self.preemption_count_max
        place = len(self.options)
        self.options.append(1 if is_bound else len(order))
        choice = self.choices[place] if place < len(self.choices) else 0
        self._preemption_count += can_go_on and choice > 0
        self._last = order[choice].name
        return order[choice]

    def following(self) -> list[int] | None:
        """The choices of the next schedule, or None after the last one."""
        made = self.choices + [0] * (len(self.options) - len(self.choices))
        for place in range(len(self.options) - 1, -1, -1):
            if made[place] + 1 < self.options[place]:
                return [*made[:place], made[place] + 1]
        return None


@dataclass(slots=True)
class PlacedFaults(Faults):
    """Fires one fault once: at its n-th opportunity."""

    placed: Fault | None = None
    opportunity: int = 0
    has_fired: bool = False

    def fires(self, fault: Fault, step: str) -> bool:
        """Count the opportunities of the one fault."""
        if fault is not self.placed or self.has_fired:
            return False
        self.opportunity -= 1
        self.has_fired = self.opportunity < 0
        if self.has_fired:
            self.note_fault(step, fault)
        return self.has_fired


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """One small world: what its two writers do."""

    backend: Backend
    first: Kind
    second: Kind
    has_token: bool = False  # both writers use the same one

    def setting(self) -> Setting:
        """The world as the simulator knows it."""
        orders: dict[str, tuple[Order, ...]] = {}
        for number, kind in enumerate((self.first, self.second), start=1):
            order = Order(kind=kind, tables=TABLES[:1], key=1, number=1, has_token=self.has_token)
            orders[f"w{number}"] = (order,)
        return Setting(
            backend=self.backend,
            beginning=Beginning.FEW,
            tables=TABLES[:1],
            is_partitioned=False,
            is_serializable=True,
            is_whole=False,
            holds_line=False,
            walks=True,
            shares_app=True,
            look_count=0,
            attempt_count_max=16,
            answer_count_max=4,
            orders=orders,
        )


def every_schedule(
    scope: Scope,
    workers: Workers,
    *,
    preemption_count_max: int,
    placed: Fault | None = None,
    opportunity: int = 0,
) -> Iterator[Report]:
    """Run every schedule of a small world, each with the same fault."""
    choices: list[int] | None = []
    while choices is not None:
        policy = Enumerated(choices, preemption_count_max)
        world = World(0, scope.setting(), workers, policy=policy)
        world.faults = PlacedFaults(
            world.scheduler, world.chance, {}, placed=placed, opportunity=opportunity
        )
        yield play(world)
        choices = policy.following()


def every_place(scope: Scope, workers: Workers, *, preemption_count_max: int) -> Iterator[Report]:
    """Run every schedule with every single fault at every place where it can strike."""
    for fault in PLACED_FAULTS:
        opportunity = 0
        has_fired = True
        while has_fired:
            has_fired = False
            for report in every_schedule(
                scope,
                workers,
                preemption_count_max=preemption_count_max,
                placed=fault,
                opportunity=opportunity,
            ):
                has_fired = has_fired or bool(report.faults)
                yield report
            opportunity += 1
