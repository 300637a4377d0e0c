"""Reading data files: columns by field id, whatever they were called when a file was written.

    files -> runs of files with equal columns -> one Arrow dataset each -> batches at the
    current schema -> rows that match

A file's `schema_id` tells its columns' names inside. Arrow casts what was widened since, and
gives nulls for what a file lacks. The predicate is pushed down as far as it goes, and checked
again on the rows that come back where that is not all of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from lakebed.errors import BadDataFileError, RequestError, StorageError
from lakebed.expr.arrow import filter_mask, pushable
from lakebed.expr.bind import Bound
from lakebed.files.arrow_schema import to_arrow_schema
from lakebed.files.footer_check import check_footer
from lakebed.format.datafile import DataFile
from lakebed.format.metadata import TableMetadata
from lakebed.format.paths import check_path
from lakebed.format.schema import Schema
from lakebed.storage.store import Store

_BATCH_ROWS = 1 << 17
_FILES_AT_ONCE_MAX = 1024
_LARGE_FILES_AT_ONCE_MAX = 32
_SMALL_FILE_SIZE_BYTES = 4 << 20
_FILES_AHEAD_SMALL, _FILES_AHEAD_LARGE = 16, 4
_BATCHES_AHEAD = 8
_RECHECKED_FILE_COUNT_MAX = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """One read: what to give back, and what must be fetched for it."""

    store: Store
    metadata: TableMetadata
    schema: Schema
    output: Any  # the Arrow schema of the result
    fetched: Any  # the same with the columns that only the predicate needs
    where: Bound | None
    batch_rows: int


def output_schema(schema: Schema, columns: list[str] | None) -> Any:
    """The Arrow schema that `read_files` gives for these columns, in the order asked for."""
    whole = to_arrow_schema(schema, field_ids=False)
    if columns is None:
        return whole
    if len(set(columns)) != len(columns):
        raise RequestError(f"a column is asked for twice in {', '.join(columns)}")
    return pa.schema([whole.field(schema.field(name).name) for name in columns])


def read_files(
    store: Store,
    files: Sequence[DataFile],
    *,
    metadata: TableMetadata,
    schema: Schema,
    columns: list[str] | None,
    where: Bound | None,
    batch_rows: int | None = None,
) -> Iterator[Any]:
    """Give the matching rows of the files as record batches, in the order of the files.

    Memory is bounded by a few batches and row groups, however many files there are.

    Raises:
        ObjectMissingError: a file is not there.
        BadDataFileError: a file is damaged or is not the one the manifest describes.
    """
    output = output_schema(schema, columns)
    fetched = output
    for field_id in sorted(_ids_in(where)) if where is not None else ():
        name = schema.by_id[field_id].name
        if name not in fetched.names:
            fetched = fetched.append(to_arrow_schema(schema, field_ids=False).field(name))
    request = _Request(
        store=store,
        metadata=metadata,
        schema=schema,
        output=output,
        fetched=fetched,
        where=where,
        batch_rows=batch_rows or _BATCH_ROWS,
    )
    return _read(request, files)


def count_matching(
    store: Store,
    files: Sequence[DataFile],
    *,
    metadata: TableMetadata,
    schema: Schema,
    where: Bound | None,
) -> int:
    """Count the rows that match; without a predicate no file is opened."""
    if where is None:
        return sum(file.row_count for file in files)
    batches = read_files(store, files, metadata=metadata, schema=schema, columns=[], where=where)
    return sum(batch.num_rows for batch in batches)


def _read(request: _Request, files: Sequence[DataFile]) -> Iterator[Any]:
    for file in files:
        check_path(file.path)
    for (names, is_large), run in groupby(files, key=lambda file: _alike(request, file)):
        count = _LARGE_FILES_AT_ONCE_MAX if is_large else _FILES_AT_ONCE_MAX
        while some := list(islice(run, count)):
            yield from _Run(request, dict(names), some, is_large=is_large).batches()


def _alike(request: _Request, file: DataFile) -> tuple[Any, bool]:
    """What files that are read together have in common."""
    return _names_inside(request, file), file.size_bytes > _SMALL_FILE_SIZE_BYTES


def _names_inside(request: _Request, file: DataFile) -> tuple[tuple[int, tuple[str, bool]], ...]:
    """By field id, a wanted column's name in the file and whether its type is today's."""
    inside = request.metadata.schema(file.schema_id).by_id
    wanted = (request.schema.by_name[name] for name in request.fetched.names)
    return tuple(
        (field.id, (inside[field.id].name, inside[field.id].type == field.type))
        for field in wanted
        if field.id in inside
    )


class _Run:
    """Consecutive files whose columns have the same names and types inside."""

    def __init__(
        self,
        request: _Request,
        names: dict[int, tuple[str, bool]],
        files: list[DataFile],
        *,
        is_large: bool,
    ) -> None:
        self._request = request
        self._names = names
        self._files = files
        self._is_large = is_large
        self._checked = 0  # how many files have shown the row count of the manifest

    def batches(self) -> Iterator[Any]:
        """The matching rows, brought to the current schema."""
        request = self._request
        filesystem, prefix = request.store.arrow_filesystem()
        fragments = self._fragments(filesystem, prefix)
        places = {prefix + file.path: place for place, file in enumerate(self._files)}
        try:
            scanner = self._scanner(fragments, filesystem, self._pushed(filesystem, prefix))
            for tagged in scanner.scan_batches():
                self._check_until(places[tagged.fragment.path], fragments)
                batch = self._finish(tagged.record_batch)
                if batch.num_rows:
                    yield batch
            self._check_until(len(fragments) - 1, fragments)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise self._blame(error) from error

    def _fragments(self, filesystem: Any, prefix: str) -> list[Any]:
        options = ds.ParquetFragmentScanOptions(pre_buffer=True, page_checksum_verification=True)
        self._format = ds.ParquetFileFormat(default_fragment_scan_options=options)
        return [
            self._format.make_fragment(prefix + file.path, filesystem, file_size=file.size_bytes)
            for file in self._files
        ]

    def _scanner(self, fragments: list[Any], filesystem: Any, pushed: Any = None) -> Any:
        request = self._request
        fields = [
            pa.field(self._names[field_id][0], request.fetched.field(name).type)
            for name in request.fetched.names
            if (field_id := request.schema.by_name[name].id) in self._names
        ]
        dataset = ds.FileSystemDataset(fragments, pa.schema(fields), self._format, filesystem)
        return dataset.scanner(
            columns={str(place): pc.field(field.name) for place, field in enumerate(fields)},
            filter=pushed,
            batch_size=request.batch_rows,
            batch_readahead=_BATCHES_AHEAD,
            fragment_readahead=_FILES_AHEAD_LARGE if self._is_large else _FILES_AHEAD_SMALL,
        )

    def _pushed(self, filesystem: Any, prefix: str) -> Any:
        """The part of the predicate that Arrow can apply, and prune row groups by.

        Only for large files: small ones have been pruned by their statistics in the manifest,
        and Arrow must not prune by a footer that was not checked.
        """
        if self._request.where is None or not self._is_large:
            return None
        # Statistics of a file from before a widening are of the old type: nothing is pushed.
        exact = {field_id: name for field_id, (name, same) in self._names.items() if same}
        pushed = pushable(self._request.where, exact)
        for file in self._files if pushed is not None else ():
            with filesystem.open_input_file(prefix + file.path) as source:
                check_footer(source, file.path, source.size())
        return pushed

    def _finish(self, batch: Any) -> Any:
        """Name the columns as they are called today, add missing ones, drop other rows."""
        request = self._request
        columns, place = [], 0
        for field in request.fetched:
            if request.schema.by_name[field.name].id in self._names:
                columns.append(batch.column(place))
                place += 1
            else:
                columns.append(pa.nulls(batch.num_rows, field.type))
        if not columns:
            return batch
        whole = pa.RecordBatch.from_arrays(columns, schema=request.fetched)
        if request.where is not None:
            names = {field.id: field.name for field in request.schema.fields}
            whole = whole.filter(filter_mask(request.where, whole, names))
        return (
            whole.select(request.output.names) if request.output is not request.fetched else whole
        )

    def _check_until(self, place: int, fragments: list[Any]) -> None:
        """Compare row counts of the files up to `place`; their footers have been read by now."""
        while self._checked <= place:
            file = self._files[self._checked]
            row_count = fragments[self._checked].metadata.num_rows
            if row_count != file.row_count:
                raise BadDataFileError(
                    f"{file.path} has {row_count} rows where the manifest says {file.row_count}",
                    hint="Restore the file from a copy",
                    path=file.path,
                )
            self._checked += 1

    def _blame(self, error: Exception) -> StorageError | BadDataFileError:
        """Find the file that a scan of many has failed on: read the likely ones one by one."""
        store = self._request.store
        first = max(self._checked - 1, 0)
        for file in self._files[first : first + _RECHECKED_FILE_COUNT_MAX]:
            size_bytes = store.size(file.path)  # raises ObjectMissingError, which names it
            if size_bytes != file.size_bytes:
                return BadDataFileError(
                    f"{file.path} has {size_bytes} bytes where the manifest says {file.size_bytes}",
                    hint="Restore the file from a copy",
                    path=file.path,
                )
            found = self._damage(file)
            if found:
                return BadDataFileError(
                    f"{file.path} is damaged: {found}",
                    hint="Restore the file from a copy",
                    path=file.path,
                )
        if isinstance(error, OSError):
            return StorageError(f"the data files could not be read: {error}")
        return BadDataFileError(f"one of {len(self._files)} data files is damaged: {error}")

    def _damage(self, file: DataFile) -> str:
        filesystem, prefix = self._request.store.arrow_filesystem()
        alone = _Run(self._request, self._names, [file], is_large=False)  # no filter
        try:
            for _ in alone._scanner(alone._fragments(filesystem, prefix), filesystem).to_batches():
                pass
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            return str(error)
        return ""


def _ids_in(where: Bound) -> frozenset[int]:
    """The columns that a predicate looks at."""
    return where.field_ids
