"""Many processes on one table: every commit is there once, in a row without holes."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.catalog.contender import open_catalog

from lakebed.catalog.backend import CatalogBackend
from lakebed.testing.moves import create

PROCESS_COUNT = 8
WIN_COUNT = 25


def contend(kind: str, place: str, name: str) -> None:
    command = [sys.executable, "-m", "tests.catalog.contender", kind, place, name, str(WIN_COUNT)]
    contenders = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(PROCESS_COUNT)
    ]
    for each in contenders:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    for each in contenders:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    for each in contenders:
        each.communicate(timeout=120)
    assert [each.returncode for each in contenders] == [0] * PROCESS_COUNT


def check(catalog: CatalogBackend, name: str) -> None:
    total = PROCESS_COUNT * WIN_COUNT
    head = catalog.load(name)
    versions = list(catalog.history(head))
    assert [past.version for past in versions] == list(range(total, -1, -1))
    assert len({past.commit_id for past in versions}) == total + 1
    if catalog.keeps_log:
        places = [(version, ordinal) for version, ordinal, _ in catalog.log(head)]
        assert places == [(v, o) for v in range(1, total + 1) for o in range(2)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "store"])
def test_no_commit_of_many_processes_is_lost_or_doubled(kind: str, tmp_path: Path) -> None:
    place = str(tmp_path / "catalog.db")
    catalog = open_catalog(kind, place)
    create(catalog, "t")
    contend(kind, place, "t")
    check(catalog, "t")
    catalog.close()


@pytest.mark.slow
@pytest.mark.postgres
def test_no_commit_of_many_processes_to_postgres_is_lost_or_doubled(postgres_uri: str) -> None:
    catalog = open_catalog("postgres", postgres_uri)
    create(catalog, "t")
    contend("postgres", postgres_uri, "t")
    check(catalog, "t")
    catalog.close()
