"""`lakebed evolve`: change the columns of a table in one commit."""

import click

from lakebed.cli.group import command
from lakebed.cli.reports import commit_record, commit_sentence, pairs
from lakebed.cli.schema_text import parse_column
from lakebed.cli.session import Session
from lakebed.errors import RequestError


@command("evolve")
@click.argument("name")
@click.option("--widen", multiple=True, metavar="'COLUMN TYPE'", help="Give a column a wider type.")
@click.option(
    "--drop", multiple=True, metavar="COLUMN", help="Drop a column; old versions keep it."
)
@click.option("--rename", multiple=True, metavar="OLD=NEW", help="Rename a column.")
@click.option(
    "--add", multiple=True, metavar="'COLUMN TYPE'", help="Add a column; old rows are null."
)
@click.pass_obj
def evolve(
    session: Session,
    name: str,
    widen: tuple[str, ...],
    drop: tuple[str, ...],
    rename: tuple[str, ...],
    add: tuple[str, ...],
) -> None:
    """Add, rename, drop and widen columns of the table NAME, all in one commit.

    No data file is rewritten. --widen, --drop and --rename use the names that columns have now
    and are done in that order; --add comes last. Each can be repeated.
    """
    widened = [parse_column(text) for text in widen]
    renamed = pairs(rename, "--rename")
    added = [parse_column(text) for text in add]
    if not (widened or drop or renamed or added):
        raise RequestError("nothing to change", hint="Use --add, --rename, --drop or --widen")
    change = session.table(name).evolve()
    for column in widened:
        change = change.widen_column(column.name, column.type)
    for column_name in drop:
        change = change.drop_column(column_name)
    for old, new in renamed.items():
        change = change.rename_column(old, new)
    for column in added:
        change = change.add_column(column.name, column.type)
    commit = change.commit()
    session.output.done(commit_record(name, commit), commit_sentence(name, commit))
