"""Reading data files: columns by field id, whatever they were called when a file was written.

    files -> runs of files with equal columns -> one Arrow dataset each -> batches at the
    current schema -> rows that match

A file's `schema_id` tells its columns' names inside. Arrow casts what was widened since, and
gives nulls for what a file lacks. Row groups of large files are pruned by the statistics in the
footer, and the predicate is applied to the rows that come back.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.fs import LocalFileSystem

from lakebed.errors import BadDataFileError, RequestError, StorageError
from lakebed.expr.arrow import filter_mask
from lakebed.expr.bind import Bound
from lakebed.expr.prune import may_match
from lakebed.files.arrow_schema import to_arrow_schema
from lakebed.files.footer import mismatches
from lakebed.files.parquet_layout import read_layout
from lakebed.files.parquet_stats import GroupEvidence
from lakebed.files.sized import sized
from lakebed.format.datafile import DataFile
from lakebed.format.metadata import TableMetadata
from lakebed.format.paths import check_path
from lakebed.format.schema import Schema
from lakebed.format.types import Primitive
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
    for field_id in sorted(where.field_ids()) if where is not None else ():
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


def _names_inside(request: _Request, file: DataFile) -> tuple[tuple[int, str], ...]:
    """By field id, the names that wanted columns have in the file; those it lacks are left out."""
    inside = request.metadata.schema(file.schema_id).by_id
    wanted = (request.schema.by_name[name].id for name in request.fetched.names)
    return tuple((number, inside[number].name) for number in wanted if number in inside)


class _Run:
    """Consecutive files whose columns have the same names inside."""

    def __init__(
        self,
        request: _Request,
        names: dict[int, str],
        files: list[DataFile],
        *,
        is_large: bool,
    ) -> None:
        self._request = request
        self._names = names
        self._files = files
        self._is_large = is_large
        self._checked = 0  # how many files have shown to be those of the manifest
        self._sound: Any = None  # the Parquet schema of the last of them

    def batches(self) -> Iterator[Any]:
        """The matching rows, brought to the current schema."""
        request = self._request
        filesystem, prefix = request.store.arrow_filesystem()
        if isinstance(filesystem, LocalFileSystem):
            self._check_links()
        else:
            sizes = {prefix + file.path: file.size_bytes for file in self._files}
            filesystem = sized(filesystem, sizes)
        try:
            fragments = self._fragments(filesystem, prefix)
            if request.where is not None and self._is_large:
                fragments = self._promising(request.where, fragments, filesystem, prefix)
            places = {prefix + file.path: place for place, file in enumerate(self._files)}
            for tagged in self._scanner(fragments, filesystem).scan_batches():
                self._check_until(places[tagged.fragment.path], fragments)
                batch = self._finish(tagged.record_batch)
                if batch.num_rows:
                    yield batch
            self._check_until(len(fragments) - 1, fragments)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self._blame(error) from error

    def _check_links(self) -> None:
        """Let the store look at each name: unlike pyarrow, it does not follow links."""
        for file in self._files:
            self._check_size(file)

    def _check_size(self, file: DataFile) -> None:
        size_bytes = self._request.store.size(file.path)
        if size_bytes != file.size_bytes:
            raise _damaged(
                file, f"has {size_bytes} bytes where the manifest says {file.size_bytes}"
            )

    def _fragments(self, filesystem: Any, prefix: str) -> list[Any]:
        # Its import brings pandas along: half a second that only those pay who read rows.
        import pyarrow.dataset as ds

        options = ds.ParquetFragmentScanOptions(pre_buffer=True, page_checksum_verification=True)
        self._format = ds.ParquetFileFormat(default_fragment_scan_options=options)
        return [
            self._format.make_fragment(prefix + file.path, filesystem, file_size=file.size_bytes)
            for file in self._files
        ]

    def _scanner(self, fragments: list[Any], filesystem: Any) -> Any:
        request = self._request
        fields = [
            pa.field(self._names[field_id], request.fetched.field(name).type)
            for name in request.fetched.names
            if (field_id := request.schema.by_name[name].id) in self._names
        ]
        import pyarrow.dataset as ds

        dataset = ds.FileSystemDataset(fragments, pa.schema(fields), self._format, filesystem)
        return dataset.scanner(
            columns={str(place): pc.field(field.name) for place, field in enumerate(fields)},
            batch_size=request.batch_rows,
            batch_readahead=_BATCHES_AHEAD,
            fragment_readahead=_FILES_AHEAD_LARGE if self._is_large else _FILES_AHEAD_SMALL,
        )

    def _promising(
        self, where: Bound, fragments: list[Any], filesystem: Any, prefix: str
    ) -> list[Any]:
        """Only the row groups that can hold matching rows, and only the files that have such.

        Small files have been pruned by their statistics in the manifest. Arrow is not given the
        predicate: a damaged footer makes it wait for ever, and it knows neither NaN nor -0.0.
        """
        kinds = ((i, name, self._request.schema.by_id[i].type) for i, name in self._names.items())
        columns = [(i, name, kind) for i, name, kind in kinds if isinstance(kind, Primitive)]
        kept_files, kept = [], []
        for file, fragment in zip(self._files, fragments, strict=True):
            with filesystem.open_input_file(prefix + file.path) as source:
                layout = read_layout(source, file.path, file.size_bytes)
            groups = may_match(where, GroupEvidence(layout, columns)).nonzero()[0].tolist()
            if groups:
                kept_files.append(file)
                is_whole = len(groups) == len(layout.groups)
                kept.append(fragment if is_whole else fragment.subset(row_group_ids=groups))
        self._files = kept_files
        return kept

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
        whole = batch  # of no columns, which has a length nonetheless
        if columns:
            whole = pa.RecordBatch.from_arrays(columns, schema=request.fetched)
        if request.where is not None:
            names = {field.id: field.name for field in request.schema.fields}
            whole = whole.filter(filter_mask(request.where, whole, names))
        return (
            whole.select(request.output.names) if request.output is not request.fetched else whole
        )

    def _check_until(self, place: int, fragments: list[Any]) -> None:
        """Compare the files up to `place` with the manifest; their footers were read by now."""
        while self._checked <= place:
            file, fragment = self._files[self._checked], fragments[self._checked]
            footer = fragment.metadata
            groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
            row_count = sum(group.num_rows for group in groups)
            if row_count != file.row_count or footer.num_rows != file.row_count:
                raise _damaged(
                    file, f"has {row_count} rows where the manifest says {file.row_count}"
                )
            if self._sound is None or not footer.schema.equals(self._sound):
                self._check_columns(file, fragment.physical_schema)
                self._sound = footer.schema
            self._checked += 1

    def _check_columns(self, file: DataFile, inside: Any) -> None:
        """Arrow gives nulls for a column it does not find, and casts what it should not."""
        for field_id, name in self._names.items():
            ours = self._request.schema.by_id[field_id]
            place = inside.get_field_index(name)
            if place >= 0:
                for problem in mismatches(ours.type, inside.field(place).type, name):
                    raise _damaged(file, f"is not what was written: {problem}")
            elif ours.required or field_id in file.stats:
                # An adopted file may lack a column, and then has no statistics of it.
                raise _damaged(file, f"lacks the column {name!r}")

    def _blame(self, error: Exception) -> StorageError | BadDataFileError:
        """Find the file that a scan of many has failed on: read the likely ones one by one."""
        first = max(self._checked - 1, 0)
        for file in self._files[first : first + _RECHECKED_FILE_COUNT_MAX]:
            self._check_size(file)  # raises ObjectMissingError, which names it
            found = self._damage(file)
            if found:
                return _damaged(file, f"is damaged: {found}")
        if isinstance(error, OSError):
            return StorageError(f"the data files could not be read: {error}")
        return BadDataFileError(f"one of {len(self._files)} data files is damaged: {error}")

    def _damage(self, file: DataFile) -> str:
        filesystem, prefix = self._request.store.arrow_filesystem()
        alone = _Run(self._request, self._names, [file], is_large=False)  # no filter
        try:
            for _ in alone._scanner(alone._fragments(filesystem, prefix), filesystem).to_batches():
                pass
        except (pa.ArrowException, OSError, ValueError) as error:
            return str(error)
        return ""


def _damaged(file: DataFile, why: str) -> BadDataFileError:
    return BadDataFileError(
        f"{file.path} {why}", hint="Restore the file from a copy", path=file.path
    )
