"""`lakebed commit`: adopt Parquet files whose names come from standard input."""

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from lakebed.cli.group import command
from lakebed.cli.progress import working
from lakebed.cli.reports import commit_record, commit_sentence, parse_token
from lakebed.cli.session import Session
from lakebed.cli.text import plural
from lakebed.errors import RequestError


@command("commit")
@click.argument("name")
@click.option("--token", metavar="APP:N", help="Exactly once: a repeat of the token adds nothing.")
@click.pass_obj
def commit(session: Session, name: str, token: str | None) -> None:
    """Adopt Parquet files into the table NAME in one commit.

    Their paths come from standard input, one per line; a line may also be a JSON object with a
    "path". The files must be inside the table's location (see `lakebed info`), and stay where
    they are; paths are relative to it, or to the current directory. Their schema is checked and
    their statistics are read from their footers.

    \b
    Example:
      ls lakebed/plant.readings/data/new-*.parquet | lakebed commit plant.readings
    """  # noqa: D301 (click reads \b)
    parsed = parse_token(token)
    table = session.table(name, changing=True)
    if sys.stdin.isatty():
        session.output.notice("paths of data files, one per line; end with Ctrl-D")
    lines = (raw.decode("utf-8", "surrogateescape") for raw in sys.stdin.buffer)
    paths = [placed(path, table.location) for path in parse_paths(lines)]
    if not paths:
        raise RequestError(
            "no data files were named on standard input", hint="Write one path per line"
        )
    with working(f"look into {plural(len(paths), 'file')}", quiet=session.quiet):
        done = table.add_files(paths, token=parsed)
    session.output.done(commit_record(name, done), commit_sentence(name, done))


def placed(path: str, location: str) -> str:
    """The path as the library takes it; one that leads there from here becomes absolute."""
    there, here = Path(location, path), Path.cwd() / path
    is_local = Path(location).is_absolute() and not Path(path).is_absolute()
    return str(here) if is_local and not there.exists() and here.is_file() else path


def parse_paths(lines: Iterable[str]) -> Iterator[str]:
    """Read one path per line, plain or as a JSON object; empty lines mean nothing."""
    for number, raw in enumerate(lines, start=1):
        line = raw.strip("\r\n")
        if line.startswith("{"):
            yield _path_of(line, number)
        elif line.strip():
            yield line


def _path_of(line: str, number: int) -> str:
    try:
        path = json.loads(line)["path"]
    except (ValueError, KeyError, RecursionError) as error:
        raise RequestError(f'line {number} is not a JSON object with a "path"') from error
    if not isinstance(path, str) or not path:
        raise RequestError(f'line {number}: "path" is not a text')
    return path
