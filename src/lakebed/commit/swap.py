"""The one decision of a commit, and what is made of an answer that never came.

    swap ─┬─ True ────────────────────────────────────────► COMMITTED
          ├─ False, or no answer ─► ask: head and commit id, in one read
          │                             ├─ id is there ───► COMMITTED
          │                             ├─ head has moved ► LOST: this attempt can never land
          │                             └─ head as before ► undecided: send the SAME swap again
          └─ not reached ─────────────► send it again

An attempt that is undecided is never replaced by another one: it may still land.
"""

from collections.abc import Sequence

from lakebed.catalog.backend import CatalogBackend
from lakebed.clock import Clock
from lakebed.commit.policy import RetryPolicy
from lakebed.errors import CommitUnknownError, LakebedError, UnavailableError
from lakebed.format.pointer import Move
from lakebed.ids import Ids


def decide(
    catalog: CatalogBackend, moves: Sequence[Move], *, policy: RetryPolicy, clock: Clock, ids: Ids
) -> bool:
    """Ask the catalog to make the moves; True if they are made, False if they never will be.

    Raises:
        CommitUnknownError: neither could be found out; the moves may be made yet.
        UnavailableError: the catalog was not reached, so the moves are not and will not be made.
    """
    unknown: CommitUnknownError | None = None
    failure: LakebedError | None = None
    for attempt in range(1, policy.answer_count_max + 1):
        try:
            if catalog.swap(moves):
                return True
            decided = _look(catalog, moves)
            if decided is not None:
                return decided
            # The catalog refused the moves though nothing is in their way: the token is taken.
            if unknown is None:
                return False
        except CommitUnknownError as error:
            unknown = unknown or error
            try:
                decided = _look(catalog, moves)
            except UnavailableError:
                decided = None
            if decided is not None:
                return decided
        except UnavailableError as error:
            failure = error
        clock.sleep_ms(policy.delay_ms(attempt, ids))
    if unknown is not None:
        raise _unresolved(moves, unknown)
    assert failure is not None, "each round ends in a decision or an error"
    raise failure


def _look(catalog: CatalogBackend, moves: Sequence[Move]) -> bool | None:
    """Tell what became of the moves; None while they may still be made.

    They are made together, so one table that shows the commit id shows it for all, and one whose
    head has moved without it stops all.
    """
    for move in moves:
        expected, new = move.expected, move.new
        found = catalog.outcome(new.name, new.commit_id, since=expected.version)
        if found.committed is not None:
            return True
        head = found.head
        if head is None or (head.table_id, head.version) != (expected.table_id, expected.version):
            return False
    return None


def _unresolved(moves: Sequence[Move], cause: CommitUnknownError) -> CommitUnknownError:
    new = moves[0].new
    error = CommitUnknownError(
        f"the catalog did not say whether the commit of {new.name} was made ({cause.message})",
        hint=f"Nothing was deleted. Ask later: catalog.resolve({new.commit_id!r})",
        commit_id=new.commit_id,
        table=new.name,
        base_version=moves[0].expected.version,
    )
    error.__cause__ = cause
    return error
