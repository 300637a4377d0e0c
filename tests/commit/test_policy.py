"""Retries are bounded, wait longer each time, and no two writers wait alike."""

import pytest

from lakebed.commit.policy import RetryPolicy
from lakebed.ids import SystemIds


class Fixed(SystemIds):
    """Jitter that is chosen by the test."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self._share = share

    def fraction(self) -> float:
        return self._share


def test_sixteen_attempts_are_made_unless_told_otherwise() -> None:
    assert RetryPolicy().attempt_count_max == 16


def test_the_longest_pause_doubles_up_to_a_bound() -> None:
    policy = RetryPolicy(backoff_ms_min=10, backoff_ms_max=50)
    assert [policy.delay_ms(n, Fixed(1.0)) for n in range(1, 6)] == [10, 20, 40, 50, 50]


def test_a_pause_is_drawn_from_the_whole_range() -> None:
    policy = RetryPolicy(backoff_ms_min=10, backoff_ms_max=50)
    assert policy.delay_ms(2, Fixed(0.0)) == 0
    assert policy.delay_ms(2, Fixed(0.25)) == 5


def test_a_very_late_attempt_does_not_overflow() -> None:
    assert RetryPolicy(attempt_count_max=5_000).delay_ms(1_000, Fixed(1.0)) == 2_000


@pytest.mark.parametrize("counts", [{"attempt_count_max": 0}, {"answer_count_max": 0}])
def test_a_policy_that_never_tries_is_refused(counts: dict[str, int]) -> None:
    with pytest.raises(AssertionError):
        RetryPolicy(**counts)
