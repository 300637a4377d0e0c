"""Ids and randomness as injected values: the only module that draws random numbers.

A commit or file id is a UUID of version 7 in hex: it sorts by time, so new files and index
entries land next to each other, and `id_time_ms` gives the moment back.
"""

import random
import threading
from typing import Protocol

from lakebed.clock import Clock, SystemClock

_RANDOM_BITS = 74
_RANDOM_MASK = (1 << _RANDOM_BITS) - 1
_STEP_BITS = 48
_HEX_LENGTH = 32


class Ids(Protocol):
    """Where names and jitter come from."""

    def new(self) -> str:
        """A fresh id: 32 hex digits, ordered by time, unique across machines."""

    def bits(self, count: int) -> int:
        """A random integer of `count` bits."""

    def fraction(self) -> float:
        """A random number in [0, 1), for jitter."""


class SystemIds:
    """Ids from the operating system's randomness; safe to use from several threads."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._random = random.SystemRandom()
        self._lock = threading.Lock()
        self._last = 0

    def new(self) -> str:
        """Draw an id that sorts after each one drawn before by this object."""
        with self._lock:
            fresh = self._clock.now_ms() << _RANDOM_BITS | self._random.getrandbits(_RANDOM_BITS)
            # A random step, because a forked process goes on from the same last id.
            step = 1 + self._random.getrandbits(_STEP_BITS)
            self._last = max(fresh, self._last + step)
            return f"{uuid7(self._last >> _RANDOM_BITS, self._last & _RANDOM_MASK):032x}"

    def bits(self, count: int) -> int:
        """Draw `count` random bits."""
        return self._random.getrandbits(count)

    def fraction(self) -> float:
        """Draw a number in [0, 1)."""
        return self._random.random()


def uuid7(time_ms: int, random_bits: int) -> int:
    """Lay out a version 7 UUID as RFC 9562 draws it: 48 bits of time, then 74 random ones."""
    high, low = random_bits >> 62, random_bits & ((1 << 62) - 1)
    return (time_ms & ((1 << 48) - 1)) << 80 | 7 << 76 | high << 64 | 0b10 << 62 | low


def id_time_ms(identifier: str) -> int:
    """Tell when an id was drawn."""
    assert len(identifier) == _HEX_LENGTH, "ids are 32 hex digits"
    return int(identifier[:12], 16)
