"""The protocol loop: from changes to one new version of each table, all or nothing.

    load heads ─► conflict check ─► stage ─► write files ─► swap ─► done
        ▲                                                     │
        └────────────── lost: somebody was first ─────────────┘

Only the metadata step is repeated: data files are written once. A writer that has lost a race
waits in the catalog's line for its next attempt, so that N writers get near the rate of one.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from lakebed.catalog.backend import CatalogBackend
from lakebed.clock import Clock
from lakebed.commit.change import Change, Commit, commit_of
from lakebed.commit.head import Head, read_head
from lakebed.commit.manifest_list import Prepared, prepare
from lakebed.commit.policy import RetryPolicy
from lakebed.commit.rebase import check_conflicts
from lakebed.commit.stage import Attempt, Context, stage
from lakebed.commit.swap import decide
from lakebed.commit.token import repeated_commit
from lakebed.errors import (
    CommitConflictError,
    LakebedError,
    RequestError,
    TokenError,
    UnavailableError,
)
from lakebed.files.metadata_files import MetadataFiles
from lakebed.format.pointer import Pointer
from lakebed.ids import Ids
from lakebed.limits import TAIL_FILE_COUNT_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One table of a commit: what is to happen to it, and the version that was looked at.

    `pending` are data files that `change.added` names and that are not stored yet; they are
    written together with the first attempt's metadata.
    """

    files: MetadataFiles
    base: Pointer
    change: Change
    pending: tuple[tuple[str, bytes | memoryview], ...] = ()


class Committer:
    """Commits changes to the tables of one catalog; used from several threads."""

    def __init__(
        self,
        catalog: CatalogBackend,
        *,
        clock: Clock,
        ids: Ids,
        policy: RetryPolicy | None = None,
        user: str = "",
    ) -> None:
        self.catalog = catalog
        self._clock = clock
        self._ids = ids
        self._policy = policy or RetryPolicy()
        self._user = user
        self._was_contended = False  # a hint: then the next commit waits in line at once

    def commit(self, targets: Sequence[Target]) -> list[Commit]:
        """Make one new version of each table, or none of any.

        Raises:
            CommitConflictError: another commit stands against it; nothing was changed.
            CommitUnknownError: the answer was lost and could not be found out.
            TokenError: the token goes back behind one already committed.
        """
        if len(targets) > 1 and not self.catalog.multi_table:
            raise RequestError(
                f"{self.catalog.uri} cannot commit several tables at once",
                hint="Use a catalog in SQLite or PostgreSQL, or commit table by table",
            )
        run = _Run(targets, self._ids.new(), self._ids)
        names = [target.base.name for target in targets]
        in_line = self._was_contended
        for attempt in range(1, self._policy.attempt_count_max + 1):
            if in_line:
                run.write_pending()  # The line is no place to wait for data.
            with self._line(names) if in_line else nullcontext():
                done = self._try(run, attempt)
            if done is not None:
                # While others commit too, the next one would lose its first race as well.
                self._was_contended = attempt > 1 or run.is_overtaken
                return done
            in_line = True
            self._clock.sleep_ms(self._policy.delay_ms(attempt, self._ids))
        raise CommitConflictError(
            f"{', '.join(names)}: other commits came first {self._policy.attempt_count_max} times",
            hint="Nothing was changed. Try again, or raise the number of attempts",
            table=names[0],
            attempts=self._policy.attempt_count_max,
        )

    def _line(self, names: Sequence[str]) -> AbstractContextManager[None]:
        return self.catalog.queue(names)

    def _try(self, run: "_Run", number: int) -> list[Commit] | None:
        """Make one attempt; None if the race was lost."""
        heads = [self._head(target) for target in run.targets]
        run.is_overtaken = any(
            head.pointer.version != target.base.version
            for target, head in zip(run.targets, heads, strict=True)
        )
        done = self._repeated(run, heads)
        if done is not None:
            return done
        for target, head in zip(run.targets, heads, strict=True):
            check_conflicts(target.change, target.base, head, target.files)
        context = Context(
            commit_id=run.commit_id,
            now_ms=self._clock.now_ms(),
            ids=self._ids,
            user=self._user,
            named_by_version=self.catalog.decides_by_snapshot,
            keeps_log=self.catalog.keeps_log,
        )
        attempts = run.stage(heads, context)
        run.write(attempts, with_snapshot=not self.catalog.decides_by_snapshot)
        if not self._decide(run, attempts):
            return None
        for target, attempt in zip(run.targets, attempts, strict=True):
            _remember(target.files, attempt)
        return [commit_of(attempt.snapshot, attempts=number) for attempt in attempts]

    def _decide(self, run: "_Run", attempts: Sequence[Attempt]) -> bool:
        """Swap; what is certain never to be made leaves no snapshot behind."""
        moves = [attempt.move for attempt in attempts]
        try:
            is_made = decide(
                self.catalog, moves, policy=self._policy, clock=self._clock, ids=self._ids
            )
        except UnavailableError:
            self._discard(run, attempts)
            raise
        if not is_made:
            self._discard(run, attempts)
        return is_made

    def _discard(self, run: "_Run", attempts: Sequence[Attempt]) -> None:
        if not self.catalog.decides_by_snapshot:
            run.discard(attempts)

    def _head(self, target: Target) -> Head:
        pointer = self.catalog.load(target.base.name)
        if pointer.table_id != target.base.table_id:
            raise CommitConflictError(
                f"{target.base.name} was dropped and created anew since it was opened",
                hint="Nothing was changed. Open the table again: catalog.table(name)",
                table=target.base.name,
            )
        return read_head(target.files, pointer)

    def _repeated(self, run: "_Run", heads: Sequence[Head]) -> list[Commit] | None:
        found = [
            repeated_commit(self.catalog, target.files, head, target.change.token)
            for target, head in zip(run.targets, heads, strict=True)
        ]
        known = [commit for commit in found if commit is not None]
        if known and len(known) < len(found):
            raise TokenError(
                f"the token was committed to {known[0].table} without the other tables",
                hint="Use one app name for each set of tables that commit together",
            )
        return known or None


