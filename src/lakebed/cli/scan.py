"""`lakebed scan`: rows of a table, as they are now or as they were."""

import csv

import click

from lakebed.cli.group import command
from lakebed.cli.reports import point
from lakebed.cli.session import Session
from lakebed.cli.text import count as grouped


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
    else:
        session.output.arrow(selected.schema, selected.to_batches(), cut=limit is None)


def names(texts: tuple[str, ...]) -> list[str] | None:
    """Column names from comma-separated lists; one with a comma stands in double quotes."""
    if not texts:
        return None
    return [name for row in csv.reader(texts, skipinitialspace=True) for name in row if name]
