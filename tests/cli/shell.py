"""The program, called in this process as a shell would call it."""

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from lakebed.cli.main import cli


class Shell:
    """Runs commands in one directory, on the default catalog: a real SQLite file."""

    ROWS = (
        "ts,sensor,value\n"
        "2026-01-01T00:00:00Z,a,1.5\n"
        "2026-01-01T12:00:00Z,b,2.5\n"
        "2026-01-02T00:00:00Z,a,3.5\n"
        "2026-01-02T12:00:00Z,,\n"
    )

    PIPELINE = (
        'name = "readings"\n'
        'checkpoint = "checkpoint"\n'
        "[source]\n"
        'kind = "files"\n'
        'path = "incoming"\n'
        'format = "csv"\n'
        'schema = "ts timestamptz, sensor string, value double"\n'
        "[[sink]]\n"
        'table = "plant.readings"\n'
    )

    def __init__(self, place: Path) -> None:
        self.place = place

    def write(self, name: str, text: str | bytes) -> Path:
        """Put a file where the program runs."""
        path = self.place / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def run(self, *args: str, stdin: str | bytes | None = None) -> Result:
        """Run, whatever comes of it; an error that the program did not expect is raised."""
        result = CliRunner().invoke(cli, args, input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    def ok(self, *args: str, stdin: str | bytes | None = None) -> str:
        """Run what must succeed without a word on standard error."""
        result = self.run(*args, stdin=stdin)
        assert (result.exit_code, result.stderr) == (0, ""), result.output
        return result.stdout_bytes.decode()  # the runner's own text would lose each CR

    def json(self, *args: str, stdin: str | bytes | None = None) -> Any:
        """Run what must succeed, and read its JSON."""
        return json.loads(self.ok(*args, "--output", "json", stdin=stdin))

    def error(self, *args: str, code: int = 2, stdin: str | bytes | None = None) -> str:
        """Run what must fail: nothing on standard output, one or two lines beside it."""
        result = self.run(*args, stdin=stdin)
        lines = result.stderr.splitlines()
        assert (result.exit_code, result.stdout) == (code, ""), result.output
        assert lines, "a failure says why"
        assert lines[0].startswith("error: ")
        assert all(line.startswith("next: ") for line in lines[1:])
        assert len(lines) <= 2
        return result.stderr

    def rows(self, name: str = "plant.readings", *args: str) -> list[dict[str, Any]]:
        """The rows of a table."""
        found = self.json("scan", name, *args)
        assert isinstance(found, list)
        return found

    def version(self, name: str = "plant.readings") -> int:
        """The newest version of a table."""
        return int(self.json("info", name)["version"])
