"""`lakebed append`: rows of files into a table, all of them in one commit."""

import click

from lakebed.cli.group import command
from lakebed.cli.incoming import incoming
from lakebed.cli.progress import byte_progress
from lakebed.cli.readers import BATCH_ROW_COUNT, FileFormat, Reading
from lakebed.cli.reports import commit_record, commit_sentence, parse_token
from lakebed.cli.session import Session
from lakebed.cli.text import plural


@command("append")
@click.argument("name")
@click.argument("files", nargs=-1, required=True)
@click.option("--token", metavar="APP:N", help="Exactly once: a repeat of the token adds nothing.")
@click.option(
    "--format",
    "file_format",
    type=click.Choice([kind.value for kind in FileFormat]),
    help="Format of FILES, if their names do not tell.",
)
@click.option("--null", "nulls", multiple=True, metavar="TEXT", help="Text that is null in CSV.")
@click.option(
    "--batch-rows",
    type=click.IntRange(min=1, max=10_000_000),
    default=BATCH_ROW_COUNT,
    show_default=True,
    help="Rows that are read at a time.",
)
@click.pass_obj
def append(
    session: Session,
    name: str,
    files: tuple[str, ...],
    token: str | None,
    file_format: str | None,
    nulls: tuple[str, ...],
    batch_rows: int,
) -> None:
    """Append the rows of FILES to the table NAME in one commit.

    FILES are Parquet, CSV, JSON (lines or an array) or Arrow, also compressed; `-` reads an Arrow
    stream or JSON lines from standard input. Columns that the table lacks are added to it.
    """
    parsed = parse_token(token)
    table = session.table(name, changing=True)
    reading = Reading(
        wanted=table.arrow_schema,
        batch_rows=batch_rows,
        file_format=FileFormat(file_format) if file_format else None,
        null_texts=nulls,
    )
    rows = incoming(files, reading)
    output = session.output
    bar = byte_progress(
        f"read {plural(len(files), 'file')}",
        rows.size_bytes,
        finish=f"write to {name}",
        quiet=session.quiet,
    )
    with bar as advance:
        commit = table.append(rows.batches(advance), token=parsed)
    output.done(commit_record(name, commit), commit_sentence(name, commit))
