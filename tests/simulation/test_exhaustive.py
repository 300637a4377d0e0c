"""In a small world every schedule, and every place of a single fault, keeps every law."""

from collections import Counter
from collections.abc import Iterable, Iterator

import pytest

from lakebed.commit import swap
from lakebed.testing.faults import Fault
from lakebed.testing.history import Kind
from lakebed.testing.scheduler import Workers
from lakebed.testing.simulate import describe, undisturbed
from lakebed.testing.simulate_exhaustive import (
    PLACED_FAULTS,
    Enumerated,
    Scope,
    every_place,
    every_schedule,
)
from lakebed.testing.simulate_run import Report
from lakebed.testing.simulate_setting import Backend

PAIRS = (
    (Kind.APPEND, Kind.APPEND, False),
    (Kind.APPEND, Kind.APPEND, True),
    (Kind.APPEND, Kind.DELETE, False),
    (Kind.DELETE, Kind.DELETE, False),
    (Kind.OVERWRITE, Kind.REWRITE, False),
    (Kind.DELETE, Kind.REWRITE, False),
    (Kind.ROLLBACK, Kind.APPEND, False),
    (Kind.TAG, Kind.EVOLVE, False),
)
SCOPES = [
    Scope(backend=backend, first=first, second=second, has_token=has_token)
    for backend in Backend
    for first, second, has_token in PAIRS
]


def name(scope: Scope) -> str:
    words = [scope.backend.value, scope.first.value, scope.second.value]
    return "-".join([*words, "token"] if scope.has_token else words)


@pytest.fixture
def workers() -> Iterator[Workers]:
    made = Workers()
    with undisturbed():
        yield made
    made.close()


def sound(reports: Iterable[Report]) -> tuple[int, Counter[tuple[str, Fault]]]:
    """How many histories there were, all sound, and the faults that struck."""
    count, faults = 0, Counter[tuple[str, Fault]]()
    for report in reports:
        assert not report.complaints, describe(report)
        count += 1
        faults.update(report.faults)
    return count, faults


@pytest.mark.simulation
@pytest.mark.parametrize("scope", SCOPES, ids=name)
def test_every_schedule_with_two_preemptions_is_sound(scope: Scope, workers: Workers) -> None:
    count, _ = sound(every_schedule(scope, workers, preemption_count_max=2))
    assert count > 100


@pytest.mark.simulation
@pytest.mark.parametrize("scope", SCOPES, ids=name)
def test_every_place_of_a_fault_is_sound(scope: Scope, workers: Workers) -> None:
    _, faults = sound(every_place(scope, workers, preemption_count_max=0))
    assert {fault for _, fault in faults} == set(PLACED_FAULTS)


@pytest.mark.simulation
@pytest.mark.parametrize("scope", [SCOPES[0], SCOPES[1], SCOPES[-8]], ids=name)
def test_every_place_of_a_fault_with_a_preemption_is_sound(scope: Scope, workers: Workers) -> None:
    count, _ = sound(every_place(scope, workers, preemption_count_max=1))
    assert count > 1_000


@pytest.mark.simulation
def test_a_planted_bug_cannot_hide(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    sound(every_schedule(SCOPES[0], workers, preemption_count_max=0))
    real = swap._look
    monkeypatch.setattr(swap, "_look", lambda catalog, moves: bool(real(catalog, moves)))
    reports = every_place(SCOPES[0], workers, preemption_count_max=0)
    assert any(report.complaints for report in reports)


def test_choices_are_enumerated_without_repeats_to_the_end(workers: Workers) -> None:
    seen = set()
    for report in every_schedule(SCOPES[0], workers, preemption_count_max=1):
        assert report.fingerprint not in seen
        seen.add(report.fingerprint)
    assert len(seen) > 10


def test_the_last_choice_is_changed_first() -> None:
    policy = Enumerated(choices=[0, 1], preemption_count_max=9, options=[2, 2, 3])
    assert policy.following() == [0, 1, 1]
    policy = Enumerated(choices=[0, 1, 2], preemption_count_max=9, options=[2, 2, 3])
    assert policy.following() == [1]
    policy = Enumerated(choices=[1, 1, 2], preemption_count_max=9, options=[2, 2, 3])
    assert policy.following() is None
