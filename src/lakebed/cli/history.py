"""`lakebed history`: the versions of a table, the newest first."""

from typing import TYPE_CHECKING, Any

import click

from lakebed.cli.group import command
from lakebed.cli.output import Column
from lakebed.cli.session import Session
from lakebed.cli.text import count, escape, iso_time, when

if TYPE_CHECKING:
    from lakebed.format.snapshot import Snapshot


def _change(sign: str) -> Any:
    return lambda number: f"{sign}{number:,}" if number else ""


COLUMNS = (
    Column(key="version", title="version", show=count, right=True),
    Column(key="timestamp_ms", title="when", show=when),
    Column(key="timestamp"),
    Column(key="operation", title="operation"),
    Column(key="added_files", title="+files", show=_change("+"), right=True),
    Column(key="removed_files", title="-files", show=_change("-"), right=True),
    Column(key="added_rows", title="+rows", show=_change("+"), right=True),
    Column(key="removed_rows", title="-rows", show=_change("-"), right=True),
    Column(key="total_files"),
    Column(key="total_rows", title="rows", show=count, right=True),
    Column(key="total_bytes"),
    Column(key="token", title="token", show=lambda token: escape(token or "")),
    Column(key="snapshot_id"),
    Column(key="commit_id"),
    Column(key="parameters"),
)


@command("history")
@click.argument("name")
@click.option("--limit", type=click.IntRange(min=1), help="Only the newest N versions.")
@click.pass_obj
def history(session: Session, name: str, limit: int | None) -> None:
    """List the versions of the table NAME, the newest first."""
    snapshots = session.table(name).history()
    session.output.rows(COLUMNS, [snapshot_record(snapshot) for snapshot in snapshots[:limit]])


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
