"""How the package reaches the processes that run Spark's tasks.

    installed on every node     nothing to do; the best way
    ship(spark)                 a zip of this very package, handed out by the driver

Executors import `lakebed` when they read or write with our own code. The zip holds Python only:
what the package builds on (pyarrow, obstore, msgspec, numpy) must be there already.
"""

import hashlib
import tempfile
import zipfile
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from lakebed.errors import RequestError
from lakebed.spark.places import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGES = ("lakebed", "pyspark_lakebed")
_NAME_LENGTH = 12
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the oldest time a zip can hold: the same files, the same bytes


def ship(spark: "SparkSession") -> "SparkSession":
    """Hand this package to the executors of a session, of Spark Connect too.

    It is the driver's version that they get. Then `format("lakebed")` works as well, where the
    package is not installed for it: it is registered.
    """
    from lakebed.spark.sessions import register

    zipped = str(_zip_of_this_process())
    if is_connect(spark):
        spark.addArtifacts(zipped, pyfile=True)
    else:
        spark.sparkContext.addPyFile(zipped)
    return register(spark)


def package_zip(directory: str | Path) -> Path:
    """Write the installed package as a zip for `spark-submit --py-files` or `addPyFile`.

    Its name tells its content, so one that is there already is not written again and a cluster
    never mixes two versions.

    Raises:
        RequestError: the package runs from a zip itself.
    """
    entries = sorted(_entries())
    digest = hashlib.sha256()
    for name, content in entries:
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    target = Path(directory) / f"lakebed-{digest.hexdigest()[:_NAME_LENGTH]}.zip"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=target.parent, suffix=".part", delete=False) as part:
            _write(part.name, entries)
        Path(part.name).replace(target)
    return target


def _write(path: str, entries: list[tuple[str, bytes]]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries:
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED)


def _entries() -> Iterator[tuple[str, bytes]]:
    for package in PACKAGES:
        found = find_spec(package)
        assert found is not None, "it is this package, or comes with it"
        for place in found.submodule_search_locations or ():
            root = Path(place)
            if not root.is_dir():
                raise RequestError(
                    f"{package} runs from {place}, which is no directory",
                    hint="Hand on the zip that it came in",
                )
            for file in root.rglob("*"):
                if file.is_file() and "__pycache__" not in file.parts:
                    yield f"{package}/{file.relative_to(root).as_posix()}", file.read_bytes()


@cache
def _keeper() -> "tempfile.TemporaryDirectory[str]":
    """A directory for as long as this process lives: executors that come late fetch from it."""
    return tempfile.TemporaryDirectory(prefix="lakebed-ship-")


@cache
def _zip_of_this_process() -> Path:
    return package_zip(_keeper().name)


__all__ = ["PACKAGES", "package_zip", "ship"]
