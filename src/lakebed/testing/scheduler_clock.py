"""Time and ids of the simulated world: both come from the seed, and both tell whose they are."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from lakebed.ids import uuid7
from lakebed.testing.scheduler import Scheduler

EPOCH_MS = 1_767_225_600_000  # 2026-01-01
_COUNTER_BITS = 16
_SERIAL_BITS = 16
_NOISE_BITS = 74 - _COUNTER_BITS - _SERIAL_BITS


@dataclass(slots=True)
class SimulatedClock:
    """The clock of one actor: common time, and an error of its own that can jump.

    `pause` is what happens when the code under test sleeps.
    """

    scheduler: Scheduler
    pause: Callable[[float], None]
    skew_ms: int = 0

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC, as this actor believes."""
        return EPOCH_MS + int(self.scheduler.now_ms) + self.skew_ms

    def monotonic_ms(self) -> float:
        """Milliseconds that never go back."""
        return self.scheduler.now_ms

    def sleep_ms(self, duration_ms: float) -> None:
        """Let others run."""
        self.pause(duration_ms)


class SimulatedIds:
    """Ids that carry the serial number of the operation under which they were drawn.

    So every commit id that is ever seen in a table leads back to the one call that made it, also
    if the caller crashed before it learned the id.
    """

    def __init__(self, clock: SimulatedClock, chance: random.Random) -> None:
        self._clock = clock
        self._chance = chance
        self._counter = 0
        self.serial = 0

    def new(self) -> str:
        """A fresh id of the current operation."""
        self._counter += 1
        assert self._counter < 1 << _COUNTER_BITS, "a history draws few ids"
        noise = self._chance.getrandbits(_NOISE_BITS)
        bits = (noise << _COUNTER_BITS | self._counter) << _SERIAL_BITS | self.serial
        return f"{uuid7(self._clock.now_ms(), bits):032x}"

    def bits(self, count: int) -> int:
        """Random bits."""
        return self._chance.getrandbits(count)

    def fraction(self) -> float:
        """A number in [0, 1)."""
        return self._chance.random()


def serial_of(identifier: str) -> int:
    """The serial number of the operation that drew an id."""
    return int(identifier, 16) & ((1 << _SERIAL_BITS) - 1)
