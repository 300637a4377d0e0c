"""One attempt at a commit: the head and a change become the files and the move of a version.

    head + change ─┬─ manifest list (tail, folded manifests)   metadata/manifest-….parquet
                   ├─ definition, if it changes                metadata/table-….json
                   └─ snapshot                                 metadata/snap-….json
                          └─ Move: what the catalog is asked to do

Nothing is written here: an attempt is a value, and a lost one costs no more than its making.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lakebed.commit.actions import actions_of
from lakebed.commit.change import Change, Definition
from lakebed.commit.head import Head
from lakebed.commit.manifest_list import Draft, ManifestList, Prepared
from lakebed.errors import CommitConflictError, RequestError
from lakebed.files.delta import difference
from lakebed.files.metadata_files import MetadataFiles
from lakebed.format.datafile import DataFile
from lakebed.format.metadata import TableMetadata, encode_metadata, schema_document
from lakebed.format.paths import snapshot_path, table_path
from lakebed.format.pointer import Action, Move, Pointer, Token
from lakebed.format.snapshot import (
    SNAPSHOT_ID_RANDOM_BITS,
    Snapshot,
    Summary,
    encode_snapshot,
    make_snapshot_id,
)
from lakebed.ids import Ids
from lakebed.limits import FORMAT_VERSION, TOKEN_APP_COUNT_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A version that is ready to be written and asked for."""

    snapshot: Snapshot
    metadata: TableMetadata
    move: Move
    objects: tuple[tuple[str, bytes], ...]  # manifests and definition; not the snapshot itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What does not change from one attempt of a commit to the next."""

    commit_id: str
    now_ms: int
    ids: Ids
    user: str
    named_by_version: bool  # the catalog decides by the snapshot's name alone
    keeps_log: bool


def stage(
    head: Head,
    change: Change,
    *,
    files: MetadataFiles,
    context: Context,
    prepared: Sequence[Prepared] = (),
) -> Attempt:
    """Make the next version from the head.

    Raises:
        CommitConflictError: a file that the change removes is not in the table any more.
        RequestError: a file that it adopts is in the table already.
    """
    after = change.define(head.definition) if change.define is not None else head.definition
    if change.restore is not None:
        after = Definition(
            metadata=after.metadata,
            schema_id=change.restore.schema_id,
            spec_id=change.restore.spec_id,
        )
    defines = after != head.definition
    metadata_path = head.snapshot.metadata_path
    objects: list[tuple[str, bytes]] = []
    if after.metadata != head.metadata:
        metadata_path = table_path(context.ids.new())
        objects.append((metadata_path, encode_metadata(after.metadata)))
    draft = _draft(head, change, after, files, context, prepared)
    if change.restore is not None:
        added, removed = difference(files, head.snapshot, change.restore)
    else:
        added, removed = change.added, change.removed
    summary = _summary(head.snapshot.summary, added, removed)
    snapshot = _snapshot(head, change, after, draft, context, metadata_path, summary)
    actions: tuple[Action, ...] = ()
    if context.keeps_log:
        actions = actions_of(
            snapshot,
            after.metadata,
            added=added,
            removed=removed,
            defines=defines,
            user=context.user,
        )
    return Attempt(
        snapshot=snapshot,
        metadata=after.metadata,
        move=_move(head, snapshot, after, change.token, context, actions),
        objects=(*objects, *draft.objects),
    )


def pointer_to(snapshot: Snapshot, *, location: str, path: str) -> Pointer:
    """What the catalog will say of a snapshot."""
    return Pointer(
        name=snapshot.table_name,
        table_id=snapshot.table_id,
        location=location,
        version=snapshot.version,
        snapshot_id=snapshot.snapshot_id,
        snapshot_path=path,
        commit_id=snapshot.commit_id,
        timestamp_ms=snapshot.timestamp_ms,
        operation=snapshot.operation.value,
    )


def path_of(version: int, context: Context) -> str:
    """Where the snapshot of a version goes.

    Each attempt has a name of its own, not the commit's: of several tables one may not have
    moved, and the clean-up of the lost attempt must never meet the file of the next one.
    """
    return snapshot_path(version, "" if context.named_by_version else context.ids.new())


