"""A disk that is full or fails makes a typed error, and the table stays as it was."""

import errno
import itertools
import json
import os
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.crash.test_killed import PROCESSES, SECONDS_MAX
from tests.crash.workload import KINDS, content, open_catalog, states, steps

from lakebed.errors import CommitUnknownError, LakebedError, StorageError

pytestmark = pytest.mark.crash

ERRORS = {
    "open": errno.ENOSPC,
    "mkdir": errno.ENOSPC,
    "write": errno.ENOSPC,
    "fsync": errno.EIO,
    "link": errno.EIO,
}
STEPS = ("create", "append 1", "overwrite", "delete", "evolve", "transaction")
SIZES = (0, 400, 1_000, 3_000, 6_000, 12_000, 30_000, 60_000)


def number_of(kind: str, name: str) -> int:
    return [step.name for step in steps(kind)].index(name)


def failing_calls(patch: pytest.MonkeyPatch, at: int) -> Callable[[], bool]:
    """Let the call number `at` of the system fail; the answer tells whether it was reached."""
    count = itertools.count()
    reached: list[int] = []

    def failing(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if next(count) == at:
                reached.append(at)
                raise OSError(ERRORS[name], os.strerror(ERRORS[name]))
            return real(*args, **kwargs)

        return call

    for name in ERRORS:
        patch.setattr(os, name, failing(name, getattr(os, name)))
    return lambda: bool(reached)


CASES = [(kind, name) for kind in KINDS for name in STEPS if name in {s.name for s in steps(kind)}]


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_a_call_that_fails_changes_nothing_and_the_step_can_be_tried_again(
    tmp_path: Path, kind: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    number, start = number_of(kind, name), tmp_path / "start"
    start.mkdir()
    with open_catalog(start, kind) as catalog:
        for step in steps(kind)[:number]:
            step.act(catalog)
    before, after = states(kind)[number : number + 2]
    for at in itertools.count():
        place = tmp_path / str(at)
        shutil.copytree(start, place)
        catalog = open_catalog(place, kind)
        outcome: LakebedError | None = None
        with monkeypatch.context() as patch:
            is_reached = failing_calls(patch, at)
            try:
                steps(kind)[number].act(catalog)
            except LakebedError as error:
                outcome = error
        with open_catalog(place, kind) as fresh:
            assert content(fresh) == (before if outcome is not None else after), outcome
        if outcome is not None:
            assert isinstance(outcome, StorageError | CommitUnknownError)
            steps(kind)[number].act(catalog)
            assert content(catalog) == after
        catalog.close()
        if not is_reached():
            break
    assert at > 5


def step_with_little_room(place: Path, kind: str, number: int, size_bytes_max: int) -> None:
    """Do one step where no file may grow beyond a size; tell how it ended."""
    catalog = open_catalog(place, kind)
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes_max, most))
    end = ""
    try:
        steps(kind)[number].act(catalog)
    except LakebedError as error:
        end = type(error).__name__
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    place.with_suffix(".end").write_text(json.dumps(end))
    os._exit(0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["append 1", "evolve", "append 3"])
def test_where_no_file_may_grow_nothing_changes(tmp_path: Path, kind: str, name: str) -> None:
    """A real limit of the kernel: it reaches SQLite's own writes too."""
    number, start = number_of(kind, name), tmp_path / "start"
    with open_catalog(start, kind) as catalog:
        for step in steps(kind)[:number]:
            step.act(catalog)
    before, after = states(kind)[number : number + 2]
    ends = set()
    for size in SIZES:
        place = tmp_path / str(size)
        shutil.copytree(start, place)
        arguments = (place, kind, number, size)
        child = PROCESSES.Process(target=step_with_little_room, args=arguments)
        child.start()
        child.join(SECONDS_MAX)
        assert child.exitcode == 0
        end = json.loads(place.with_suffix(".end").read_text())
        ends.add(end)
        with open_catalog(place, kind) as catalog:
            assert content(catalog) == (before if end else after), f"{end} at {size}"
            if end:
                steps(kind)[number].act(catalog)
                assert content(catalog) == after
    assert ends & {"UnavailableError", CommitUnknownError.__name__}
