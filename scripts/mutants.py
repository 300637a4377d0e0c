"""Break the code on purpose, one planted bug at a time, and see the tests notice.

    tests/mutants/NN-name.patch
        # breaks: what no longer holds
        # caught by: tests/…::test_name …         every one of them has to fail
        a unified diff against the root

    copy src → apply the patch → run the named tests on the copy → they fail

First all named tests run on a copy without a bug, where they must pass. A test that fails because
the patch makes no sense as code (a name that is not there) has caught nothing. Neither the tree
nor the installed package is touched.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PATCHES = ROOT / "tests" / "mutants"
BREAKS, CAUGHT_BY = "# breaks: ", "# caught by: "
TEST_TIMEOUT_SECONDS = 60
RUN_TIMEOUT_SECONDS = 300
OUTPUT_LINES_MAX = 25
NO_SERVERS = "not postgres and not s3"  # what memory, SQLite and the disk show is enough
PASSED, FAILED = 0, 1  # of pytest's exit codes
BLUNDERS = ("NameError", "ImportError", "ModuleNotFoundError", "SyntaxError", "AttributeError")


class MutantError(Exception):
    """The answer to "is the bug noticed?" could not be found out."""


@dataclass(frozen=True)
class Mutant:
    """A planted bug."""

    path: Path
    breaks: str
    caught_by: tuple[str, ...]

    @property
    def name(self) -> str:
        """What the bug is called: the patch's file name."""
        return self.path.stem


@dataclass(frozen=True)
class Verdict:
    """What became of one bug."""

    mutant: Mutant
    is_caught: bool
    seconds: float
    complaint: str = ""


@dataclass(frozen=True)
class _Run:
    """One run of pytest on a copy."""

    code: int
    endings: tuple[tuple[str, str, str], ...]  # phase, error, test
    output: str


def read_mutants(names: Sequence[str] = ()) -> list[Mutant]:
    """All planted bugs in order, or those whose name contains one of `names`."""
    found = [_read(path) for path in sorted(PATCHES.glob("*.patch"))]
    for name in names:
        if not any(name in mutant.name for mutant in found):
            raise MutantError(f"there is no {name} in {PATCHES}")
    return [m for m in found if not names or any(name in m.name for name in names)]


def _read(path: Path) -> Mutant:
    breaks, caught_by = "", ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        breaks = line.removeprefix(BREAKS) if line.startswith(BREAKS) else breaks
        caught_by = line.removeprefix(CAUGHT_BY) if line.startswith(CAUGHT_BY) else caught_by
    if not breaks.strip() or not caught_by.strip():
        raise MutantError(f"{path.name} does not begin with {BREAKS!r} and {CAUGHT_BY!r}")
    return Mutant(path, breaks.strip(), tuple(caught_by.split()))


@contextmanager
def copied_source() -> Iterator[Path]:
    """A copy of `src/lakebed` in a directory of its own."""
    with tempfile.TemporaryDirectory(prefix="lakebed-mutant-") as place:
        copy = Path(place) / "tree"
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "src" / "lakebed", copy / "src" / "lakebed", ignore=ignored)
        yield copy


def apply(mutant: Mutant, copy: Path, *, check_only: bool = False) -> None:
    """Plant the bug in a copy, or just make sure that it could be."""
    # Inside of a repository git would pass over files that the repository does not know.
    env = {**os.environ, "GIT_CEILING_DIRECTORIES": str(copy.parent)}
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        env.pop(name, None)
    done = subprocess.run(
        ["git", "apply", *(["--check"] if check_only else []), str(mutant.path)],
        cwd=copy,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise MutantError(f"{mutant.path.name} does not apply: {done.stderr.strip()}")


def judge(mutant: Mutant) -> Verdict:
    """Plant one bug and tell whether each of its tests notices."""
    start = time.monotonic()
    try:
        with copied_source() as copy:
            apply(mutant, copy)
            run = _pytest(copy, mutant.caught_by)
        complaint = _complaint(mutant, run)
    except MutantError as error:
        complaint = str(error)
    return Verdict(mutant, not complaint, time.monotonic() - start, complaint)


def _complaint(mutant: Mutant, run: _Run) -> str:
    """Why the bug does not count as caught; empty if it does."""
    if run.code == PASSED:
        return "SURVIVED: all its tests pass"
    if run.code != FAILED:
        return f"pytest ended with {run.code}\n{run.output}"
    for phase, error, test in run.endings:
        if phase != "call" or error in BLUNDERS:
            return f"{test} did not fail, it broke: {error} in {phase}"
    failed = {test.partition("[")[0] for _, _, test in run.endings}
    blind = [name for name in mutant.caught_by if name.partition("[")[0] not in failed]
    return f"SURVIVED: {', '.join(blind)} did not notice" if blind else ""


def check_sound(mutants: Sequence[Mutant]) -> None:
    """Raise unless every named test passes where no bug is planted."""
    tests = sorted({name for mutant in mutants for name in mutant.caught_by})
    with copied_source() as copy:
        run = _pytest(copy, tests)
    if run.code != PASSED:
        raise MutantError(f"without any bug pytest ended with {run.code}\n{run.output}")


def _pytest(copy: Path, tests: Sequence[str]) -> _Run:
    endings = copy / "endings"
    endings.touch()
    env = {
        **os.environ,
        "PYTHONPATH": str(copy / "src"),  # before what is installed
        "PYTHONDONTWRITEBYTECODE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(copy / "hypothesis"),
        "LAKEBED_COPY": str(copy),
        "LAKEBED_ENDINGS": str(endings),
    }
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "tests.mutants.witness"]
    command += ["-p", "no:cacheprovider", f"--basetemp={copy / 'scratch'}"]
    command += ["-o", f"timeout={TEST_TIMEOUT_SECONDS}", "-m", NO_SERVERS, *tests]
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=RUN_TIMEOUT_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise MutantError(f"pytest took more than {RUN_TIMEOUT_SECONDS} seconds") from error
    lines = endings.read_text(encoding="utf-8").splitlines()
    found = tuple((phase, error, test) for phase, error, test in (x.split(" ", 2) for x in lines))
    return _Run(done.returncode, found, "\n".join(done.stdout.splitlines()[-OUTPUT_LINES_MAX:]))


def main() -> int:
    """Judge the bugs asked for, print a table, and fail if one survives."""
    parser = argparse.ArgumentParser(description="Break the code on purpose; the tests notice.")
    parser.add_argument("names", nargs="*", help="parts of names of bugs; none: all bugs")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="how many at once")
    options = parser.parse_args()
    try:
        mutants = read_mutants(options.names)
        check_sound(mutants)
    except MutantError as error:
        print(error, file=sys.stderr)
        return 1
    width = max(len(mutant.name) for mutant in mutants)
    print(f"{'bug':{width}}  seconds  caught by", flush=True)
    caught = 0
    with ThreadPoolExecutor(max(options.jobs, 1)) as pool:
        for verdict in pool.map(judge, mutants):
            caught += verdict.is_caught
            names = [name.partition("::")[2] for name in verdict.mutant.caught_by]
            first, *more = names if verdict.is_caught else verdict.complaint.splitlines()
            print(f"{verdict.mutant.name:{width}}  {verdict.seconds:7.1f}  {first}", flush=True)
            for line in more:
                print(f"{'':{width}}           {line}", flush=True)
    print(f"{caught} of {len(mutants)} caught")
    return 0 if caught == len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main())
