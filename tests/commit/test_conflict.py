"""The matrix of conflict rules, cell by cell: what stands against a change, and what does not."""

import pickle
from collections.abc import Sequence

import pytest
from tests.format import build

from lakebed.commit.change import Change, Isolation
from lakebed.commit.conflict import Verdict, check, conflict_error
from lakebed.errors import CommitConflictError
from lakebed.expr.bind import BoundConstant
from lakebed.files.delta import Delta
from lakebed.format.datafile import DataFile
from lakebed.format.snapshot import Operation

OLD, OTHER_OLD = build.data_file("old"), build.data_file("other-old")
NEW, MINE_NEW = build.data_file("new"), build.data_file("mine-new")
READ = BoundConstant(value=True)

STRICT, LOOSE = Isolation.SERIALIZABLE, Isolation.WRITE_SERIALIZABLE
LEVELS = (STRICT, LOOSE)

FITS = Verdict.COMPATIBLE
BOTH = Verdict.BOTH_REMOVED
ADDED = Verdict.READ_WAS_ADDED_TO
REMOVED = Verdict.READ_WAS_REMOVED_FROM
CHANGED = Verdict.FILES_CHANGED

APPEND, DELETE, OVERWRITE = Operation.APPEND, Operation.DELETE, Operation.OVERWRITE
REWRITE, ROLLBACK, EVOLVE = Operation.REWRITE, Operation.ROLLBACK, Operation.EVOLVE


def mine(operation: Operation, isolation: Isolation) -> Change:
    """A change that has read all rows and, where it removes, takes out the file OLD."""
    restore = build.snapshot() if operation is ROLLBACK else None
    reads = operation in (DELETE, OVERWRITE, ROLLBACK)
    return Change(
        operation=operation,
        added=(MINE_NEW,) if operation in (APPEND, OVERWRITE, REWRITE) else (),
        removed=(OLD,) if operation in (DELETE, OVERWRITE, REWRITE) else (),
        read=READ if reads else None,
        isolation=isolation,
        restore=restore,
        data_change=operation is not REWRITE,
    )


def theirs(operation: Operation, *, removed: DataFile = OTHER_OLD) -> Delta:
    """A commit that came in between."""
    snapshot = build.snapshot(
        9, operation=operation, data_change=operation not in (REWRITE, EVOLVE)
    )
    adds = operation in (APPEND, OVERWRITE, REWRITE)
    removes = operation in (DELETE, OVERWRITE, REWRITE)
    return Delta(snapshot, (NEW,) if adds else (), (removed,) if removes else ())


def everything(_: Sequence[DataFile]) -> bool:
    return True


def nothing(_: Sequence[DataFile]) -> bool:
    return False


# mine, theirs, level -> the verdict if what they touched may match what mine has read.
CELLS: dict[tuple[Operation, Operation, Isolation], Verdict] = {
    **{
        (APPEND, other, level): FITS
        for other in (APPEND, DELETE, OVERWRITE, REWRITE, EVOLVE)
        for level in LEVELS
    },
    **{(own, EVOLVE, level): FITS for own in (DELETE, OVERWRITE, REWRITE) for level in LEVELS},
    **{(own, APPEND, STRICT): ADDED for own in (DELETE, OVERWRITE)},
    **{(own, APPEND, LOOSE): FITS for own in (DELETE, OVERWRITE)},
    **{
        (own, other, level): REMOVED
        for own in (DELETE, OVERWRITE)
        for other in (DELETE, OVERWRITE)
        for level in LEVELS
    },
    **{(own, REWRITE, level): FITS for own in (DELETE, OVERWRITE, REWRITE) for level in LEVELS},
    **{(REWRITE, other, level): FITS for other in (APPEND, DELETE, OVERWRITE) for level in LEVELS},
    **{
        (ROLLBACK, other, level): CHANGED
        for other in (APPEND, DELETE, OVERWRITE, REWRITE)
        for level in LEVELS
    },
    **{(ROLLBACK, EVOLVE, level): FITS for level in LEVELS},
}


def test_the_matrix_has_no_hole() -> None:
    own = (APPEND, DELETE, OVERWRITE, REWRITE, ROLLBACK)
    other = (APPEND, DELETE, OVERWRITE, REWRITE, EVOLVE)
    assert set(CELLS) == {(a, b, level) for a in own for b in other for level in LEVELS}


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: "-".join(part.value for part in cell))
def test_a_cell_of_the_matrix(cell: tuple[Operation, Operation, Isolation]) -> None:
    own, other, level = cell
    assert check(mine(own, level), theirs(other), everything) is CELLS[cell]


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: "-".join(part.value for part in cell))
def test_what_was_not_read_is_no_conflict(cell: tuple[Operation, Operation, Isolation]) -> None:
    own, other, level = cell
    expected = CHANGED if own is ROLLBACK and other is not EVOLVE else FITS
    assert check(mine(own, level), theirs(other), nothing) is expected


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("other", [DELETE, OVERWRITE, REWRITE])
@pytest.mark.parametrize("own", [DELETE, OVERWRITE, REWRITE])
def test_one_file_cannot_be_removed_twice(
    own: Operation, other: Operation, level: Isolation
) -> None:
    assert check(mine(own, level), theirs(other, removed=OLD), nothing) is BOTH


def test_an_overwrite_of_theirs_that_adds_matching_rows_conflicts_at_both_levels() -> None:
    """It is not blind: what it wrote may depend on what mine is about to remove."""
    for level in LEVELS:
        delta = Delta(theirs(OVERWRITE).snapshot, (NEW,), ())
        assert check(mine(DELETE, level), delta, everything) is ADDED


@pytest.mark.parametrize(
    ("operation", "blind"),
    [(APPEND, True), (DELETE, False), (OVERWRITE, False), (REWRITE, False), (ROLLBACK, False)],
)
def test_only_a_change_that_reads_and_removes_nothing_is_blind(
    operation: Operation, blind: bool
) -> None:
    assert mine(operation, STRICT).is_blind is blind


@pytest.mark.parametrize("verdict", [BOTH, ADDED, REMOVED, CHANGED], ids=lambda v: v.name)
def test_the_message_says_what_collided_with_what_and_what_to_do(verdict: Verdict) -> None:
    error = conflict_error(mine(DELETE, STRICT), theirs(OVERWRITE), verdict)
    assert isinstance(error, CommitConflictError)
    text = str(error)
    for part in ("delete of plant.readings", "version 9 (overwrite)", verdict.value):
        assert part in text
    assert "Nothing was changed" in error.hint
    assert error.fields == {"table": "plant.readings", "version": 9, "verdict": verdict.name}
    assert pickle.loads(pickle.dumps(error)).fields == error.fields
