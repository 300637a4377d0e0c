"""`lakebed plan`: which files a query would read, and why."""

from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from lakebed.cli.group import command
from lakebed.cli.output import Column, Form
from lakebed.cli.reports import point
from lakebed.cli.session import Session
from lakebed.cli.text import escape

if TYPE_CHECKING:
    from lakebed.plan.read_plan import ReadPlan

FILE_COLUMNS = (
    Column(key="path"),
    Column(key="rows"),
    Column(key="bytes"),
    Column(key="every_row_matches"),
)


@command("plan")
@click.argument("name")
@click.option("--where", metavar="SQL", help="The query's condition.")
@click.option("--as-of", metavar="POINT", help="Version, snapshot id, time or tag.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="How many files to name in text; JSON and CSV name all that would be read.",
)
@click.pass_obj
def plan(session: Session, name: str, where: str | None, as_of: str | None, limit: int) -> None:
    """Show which files of the table NAME a query would read, and why.

    Only metadata is looked at. JSON has a few of the files that were left out, as examples; CSV
    has one row for each file that would be read.

    \b
    Example:
      lakebed plan plant.readings --where "ts >= '2026-01-01' and value > 3"
    """  # noqa: D301 (click reads \b)
    found = session.table(name).read_plan(where, None if as_of is None else point(as_of))
    output = session.output
    if output.form is Form.CSV:
        output.rows(FILE_COLUMNS, file_records(found))
    else:
        # Only JSON needs the list of files, which may be long.
        record = plan_record(found) if output.form is Form.JSON else {}
        output.record(record, lambda: map(escape, found.explain(limit).split("\n")))


def plan_record(plan: "ReadPlan") -> dict[str, Any]:
    """The plan for programs."""
    summary = plan.snapshot.summary
    return {
        "table": plan.snapshot.table_name,
        "version": plan.snapshot.version,
        "snapshot_id": plan.snapshot.snapshot_id,
        "where": plan.where_text or None,
        "manifests_total": plan.manifests_total,
        "manifests_opened": plan.manifests_opened,
        "files_total": summary.total_files,
        "files_kept": plan.file_count,
        "rows_total": summary.total_rows,
        "rows_max": plan.row_count,
        "rows_certain": plan.certain_row_count,
        "bytes": plan.size_bytes,
        "files": file_records(plan),
        "dropped": [{"path": each.path, "reason": each.reason} for each in plan.dropped],
    }


def file_records(plan: "ReadPlan") -> list[dict[str, Any]]:
    """One record for each file that would be read."""
    certain = chain.from_iterable(part.certain.tolist() for part in plan.parts)
    return [
        {
            "path": file.path,
            "rows": file.row_count,
            "bytes": file.size_bytes,
            "every_row_matches": is_certain,
        }
        for file, is_certain in zip(plan.readable_files(), certain, strict=True)
    ]
