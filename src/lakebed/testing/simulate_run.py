"""One history from its seed to its verdict."""

import random
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from lakebed.limits import COMMIT_ATTEMPT_COUNT_MAX
from lakebed.testing.faults import Fault
from lakebed.testing.history import Kind, Result
from lakebed.testing.oracle import check
from lakebed.testing.scheduler import Caught, Workers
from lakebed.testing.simulate_actors import Reader, Writer, ask, look
from lakebed.testing.simulate_setting import CREATED, Setting, draw_setting
from lakebed.testing.simulate_world import Process, World


@dataclass(slots=True, kw_only=True)
class Report:
    """What one history came to; `complaints` is empty if every law was kept."""

    seed: int | None  # None: of a world that was searched, not drawn
    setting: Setting
    complaints: list[str]
    trace: list[str]
    fingerprint: str
    step_count: int
    faults: Counter[tuple[str, Fault]]
    steps: Counter[str]
    outcomes: Counter[tuple[str, Result]] = field(default_factory=Counter)


def run_history(seed: int, workers: Workers) -> Report:
    """Play the history of a seed and judge it."""
    world = World(seed, draw_setting(random.Random(f"setting {seed}")), workers)
    return play(world, seed)


def play(world: World, seed: int | None = None) -> Report:
    """Play a history in a world of its own and judge it."""
    complaints = _play(world)
    complaints += _judge(world)
    return Report(
        seed=seed,
        setting=world.setting,
        complaints=complaints,
        trace=world.faults.trace,
        fingerprint=world.faults.fingerprint(),
        step_count=world.scheduler.step,
        faults=world.faults.counts,
        steps=world.faults.steps,
        outcomes=Counter(
            (attempt.kind.value, attempt.result) for attempt in world.history.attempts.values()
        ),
    )


def _play(world: World) -> list[str]:
    """Run all actors to their end; whatever they did not expect is a complaint."""
    bodies: dict[str, Callable[[], None]] = {}
    for name, orders in world.setting.orders.items():
        app = "shared" if world.setting.shares_app else name
        bodies[name] = Writer(world, name, orders, app).run
    if world.setting.look_count:
        bodies["r1"] = Reader(world, "r1").run
    world.scheduler.run(bodies)
    complaints = [world.scheduler.stopped_because] if world.scheduler.stopped_because else []
    for actor in world.scheduler.actors:
        if actor.error is not None and not world.scheduler.stopped_because:
            text = "".join(traceback.format_exception(actor.error))
            complaints.append(f"{actor.name} met an error that it did not expect: {text}")
    world.faults.settle()
    return complaints


def _judge(world: World) -> list[str]:
    """Look at what is left, without faults, through the product and past it."""
    process = Process(world, "end")
    complaints: list[str] = []
    with Caught() as caught:
        catalog = world.open(process)
        for serial, error in world.unknown.items():
            # Nothing is under way any more, so that even "undecided" is the last word.
            last = replace(ask(catalog, error), is_final=True)
            world.history.attempts[serial].claims.append(last)
        told = {}
        for name in catalog.tables():
            if name not in (*world.setting.tables, CREATED):
                continue
            table = catalog.table(name)
            look(world, process, name, table)
            told[name] = [(each.version, each.commit_id) for each in table.history()][::-1]
        complaints = [*check(world.history, world.ending(told)), *_stuck(world)]
    if isinstance(caught.error, KeyboardInterrupt):
        raise caught.error
    if caught.error is not None:
        text = "".join(traceback.format_exception(caught.error))
        complaints.append(f"what is left cannot be read: {text}")
    return complaints


def _stuck(world: World) -> list[str]:
    """In fair weather a blind append always succeeds: each lost race is another's success."""
    if world.setting.rates or world.setting.attempt_count_max < COMMIT_ATTEMPT_COUNT_MAX:
        return []
    return [
        f"fair weather, and {attempt.actor}'s append {attempt.serial} {attempt.result}"
        for attempt in world.history.attempts.values()
        if attempt.kind is Kind.APPEND
        and attempt.result is not Result.COMMITTED
        and not world.setting.shares_app  # a zombie's token is rightly refused
    ]
