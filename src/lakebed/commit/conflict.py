r"""Whether a change still holds after a commit that came in between: a decision without I/O.

mine \ theirs          append        delete, overwrite       rewrite            definition
append (blind)         fits          fits                    fits               fits
delete, overwrite      1             1, 2                    2                  fits
rewrite                fits          2                       2                  fits
rollback               3             3                       3                  fits

1  conflict if theirs added or removed rows that mine may have read; under write-serializable
   a blind append of theirs is taken to come after mine
2  conflict if both removed one file
3  conflict: the rows that came in between would be lost unseen
"""

from collections.abc import Callable, Sequence
from enum import StrEnum

from lakebed.commit.change import Change, Isolation
from lakebed.errors import CommitConflictError
from lakebed.files.delta import Delta
from lakebed.format.datafile import DataFile
from lakebed.format.snapshot import Operation


class Verdict(StrEnum):
    """The outcome; the text is what the user reads."""

    COMPATIBLE = "compatible"
    BOTH_REMOVED = "a file that this change replaces was removed by another commit"
    READ_WAS_ADDED_TO = "rows that match what this change read were added by another commit"
    READ_WAS_REMOVED_FROM = "rows that this change read were removed by another commit"
    FILES_CHANGED = "the table's files were changed by another commit"


MayMatch = Callable[[Sequence[DataFile]], bool]


def check(mine: Change, theirs: Delta, may_match: MayMatch) -> Verdict:
    """Compare my change with one commit made after the version I read.

    `may_match` tells whether any of the files may hold rows that `mine.read` selects.
    """
    if mine.restore is not None:
        return Verdict.FILES_CHANGED if theirs.added or theirs.removed else Verdict.COMPATIBLE
    gone = {file.path for file in theirs.removed}
    if any(file.path in gone for file in mine.removed):
        return Verdict.BOTH_REMOVED
    if mine.read is None or not theirs.snapshot.data_change:
        return Verdict.COMPATIBLE
    if theirs.removed and may_match(theirs.removed):
        return Verdict.READ_WAS_REMOVED_FROM
    blind = theirs.snapshot.operation is Operation.APPEND
    if blind and mine.isolation is Isolation.WRITE_SERIALIZABLE:
        return Verdict.COMPATIBLE
    if theirs.added and may_match(theirs.added):
        return Verdict.READ_WAS_ADDED_TO
    return Verdict.COMPATIBLE


def conflict_error(mine: Change, theirs: Delta, verdict: Verdict) -> CommitConflictError:
    """Say what collided with what, and what to do."""
    snapshot = theirs.snapshot
    return CommitConflictError(
        f"{mine.operation.value} of {snapshot.table_name} conflicts with version "
        f"{snapshot.version} ({snapshot.operation.value}): {verdict.value}",
        hint="Nothing was changed. Read the table again and repeat the operation",
        table=snapshot.table_name,
        version=snapshot.version,
        verdict=verdict.name,
    )
