"""A process of its own with a catalog and one of the two SQLite libraries.

    python -m tests.catalog.other_process MODULE PATH

answers each line that it reads with one line: `open`, `append N`, `read`, `mode`, `close`.
"""

import importlib
import sys

from tests.catalog.contender import step_from

from lakebed.catalog import sqlite_file
from lakebed.catalog import sqlite_library as library
from lakebed.catalog.sqlite import SqliteCatalog
from lakebed.errors import LakebedError
from lakebed.testing.moves import create


class Server:
    """A process with one catalog, told line by line what to do."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._catalog: SqliteCatalog | None = None

    def answer(self, line: str) -> str:
        word, *values = line.split()
        try:
            return str(getattr(self, word)(*values))
        except LakebedError as error:
            return f"{type(error).__name__}: {error.message}"

    def open(self) -> str:
        self._catalog = SqliteCatalog(self._path)
        if not self._catalog.tables():
            create(self._catalog, "t")
        return "opened"

    @property
    def _opened(self) -> SqliteCatalog:
        assert self._catalog is not None
        return self._catalog

    def append(self, count: str) -> int:
        for _ in range(int(count)):
            assert self._opened.swap([step_from("sqlite", "", self._opened.load("t"))])
        return self._opened.load("t").version

    def read(self) -> int:
        return self._opened.load("t").version

    def mode(self) -> str:
        return sqlite_file.journal_mode(self._opened._sessions.get())

    def close(self) -> str:
        self._opened.close()
        return "closed"


def main(module: str, path: str) -> None:
    library.sqlite3 = importlib.import_module(module)
    server = Server(path)
    for line in sys.stdin:
        print(server.answer(line), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
