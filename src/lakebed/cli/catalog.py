"""`lakebed catalog rebuild`: a lost catalog from the files alone."""

import click

from lakebed.cli.failure import ExitCode
from lakebed.cli.group import Lazy, LazyGroup, command
from lakebed.cli.session import Session
from lakebed.cli.text import escape, plural


@click.group(
    "catalog",
    cls=LazyGroup,
    commands={"rebuild": Lazy("lakebed.cli.catalog:rebuild", "Restore it from the files alone.")},
)
def catalog() -> None:
    """Care for the catalog."""


@command("rebuild")
@click.pass_obj
def rebuild(session: Session) -> None:
    """Restore a lost catalog from the metadata files below the warehouse.

    --catalog names the catalog to fill, --warehouse where the tables are. Exit code 6 means that
    some tables could not be restored.
    """
    from lakebed.table.rebuild import rebuild_catalog

    settings = session.settings
    report = rebuild_catalog(
        settings.catalog.value,
        settings.warehouse.value or None,
        storage_options=settings.options() or None,
    )
    problems = [str(problem) for problem in report.problems]
    found = [
        {"name": name, "version": version, "snapshots": snapshots}
        for name, version, snapshots in report.tables
    ]
    lines = [
        f"restored {escape(row['name'])} v{row['version']:,} ({plural(row['snapshots'], 'version')})"
        for row in found
    ]
    lines += [f"problem: {escape(problem)}" for problem in problems]
    lines.append(f"{plural(len(found), 'table')}, {plural(len(problems), 'problem')}")
    session.output.record({"tables": found, "problems": problems}, lambda: lines)
    if problems:
        raise click.exceptions.Exit(ExitCode.PROBLEMS)
