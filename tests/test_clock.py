"""The system clock tells the time of the machine and waits as long as it is told."""

import time

from lakebed.clock import SystemClock


def test_now_is_the_time_of_the_machine_in_milliseconds() -> None:
    before, now, after = time.time(), SystemClock().now_ms(), time.time()
    assert before * 1000 - 1 <= now <= after * 1000


def test_sleep_waits_at_least_that_long_by_the_monotonic_clock() -> None:
    clock = SystemClock()
    start = clock.monotonic_ms()
    clock.sleep_ms(12)
    assert clock.monotonic_ms() - start >= 11.9