def _draft(
    head: Head,
    change: Change,
    after: Definition,
    files: MetadataFiles,
    context: Context,
    prepared: Sequence[Prepared],
) -> Draft:
    if not (change.added or change.removed or change.restore):
        # Nothing but the definition changes: the list is taken over as it is.
        return Draft(refs=head.snapshot.manifest_list, objects=())
    base = change.restore or head.snapshot
    building = ManifestList(
        base.manifest_list,
        files=files,
        metadata=after.metadata,
        version=head.snapshot.version + 1,
        ids=context.ids,
    )
    missing = building.remove(change.removed)
    if missing:
        raise _gone(head, change, missing)
    if change.adopts and (twice := building.find(change.added)):
        raise RequestError(
            f"{twice[0]} is in {head.pointer.name} already",
            hint="Nothing was changed. Leave it out: its rows would be there twice",
            table=head.pointer.name,
            paths=twice,
        )
    if prepared:
        building.add_prepared(prepared)
    else:
        building.add(change.added)
    return building.finish()


def _gone(head: Head, change: Change, missing: list[DataFile]) -> CommitConflictError:
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return CommitConflictError(
        f"{change.operation.value} of {head.pointer.name} removes {missing[0].path}{more}, which "
        f"version {head.pointer.version} does not have",
        hint="Nothing was changed. Read the table again and repeat the operation",
        table=head.pointer.name,
        version=head.pointer.version,
        verdict="BOTH_REMOVED",
    )


def _snapshot(
    head: Head,
    change: Change,
    after: Definition,
    draft: Draft,
    context: Context,
    metadata_path: str,
    summary: Summary,
) -> Snapshot:
    parent = head.snapshot
    version = parent.version + 1
    tokens, is_complete = _tokens(parent, change.token, version)
    return Snapshot(
        format_version=FORMAT_VERSION,
        version=version,
        snapshot_id=make_snapshot_id(version, context.ids.bits(SNAPSHOT_ID_RANDOM_BITS)),
        table_id=parent.table_id,
        table_name=parent.table_name,
        commit_id=context.commit_id,
        timestamp_ms=max(context.now_ms, parent.timestamp_ms + 1),
        operation=change.operation,
        metadata_path=metadata_path,
        schema_id=after.schema_id,
        spec_id=after.spec_id,
        parent_id=parent.snapshot_id,
        parent_path=head.pointer.snapshot_path,
        data_change=change.data_change,
        manifest_list=draft.refs,
        summary=summary,
        parameters=change.parameters,
        token=change.token,
        tokens=tokens,
        tokens_complete=is_complete,
    )


def _summary(before: Summary, added: Sequence[DataFile], removed: Sequence[DataFile]) -> Summary:
    added_rows = sum(file.row_count for file in added)
    added_bytes = sum(file.size_bytes for file in added)
    removed_rows = sum(file.row_count for file in removed)
    removed_bytes = sum(file.size_bytes for file in removed)
    return Summary(
        added_files=len(added),
        removed_files=len(removed),
        added_rows=added_rows,
        removed_rows=removed_rows,
        added_bytes=added_bytes,
        total_files=before.total_files + len(added) - len(removed),
        total_rows=before.total_rows + added_rows - removed_rows,
        total_bytes=before.total_bytes + added_bytes - removed_bytes,
    )


def _tokens(
    parent: Snapshot, token: Token | None, version: int
) -> tuple[dict[str, tuple[int, int]], bool]:
    """The last tokens by app; of too many apps the one that was silent longest is left out."""
    if token is None:
        return parent.tokens, parent.tokens_complete
    tokens = {**parent.tokens, token.app: (token.version, version)}
    if len(tokens) <= TOKEN_APP_COUNT_MAX:
        return tokens, parent.tokens_complete
    del tokens[min(tokens, key=lambda app: tokens[app][1])]
    return tokens, False


def _move(
    head: Head,
    snapshot: Snapshot,
    after: Definition,
    token: Token | None,
    context: Context,
    actions: tuple[Action, ...],
) -> Move:
    is_new_schema = after.schema_id != head.snapshot.schema_id
    schema = after.metadata.schema(after.schema_id) if is_new_schema else None
    path = path_of(snapshot.version, context)
    return Move(
        expected=head.pointer,
        new=pointer_to(snapshot, location=head.pointer.location, path=path),
        document=encode_snapshot(snapshot),
        actions=actions,
        token=token,
        schema_id=None if schema is None else schema.id,
        schema_json=None if schema is None else schema_document(schema),
    )
