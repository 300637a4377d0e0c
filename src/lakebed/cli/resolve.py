"""`lakebed resolve`: what became of a commit whose answer was lost."""

from typing import TYPE_CHECKING, Any

import click

from lakebed.cli.failure import ExitCode
from lakebed.cli.group import command
from lakebed.cli.reports import commit_record, commit_sentence
from lakebed.cli.session import Session
from lakebed.cli.text import escape
from lakebed.errors import CommitUnknownError, RequestError

if TYPE_CHECKING:
    from lakebed.table.resolution import Resolution

_CODES = {
    "committed": ExitCode.OK,
    "failed": ExitCode.PROBLEMS,
    "undecided": ExitCode.OUTCOME_UNKNOWN,
}
_SENTENCES = {
    "failed": "it is not in the table and never will be; it is safe to do it again",
    "undecided": "it is not in the table now, and may yet land if its writer still runs; ask again",
}


@command("resolve")
@click.argument("commit_id")
@click.option("--table", "name", metavar="NAME", help="The table it was made for.")
@click.option(
    "--after",
    type=click.IntRange(min=-1),
    metavar="VERSION",
    help="The version it was to follow; with --table it allows the answer 'failed'.",
)
@click.pass_obj
def resolve(session: Session, commit_id: str, name: str | None, after: int | None) -> None:
    """Tell what became of the commit COMMIT_ID, named by an error with exit code 4.

    Exit code 0: it is committed. 6: it failed and never will be. 4: it is undecided, because its
    writer could still send it.
    """
    if (name is None) != (after is None):
        raise RequestError("--table and --after belong together", hint="Give both, or neither")
    asked: str | CommitUnknownError = commit_id
    if name is not None and after is not None:
        asked = CommitUnknownError("", commit_id=commit_id, table=name, base_version=after)
    found = session.catalog().resolve(asked)
    session.output.record(resolution_record(found), lambda: _lines(found))
    raise click.exceptions.Exit(_CODES[found.fate])


def resolution_record(found: "Resolution") -> dict[str, Any]:
    """The answer, for programs; one entry in `commits` for each table that it changed."""
    return {
        "commit_id": found.commit_id,
        "fate": str(found.fate),
        "commits": [commit_record(commit.table, commit) for commit in found.commits],
    }


def _lines(found: "Resolution") -> list[str]:
    place = f"{escape(found.commit_id)}: {found.fate}"
    if found.committed:
        return [place, *(f"  {commit_sentence(each.table, each)}" for each in found.commits)]
    return [f"{place}: {_SENTENCES[found.fate]}"]
