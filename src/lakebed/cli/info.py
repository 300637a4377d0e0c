"""`lakebed info`: a card of one table, or one line for each."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from lakebed.cli.failure import ExitCode
from lakebed.cli.group import command
from lakebed.cli.output import Column, Output
from lakebed.cli.session import Session
from lakebed.cli.text import age, count, escape, iso_time, pad, plural, size, when, width
from lakebed.cli.values import plain_column
from lakebed.errors import BadTableError, NotFoundError, StorageError

if TYPE_CHECKING:
    from lakebed.format.schema import Schema
    from lakebed.format.snapshot import Snapshot
    from lakebed.table.catalog import Catalog
    from lakebed.table.scan import Scan
    from lakebed.table.table import Table

_MEGABYTE = 1_000_000
_SIZE_CLASSES = (  # label, size in bytes below which a file belongs to it
    ("<1M", _MEGABYTE),
    ("1-16M", 16 * _MEGABYTE),
    ("16-128M", 128 * _MEGABYTE),
    (">128M", None),
)
_BARS = " ▁▂▃▄▅▆▇█"


def _known(show: Callable[[int], str]) -> Callable[[Any], str]:
    """The same for a number that a damaged table does not tell."""
    return lambda value: "?" if value is None else show(value)


def _if_any(problem: str | None) -> str:
    return escape(problem or "")


LIST_COLUMNS = (
    Column(key="name", title="name"),
    Column(key="version", title="version", show=_known(count), right=True),
    Column(key="rows", title="rows", show=_known(count), right=True),
    Column(key="bytes", title="size", show=_known(size), right=True),
    Column(key="files", title="files", show=_known(count), right=True),
    Column(key="last_commit_ms", title="last commit", show=_known(when)),
    Column(key="last_commit"),
    Column(key="problem", title="problem", show=_if_any, optional=True),
)


@command("info")
@click.argument("name", required=False)
@click.pass_obj
def info(session: Session, name: str | None) -> None:
    """Show what the table NAME holds; without NAME, one line for each table.

    All of it comes from metadata, but for times in files without statistics.
    """
    if name is None:
        _list(session)
        return
    record = table_record(session.table(name))
    now_ms = session.clock.now_ms()
    session.output.record(record, lambda: card(record, session.output, now_ms))


def _list(session: Session) -> None:
    """One line for each table; a damaged one must not hide the others."""
    catalog = session.catalog()
    lines = [_line(catalog, name) for name in sorted(catalog.tables())]
    found = [line for line in lines if line is not None]
    session.output.rows(LIST_COLUMNS, found)
    if any(line["problem"] for line in found):
        raise click.exceptions.Exit(ExitCode.PROBLEMS)


def _line(catalog: "Catalog", name: str) -> dict[str, Any] | None:
    """One table in a list, or None if it was dropped since the list was made."""
    try:
        return line_record(catalog.table(name).current_snapshot()) | {"problem": None}
    except NotFoundError:
        return None
    except (BadTableError, StorageError) as error:
        unknown = dict.fromkeys(column.key for column in LIST_COLUMNS)
        return unknown | {"name": name, "problem": error.message}


def line_record(snapshot: "Snapshot") -> dict[str, Any]:
    """The numbers of a version."""
    return {
        "name": snapshot.table_name,
        "version": snapshot.version,
        "rows": snapshot.summary.total_rows,
        "bytes": snapshot.summary.total_bytes,
        "files": snapshot.summary.total_files,
        "last_commit_ms": snapshot.timestamp_ms,
        "last_commit": iso_time(snapshot.timestamp_ms),
    }


def table_record(table: "Table") -> dict[str, Any]:
    """All that is known of one version of a table, for programs."""
    head = table.head()
    snapshot, metadata = head.snapshot, head.metadata
    schema = metadata.schema(snapshot.schema_id)
    scan = table.scan(as_of=snapshot.version)
    return line_record(snapshot) | {
        "last_operation": str(snapshot.operation),
        "snapshot_id": snapshot.snapshot_id,
        "table_id": metadata.table_id,
        "created": iso_time(metadata.created_ms),
        "location": table.location,
        "description": metadata.description,
        "columns": [
            {"id": f.id, "name": f.name, "type": str(f.type), "required": f.required, "doc": f.doc}
            for f in schema.fields
        ],
        "partition_by": metadata.spec(snapshot.spec_id).describe(schema),
        "time_range": _time_range(scan, schema),
        "tags": dict(sorted(metadata.tags.items())),
        "properties": dict(sorted(metadata.properties.items())),
        "file_sizes": _file_sizes(scan),
    }


def _time_range(scan: "Scan", schema: "Schema") -> dict[str, Any] | None:
    """From the first to the last moment in the first column that holds moments."""
    from lakebed.format.types import TIMESTAMPS, Primitive

    for field in schema.fields:
        if isinstance(field.type, Primitive) and field.type.kind in TIMESTAMPS:
            first, last = (_moment(value) for value in (scan.min(field.name), scan.max(field.name)))
            return None if first is None else {"column": field.name, "min": first, "max": last}
    return None


def _moment(value: Any) -> Any:
    """A time as `lakebed scan` shows it; Arrow's own scalars keep nanoseconds."""
    import pyarrow as pa

    return plain_column(pa.array([value], value.type))[0]


