"""`lakebed config show`: each setting and where it came from."""

import click

from lakebed.cli.group import Lazy, LazyGroup, command
from lakebed.cli.output import Column
from lakebed.cli.session import Session
from lakebed.cli.text import escape


@click.group(
    "config",
    cls=LazyGroup,
    commands={"show": Lazy("lakebed.cli.settings:show", "Show each setting and its source.")},
)
def config() -> None:
    """Show the configuration.

    Options come first, then the environment, then ./lakebed.toml, then
    ~/.config/lakebed/config.toml, then the defaults.
    """


@command("show")
@click.pass_obj
def show(session: Session) -> None:
    """Show each setting and where it came from; secrets are hidden."""
    columns = (
        Column(key="name", title="setting"),
        Column(
            key="value", title="value", show=lambda value: escape(value or "beside the catalog")
        ),
        Column(key="source", title="from"),
    )
    rows = [
        {"name": name, "value": setting.value or None, "source": setting.source}
        for name, setting in session.settings.shown()
    ]
    session.output.rows(columns, rows)
