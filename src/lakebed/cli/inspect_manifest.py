"""`lakebed inspect-manifest`: what the metadata says of a table's files."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from lakebed.cli.group import command
from lakebed.cli.output import Column, Form
from lakebed.cli.session import Session
from lakebed.cli.text import count, escape, pad, plural, size, width
from lakebed.cli.values import plain_column, to_text

if TYPE_CHECKING:
    import pyarrow as pa

    from lakebed.format.metadata import TableMetadata

MANIFEST_COLUMNS = (
    Column(key="path", title="manifest", show=lambda path: escape(path.rpartition("/")[2])),
    Column(key="inline"),
    Column(key="spec_id"),
    Column(key="written_version", title="version", show=count, right=True),
    Column(key="file_count", title="files", show=count, right=True),
    Column(key="deleted_count", title="deleted", show=count, right=True),
    Column(key="row_count", title="rows", show=count, right=True),
    Column(key="data_size_bytes", title="data", show=size, right=True),
    Column(key="size_bytes", title="size", show=size, right=True),
    Column(key="partitions", title="partitions"),
)


@command("inspect-manifest")
@click.argument("name")
@click.argument("manifest", required=False)
@click.pass_obj
def inspect_manifest(session: Session, name: str, manifest: str | None) -> None:
    """List the manifests of the table NAME, or the entries of one MANIFEST.

    A MANIFEST is named as the list names it; one that is inside a snapshot file is FILE#N. JSON
    and CSV have a column for each statistic, by field id: null_1, lower_1, upper_1 and so on.
    """
    table = session.table(name)
    output = session.output
    if manifest is None:
        found = table.inspect.manifests()
        columns = {name: plain_column(found.column(name)) for name in found.column_names}
        keys = [column.key for column in MANIFEST_COLUMNS]
        values = zip(*(columns[key] for key in keys), strict=True)
        output.rows(MANIFEST_COLUMNS, (dict(zip(keys, row, strict=True)) for row in values))
        return
    entries = table.inspect.manifest(manifest)
    if output.form is Form.TABLE:
        output.lines(cards(entries, table.metadata))
    else:
        output.arrow(entries.schema, entries.to_batches())


def cards(entries: "pa.Table", metadata: "TableMetadata") -> Iterator[str]:
    """Each file with what is known of its columns, for people."""
    columns = {name: plain_column(entries.column(name)) for name in entries.column_names}
    parts = {
        field.name: columns[f"part_{field.id}"]
        for spec in metadata.specs
        for field in spec.fields
        if f"part_{field.id}" in columns
    }
    names = {field.id: field.name for schema in metadata.schemas for field in schema.fields}
    known = {
        name: tuple(columns.get(f"{what}_{id}") for what in ("lower", "upper", "null", "nan"))
        for id, name in names.items()
        if f"null_{id}" in columns
    }
    cells = max((width(escape(name)) for name in (*parts, *known)), default=0)
    for place in range(entries.num_rows):
        yield "  ".join(
            [
                columns["status"][place],
                escape(columns["path"][place]),
                plural(columns["row_count"][place], "row"),
                size(columns["size_bytes"][place]),
                f"since v{count(columns['added_version'][place])}",
            ]
        )
        for name, values in parts.items():
            yield f"  {pad(escape(name), cells)}  {to_text(values[place])}"
        for name, stats in known.items():
            here = [None if values is None else values[place] for values in stats]
            yield f"  {pad(escape(name), cells)}  {_statistics(*here)}"


def _statistics(lower: Any, upper: Any, null_count: int | None, nan_count: int | None) -> str:
    """The range of a column in one file; a bound that is not known is left open."""
    is_known = lower is not None or upper is not None
    ends = (to_text(end) if end is not None else "" for end in (lower, upper))
    notes = [" .. ".join(ends)] if is_known else ["no range"]
    if null_count:
        notes.append(f"{count(null_count)} null")
    if nan_count:
        notes.append(f"{count(nan_count)} NaN")
    return ", ".join(notes)
