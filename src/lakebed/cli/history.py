"""`lakebed history`: the versions of a table, the newest first."""

from typing import TYPE_CHECKING, Any

import click

from lakebed.cli.group import command
from lakebed.cli.output import Column, Form
from lakebed.cli.session import Session
from lakebed.cli.text import count, escape, iso_time, when

if TYPE_CHECKING:
    from lakebed.format.snapshot import Snapshot


TERMINAL_VERSION_COUNT = 50


def _change(sign: str) -> Any:
    return lambda number: f"{sign}{number:,}" if number else ""


COLUMNS = (
    Column(key="version", title="version", show=count, right=True),
    Column(key="timestamp_ms", title="when", show=when),
    Column(key="timestamp"),
    Column(key="operation", title="operation"),
    Column(key="added_files", title="+files", show=_change("+"), right=True, optional=True),
    Column(key="removed_files", title="-files", show=_change("-"), right=True, optional=True),
    Column(key="added_rows", title="+rows", show=_change("+"), right=True, optional=True),
    Column(key="removed_rows", title="-rows", show=_change("-"), right=True, optional=True),
    Column(key="total_files"),
    Column(key="total_rows", title="rows", show=count, right=True),
    Column(key="total_bytes"),
    Column(key="token", title="token", show=lambda token: escape(token or ""), optional=True),
    Column(key="snapshot_id"),
    Column(key="commit_id"),
    Column(key="parameters"),
)


@command("history")
@click.argument("name")
@click.option("--limit", type=click.IntRange(min=1), help="Only the newest N versions.")
@click.pass_obj
def history(session: Session, name: str, limit: int | None) -> None:
    """List the versions of the table NAME, the newest first.

    A terminal shows the newest 50 unless --limit says otherwise; a pipe or file gets all.
    """
    output = session.output
    is_cut = limit is None and output.terminal and output.form is Form.TABLE
    most = TERMINAL_VERSION_COUNT if is_cut else limit
    found = [snapshot_record(snapshot) for snapshot in session.table(name).history(most)]
    output.rows(COLUMNS, found)
    if is_cut and found and found[-1]["version"] > 0:
        output.notice(f"newest {most} versions; --limit N shows more, --output csv all")


def snapshot_record(snapshot: "Snapshot") -> dict[str, Any]:
    """One version, for programs."""
    summary, token = snapshot.summary, snapshot.token
    return {
        "version": snapshot.version,
        "timestamp_ms": snapshot.timestamp_ms,
        "timestamp": iso_time(snapshot.timestamp_ms),
        "operation": str(snapshot.operation),
        "added_files": summary.added_files,
        "removed_files": summary.removed_files,
        "added_rows": summary.added_rows,
        "removed_rows": summary.removed_rows,
        "total_files": summary.total_files,
        "total_rows": summary.total_rows,
        "total_bytes": summary.total_bytes,
        "token": f"{token.app}:{token.version}" if token else None,
        "snapshot_id": snapshot.snapshot_id,
        "commit_id": snapshot.commit_id,
        "parameters": snapshot.parameters,
    }
