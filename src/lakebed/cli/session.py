"""One run of the program: what was asked for, and what is opened to answer it.

Nothing here reads a file or imports a library before a command asks for it, so that help works
anywhere and at once.
"""

import os
import sys
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakebed.cli.config import Settings, config_paths, load_settings, masked
from lakebed.cli.output import Form, Output
from lakebed.clock import SystemClock
from lakebed.errors import NotFoundError

if TYPE_CHECKING:
    from lakebed.table.catalog import Catalog
    from lakebed.table.table import Table

_SQLITE = "sqlite:///"


class Session:
    """Handed to each command as click's `obj`; `given` holds the options of the whole program."""

    def __init__(self) -> None:
        self.given: dict[str, Any] = {}
        self.clock = SystemClock()

    @property
    def debug(self) -> bool:
        """Whether tracebacks are wanted."""
        return bool(self.given.get("debug"))

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
            quiet=bool(self.given.get("quiet")),
        )

    def catalog(self, *, create: bool = False) -> "Catalog":
        """Open the catalog; only a command that makes something may make a new database."""
        uri = self.settings.catalog.value
        if not create:
            self._check_there(uri)
        from lakebed.table.connect import connect

        return connect(
            uri,
            warehouse=self.settings.warehouse.value or None,
            storage_options=self.settings.options() or None,
        )

    def table(self, name: str) -> "Table":
        """Open a table of the catalog."""
        return self.catalog().table(name)

    def _check_there(self, uri: str) -> None:
        path = uri.removeprefix(_SQLITE)
        if path != uri and not Path(path).exists():
            raise NotFoundError(
                f"there is no catalog at {masked('', uri)} (from {self.settings.catalog.source})",
                hint="Create a table with `lakebed init`, or name a catalog with --catalog",
            )
