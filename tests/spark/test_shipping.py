"""Executors that do not have the package get it from the driver, and then can do all it can."""

import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from tests.spark.driving import Drive, drive

from lakebed.spark.ship import PACKAGES, package_zip
from lakebed.testing.spark_cluster import JAVA_OPTIONS, spark_home

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def python_without_the_package(directory: Path) -> Path:
    """A Python with everything that ours has but Lakebed, until a file `installed` is beside it."""
    libraries = directory / "libraries"
    libraries.mkdir(parents=True)
    for place in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for entry in Path(place).iterdir():
            is_ours = entry.name.startswith(PACKAGES)
            if not is_ours and entry.suffix != ".pth":  # a .pth is how we are installed here
                (libraries / entry.name).symlink_to(entry)
    python = directory / "python"
    path = f"{libraries}${{PYTHONPATH:+:$PYTHONPATH}}"
    # -S: site-packages itself is not looked at.
    python.write_text(
        f'#!/bin/sh\n[ -e "{directory}/installed" ] && exec "{sys.executable}" "$@"\n'
        f'PYTHONPATH="{path}" exec "{sys.executable}" -S "$@"\n'
    )
    python.chmod(0o700)
    return python


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Drive:
    place = tmp_path_factory.mktemp("shipping")
    argument = {
        "master": "local-cluster[2,1,1024]",
        "catalog": f"sqlite:///{place}/lake/catalog.db",
        "scratch": str(place),
        "settings": {
            "spark.driver.memory": "1g",
            "spark.driver.extraJavaOptions": JAVA_OPTIONS,
            "spark.executor.memory": "768m",
            "spark.executor.extraJavaOptions": JAVA_OPTIONS,
            "spark.local.dir": str(place / "local"),
            "spark.sql.warehouse.dir": str(place / "warehouse"),
        },
    }
    python = python_without_the_package(place / "bare")
    env = {"PYSPARK_PYTHON": str(python), "SPARK_HOME": str(spark_home())}
    return drive("drive_shipping", argument, place / "driver", env)


@pytest.mark.xdist_group("spark-cluster")
@pytest.mark.timeout(600)
class TestOnLocalCluster:
    def test_the_executors_have_no_package_of_their_own(self, shipped: Drive) -> None:
        assert shipped["before"]["origins"] == ["No module named 'lakebed'"]
        assert shipped["before"]["executors"] == 2

    def test_after_shipping_they_have_the_drivers(self, shipped: Drive) -> None:
        assert len(shipped["after"]["origins"]) <= 2  # one directory for each executor
        assert all(".zip/lakebed/" in each for each in shipped["after"]["origins"])
        assert shipped["after"]["again"] == shipped["after"]["origins"]

    def test_they_read_and_write_with_it(self, shipped: Drive) -> None:
        assert shipped["read"]["rows"] == list(range(500, 1_000))
        assert shipped["write"]["rows"] == list(range(1_000))
        assert shipped["write"]["makers"] == ["parquet-cpp"]

    def test_the_format_is_known_through_it(self, shipped: Drive) -> None:
        assert shipped["format"]["count"] == 1_000


def test_the_zip_is_the_installed_package_and_nothing_else(tmp_path: Path) -> None:
    made = package_zip(tmp_path)
    with zipfile.ZipFile(made) as archive:
        names = archive.namelist()
        assert archive.testzip() is None
    assert {name.split("/")[0] for name in names} == set(PACKAGES)
    assert {"lakebed/__init__.py", "pyspark_lakebed/__init__.py"} <= set(names)
    assert "lakebed/table/tasks.py" in names
    assert not [name for name in names if "__pycache__" in name]


def test_the_same_package_is_the_same_zip(tmp_path: Path) -> None:
    one, other = package_zip(tmp_path / "one"), package_zip(tmp_path / "other")
    assert (one.name, one.read_bytes()) == (other.name, other.read_bytes())
    stamp = one.stat().st_mtime_ns
    assert package_zip(tmp_path / "one") == one
    assert one.stat().st_mtime_ns == stamp, "it is not written again"
    assert list(one.parent.iterdir()) == [one]
