"""Time as an injected value: the only module that reads the machine's clock or sleeps."""

import time
from typing import Protocol


class Clock(Protocol):
    """What the library needs to know about time."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC; may jump either way between calls."""

    def monotonic_ms(self) -> float:
        """Milliseconds that never go back, from an arbitrary start."""

    def sleep_ms(self, duration_ms: float) -> None:
        """Wait."""


class SystemClock:
    """The machine's own clock."""

    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        """Milliseconds that never go back."""
        return time.monotonic_ns() / 1e6

    def sleep_ms(self, duration_ms: float) -> None:
        """Block this thread."""
        time.sleep(duration_ms / 1000)