class _Run:
    """The files of one commit over all its attempts."""

    def __init__(self, targets: Sequence[Target], commit_id: str, ids: Ids) -> None:
        self.targets = targets
        self.commit_id = commit_id
        self.is_overtaken = False  # others have committed since the change was planned
        self._ids = ids
        self._is_pending_written = False
        self._prepared: dict[int, tuple[Prepared, ...]] = {}
        self._written: set[str] = set()

    def stage(self, heads: Sequence[Head], context: Context) -> list[Attempt]:
        """Make an attempt for each table."""
        return [
            stage(
                head,
                target.change,
                files=target.files,
                context=context,
                prepared=self._manifests(place, target.change, head),
            )
            for place, (target, head) in enumerate(zip(self.targets, heads, strict=True))
        ]

    def write_pending(self) -> None:
        """Store the data files, once."""
        if not self._is_pending_written:
            for target in self.targets:
                if target.pending:
                    target.files.store.create_all(target.pending)
            self._is_pending_written = True

    def write(self, attempts: Sequence[Attempt], *, with_snapshot: bool) -> None:
        """Store all that must be there before the swap: at once, so that fsyncs overlap."""
        for target, attempt in zip(self.targets, attempts, strict=True):
            objects: list[tuple[str, bytes | memoryview]] = []
            if not self._is_pending_written:
                objects += target.pending
            objects += [each for each in attempt.objects if each[0] not in self._written]
            if with_snapshot:
                objects.append((attempt.move.new.snapshot_path, attempt.move.document))
            if objects:
                target.files.store.create_all(objects)
            self._written |= {path for path, _ in attempt.objects}
        self._is_pending_written = True

    def discard(self, attempts: Sequence[Attempt]) -> None:
        """Delete the snapshots of an attempt that is known never to be made.

        They would not harm, but `catalog rebuild` could take one for the head. If that fails,
        so be it.
        """
        for target, attempt in zip(self.targets, attempts, strict=True):
            try:
                target.files.store.delete(attempt.move.new.snapshot_path)
            except LakebedError:
                return

    def _manifests(self, place: int, change: Change, head: Head) -> tuple[Prepared, ...]:
        """Manifests for many added files: written once, whatever version they land on."""
        if len(change.added) <= TAIL_FILE_COUNT_MAX:
            return ()
        if place not in self._prepared:
            after = change.define(head.definition) if change.define else head.definition
            self._prepared[place] = prepare(change.added, metadata=after.metadata, ids=self._ids)
        return self._prepared[place]


def _remember(files: MetadataFiles, attempt: Attempt) -> None:
    files.keep_metadata(attempt.snapshot.metadata_path, attempt.metadata)
    files.keep_snapshot(attempt.move.new.snapshot_path, attempt.snapshot)
