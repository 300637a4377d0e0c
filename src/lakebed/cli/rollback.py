"""`lakebed rollback`: a new version with the files of an old one."""

import click

from lakebed.cli.group import command
from lakebed.cli.reports import commit_record, commit_sentence, point
from lakebed.cli.session import Session


@command("rollback")
@click.argument("name")
@click.argument("to")
@click.pass_obj
def rollback(session: Session, name: str, to: str) -> None:
    """Make the table NAME hold again what it held at TO: a version, snapshot id, time or tag.

    This is a new version; nothing is lost, and a second rollback undoes the first.
    """
    commit = session.table(name, changing=True).rollback(point(to))
    session.output.done(commit_record(name, commit), commit_sentence(name, commit))
