"""`lakebed catalog rebuild`: a lost catalog from the files alone."""

import click

from lakebed.cli.config import local_path
from lakebed.cli.failure import ExitCode
from lakebed.cli.group import Lazy, LazyGroup, command
from lakebed.cli.progress import working
from lakebed.cli.session import Session
from lakebed.cli.text import count, escape, plural
from lakebed.errors import NotFoundError


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

    --catalog names the catalog to fill, --warehouse where the tables are. Tables that the catalog
    knows are left alone. Exit code 6 means that some tables could not be restored.
    """
    from lakebed.table.rebuild import rebuild_catalog

    settings = session.settings
    _check_warehouse(settings.catalog.value, settings.warehouse.value)
    with working("rebuild the catalog", quiet=session.quiet):
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
        f"restored {escape(name)} v{count(version)} ({plural(snapshots, 'version')})"
        for name, version, snapshots in report.tables
    ]
    lines += [f"known {escape(name)}, left alone" for name in report.known]
    lines += [f"problem: {escape(problem)}" for problem in problems]
    lines.append(f"{plural(len(found), 'table')} restored, {plural(len(problems), 'problem')}")
    record = {"tables": found, "known": list(report.known), "problems": problems}
    session.output.record(record, lambda: lines)
    if problems:
        raise click.exceptions.Exit(ExitCode.PROBLEMS)


def _check_warehouse(catalog: str, warehouse: str) -> None:
    """Refuse to make an empty catalog where no table can be."""
    path = local_path(warehouse or catalog)
    if path is not None:
        directory = path if warehouse else path.parent
        if not directory.is_dir():
            raise NotFoundError(
                f"there is no directory {directory}, so there are no tables to find",
                hint="Name the place of the tables with --warehouse",
            )
