"""A swap is answered yes or no only when that is certain; while it is not, the same one is sent."""

import pickle
from typing import Any

import pytest
from tests.commit.scripted import Answer, CountingClock, Script, move, pointer

from lakebed.commit.policy import RetryPolicy
from lakebed.commit.swap import decide
from lakebed.errors import CommitUnknownError, UnavailableError
from lakebed.format.pointer import Move, Outcome
from lakebed.ids import SystemIds

LOST_REPLY = CommitUnknownError("no answer", commit_id="mine")
NOT_REACHED = UnavailableError("connection refused")

UNMOVED = Outcome(head=pointer(version=1, commit="base"))
MOVED = Outcome(head=pointer(version=2, commit="theirs"))
MINE = Outcome(head=pointer(version=2, commit="mine"), committed=pointer(version=2, commit="mine"))
MINE_AND_MORE = Outcome(
    head=pointer(version=5, commit="later"), committed=pointer(version=2, commit="mine")
)
DROPPED = Outcome(head=None)
ANOTHER_TABLE = Outcome(head=pointer(version=1, commit="base", table_id="other"))
DROPPED_AFTER_MINE = Outcome(head=None, committed=pointer(version=2, commit="mine"))

YES, NO = True, False

BRANCHES: dict[str, tuple[list[Answer], list[Answer], bool]] = {
    "the swap is made": ([YES], [], YES),
    "somebody was first": ([NO], [MOVED], NO),
    "refused because it was made before": ([NO], [MINE], YES),
    "refused and nothing in its way": ([NO], [UNMOVED], NO),
    "refused because the table is gone": ([NO], [DROPPED], NO),
    "no answer, but it is there": ([LOST_REPLY], [MINE], YES),
    "no answer, and others came after it": ([LOST_REPLY], [MINE_AND_MORE], YES),
    "no answer, and the head moved without it": ([LOST_REPLY], [MOVED], NO),
    "no answer, and the table is gone": ([LOST_REPLY], [DROPPED], NO),
    "no answer, and the table was dropped after it": ([LOST_REPLY], [DROPPED_AFTER_MINE], YES),
    "no answer, and another table has the name": ([LOST_REPLY], [ANOTHER_TABLE], NO),
    "undecided, then made": ([LOST_REPLY, YES], [UNMOVED], YES),
    "undecided, then landed late": ([LOST_REPLY, NO], [UNMOVED, MINE], YES),
    "undecided, then lost": ([LOST_REPLY, NO], [UNMOVED, MOVED], NO),
    "undecided twice, then made": ([LOST_REPLY, LOST_REPLY, YES], [UNMOVED, UNMOVED], YES),
    "undecided, refused, undecided, made": ([LOST_REPLY, NO, YES], [UNMOVED, UNMOVED], YES),
    "no answer to the question either": ([LOST_REPLY, YES], [NOT_REACHED], YES),
    "neither answer came, then it was there": ([LOST_REPLY, NO], [NOT_REACHED, MINE], YES),
    "not reached, then made": ([NOT_REACHED, YES], [], YES),
    "not reached, then lost": ([NOT_REACHED, NO], [MOVED], NO),
    "refused, and why could not be asked": ([NO, NO], [NOT_REACHED, MOVED], NO),
}


def ask(script: Script, moves: list[Move], *, answers: int = 4) -> bool:
    return decide(
        script.as_backend(),
        moves,
        policy=RetryPolicy(answer_count_max=answers),
        clock=CountingClock(),
        ids=SystemIds(),
    )


@pytest.mark.parametrize("branch", BRANCHES)
def test_the_answer_is_what_became_of_the_commit(branch: str) -> None:
    swaps, outcomes, expected = BRANCHES[branch]
    script = Script(swaps=swaps, outcomes=outcomes)
    assert ask(script, [move()]) is expected
    assert script.kinds().count("swap") == len(swaps)
    assert script.kinds().count("outcome") == len(outcomes)


