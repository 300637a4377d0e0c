"""Ids are UUIDs of version 7: unique, ordered by time, and never drawn twice after a fork."""

import threading
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.clock import SystemClock
from lakebed.ids import SystemIds, id_time_ms, uuid7


class SetClock(SystemClock):
    def __init__(self, now_ms: int) -> None:
        self.now = now_ms

    def now_ms(self) -> int:
        return self.now


@given(st.integers(0, (1 << 48) - 1), st.integers(0, (1 << 74) - 1))
def test_the_layout_is_that_of_rfc_9562(time_ms: int, bits: int) -> None:
    found = uuid.UUID(int=uuid7(time_ms, bits))
    assert found.version == 7
    assert found.variant == uuid.RFC_4122
    assert id_time_ms(found.hex) == time_ms


@given(*[st.tuples(st.integers(0, (1 << 48) - 1), st.integers(0, (1 << 74) - 1))] * 2)
def test_ids_order_as_their_time_and_then_their_random_bits(
    one: tuple[int, int], other: tuple[int, int]
) -> None:
    assert (uuid7(*one) < uuid7(*other)) == (one < other)


@pytest.mark.parametrize("steps", [(0, 0, 0), (5, -3_600_000, 0), (1, 1, 1), (-1, -1, -1)])
def test_each_id_sorts_after_the_one_before_whatever_the_clock_does(steps: tuple[int, ...]) -> None:
    clock = SetClock(1_700_000_000_000)
    ids = SystemIds(clock)
    drawn = []
    for step in steps:
        drawn += [ids.new() for _ in range(200)]
        clock.now += step
    assert drawn == sorted(set(drawn))
    assert {uuid.UUID(text).version for text in drawn} == {7}


def test_an_id_is_32_hex_digits_that_tell_when_it_was_drawn() -> None:
    text = SystemIds(SetClock(1_700_000_000_123)).new()
    assert len(text) == 32
    assert int(text, 16) >= 0
    assert id_time_ms(text) == 1_700_000_000_123


def test_two_processes_forked_from_one_do_not_draw_the_same_id_when_the_clock_went_back() -> None:
    clock = SetClock(1_700_000_000_000)
    ids = SystemIds(clock)
    ids.new()
    clock.now -= 60_000
    twin = SystemIds(clock)
    twin._last = ids._last  # what a fork copies
    mine, theirs = ({source.new() for _ in range(500)} for source in (ids, twin))
    assert not mine & theirs


def test_threads_that_share_one_source_get_different_ids() -> None:
    ids = SystemIds(SetClock(1_700_000_000_000))
    drawn: list[str] = []

    def draw() -> None:
        drawn.extend([ids.new() for _ in range(300)])

    threads = [threading.Thread(target=draw) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(drawn)) == 2400


def test_jitter_and_bits_stay_in_their_range() -> None:
    ids = SystemIds()
    assert all(0 <= ids.fraction() < 1 for _ in range(100))
    assert all(0 <= ids.bits(7) < 128 for _ in range(100))
    assert len({ids.bits(64) for _ in range(20)}) == 20
