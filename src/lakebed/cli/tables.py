"""`lakebed tables`: the names in the catalog."""

import click

from lakebed.cli.group import command
from lakebed.cli.output import Column
from lakebed.cli.session import Session


@command("tables")
@click.pass_obj
def tables(session: Session) -> None:
    """List the tables of the catalog; `lakebed info` says more of each."""
    names = sorted(session.catalog().tables())
    session.output.rows((Column(key="name", title="name"),), [{"name": name} for name in names])