@pytest.mark.parametrize("branch", BRANCHES)
def test_what_is_sent_again_is_the_very_same_swap(branch: str) -> None:
    swaps, outcomes, _ = BRANCHES[branch]
    script = Script(swaps=swaps, outcomes=outcomes)
    moves = [move()]
    ask(script, moves)
    assert all(asked == moves for kind, asked in script.asked if kind == "swap")


def test_the_question_names_the_commit_and_where_it_can_be() -> None:
    script = Script(swaps=[LOST_REPLY], outcomes=[MINE])
    ask(script, [move(version=1)])
    assert script.asked[-1] == ("outcome", ("t", "mine", 1))


def test_an_undecided_swap_is_never_reported_as_lost() -> None:
    script = Script(swaps=[LOST_REPLY] * 3, outcomes=[UNMOVED] * 3)
    with pytest.raises(CommitUnknownError) as raised:
        ask(script, [move()], answers=3)
    error = raised.value
    assert error.fields == {"commit_id": "mine", "table": "t", "base_version": 1}
    assert "catalog.resolve('mine')" in error.hint
    assert error.__cause__ is LOST_REPLY
    assert pickle.loads(pickle.dumps(error)).fields == error.fields


def test_a_swap_that_was_lost_track_of_stays_unknown_when_the_catalog_goes_away() -> None:
    """That the later tries were not reached says nothing about the first."""
    script = Script(swaps=[LOST_REPLY, NOT_REACHED, NOT_REACHED], outcomes=[NOT_REACHED])
    with pytest.raises(CommitUnknownError):
        ask(script, [move()], answers=3)


def test_a_refusal_after_a_lost_reply_is_not_believed_while_the_head_stands_still() -> None:
    script = Script(swaps=[LOST_REPLY, NO, NO], outcomes=[UNMOVED] * 3)
    with pytest.raises(CommitUnknownError):
        ask(script, [move()], answers=3)


def test_a_catalog_that_is_never_reached_has_made_nothing() -> None:
    script = Script(swaps=[NOT_REACHED] * 3)
    with pytest.raises(UnavailableError) as raised:
        ask(script, [move()], answers=3)
    assert raised.value is NOT_REACHED
    assert script.kinds() == ["swap"] * 3


def test_the_pauses_between_questions_grow_and_stay_bounded() -> None:
    clock = CountingClock()
    policy = RetryPolicy(answer_count_max=12, backoff_ms_min=10, backoff_ms_max=100)

    class Longest(SystemIds):
        def fraction(self) -> float:
            return 1.0

    with pytest.raises(UnavailableError):
        decide(
            Script(swaps=[NOT_REACHED] * 12).as_backend(),
            [move()],
            policy=policy,
            clock=clock,
            ids=Longest(),
        )
    assert clock.slept_ms == [10, 20, 40, 80, *[100] * 8]


TWO = [move("a"), move("b")]


def of(name: str, what: Outcome) -> Outcome:
    """The same outcome for a table of another name."""

    def named(each: Any) -> Any:
        return None if each is None else pointer(name, each.version, commit=each.commit_id)

    return Outcome(head=named(what.head), committed=named(what.committed))


SEVERAL: dict[str, tuple[list[Outcome], bool]] = {
    "the first shows it": ([of("a", MINE)], YES),
    "the first has moved without it": ([of("a", MOVED)], NO),
    "the second has moved without it": ([of("a", UNMOVED), of("b", MOVED)], NO),
    "it landed between the two looks": ([of("a", UNMOVED), of("b", MINE)], YES),
    "the second is gone": ([of("a", UNMOVED), DROPPED], NO),
}


@pytest.mark.parametrize("case", SEVERAL)
def test_of_several_tables_one_that_is_certain_decides_for_all(case: str) -> None:
    outcomes, expected = SEVERAL[case]
    script = Script(swaps=[LOST_REPLY], outcomes=outcomes)
    assert ask(script, TWO) is expected
    assert script.kinds() == ["swap", *["outcome"] * len(outcomes)]


def test_several_tables_that_all_stand_still_are_sent_again_together() -> None:
    script = Script(swaps=[LOST_REPLY, YES], outcomes=[of("a", UNMOVED), of("b", UNMOVED)])
    assert ask(script, TWO)
    assert script.asked[-1] == ("swap", TWO)
