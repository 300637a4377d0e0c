"""Small HTML cards for notebooks; names are other people's text, so all of it is escaped."""

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lakebed.table.scan import Scan
    from lakebed.table.table import Table

_BOX = (
    "border:1px solid #c8ccd0;border-radius:6px;padding:8px 12px;display:inline-block;"
    "font-family:sans-serif;font-size:13px"
)
_COLUMNS_SHOWN_MAX = 30


def table_card(table: "Table") -> str:
    """A table: how much it holds, and its columns."""
    snapshot = table.current_snapshot()
    total = snapshot.summary
    schema = table.schema
    facts = [
        ("version", f"{snapshot.version:,}"),
        ("rows", f"{total.total_rows:,}"),
        ("files", f"{total.total_files:,}"),
        ("bytes", f"{total.total_bytes:,}"),
    ]
    if table.spec.fields:
        facts.append(("partitioned by", ", ".join(table.spec.describe(schema))))
    columns = [(field.name, str(field.type)) for field in schema.fields[:_COLUMNS_SHOWN_MAX]]
    if len(schema.fields) > _COLUMNS_SHOWN_MAX:
        columns.append(("…", f"{len(schema.fields) - _COLUMNS_SHOWN_MAX} more"))
    return _card(table.name, facts, columns)


def scan_card(scan: "Scan") -> str:
    """A scan: which files it reads, and the columns it gives."""
    plan = scan.plan
    facts = [
        ("version", f"{plan.snapshot.version:,}"),
        ("files to read", f"{plan.file_count:,} of {plan.snapshot.summary.total_files:,}"),
        ("rows at most", f"{plan.row_count:,}"),
    ]
    if plan.where_text:
        facts.insert(1, ("where", plan.where_text))
    columns = [(field.name, str(field.type)) for field in scan.schema]
    return _card(f"scan of {plan.snapshot.table_name}", facts, columns[:_COLUMNS_SHOWN_MAX])


def _card(title: str, facts: Iterable[tuple[str, str]], columns: Iterable[tuple[str, str]]) -> str:
    cells = "".join(f"<tr><td>{escape(a)}</td><td>{escape(b)}</td></tr>" for a, b in facts)
    names = "".join(
        f"<tr><td><code>{escape(a)}</code></td><td>{escape(b)}</td></tr>" for a, b in columns
    )
    return (
        f'<div style="{_BOX}"><b>{escape(title)}</b><table>{cells}</table>'
        f"<details><summary>columns</summary><table>{names}</table></details></div>"
    )
