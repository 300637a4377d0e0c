"""Reports that several commands share: a commit, and a point in time as people write it."""

from typing import TYPE_CHECKING, Any

from lakebed.cli.text import count, escape, iso_time, plural
from lakebed.errors import RequestError

if TYPE_CHECKING:
    from lakebed.commit.change import Commit


def commit_record(name: str, commit: "Commit") -> dict[str, Any]:
    """What a change did, for programs."""
    return {
        "table": name,
        "version": commit.version,
        "snapshot_id": commit.snapshot_id,
        "commit_id": commit.commit_id,
        "timestamp": iso_time(commit.timestamp_ms),
        "operation": str(commit.operation),
        "added_files": commit.added_files,
        "added_rows": commit.added_rows,
        "removed_files": commit.removed_files,
        "removed_rows": commit.removed_rows,
        "attempts": commit.attempts,
        "repeated": commit.repeated,
    }


def commit_sentence(name: str, commit: "Commit") -> str:
    """What a change did, for people."""
    place = f"{escape(name)} v{count(commit.version)}"
    if commit.repeated:
        return f"{place}: this token was already committed; nothing was written"
    if commit.operation == "delete":  # Rows that were written again were not deleted.
        net = commit.removed_rows - commit.added_rows
        rewritten = f", {plural(commit.added_files, 'file')} rewritten" * bool(commit.added_files)
        return f"{place}: delete -{plural(net, 'row')}{rewritten}{_tries(commit)}"
    changes = [
        f"{sign}{plural(number, noun)}"
        for sign, number, noun in (
            ("+", commit.added_rows, "row"),
            ("+", commit.added_files, "file"),
            ("-", commit.removed_rows, "row"),
            ("-", commit.removed_files, "file"),
        )
        if number
    ]
    done = " ".join(changes) or ("without rows" if commit.operation == "append" else "")
    return f"{place}: {commit.operation} {done}".rstrip() + _tries(commit)


def _tries(commit: "Commit") -> str:
    return f" after {commit.attempts} attempts" if commit.attempts > 1 else ""


def point(text: str) -> int | str:
    """A version or snapshot id as a number, all else as text: a time or a tag."""
    return int(text) if text.isascii() and text.isdigit() else text


def parse_token(text: str | None) -> tuple[str, int] | None:
    """`app:7` as the pair the library takes."""
    if text is None:
        return None
    app, _, version = text.rpartition(":")
    if not app or not (version.isascii() and version.isdigit()):
        raise RequestError(
            f"{text!r} is not a token",
            hint="Write it as APP:NUMBER, as in loader:7; the number grows with each append",
        )
    return app, int(version)


def pairs(texts: tuple[str, ...], option: str, form: str = "KEY=VALUE") -> dict[str, str]:
    """The values of an option that takes pairs and can be repeated."""
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise RequestError(f"{option} {text!r} is not {form}")
        if key in found:
            raise RequestError(f"{option} gives {key!r} more than once")
        found[key] = value
    return found
