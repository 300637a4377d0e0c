"""`lakebed diff`: what changed between two versions of a table."""

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from lakebed.cli.group import command
from lakebed.cli.output import Output
from lakebed.cli.reports import point
from lakebed.cli.session import Session
from lakebed.cli.text import count, escape, plural

if TYPE_CHECKING:
    import pyarrow as pa

    from lakebed.format.schema import Schema
    from lakebed.table.changes import Changes
    from lakebed.table.table import Table


@command("diff")
@click.argument("name")
@click.argument("v1")
@click.argument("v2")
@click.option("--rows", is_flag=True, help="Print the rows themselves, with a column 'change'.")
@click.pass_obj
def diff(session: Session, name: str, v1: str, v2: str, rows: bool) -> None:
    """Show what happened to the table NAME after V1, up to and with V2.

    V1 and V2 are versions, snapshot ids, times or tags.
    """
    table = session.table(name)
    changes = table.changes(since=point(v1), until=point(v2))
    if rows:
        schema, batches = changed_rows(changes)
        session.output.arrow(schema, batches, cut=True)
        return
    record = diff_record(table, changes)
    session.output.record(record, lambda: card(record, session.output))


def changed_rows(changes: "Changes") -> tuple["pa.Schema", Iterator["pa.RecordBatch"]]:
    """Removed rows and then added ones, each with a column that says which it is."""
    import pyarrow as pa

    def marked(batch: "pa.RecordBatch", change: str) -> "pa.RecordBatch":
        label = pa.repeat(pa.scalar(change), batch.num_rows)
        return batch.add_column(0, "change", label)

    schema = changes.added.schema.insert(0, pa.field("change", pa.string()))
    removed = (marked(batch, "removed") for batch in changes.removed.to_batches())
    added = (marked(batch, "added") for batch in changes.added.to_batches())
    return schema, chain(removed, added)


def diff_record(table: "Table", changes: "Changes") -> dict[str, Any]:
    """What changed, for programs."""
    return {
        "table": table.name,
        "versions": list(changes.versions),
        "added_rows": changes.added.count(),
        "removed_rows": changes.removed.count(),
    }


def schema_changes(old: "Schema", new: "Schema") -> list[str]:
    """The columns that came, went, or changed, as sentences."""
    sentences = [f"- {f.name} {f.type}" for f in old.fields if f.id not in new.by_id]
    for field in new.fields:
        before = old.by_id.get(field.id)
        if before is None:
            sentences.append(f"+ {field.name} {field.type}")
            continue
        if before.name != field.name:
            sentences.append(f"  {before.name} is now named {field.name}")
        if before.type != field.type:
            sentences.append(f"  {field.name} {before.type} is now {field.type}")
    return sentences


def card(record: dict[str, Any], output: Output) -> Iterator[str]:
    """The same for people."""
    yield output.bold(escape(record["table"]))
    yield f"+{plural(record['added_rows'], 'row')} -{plural(record['removed_rows'], 'row')}"
    yield from (count(version) for version in record["versions"])
