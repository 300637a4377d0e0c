"""A sound table on disk, and the tools to make a hostile one of it.

    <place>/warehouse/catalog.db        or none: then the files are the catalog
    <place>/warehouse/plant.readings/   versions 0 to 6, one manifest and a tail
    <place>/warehouse/plant.others/     another table, equally sound
    <place>/outside/                    nothing in here may ever be opened

What is forged carries sound checksums: an attacker can compute them too.
"""

import json
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import lakebed
from lakebed.format.document import checksum, seal

NAME, OTHER = "plant.readings", "plant.others"
START = datetime(2026, 1, 1, tzinfo=UTC)
Document = dict[str, Any]


def rows(first: int, count: int) -> pa.Table:
    """Readings of several days: one file each, of two rows."""
    numbers = range(first, first + count)
    return pa.table(
        {
            "n": pa.array(numbers, pa.int64()),
            "ts": pa.array(
                [START + timedelta(hours=12 * n) for n in numbers], pa.timestamp("us", "UTC")
            ),
            "sensor_id": pa.array([f"s{n % 3}" for n in numbers], pa.string()),
            "value": pa.array([n / 2 for n in numbers], pa.float64()),
        }
    )


def uri_of(place: Path, kind: str) -> str:
    """How the catalog is named."""
    return f"sqlite:///{place}/warehouse/catalog.db" if kind == "sqlite" else f"{place}/warehouse"


def make_sound(place: Path, kind: str) -> None:
    """Make the table that all hostile ones are copies of."""
    with lakebed.connect(uri_of(place, kind)) as catalog:
        for name in (NAME, OTHER):
            table = catalog.create_table(name, rows(0, 0).schema, partition_by=["day(ts)"])
            table.append(rows(0, 36))  # so many files that a manifest lists them
            table.append(rows(40, 4))
            table.delete("n = 3")
            table.evolve().add_column("note", "string").commit()
            table.append(rows(60, 4), token=("app", 1))
            table.tag("good", 2)
    outside = place / "outside"
    outside.mkdir()
    pq.write_table(rows(0, 1), outside / "secret.parquet")
    (outside / "secret.json").write_text("{}")


class Site:
    """One copy of it, to be damaged."""

    def __init__(self, place: Path) -> None:
        self.warehouse = place / "warehouse"
        self.table = self.warehouse / NAME
        self.other = self.warehouse / OTHER
        self.outside = place / "outside"
        self.database = self.warehouse / "catalog.db"

    # ------------------------------------------------------------------------------- finding

    def sql(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement on the catalog."""
        connection = sqlite3.connect(self.database)
        with connection:
            found = connection.execute(statement, values).fetchall()
        connection.close()
        return found

    def snapshot(self, version: int = 6) -> Path:
        """The file of a version; 6 is the newest."""
        return next((self.table / "metadata").glob(f"snap-{version:020d}*.json"))

    def definition(self) -> Path:
        """The newest definition."""
        return self.table / str(body_of(self.snapshot())["metadata_path"])

    def manifest(self) -> Path:
        """The one manifest of the newest version."""
        (found,) = [
            ref["path"] for ref in body_of(self.snapshot())["manifest_list"] if "path" in ref
        ]
        return self.table / str(found)

    def data(self) -> Path:
        """The newest data file, which the snapshot itself lists."""
        return self.table / str(self.tail()["entries"][-1]["file"]["path"])

    def tail(self) -> Document:
        """The inline manifest of the newest version."""
        (found,) = [ref for ref in body_of(self.snapshot())["manifest_list"] if "path" not in ref]
        return dict(found)

    # -------------------------------------------------------------------------------- forging

    def forge_snapshot(self, change: Callable[[Document], object], version: int = 6) -> None:
        """Change a snapshot, and make it sound by its checksum."""
        forge(self.snapshot(version), change)

    def forge_definition(self, change: Callable[[Document], object]) -> None:
        """Change the definition likewise."""
        forge(self.definition(), change)

    def forge_tail(self, change: Callable[[Document], object]) -> None:
        """Change the list of files inside the snapshot."""

        def edit(body: Document) -> None:
            for ref in body["manifest_list"]:
                if "path" not in ref:
                    change(ref)

        self.forge_snapshot(edit)

    def forge_ref(self, **changes: object) -> None:
        """Change what the snapshot says of the manifest."""

        def edit(body: Document) -> None:
            for ref in body["manifest_list"]:
                if "path" in ref:
                    ref.update(changes)

        self.forge_snapshot(edit)

    def forge_entry(self, **changes: object) -> None:
        """Change what the snapshot says of its newest data file."""
        self.forge_tail(lambda ref: ref["entries"][-1]["file"].update(changes))

    def forge_manifest(self, write: Callable[[pa.Table, Path], object], **changes: object) -> None:
        """Write the manifest anew, and let the snapshot vouch for it."""
        path = self.manifest()
        table = pq.read_table(path)
        write(table, path)
        data = path.read_bytes()
        self.forge_ref(size_bytes=len(data), checksum=checksum(data), **changes)


def body_of(path: Path) -> Document:
    """What a metadata file says."""
    return dict(json.loads(path.read_bytes())["lakebed"])


def forge(path: Path, change: Callable[[Document], object]) -> None:
    """Change a metadata file, and make it sound by its checksum."""
    body = body_of(path)
    change(body)
    forge_text(path, json.dumps(body, separators=(",", ":")))


def forge_text(path: Path, body: str) -> None:
    """Replace a metadata file by any text at all, with a sound checksum."""
    path.write_bytes(seal(body.encode()))
