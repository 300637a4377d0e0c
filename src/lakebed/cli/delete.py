"""`lakebed delete`: remove the rows for which a condition is true."""

import click

from lakebed.cli.group import command
from lakebed.cli.progress import working
from lakebed.cli.reports import commit_record, commit_sentence
from lakebed.cli.session import Session
from lakebed.cli.text import escape, plural


@command("delete")
@click.argument("name")
@click.option("--where", metavar="SQL", required=True, help="Which rows; 'true' means all of them.")
@click.option("--dry-run", is_flag=True, help="Only say how many rows it would remove.")
@click.pass_obj
def delete(session: Session, name: str, where: str, dry_run: bool) -> None:
    """Remove the rows of the table NAME for which a condition is true, in one commit.

    Older versions keep the rows: `lakebed rollback` brings them back. If no row matches, no
    version is made.
    """
    if dry_run:
        number = session.table(name).scan(where).count()
        record = {"table": name, "would_remove_rows": number}
        sentence = f"{escape(name)}: {plural(number, 'row')} would be removed; nothing was changed"
        session.output.record(record, lambda: [sentence])
        return
    table = session.table(name, changing=True)
    with working(f"delete rows of {name}", quiet=session.quiet):
        commit = table.delete(where)
    sentence = commit_sentence(name, commit)
    if not commit.removed_rows:
        sentence = f"{escape(name)}: no row matches; nothing was changed"
    session.output.done(commit_record(name, commit), sentence)
