"""`lakebed version`: what is installed."""

import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed

import click

from lakebed.cli.group import command
from lakebed.cli.session import Session
from lakebed.limits import FORMAT_VERSION


@command("version")
@click.pass_obj
def version(session: Session) -> None:
    """Show the version of lakebed, of its format and of what it stands on."""
    record = {
        "lakebed": _installed("lakebed"),
        "format": FORMAT_VERSION,
        "pyarrow": _installed("pyarrow"),
        "python": platform.python_version(),
    }
    line = (
        f"lakebed {record['lakebed']} (format {record['format']}, "
        f"pyarrow {record['pyarrow']}, Python {record['python']})"
    )
    session.output.record(record, lambda: [line])


def _installed(name: str) -> str:
    try:
        return installed(name)
    except PackageNotFoundError:
        return "unknown"
