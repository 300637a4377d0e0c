"""How often a commit is tried, and how long it waits in between."""

from dataclasses import dataclass

from lakebed.ids import Ids
from lakebed.limits import (
    COMMIT_ATTEMPT_COUNT_MAX,
    COMMIT_BACKOFF_MS_MAX,
    COMMIT_BACKOFF_MS_MIN,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Bounds on the tries of one commit.

    `attempt_count_max` counts lost races; `answer_count_max` counts how often a swap whose
    answer was lost is asked about or sent again.
    """

    attempt_count_max: int = COMMIT_ATTEMPT_COUNT_MAX
    answer_count_max: int = COMMIT_ATTEMPT_COUNT_MAX
    backoff_ms_min: float = COMMIT_BACKOFF_MS_MIN
    backoff_ms_max: float = COMMIT_BACKOFF_MS_MAX

    def __post_init__(self) -> None:
        assert self.attempt_count_max > 0, "a commit is tried at least once"
        assert self.answer_count_max > 0, "an answer is asked for at least once"

    def delay_ms(self, attempt: int, ids: Ids) -> float:
        """How long to wait after attempt 1, 2, …: doubling, with full jitter."""
        longest = min(self.backoff_ms_min * 2 ** (attempt - 1), self.backoff_ms_max)
        return longest * ids.fraction()
