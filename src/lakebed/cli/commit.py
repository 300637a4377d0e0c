"""`lakebed commit`: adopt Parquet files whose names come from standard input."""

import json
import sys
from collections.abc import Iterable, Iterator

import click

from lakebed.cli.group import command
from lakebed.cli.reports import commit_record, commit_sentence
from lakebed.cli.session import Session
from lakebed.errors import RequestError


@command("commit")
@click.argument("name")
@click.pass_obj
def commit(session: Session, name: str) -> None:
    """Adopt Parquet files into the table NAME in one commit.

    Their paths come from standard input, one per line, relative to the table's location; a line
    may also be a JSON object with a "path". The files stay where they are; their schema is
    checked and their statistics are read from their footers.

    \b
    Example:
      ls data/*.parquet | lakebed commit plant.readings
    """  # noqa: D301 (click reads \b)
    table = session.table(name)
    if sys.stdin.isatty():
        session.output.notice("paths of data files, one per line; end with Ctrl-D")
    lines = (raw.decode("utf-8", "surrogateescape") for raw in sys.stdin.buffer)
    paths = list(parse_paths(lines))
    if not paths:
        raise RequestError(
            "no data files were named on standard input", hint="Write one path per line"
        )
    done = table.add_files(paths)
    session.output.done(commit_record(name, done), commit_sentence(name, done))


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
