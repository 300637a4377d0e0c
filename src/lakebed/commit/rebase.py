"""Placing a change after commits that came in between: their deltas, and the conflict rules."""

from collections.abc import Iterator, Sequence
from functools import partial

from lakebed.commit.change import Change
from lakebed.commit.conflict import Verdict, check, conflict_error
from lakebed.commit.head import Head
from lakebed.errors import BadMetadataError
from lakebed.expr.prune import may_match
from lakebed.files.delta import delta_of
from lakebed.files.evidence import FileEvidence
from lakebed.files.manifest import to_table
from lakebed.files.metadata_files import MetadataFiles
from lakebed.format.datafile import DataFile, Entry
from lakebed.format.metadata import TableMetadata
from lakebed.format.pointer import Pointer
from lakebed.format.snapshot import Snapshot


def check_conflicts(change: Change, base: Pointer, head: Head, files: MetadataFiles) -> None:
    """Raise CommitConflictError if a commit since `base` stands against the change.

    A change that depends on nothing costs nothing here, however many commits there were.
    """
    if change.is_blind:
        return
    for snapshot in commits_since(files, head.snapshot, base.version):
        theirs = delta_of(files, snapshot)
        may_match_any = partial(_may_match_any, change, files.metadata(snapshot.metadata_path))
        verdict = check(change, theirs, may_match_any)
        if verdict is not Verdict.COMPATIBLE:
            raise conflict_error(change, theirs, verdict)


def commits_since(files: MetadataFiles, newest: Snapshot, version: int) -> Iterator[Snapshot]:
    """The snapshots after a version, newest first."""
    snapshot = newest
    while snapshot.version > version:
        yield snapshot
        if snapshot.parent_id is None:
            break
        parent = files.snapshot(snapshot.parent_path)
        if parent.snapshot_id != snapshot.parent_id or parent.table_id != snapshot.table_id:
            raise BadMetadataError(
                f"{snapshot.parent_path} is not the parent of version {snapshot.version}",
                path=snapshot.parent_path,
            )
        snapshot = parent


def _may_match_any(change: Change, metadata: TableMetadata, some: Sequence[DataFile]) -> bool:
    """Whether any of the files may hold rows that the change has read."""
    assert change.read is not None, "a blind change has read nothing"
    for spec_id in {file.spec_id for file in some}:
        spec = metadata.spec(spec_id)
        entries = [Entry(file=f, added_version=0) for f in some if f.spec_id == spec_id]
        evidence = FileEvidence(to_table(entries, spec, metadata), spec, metadata)
        if may_match(change.read, evidence).any():
            return True
    return False
