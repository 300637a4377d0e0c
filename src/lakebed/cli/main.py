"""The program `lakebed`: its commands and its last resort."""

import os
import sys
from types import TracebackType

import click

from lakebed.cli.failure import EXIT_CODES, ExitCode, describe
from lakebed.cli.group import Lazy, LazyGroup

_MAKE, _WRITE, _READ, _CARE = "Tables", "Writing", "Reading", "Care"

COMMANDS = {
    "init": Lazy("lakebed.cli.init:init", "Create a table.", _MAKE),
    "tables": Lazy("lakebed.cli.tables:tables", "List the tables.", _MAKE),
    "info": Lazy("lakebed.cli.info:info", "Show what a table holds.", _MAKE),
    "evolve": Lazy("lakebed.cli.evolve:evolve", "Change columns, partitioning, properties.", _MAKE),
    "drop": Lazy("lakebed.cli.drop:drop", "Remove a table.", _MAKE),
    "append": Lazy("lakebed.cli.append:append", "Append the rows of files.", _WRITE),
    "delete": Lazy("lakebed.cli.delete:delete", "Remove the rows that match.", _WRITE),
    "commit": Lazy("lakebed.cli.commit:commit", "Adopt Parquet files named on stdin.", _WRITE),
    "run": Lazy("lakebed.cli.run:run", "Run a pipeline on Spark.", _WRITE),
    "tag": Lazy("lakebed.cli.tag:tag", "Name a version, or list the names.", _WRITE),
    "rollback": Lazy("lakebed.cli.rollback:rollback", "Go back to an earlier version.", _WRITE),
    "resolve": Lazy("lakebed.cli.resolve:resolve", "Tell what became of a commit.", _WRITE),
    "scan": Lazy("lakebed.cli.scan:scan", "Print rows.", _READ),
    "plan": Lazy("lakebed.cli.plan:plan", "Show which files a query would read, and why.", _READ),
    "history": Lazy("lakebed.cli.history:history", "List the versions of a table.", _READ),
    "diff": Lazy("lakebed.cli.diff:diff", "Compare two versions of a table.", _READ),
    "inspect-manifest": Lazy(
        "lakebed.cli.inspect_manifest:inspect_manifest", "Show manifests and their entries.", _READ
    ),
    "doctor": Lazy("lakebed.cli.doctor:doctor", "Examine a store or a table.", _CARE),
    "catalog": Lazy("lakebed.cli.catalog:catalog", "Rebuild a lost catalog.", _CARE),
    "config": Lazy("lakebed.cli.settings:config", "Show the configuration.", _CARE),
    "version": Lazy("lakebed.cli.version:version", "Show the version.", _CARE),
}


@click.group(
    "lakebed",
    cls=LazyGroup,
    commands=COMMANDS,
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="lakebed", message="lakebed %(version)s")
def cli() -> None:
    """Tables of plain files with safe commits, history and time travel.

    Works with no configuration: the catalog is ./lakebed/catalog.db unless --catalog,
    LAKEBED_CATALOG or lakebed.toml name another (see: lakebed config show).
    """


def main() -> None:
    """Run the program; the entry point of the package."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by whoever started the program
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (lives as long as it)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a poor terminal is no reason to fail
    if "--debug" not in sys.argv:
        sys.excepthook = _report_unexpected
    cli.main(prog_name="lakebed")


def _report_unexpected(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Say in two lines what Python would say in forty; the exit code is Python's own, 1."""
    if issubclass(kind, KeyboardInterrupt):
        sys.exit(ExitCode.INTERRUPTED)
    del trace
    hint = "run it again with --debug and report what it prints"
    click.echo(describe(f"unexpected {kind.__name__}: {error}", hint), err=True)
