"""`lakebed plan`: which files a query would read, and why."""

import click

from lakebed.cli.group import command
from lakebed.cli.session import Session


@command("plan")
@click.argument("name")
@click.option("--where", metavar="SQL", help="The query's condition.")
@click.option("--as-of", metavar="POINT", help="Version, snapshot id, time or tag.")
@click.pass_obj
def plan(session: Session, name: str, where: str | None, as_of: str | None) -> None:
    """Show which files of the table NAME a query would read, and why; nothing is read."""