def _file_sizes(scan: "Scan") -> list[dict[str, Any]]:
    """How many files there are of each size class."""
    import pyarrow.compute as pc

    tables = [part.table.column("size_bytes") for part in scan.plan.parts]
    classes, counted = [], 0
    for label, below in _SIZE_CLASSES:
        upto = scan.plan.file_count
        if below is not None:
            upto = sum(pc.sum(pc.less(sizes, below)).as_py() or 0 for sizes in tables)
        classes.append({"class": label, "files": upto - counted})
        counted = upto
    return classes


def card(record: dict[str, Any], output: Output, now_ms: int) -> Iterator[str]:
    """The same for people."""
    yield "   ".join(
        [
            output.bold(f"{escape(record['name'])}  v{count(record['version'])}"),
            plural(record["rows"], "row"),
            f"{size(record['bytes'])} in {plural(record['files'], 'file')}",
        ]
    )
    passed = age(record["last_commit_ms"], now_ms)
    yield (
        f"{record['last_operation']} at {when(record['last_commit_ms'])}"
        f"{f' ({passed})' if passed else ''}"
    )
    if record["time_range"]:
        span = record["time_range"]
        yield f"{escape(span['column'])} from {span['min']} to {span['max']}"
    if record["description"]:
        yield escape(record["description"])
    yield f"location {escape(record['location'])}"
    if record["partition_by"]:
        yield f"partitioned by {escape(', '.join(record['partition_by']))}"
    yield output.dim("columns")
    yield from _column_lines(record["columns"])
    for title, values, mark in (("tags", "tags", " -> v"), ("properties", "properties", " = ")):
        if record[values]:
            yield output.dim(title)
            yield from (f"  {escape(f'{k}{mark}{v}')}" for k, v in record[values].items())
    if record["files"]:
        yield f"file sizes  {sketch(record['file_sizes'])}"


def _column_lines(columns: list[dict[str, Any]]) -> Iterator[str]:
    names = [escape(column["name"]) for column in columns]
    types = [escape(column["type"]) for column in columns]
    name_cells, type_cells = (max(map(width, texts), default=0) for texts in (names, types))
    for name, kind, column in zip(names, types, columns, strict=True):
        notes = f"{'not null  ' if column['required'] else ''}{escape(column['doc'])}"
        yield f"  {pad(name, name_cells)}  {pad(kind, type_cells)}  {notes}".rstrip()


def sketch(classes: list[dict[str, Any]]) -> str:
    """A small bar for each size class: <1M ▇ 131 | 1-16M ▃ 40 | …."""
    most = max(entry["files"] for entry in classes)
    steps = len(_BARS) - 1
    return " | ".join(
        f"{label} {_BARS[-(-files * steps // most)].strip() or '·'} {count(files)}"
        for label, files in ((entry["class"], entry["files"]) for entry in classes)
    )
