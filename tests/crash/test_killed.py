"""A writer that is killed at any moment leaves what it acknowledged, and at most the next step."""

import hashlib
import itertools
import multiprocessing
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.catalog.libraries import use_rollback_journal
from tests.crash import workload
from tests.crash.workload import (
    MAIN,
    ROLLBACK,
    State,
    acknowledged,
    content,
    open_catalog,
    states,
    steps,
)

import lakebed
from lakebed.commit.change import Commit
from lakebed.table.catalog import Catalog
from lakebed.table.rebuild import rebuild_catalog

pytestmark = pytest.mark.crash

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["__main__", "tests.crash.workload"])
SECONDS_MAX = 60


@pytest.fixture
def workshop(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory where there is one: the kernel outlives a killed process anyway."""
    memory = Path("/dev/shm")
    base = memory if os.access(memory, os.W_OK) else tmp_path
    with tempfile.TemporaryDirectory(dir=base, prefix="lakebed-crash-") as name:
        yield Path(name)


CASES = [
    pytest.param(kind, level, number, id=f"{kind}-{level}-{step.name}")
    for kind, levels in (
        ("sqlite", ("calls", "system", "statements")),
        (ROLLBACK, ("statements",)),
        ("store", ("calls", "system")),
    )
    for level in levels
    for number, step in enumerate(steps(kind))
    if kind != ROLLBACK or number == len(steps(kind)) - 1
]


@pytest.mark.parametrize(("kind", "level", "number"), CASES)
def test_a_writer_killed_anywhere_in_a_step_leaves_all_or_nothing_of_it(
    workshop: Path, kind: str, level: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == ROLLBACK:
        use_rollback_journal(monkeypatch)
    start = workshop / "start"
    start.mkdir()
    with open_catalog(start, kind) as catalog:
        for step in steps(kind)[:number]:
            step.act(catalog)
    for fuse_length in itertools.count():
        place = workshop / f"{fuse_length}"
        shutil.copytree(start, place)
        code = run_child(place, kind, number, level, fuse_length)
        is_done = acknowledged(place)
        found = recovered(place, kind)
        expected = states(kind)
        assert found in (expected[number + 1 :][:1] if is_done else expected[number:][:2])
        if kind == "sqlite" and level == "calls":
            assert_rebuilt(place, expected[number], expected[number + 1])
        if level == "calls" or fuse_length % 8 == 0:
            assert_can_go_on(place, kind, expected.index(found, number))
        shutil.rmtree(place)
        if code == 0:
            assert is_done
            break
        assert code == -signal.SIGKILL, f"the child ended with {code} at {fuse_length}"
    assert fuse_length > 5, "the fuse was never lit"


def run_child(place: Path, *args: object) -> int | None:
    child = PROCESSES.Process(target=workload.work, args=(place, *args))
    child.start()
    child.join(SECONDS_MAX)
    if child.exitcode is None:
        child.kill()
        child.join()
        raise AssertionError(f"no end in sight of {args}")
    return child.exitcode


def recovered(place: Path, kind: str) -> State:
    """What the next process finds; to find it once more changes nothing."""
    before = files_of(place)
    with open_catalog(place, kind) as catalog:
        found = look(catalog)
    with open_catalog(place, kind) as catalog:
        assert content(catalog) == found
    assert files_of(place) == before, "to recover is to look: it changes no file"
    return found


def look(catalog: Catalog) -> State:
    """The content, if all of it is sound: every file of every version."""
    for name in catalog.tables():
        audit = catalog.doctor(name)
        assert audit.ok, audit.problems
        table = catalog.table(name)
        for snapshot in table.history(limit=2):
            count = table.scan(as_of=snapshot.version).to_arrow().num_rows
            assert count == snapshot.summary.total_rows
    return content(catalog)


def assert_can_go_on(place: Path, kind: str, done: int) -> None:
    """Send again whatever has a token, as one does who knows of nothing; then do two steps more."""
    work, expected = steps(kind), states(kind)
    with open_catalog(place, kind) as catalog:
        for step in work[:done]:
            if step.token is not None:
                before = catalog.table(MAIN).version
                again = step.act(catalog)
                assert isinstance(again, Commit)
                assert again.repeated
                assert catalog.table(MAIN).version == before
        for step in work[done : done + 2]:
            step.act(catalog)
        assert look(catalog) == expected[done:][:3][-1]


def assert_rebuilt(place: Path, before: State, after: State) -> None:
    """A catalog made anew from the files has each table as it was before or after the step.

    Each by itself: of a transaction that was not committed the files of one table may be there.
    """
    uri = f"sqlite:///{place}/rebuilt.db"
    contents = []
    for _ in range(2):
        rebuild_catalog(uri)
        with lakebed.connect(uri) as catalog:
            contents.append(look(catalog))
    assert contents[0] == contents[1]
    for name in before | after:
        assert contents[0].get(name) in (before.get(name), after.get(name))
    for leftover in place.glob("rebuilt.db*"):
        leftover.unlink()


def files_of(place: Path) -> dict[str, str]:
    """Every file but the database's own, by content."""
    return {
        str(path.relative_to(place)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in place.rglob("*")
        if path.is_file() and not path.name.startswith(workload.DATABASE)
    }
