"""A writer that is killed at any moment leaves what it acknowledged, and at most the next step."""

import hashlib
import itertools
import multiprocessing
import signal
from pathlib import Path

import pytest

import lakebed
from lakebed.table.catalog import Catalog
from lakebed.table.rebuild import rebuild_catalog
from tests.crash import workload
from tests.crash.workload import MAIN, State, acknowledged, content, open_catalog, states, steps

pytestmark = pytest.mark.crash

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.crash.workload", "lakebed.table.rebuild"])
SECONDS_MAX = 60


@pytest.mark.parametrize(
    ("kind", "level", "fewest"),
    [
        ("sqlite", "calls", 200),
        ("sqlite", "system", 200),
        ("sqlite", "statements", 100),
        ("store", "calls", 200),
        ("store", "system", 200),
    ],
)
def test_a_writer_killed_anywhere_leaves_whole_steps_and_can_be_continued(
    tmp_path: Path, kind: str, level: str, fewest: int
) -> None:
    for fuse_length in itertools.count():
        place = tmp_path / f"{fuse_length}"
        code = run_child(place, kind, level, fuse_length)
        recover(place, kind, acknowledged(place))
        if code == 0:
            break
        assert code == -signal.SIGKILL, f"the child ended with {code} at {fuse_length}"
    assert fuse_length >= fewest, "the fuse met fewer calls than such a workload makes"


def run_child(place: Path, kind: str, level: str, fuse_length: int) -> int | None:
    child = PROCESSES.Process(target=workload.work, args=(place, kind, level, fuse_length))
    child.start()
    child.join(SECONDS_MAX)
    if child.exitcode is None:
        child.kill()
        child.join()
        raise AssertionError(f"no end in sight at {fuse_length}")
    return child.exitcode


def recover(place: Path, kind: str, acked: int) -> None:
    """Open it as the next process would; then finish the work."""
    expected = states(kind)
    possible = expected[acked : acked + 2]
    with open_catalog(place, kind) as catalog:
        found = look(catalog)
        assert found in possible, f"after {acked} steps were acknowledged"
        before = files_of(place)
    with open_catalog(place, kind) as catalog:
        assert look(catalog) == found
    assert files_of(place) == before, "to recover is to look: it changes no file"
    if kind == "sqlite":
        assert rebuilt(place) in possible
    with open_catalog(place, kind) as catalog:
        finish(catalog, kind, expected.index(found, acked))
        assert look(catalog) == expected[-1]


def look(catalog: Catalog) -> State:
    """The content, if all of it is sound: every file of every version."""
    for name in catalog.tables():
        audit = catalog.doctor(name)
        assert audit.ok, audit.problems
        table = catalog.table(name)
        for snapshot in table.history():
            count = table.scan(as_of=snapshot.version).to_arrow().num_rows
            assert count == snapshot.summary.total_rows
    return content(catalog)


def finish(catalog: Catalog, kind: str, done: int) -> None:
    """Do the rest; before it, send again whatever has a token, also if nobody knows it landed."""
    work = steps(kind)
    for step in work[:done]:
        if step.token is not None:
            before = catalog.table(MAIN).version
            again = step.act(catalog)
            assert isinstance(again, lakebed.Commit)
            assert again.repeated
            assert catalog.table(MAIN).version == before
    for step in work[done:]:
        step.act(catalog)


def rebuilt(place: Path) -> State:
    """What a catalog that is made anew from the files has; to make it twice is to make it once."""
    uri = f"sqlite:///{place}/rebuilt.db"
    first = rebuild_catalog(uri)
    with lakebed.connect(uri) as catalog:
        found = look(catalog)
    again = rebuild_catalog(uri)
    assert not again.tables or again.tables == first.tables
    with lakebed.connect(uri) as catalog:
        assert content(catalog) == found
    for leftover in place.glob("rebuilt.db*"):
        leftover.unlink()
    return found


def files_of(place: Path) -> dict[str, str]:
    """Every file but the database's own, by content."""
    return {
        str(path.relative_to(place)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in place.rglob("*")
        if path.is_file() and not path.name.startswith(workload.DATABASE)
    }
