"""`lakebed evolve`: change the columns, partitioning and properties of a table in one commit."""

from typing import TYPE_CHECKING, Any

import click

from lakebed.cli.group import command
from lakebed.cli.reports import commit_record, commit_sentence, pairs
from lakebed.cli.session import Session
from lakebed.cli.text import escape
from lakebed.errors import RequestError
from lakebed.format.schema_text import parse_column, split

if TYPE_CHECKING:
    from lakebed.format.types import Field


@command("evolve")
@click.argument("name")
@click.option("--widen", multiple=True, metavar="'COLUMN TYPE'", help="Give a column a wider type.")
@click.option(
    "--drop", multiple=True, metavar="COLUMN", help="Drop a column; old versions keep it."
)
@click.option("--rename", multiple=True, metavar="OLD=NEW", help="Rename a column.")
@click.option(
    "--add", multiple=True, metavar="'COLUMN TYPE'", help="Add a column; old rows are null."
)
@click.option(
    "--partition-by",
    multiple=True,
    metavar="TEXT",
    help="How new rows are split into files; '' is not at all.",
)
@click.option(
    "--property", "properties", multiple=True, metavar="KEY=VALUE", help="Set a property."
)
@click.option("--unset", multiple=True, metavar="KEY", help="Remove a property.")
@click.pass_obj
def evolve(
    session: Session,
    name: str,
    widen: tuple[str, ...],
    drop: tuple[str, ...],
    rename: tuple[str, ...],
    add: tuple[str, ...],
    partition_by: tuple[str, ...],
    properties: tuple[str, ...],
    unset: tuple[str, ...],
) -> None:
    """Change columns, partitioning and properties of the table NAME, all in one commit.

    No data file is rewritten. --widen, --drop and --rename use the names that columns have now
    and are done in that order; then come --add, --partition-by and properties. Each can be
    repeated.

    \b
    Examples:
      lakebed evolve plant.readings --add "quality int" --rename value=celsius
      lakebed evolve plant.readings --partition-by "hour(ts), bucket(16, sensor_id)"
    """  # noqa: D301 (click reads \b)
    widened, added = [_nullable(text) for text in widen], [_nullable(text) for text in add]
    renamed = pairs(rename, "--rename", "OLD=NEW")
    settings: dict[str, str | None] = {**pairs(properties, "--property")}
    _refuse_both(settings, unset)
    settings |= dict.fromkeys(unset)
    if not (widened or drop or renamed or added or partition_by or settings):
        raise RequestError("nothing to change", hint="See `lakebed evolve --help`")
    change = session.table(name, changing=True).evolve()
    for column in widened:
        change = change.widen_column(column.name, _arrow_type(column))
    for column_name in drop:
        change = change.drop_column(column_name)
    for old, new in renamed.items():
        change = change.rename_column(old, new)
    for column in added:
        change = change.add_column(column.name, _arrow_type(column))
    if partition_by:
        change = change.partition_by([part for text in partition_by for part in split(text)])
    if settings:
        change = change.set_properties(settings)
    commit = change.commit()
    _report(session, name, commit)


def _report(session: Session, name: str, commit: Any) -> None:
    """Say what changed; the snapshot remembers it in words."""
    done = session.table(name).snapshot(commit.version).parameters.get("changes", "")
    session.output.done(
        commit_record(name, commit) | {"changes": done},
        f"{commit_sentence(name, commit)}: {escape(done)}",
    )


def _nullable(text: str) -> "Field":
    """A column as typed; rows that are there have no value for it, so it must take null."""
    column = parse_column(text)
    if column.required:
        raise RequestError(
            f"{column.name!r} cannot be 'not null' here",
            hint="Only the columns of a new table can; leave 'not null' out",
        )
    return column


def _arrow_type(column: "Field") -> Any:
    """The column's type as the library takes it, nested ones too."""
    from lakebed.files.arrow_schema import to_arrow_schema
    from lakebed.format.schema import Schema

    return to_arrow_schema(Schema(0, (column,)), field_ids=False).field(0).type


def _refuse_both(settings: dict[str, str | None], unset: tuple[str, ...]) -> None:
    both = sorted(settings.keys() & set(unset))
    if both:
        raise RequestError(
            f"{', '.join(both)} cannot be both set and unset", hint="Use --property or --unset"
        )
