"""Small HTML cards for notebooks; names are other people's text, so all of it is escaped."""

from collections.abc import Iterable
from html import escape

import pyarrow as pa

from lakebed.commit.head import Head
from lakebed.plan.read_plan import ReadPlan

_BOX = (
    "border:1px solid #c8ccd0;border-radius:6px;padding:8px 12px;display:inline-block;"
    "font-family:sans-serif;font-size:13px"
)
_COLUMNS_SHOWN_MAX = 30


def table_card(head: Head) -> str:
    """A table: how much it holds, and its columns."""
    snapshot = head.snapshot
    total = snapshot.summary
    schema = head.metadata.schema(snapshot.schema_id)
    spec = head.metadata.spec(snapshot.spec_id)
    facts = [
        ("version", f"{snapshot.version:,}"),
        ("rows", f"{total.total_rows:,}"),
        ("files", f"{total.total_files:,}"),
        ("bytes", f"{total.total_bytes:,}"),
    ]
    if spec.fields:
        facts.append(("partitioned by", ", ".join(spec.describe(schema))))
    return _card(snapshot.table_name, facts, [(f.name, str(f.type)) for f in schema.fields])


def scan_card(plan: ReadPlan, schema: pa.Schema) -> str:
    """A scan: which files it reads, and the columns it gives."""
    facts = [
        ("version", f"{plan.snapshot.version:,}"),
        ("files to read", f"{plan.file_count:,} of {plan.snapshot.summary.total_files:,}"),
        ("rows at most", f"{plan.row_count:,}"),
    ]
    if plan.where_text:
        facts.insert(1, ("where", plan.where_text))
    columns = [(field.name, str(field.type)) for field in schema]
    return _card(f"scan of {plan.snapshot.table_name}", facts, columns)


def _card(title: str, facts: Iterable[tuple[str, str]], columns: list[tuple[str, str]]) -> str:
    hidden_count = len(columns) - _COLUMNS_SHOWN_MAX
    if hidden_count > 0:
        columns = [*columns[:_COLUMNS_SHOWN_MAX], ("…", f"{hidden_count} more")]
    cells = "".join(f"<tr><td>{escape(a)}</td><td>{escape(b)}</td></tr>" for a, b in facts)
    names = "".join(
        f"<tr><td><code>{escape(a)}</code></td><td>{escape(b)}</td></tr>" for a, b in columns
    )
    return (
        f'<div style="{_BOX}"><b>{escape(title)}</b><table>{cells}</table>'
        f"<details><summary>columns</summary><table>{names}</table></details></div>"
    )
