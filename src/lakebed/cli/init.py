"""`lakebed init`: a new table, and with the first one a new catalog."""

from typing import TYPE_CHECKING

import click

from lakebed.cli.group import command
from lakebed.cli.guess import guess_schema
from lakebed.cli.reports import pairs
from lakebed.cli.session import Session
from lakebed.cli.text import escape, plural
from lakebed.errors import RequestError
from lakebed.format.schema_text import parse_schema, split

if TYPE_CHECKING:
    import pyarrow as pa


@command("init")
@click.argument("name")
@click.option("--schema", metavar="TEXT", help='Columns: "ts timestamptz, value double not null".')
@click.option(
    "--like", metavar="FILE", help="Take the columns of a Parquet, CSV, JSON, Arrow file."
)
@click.option(
    "--partition-by",
    multiple=True,
    metavar="TEXT",
    help='How rows are split into files: "day(ts), bucket(16, sensor_id)".',
)
@click.option(
    "--property", "properties", multiple=True, metavar="KEY=VALUE", help="A table property."
)
@click.option("--location", metavar="URI", help="Where the files go, if not in the warehouse.")
@click.option("--description", metavar="TEXT", default="", help="A sentence for people.")
@click.pass_obj
def init(
    session: Session,
    name: str,
    schema: str | None,
    like: str | None,
    partition_by: tuple[str, ...],
    properties: tuple[str, ...],
    location: str | None,
    description: str,
) -> None:
    """Create the table NAME, as in plant.readings.

    \b
    Types: boolean int long float double decimal(p,s) date time timestamp timestamptz
           timestamp_ns timestamptz_ns string binary fixed[n] list<…> map<…> struct<…>
    """  # noqa: D301 (click reads \b)
    from lakebed.format.schema import check_table_name

    # What is wrong with the request is found before a new catalog is made for it.
    check_table_name(name)
    settings = pairs(properties, "--property")
    columns = _schema(schema, like)
    spec = [text for given in partition_by for text in split(given)]
    table = session.catalog(create=True).create_table(
        name,
        columns,
        partition_by=spec,
        location=location,
        properties=settings,
        description=description,
    )
    partitions = table.spec.describe(table.schema)
    record = {
        "table": table.name,
        "version": table.version,
        "location": table.location,
        "columns": [
            {"name": f.name, "type": str(f.type), "required": f.required}
            for f in table.schema.fields
        ],
        "partition_by": partitions,
    }
    parts = f", partitioned by {', '.join(partitions)}" if partitions else ""
    session.output.done(
        record,
        f"created {escape(table.name)} with {plural(len(table.schema.fields), 'column')}"
        f"{escape(parts)} at {escape(table.location)}",
    )


def _schema(text: str | None, like: str | None) -> "pa.Schema":
    if (text is None) == (like is None):
        raise RequestError(
            "a new table needs its columns" if text is None else "the columns are given twice",
            hint='Give either --schema "ts timestamptz, value double" or --like FILE',
        )
    if like is not None:
        return guess_schema(like)
    assert text is not None, "one of the two was given"
    from lakebed.files.arrow_schema import to_arrow_schema

    return to_arrow_schema(parse_schema(text), field_ids=False)
