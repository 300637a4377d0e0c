"""The first version of a table, and its last: a tombstone."""

from collections.abc import Iterable

from lakebed.catalog.backend import CatalogBackend
from lakebed.clock import Clock
from lakebed.commit.actions import actions_of
from lakebed.commit.change import Change
from lakebed.commit.head import Head
from lakebed.commit.policy import RetryPolicy
from lakebed.commit.stage import Context, path_of, pointer_to, stage
from lakebed.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitUnknownError,
    LakebedError,
    UnavailableError,
)
from lakebed.files.metadata_files import MetadataFiles
from lakebed.format.metadata import TableMetadata, encode_metadata, schema_document
from lakebed.format.paths import table_path
from lakebed.format.pointer import Move, Pointer
from lakebed.format.snapshot import (
    SNAPSHOT_ID_RANDOM_BITS,
    Operation,
    Snapshot,
    encode_snapshot,
    make_snapshot_id,
)
from lakebed.ids import Ids
from lakebed.limits import FORMAT_VERSION


class Founder:
    """Creates tables in a catalog and takes them out of it."""

    def __init__(
        self,
        catalog: CatalogBackend,
        *,
        clock: Clock,
        ids: Ids,
        policy: RetryPolicy | None = None,
        user: str = "",
    ) -> None:
        self._catalog = catalog
        self._clock = clock
        self._ids = ids
        self._policy = policy or RetryPolicy()
        self._user = user

    def create(self, metadata: TableMetadata, *, location: str, files: MetadataFiles) -> Pointer:
        """Enter a new table; its metadata files are stored first.

        Raises:
            AlreadyExistsError: the name is taken.
            CommitUnknownError: the answer was lost and could not be found out.
        """
        context = self._context()
        version = self._catalog.next_version(metadata.name)
        metadata_path = table_path(self._ids.new())
        snapshot = Snapshot(
            format_version=FORMAT_VERSION,
            version=version,
            snapshot_id=make_snapshot_id(version, self._ids.bits(SNAPSHOT_ID_RANDOM_BITS)),
            table_id=metadata.table_id,
            table_name=metadata.name,
            commit_id=context.commit_id,
            timestamp_ms=metadata.created_ms,
            operation=Operation.CREATE,
            metadata_path=metadata_path,
            schema_id=0,
            spec_id=0,
        )
        document = encode_snapshot(snapshot)
        pointer = pointer_to(snapshot, location=location, path=path_of(version, context))
        objects = [(metadata_path, encode_metadata(metadata))]
        if not self._catalog.decides_by_snapshot:
            objects.append((pointer.snapshot_path, document))
        files.store.create_all(objects)
        actions = actions_of(snapshot, metadata, defines=True, user=self._user)
        move = Move(
            expected=pointer,
            new=pointer,
            document=document,
            actions=actions if self._catalog.keeps_log else (),
            schema_id=0,
            schema_json=schema_document(metadata.schema(0)),
        )
        try:
            self._catalog.create(move)
        except CommitUnknownError as error:
            self._settle(pointer, error)
        except (AlreadyExistsError, UnavailableError):
            _discard(files, [path for path, _ in objects])
            raise
        return pointer

    def drop(self, head: Head, files: MetadataFiles) -> Snapshot:
        """Take a table out of the catalog; its files stay, and a tombstone says what happened.

        Raises:
            CommitConflictError: another commit came first; nothing was changed.
        """
        context = self._context()
        attempt = stage(head, Change(operation=Operation.DROP), files=files, context=context)
        new = attempt.move.new
        if not self._catalog.decides_by_snapshot:
            files.store.create_all([(new.snapshot_path, attempt.move.document)])
        try:
            is_dropped = self._catalog.drop(attempt.move)
        except CommitUnknownError as error:
            self._settle(new, error)
            is_dropped = True
        except UnavailableError:
            self._discard_tombstone(files, new)
            raise
        if not is_dropped:
            self._discard_tombstone(files, new)
            raise CommitConflictError(
                f"{head.pointer.name} was changed by another commit before it could be dropped",
                hint="Nothing was changed. Try again",
                table=head.pointer.name,
            )
        return attempt.snapshot

    def _discard_tombstone(self, files: MetadataFiles, new: Pointer) -> None:
        if not self._catalog.decides_by_snapshot:
            _discard(files, [new.snapshot_path])

    def _context(self) -> Context:
        return Context(
            commit_id=self._ids.new(),
            now_ms=self._clock.now_ms(),
            ids=self._ids,
            user=self._user,
            named_by_version=self._catalog.decides_by_snapshot,
            keeps_log=self._catalog.keeps_log,
        )

    def _settle(self, pointer: Pointer, unknown: CommitUnknownError) -> None:
        """Return if the commit is found in the catalog; ask a few times, then give up."""
        for attempt in range(1, self._policy.answer_count_max + 1):
            try:
                if self._catalog.find_commit(pointer.commit_id):
                    return
            except UnavailableError:
                pass
            self._clock.sleep_ms(self._policy.delay_ms(attempt, self._ids))
        raise unknown


def _discard(files: MetadataFiles, paths: Iterable[str]) -> None:
    """Delete what was written for a step that is known never to be made.

    It would not harm, but `catalog rebuild` could take it for one that was. If that fails, so
    be it.
    """
    for path in paths:
        try:
            files.store.delete(path)
        except LakebedError:
            return
