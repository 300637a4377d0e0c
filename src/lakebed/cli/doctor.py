"""`lakebed doctor`: is this store fit for commits, is this table sound?"""

from dataclasses import asdict
from typing import Any

import click

from lakebed.cli.failure import ExitCode
from lakebed.cli.group import Lazy, LazyGroup, command
from lakebed.cli.progress import working
from lakebed.cli.session import Session
from lakebed.cli.text import escape, plural


@click.group(
    "doctor",
    cls=LazyGroup,
    commands={
        "store": Lazy("lakebed.cli.doctor:store", "Prove that a store keeps its promises."),
        "table": Lazy("lakebed.cli.doctor:table", "Verify a table's metadata and files."),
    },
)
def doctor() -> None:
    """Examine a store or a table; exit code 6 means that something is wrong."""


@command("store")
@click.argument("uri")
@click.pass_obj
def store(session: Session, uri: str) -> None:
    """Prove by a short race that the store at URI lets exactly one writer win.

    Works in a directory of its own below URI, and removes what it wrote. A store that fails must
    not be used as a catalog.
    """
    from lakebed.ids import SystemIds
    from lakebed.storage.doctor import probe_store
    from lakebed.storage.open import open_store

    place = open_store(uri, session.settings.options())
    with working(f"race at {uri}", quiet=session.quiet):
        report = probe_store(place, ids=SystemIds())
    sound = f"is fit for commits: one winner in each of {plural(report.race_count, 'race')}"
    conclude(session, uri, asdict(report), sound=sound)


@command("table")
@click.argument("name")
@click.pass_obj
def table(session: Session, name: str) -> None:
    """Verify the table NAME: each metadata file reads, each data file is there."""
    session.table(name)  # a name that is not there is told in the same words everywhere
    with working(f"verify {name}", quiet=session.quiet):
        report = session.catalog().doctor(name)
    looked_at = (
        f"{plural(report.snapshot_count, 'version')}, "
        f"{plural(report.manifest_count, 'manifest')}, {plural(report.file_count, 'data file')}"
    )
    spare = plural(report.unlisted_count, "file")
    left_over = f"; {spare} that no version lists" if report.unlisted_count else ""
    conclude(session, name, asdict(report), sound=f"is sound: {looked_at}{left_over}")


def conclude(session: Session, subject: str, report: dict[str, Any], *, sound: str) -> None:
    """Say what was found; problems end the program with their own exit code."""
    problems = [str(problem) for problem in report["problems"]]
    record = report | {"ok": not problems, "problems": problems}
    verdict = f"has {plural(len(problems), 'problem')}" if problems else sound
    lines = [f"{escape(subject)} {verdict}", *(f"  {escape(problem)}" for problem in problems)]
    session.output.record(record, lambda: lines)
    if problems:
        raise click.exceptions.Exit(ExitCode.PROBLEMS)
