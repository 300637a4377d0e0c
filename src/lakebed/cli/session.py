"""One run of the program: what was asked for, and what is opened to answer it.

Nothing here reads a file or imports a library before a command asks for it, so that help works
anywhere and at once.
"""

import os
import sys
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakebed.cli.config import Settings, config_paths, load_settings, local_path, masked
from lakebed.cli.output import Form, Output
from lakebed.clock import SystemClock
from lakebed.errors import NotFoundError, RequestError

if TYPE_CHECKING:
    from lakebed.table.catalog import Catalog
    from lakebed.table.table import Table

_SQLITE = "sqlite:///"
_DATABASE_SUFFIXES = (".db", ".sqlite", ".sqlite3")


class Session:
    """Handed to each command as click's `obj`; `given` holds the options of the whole program."""

    def __init__(self) -> None:
        self.given: dict[str, Any] = {}
        self.clock = SystemClock()
        self.changing = ""  # the table that a command means to change, for whoever interrupts it
        self._catalogs: list[Catalog] = []

    @property
    def debug(self) -> bool:
        """Whether tracebacks are wanted."""
        return bool(self.given.get("debug"))

    @property
    def quiet(self) -> bool:
        """Whether only the report itself is wanted."""
        return bool(self.given.get("quiet"))

    @cached_property
    def settings(self) -> Settings:
        """The configuration; reads files when first asked."""
        return load_settings(self.given, os.environ, config_paths(Path.cwd(), os.environ))

    @cached_property
    def output(self) -> Output:
        """Where reports go."""
        terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        plain = self.given.get("no_color") or os.environ.get("NO_COLOR")
        return Output(
            form=Form(self.settings.output.value),
            terminal=terminal,
            color=terminal and not plain,
            quiet=self.quiet,
        )

    def catalog(self, *, create: bool = False) -> "Catalog":
        """Open the catalog; only a command that makes something may make a new database."""
        uri = self.settings.catalog.value
        _refuse_bare_database(uri)
        if not create:
            self._check_there(uri)
        from lakebed.table.connect import connect

        opened = connect(
            uri,
            warehouse=self.settings.warehouse.value or None,
            storage_options=self.settings.options() or None,
        )
        self._catalogs.append(opened)
        return opened

    def table(self, name: str, *, changing: bool = False) -> "Table":
        """Open a table of the catalog; `changing` says that the command will commit to it."""
        catalog = self.catalog()
        try:
            found = catalog.table(name)
        except NotFoundError as error:
            raise NotFoundError(
                error.message, hint=error.hint or _others(name, catalog.tables()), table=name
            ) from error
        if changing:
            self.changing = name
        return found

    def close(self) -> None:
        """Release what was opened."""
        while self._catalogs:
            self._catalogs.pop().close()

    def _check_there(self, uri: str) -> None:
        path = local_path(uri)
        if path is not None and not path.exists():
            raise NotFoundError(
                f"there is no catalog at {masked('', uri)} (from {self.settings.catalog.source})",
                hint="Create a table with `lakebed init`, or name a catalog with --catalog",
            )


def _refuse_bare_database(uri: str) -> None:
    """A bare path is a directory of tables; who names a file most likely means SQLite."""
    path = None if uri.startswith("sqlite:") else local_path(uri)
    if path is not None and (path.is_file() or path.suffix in _DATABASE_SUFFIXES):
        raise RequestError(
            f"{uri} is a file, and a catalog without a database is a directory",
            hint=f"Write {_SQLITE}{uri} for an SQLite catalog",
        )


def _others(name: str, known: list[str]) -> str:
    """What may have been meant instead of a name that is not there."""
    from difflib import get_close_matches  # only a mistake pays for it

    if not known:
        return "The catalog is empty: create a table with `lakebed init`"
    close = get_close_matches(name, known)
    return f"Did you mean {' or '.join(close)}?" if close else "`lakebed tables` lists them"
