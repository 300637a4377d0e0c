"""`lakebed drop`: take a table out of the catalog."""

import click

from lakebed.cli.group import command
from lakebed.cli.progress import working
from lakebed.cli.session import Session
from lakebed.cli.text import escape
from lakebed.errors import RequestError


@command("drop")
@click.argument("name")
@click.option("--purge", is_flag=True, help="Delete the files too; there is no way back.")
@click.option("--yes", is_flag=True, help="Really do it; without it nothing happens.")
@click.pass_obj
def drop(session: Session, name: str, purge: bool, yes: bool) -> None:
    """Remove the table NAME from the catalog; its files stay unless --purge is given."""
    session.table(name, changing=True)  # a name that is not there is told before anything else
    if not yes:
        loss = "and delete its files for ever" if purge else "and keep its files"
        raise RequestError(
            f"this would drop {name} {loss}; nothing was changed", hint="Say --yes to do it"
        )
    with working(f"drop {name}", quiet=session.quiet):
        session.catalog().drop_table(name, purge=purge)
    files = "its files are deleted" if purge else "its files are still there"
    session.output.done({"table": name, "purged": purge}, f"dropped {escape(name)}; {files}")
