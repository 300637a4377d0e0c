"""What became of a commit whose answer was lost."""

from dataclasses import dataclass
from enum import StrEnum

from lakebed.commit.change import Commit, commit_of
from lakebed.errors import CommitUnknownError
from lakebed.table.services import Services


class Fate(StrEnum):
    """The three things that can be known of a commit."""

    COMMITTED = "committed"
    FAILED = "failed"  # it is not in the table and never will be
    UNDECIDED = "undecided"  # it is not in the table now; it may yet land


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """The answer; `commits` has one report per table that the commit changed."""

    commit_id: str
    fate: Fate
    commits: tuple[Commit, ...] = ()

    @property
    def committed(self) -> bool:
        """Whether the commit is in the table for good."""
        return self.fate is Fate.COMMITTED


def resolve_commit(services: Services, commit: str | CommitUnknownError) -> Resolution:
    """Look a commit up.

    With the id alone, a commit that is not there is undecided, unless one knows that no writer
    is left who could still send it. The error knows the version it was to follow, and if the
    table has moved on without it, it never will be made.
    """
    commit_id = commit.commit_id if isinstance(commit, CommitUnknownError) else commit
    if isinstance(commit, CommitUnknownError) and _is_dead(services, commit):
        return Resolution(commit_id=commit_id, fate=Fate.FAILED)
    found = services.backend.find_commit(commit_id)
    commits = tuple(
        commit_of(services.files_of(pointer).snapshot(pointer.snapshot_path)) for pointer in found
    )
    fate = Fate.COMMITTED if commits else Fate.UNDECIDED
    return Resolution(commit_id=commit_id, fate=fate, commits=commits)


def _is_dead(services: Services, error: CommitUnknownError) -> bool:
    """Whether the table has moved on without the commit, by one atomic read."""
    base, name = error.fields.get("base_version"), error.fields.get("table")
    if not isinstance(base, int) or not isinstance(name, str):
        return False
    outcome = services.backend.outcome(name, error.commit_id, since=base)
    if outcome.committed is not None:
        return False
    return outcome.head is None or outcome.head.version > base
