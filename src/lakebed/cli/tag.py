"""`lakebed tag`: names for versions."""

import click

from lakebed.cli.group import command
from lakebed.cli.output import Column
from lakebed.cli.reports import commit_record, point
from lakebed.cli.session import Session
from lakebed.cli.text import count, escape
from lakebed.errors import RequestError


@command("tag")
@click.argument("name")
@click.argument("tag", required=False)
@click.option(
    "--at", metavar="POINT", help="Version, snapshot id, time or tag [default: the newest]."
)
@click.pass_obj
def tag(session: Session, name: str, tag: str | None, at: str | None) -> None:
    """Give the newest version of the table NAME, or the one at a POINT, the name TAG.

    Without TAG, list the tags.
    """
    table = session.table(name, changing=tag is not None)
    if tag is None:
        if at is not None:
            raise RequestError("--at needs a TAG", hint="Write: lakebed tag NAME TAG --at POINT")
        columns = (
            Column(key="tag", title="tag"),
            Column(key="version", title="version", show=count, right=True),
        )
        rows = [{"tag": t, "version": v} for t, v in sorted(table.metadata.tags.items())]
        session.output.rows(columns, rows)
        return
    commit = table.tag(tag, at=None if at is None else point(at))
    tagged = session.table(name).metadata.tags[tag]
    session.output.done(
        commit_record(name, commit) | {"tag": tag, "tagged_version": tagged},
        f"{escape(name)}: {escape(tag)} names v{count(tagged)}",
    )
