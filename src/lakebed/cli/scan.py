"""`lakebed scan`: rows of a table, as they are now or as they were."""

import csv
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from lakebed.cli.group import command
from lakebed.cli.progress import Advance, row_progress
from lakebed.cli.reports import point
from lakebed.cli.session import Session
from lakebed.cli.text import count as grouped

if TYPE_CHECKING:
    import pyarrow as pa


@command("scan")
@click.argument("name")
@click.option("--where", metavar="SQL", help="Only rows for which this is true.")
@click.option("--columns", multiple=True, metavar="A,B", help="Only these columns, in this order.")
@click.option("--as-of", metavar="POINT", help="Version, snapshot id, time or tag.")
@click.option("--limit", type=click.IntRange(min=0), help="At most N rows.")
@click.option("--count", is_flag=True, help="Only how many rows there are.")
@click.pass_obj
def scan(
    session: Session,
    name: str,
    where: str | None,
    columns: tuple[str, ...],
    as_of: str | None,
    limit: int | None,
    count: bool,
) -> None:
    """Print rows of the table NAME.

    A terminal shows the first 100 rows unless --limit says otherwise; a pipe or file gets all.

    \b
    Examples:
      lakebed scan plant.readings --where "ts >= '2026-01-01' and value > 3" --limit 10
      lakebed scan plant.readings --as-of 2026-01-01T00:00:00Z --output csv > then.csv
    """  # noqa: D301 (click reads \b)
    selected = session.table(name).scan(
        where=where,
        columns=names(columns),
        as_of=None if as_of is None else point(as_of),
        limit=limit,
    )
    if count:
        number = selected.count()
        session.output.record({"count": number}, lambda: [grouped(number)])
        return
    most = selected.plan.row_count if limit is None else min(limit, selected.plan.row_count)
    with row_progress(f"scan of {name}", most, quiet=session.quiet) as advance:
        batches = counted(selected.to_batches(), advance)
        session.output.arrow(selected.schema, batches, cut=limit is None)


def counted(batches: Iterator["pa.RecordBatch"], advance: Advance) -> Iterator["pa.RecordBatch"]:
    """The batches as they are; each one advances the bar when the next is asked for."""
    row_count = 0
    for batch in batches:
        yield batch
        row_count += batch.num_rows
        advance(row_count, row_count)


def names(texts: tuple[str, ...]) -> list[str] | None:
    """Column names from comma-separated lists; one with a comma stands in double quotes."""
    if not texts:
        return None
    return [name for row in csv.reader(texts, skipinitialspace=True) for name in row if name]
