"""`lakebed diff`: what changed between two versions of a table."""

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from lakebed.cli.group import command
from lakebed.cli.output import Output
from lakebed.cli.progress import working
from lakebed.cli.reports import point
from lakebed.cli.session import Session
from lakebed.cli.text import count, escape, iso_time, plural, when

if TYPE_CHECKING:
    import pyarrow as pa

    from lakebed.format.schema import Schema
    from lakebed.format.types import Field
    from lakebed.table.changes import Changes
    from lakebed.table.table import Table

_VERSIONS_SHOWN_MAX = 20
_MARKS = {"added": "+", "dropped": "-"}


@command("diff")
@click.argument("name")
@click.argument("v1")
@click.argument("v2", required=False)
@click.option("--rows", is_flag=True, help="Print the rows themselves, with a column 'change'.")
@click.pass_obj
def diff(session: Session, name: str, v1: str, v2: str | None, rows: bool) -> None:
    """Show what happened to the table NAME after V1, up to and with V2 [default: the newest].

    V1 and V2 are versions, snapshot ids, times or tags. Rows that one commit removed and wrote
    again, as a delete does with the other rows of a file, do not count.
    """
    table = session.table(name)
    changes = table.changes(since=point(v1), until=None if v2 is None else point(v2))
    if rows:
        schema, batches = changed_rows(changes)
        session.output.arrow(schema, batches, cut=True)
        return
    with working(f"diff of {name}", quiet=session.quiet):
        record = diff_record(table, changes)
    session.output.record(record, lambda: card(record, session.output))


def changed_rows(changes: "Changes") -> tuple["pa.Schema", Iterator["pa.RecordBatch"]]:
    """Removed rows and then added ones, each with a column that says which it is."""
    import pyarrow as pa

    schema = changes.schema.insert(0, pa.field(_label_name(changes.schema.names), pa.string()))

    def marked(batch: "pa.RecordBatch", change: str) -> "pa.RecordBatch":
        label = pa.repeat(pa.scalar(change), batch.num_rows)
        return pa.RecordBatch.from_arrays([label, *batch.columns], schema=schema)

    removed = (marked(batch, "removed") for batch in changes.removed.to_batches())
    added = (marked(batch, "added") for batch in changes.added.to_batches())
    return schema, chain(removed, added)


def _label_name(taken: list[str]) -> str:
    """`change`, or that with as many underscores as make it unlike any column of the table."""
    name = "change"
    while name in taken:
        name = f"_{name}"
    return name


def diff_record(table: "Table", changes: "Changes") -> dict[str, Any]:
    """What changed, for programs; rows are counted net of what a commit wrote again."""
    metadata = table.metadata
    first, last = table.snapshot(changes.since), table.snapshot(changes.until)
    rows = {
        step.delta.snapshot.version: (step.count(added=True), step.count(added=False))
        for step in changes.steps
    }
    newest_first = table.history(limit=table.version - changes.since)
    versions = [
        {
            "version": snapshot.version,
            "timestamp_ms": snapshot.timestamp_ms,
            "timestamp": iso_time(snapshot.timestamp_ms),
            "operation": str(snapshot.operation),
            "added_rows": rows.get(snapshot.version, (0, 0))[0],
            "removed_rows": rows.get(snapshot.version, (0, 0))[1],
        }
        for snapshot in reversed(newest_first)
        if changes.since < snapshot.version <= changes.until
    ]
    return {
        "table": table.name,
        "since": changes.since,
        "until": changes.until,
        "added_rows": sum(added for added, _ in rows.values()),
        "removed_rows": sum(removed for _, removed in rows.values()),
        "schema_changes": schema_changes(
            metadata.schema(first.schema_id), metadata.schema(last.schema_id)
        ),
        "versions": versions,
    }


def schema_changes(old: "Schema", new: "Schema") -> list[dict[str, Any]]:
    """The columns that came, went, or changed; a column is known by its field id."""
    kept = {field.id: field for field in new.fields}
    found = [_column_change("dropped", f) for f in old.fields if f.id not in kept]
    before = {field.id: field for field in old.fields}
    for field in new.fields:
        was = before.get(field.id)
        if was is None:
            found.append(_column_change("added", field))
            continue
        if was.name != field.name:
            found.append(_column_change("renamed", field) | {"from": was.name})
        if was.type != field.type:
            found.append(_column_change("widened", field) | {"from": str(was.type)})
    return found


def _column_change(change: str, field: "Field") -> dict[str, Any]:
    return {"change": change, "column": field.name, "type": str(field.type), "from": None}


def card(record: dict[str, Any], output: Output) -> Iterator[str]:
    """The same for people."""
    yield output.bold(
        f"{escape(record['table'])}  v{count(record['since'])} -> v{count(record['until'])}"
    )
    yield f"+{plural(record['added_rows'], 'row')}  -{plural(record['removed_rows'], 'row')}"
    if record["schema_changes"]:
        yield output.dim("columns")
        yield from (f"  {_change_line(change)}" for change in record["schema_changes"])
    if record["versions"]:
        yield output.dim("versions")
    left_out = len(record["versions"]) - _VERSIONS_SHOWN_MAX
    if left_out > 0:
        yield f"  … {plural(left_out, 'version')} before these; --output json has all"
    for each in record["versions"][-_VERSIONS_SHOWN_MAX:]:
        changed = [
            f"{sign}{plural(each[key], 'row')}"
            for sign, key in (("+", "added_rows"), ("-", "removed_rows"))
            if each[key]
        ]
        line = f"  v{count(each['version'])}  {when(each['timestamp_ms'])}  {each['operation']}"
        yield "  ".join([line, *changed])


def _change_line(change: dict[str, Any]) -> str:
    name, kind = escape(change["column"]), escape(change["type"])
    mark = _MARKS.get(change["change"])
    if mark is not None:
        return f"{mark} {name} {kind}"
    if change["change"] == "renamed":
        return f"~ {escape(change['from'])} is now named {name}"
    return f"~ {name} {escape(change['from'])} is now {kind}"
