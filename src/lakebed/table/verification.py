"""Data files that somebody else put in place, looked at before they become part of a table."""

from collections.abc import Iterable, Sequence

from lakebed.commit.change import Change, Isolation
from lakebed.commit.head import Head
from lakebed.errors import BadDataFileError, RequestError
from lakebed.files.footer import adopt
from lakebed.format.datafile import DataFile
from lakebed.format.metadata import TableMetadata
from lakebed.format.pointer import Token
from lakebed.format.snapshot import Operation
from lakebed.storage.store import Store


def adopted(store: Store, paths: Iterable[str], head: Head) -> tuple[DataFile, ...]:
    """Describe Parquet files inside a table's directory; absolute paths may lead into it."""
    if isinstance(paths, str):
        paths = [paths]
    schema = head.metadata.schema(head.snapshot.schema_id)
    spec = head.metadata.spec(head.snapshot.spec_id)
    relative = [_relative(store, path) for path in paths]
    _refuse_repeated(relative)
    return tuple(adopt(store, path, schema=schema, spec=spec) for path in relative)


def verified(store: Store, files: Sequence[DataFile], metadata: TableMetadata) -> None:
    """Raise unless each file is there and is what its description says.

    Raises:
        SchemaMismatchError: its columns or its partition do not fit the table.
        BadDataFileError: its size, rows or partition are not what was said.
    """
    _refuse_repeated([file.path for file in files])
    for file in files:
        found = adopt(
            store,
            file.path,
            schema=metadata.schema(file.schema_id),
            spec=metadata.spec(file.spec_id),
        )
        for what in ("row_count", "size_bytes", "partition"):
            said, is_so = getattr(file, what), getattr(found, what)
            if said != is_so:
                raise BadDataFileError(
                    f"{file.path} has {what} {is_so}, and {said} was said of it",
                    hint="Nothing was changed. Describe the file as it is, or use add_files",
                    path=file.path,
                )


def files_change(
    head: Head,
    added: tuple[DataFile, ...],
    removed: tuple[DataFile, ...],
    token: Token | None,
    *,
    adopts: bool,
    data_change: bool,
) -> Change:
    """The change that puts files in place of others, whoever wrote them."""
    if not data_change:
        operation = Operation.REWRITE
    else:
        operation = Operation.OVERWRITE if removed else Operation.APPEND
    return Change(
        operation=operation,
        added=added,
        removed=removed,
        isolation=Isolation.of(head.metadata),
        data_change=data_change,
        adopts=adopts,
        token=token,
    )


def _relative(store: Store, path: str) -> str:
    text = str(path)
    inside = store.uri.rstrip("/") + "/"
    return text.removeprefix("file://").removeprefix(inside)


def _refuse_repeated(paths: Sequence[str]) -> None:
    if len(set(paths)) != len(paths):
        twice = next(path for path in paths if paths.count(path) > 1)
        raise RequestError(f"{twice} is named more than once", hint="Nothing was changed")
