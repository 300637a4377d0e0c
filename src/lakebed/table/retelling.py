"""The moves of a table's history, told again from its files.

Where the catalog kept no log, or lost it, this is what it would have recorded.
"""

from collections.abc import Iterable, Iterator

from lakebed.commit.actions import actions_of
from lakebed.commit.stage import pointer_to
from lakebed.files.delta import delta_of
from lakebed.files.metadata_files import MetadataFiles
from lakebed.format.metadata import schema_document
from lakebed.format.pointer import Move, Pointer
from lakebed.format.snapshot import Snapshot


def retell(
    files: MetadataFiles, location: str, chain: Iterable[tuple[str, Snapshot]]
) -> Iterator[Move]:
    """Turn snapshots, oldest first and each with its path, back into the moves that made them.

    Who committed is not in the files; the rest is.
    """
    before: Pointer | None = None
    defined_by: tuple[str, int, int] | None = None
    for path, snapshot in chain:
        metadata = files.metadata(snapshot.metadata_path)
        delta = delta_of(files, snapshot)
        new = pointer_to(snapshot, location=location, path=path)
        definition = (snapshot.metadata_path, snapshot.schema_id, snapshot.spec_id)
        is_new_schema = defined_by is None or defined_by[1] != snapshot.schema_id
        schema = metadata.schema(snapshot.schema_id) if is_new_schema else None
        yield Move(
            expected=before or new,
            new=new,
            document=b"",
            actions=actions_of(
                snapshot,
                metadata,
                added=delta.added,
                removed=delta.removed,
                defines=definition != defined_by,
            ),
            token=snapshot.token,
            schema_id=None if schema is None else schema.id,
            schema_json=None if schema is None else schema_document(schema),
        )
        before, defined_by = new, definition
