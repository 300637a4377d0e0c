"""`lakebed resolve`: what became of a commit whose answer was lost."""

import click

from lakebed.cli.group import command
from lakebed.cli.session import Session


@command("resolve")
@click.argument("commit_id")
@click.pass_obj
def resolve(session: Session, commit_id: str) -> None:
    """Tell whether the commit COMMIT_ID, named by an error with exit code 4, is in its table."""
    session.catalog().resolve(commit_id)
