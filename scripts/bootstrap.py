"""Make the project's virtual environment from its lock; the second run does nothing.

Needs a Python and its standard library only. `make setup` calls it before each other target:

    python >= 3.11 → .venv (by uv if on PATH) → lock, with hashes → ourselves, editable → stamp

The stamp holds the place of the checkout and a hash of the lock and of pyproject.toml. Several
processes may call this at once: one works, the others wait for its result.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
PYTHON_MIN = (3, 11)
PYTHON_NAMES = ("python3.13", "python3.12", "python3.14", "python3.11")
OUTPUT_LINES_MAX = 40
STAMP = ".lakebed-stamp"


def main() -> None:
    """Parse the arguments and bring one environment up to date."""
    parser = argparse.ArgumentParser(description="Make the virtual environment from the lock.")
    parser.add_argument("--bench", action="store_true", help="make .venv-bench, with the peers")
    bench = parser.parse_args().bench
    venv = ROOT / (".venv-bench" if bench else ".venv")
    lock = ROOT / ("requirements-bench.lock" if bench else "requirements.lock")
    stamp = _stamp(lock)
    if _is_current(venv, stamp):
        return
    if sys.version_info < PYTHON_MIN:
        _run_again_with_newer_python()
    with _only_one(venv):
        if not _is_current(venv, stamp):  # Another process may have done it while we waited.
            _make(venv, lock, stamp)


def _stamp(lock: Path) -> str:
    """Say what an up-to-date environment was made from; its first line is the place."""
    digest = hashlib.sha256(lock.read_bytes() + (ROOT / "pyproject.toml").read_bytes())
    return f"{ROOT}\n{digest.hexdigest()}\n"


def _is_current(venv: Path, stamp: str) -> bool:
    return _read(venv / STAMP) == stamp and _python_of(venv).exists()


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""


def _python_of(venv: Path) -> Path:
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _make(venv: Path, lock: Path, stamp: str) -> None:
    """Create or update `venv`, then stamp it."""
    started = time.monotonic()
    uv = shutil.which("uv")
    made_here = _read(venv / STAMP).split("\n")[0] == str(ROOT)
    (venv / STAMP).unlink(missing_ok=True)
    needs = "sys" if uv else "pip"  # What uv made has no pip of its own.
    if not (made_here and _version_of(str(_python_of(venv)), needs) >= PYTHON_MIN):
        # Absent, half made, moved with its checkout, or its Python is gone: begin anew.
        _say("{}: creating with Python {}.{}".format(venv.name, *sys.version_info[:2]))
        _create(venv, uv)
    python = str(_python_of(venv))
    install = [uv, "pip", "install", "--python", python] if uv else [python, "-m", "pip", "install"]
    _say(f"{venv.name}: installing {lock.name}")
    _run([*install, "--require-hashes", "-r", str(lock)])
    _run([*install, "--no-deps", "--no-build-isolation", "-e", str(ROOT)])
    (venv / STAMP).write_text(stamp, encoding="utf-8")
    _say(f"{venv.name}: ready in {time.monotonic() - started:.0f} s", end="\n")


def _create(venv: Path, uv: str | None) -> None:
    """Make an empty environment, with uv or with the standard library."""
    shutil.rmtree(venv, ignore_errors=True)
    if uv:
        _run([uv, "venv", "--python", sys.executable, str(venv)])
        return
    if importlib.util.find_spec("ensurepip") is None:  # Debian and Ubuntu ship it apart.
        version = "{}.{}".format(*sys.version_info[:2])
        _fail(
            f"{sys.executable} has no ensurepip, so it cannot make a virtual environment.\n"
            f"On Debian or Ubuntu run:  sudo apt install python{version}-venv\n"
            "Or put uv on PATH, and run this again."
        )
    _run([sys.executable, "-m", "venv", str(venv)])


def _run_again_with_newer_python() -> NoReturn:
    """Replace this process by one of a Python that is new enough."""
    for name in PYTHON_NAMES:
        found = shutil.which(name)
        if found and _version_of(found) >= PYTHON_MIN:
            arguments = [found, str(Path(__file__).resolve()), *sys.argv[1:]]
            sys.exit(subprocess.call(arguments))
    _fail(
        "Lakebed needs Python {}.{} or newer; this is {}.{} ({}), and no {} is on PATH.\n"
        "Install one of them, or name one you have: make setup PYTHON=/path/to/python3".format(
            *PYTHON_MIN, *sys.version_info[:2], sys.executable, ", ".join(PYTHON_NAMES)
        )
    )


def _version_of(python: str, needs: str = "sys") -> tuple[int, ...]:
    """Ask a Python for its version; (0,) if it does not run (a pyenv shim) or lacks a module."""
    try:
        answer = subprocess.run(
            [python, "-c", f"import sys, {needs}; print(*sys.version_info[:2])"],
            capture_output=True,
            check=True,
            text=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return (0,)
    return tuple(int(part) for part in answer.stdout.split())


@contextlib.contextmanager
def _only_one(venv: Path) -> Iterator[None]:
    """Hold the lock of `venv`; the system gives it back even if we are killed."""
    with open(str(venv) + ".lock", "a+", encoding="utf-8") as handle:
        if sys.platform == "win32":
            import msvcrt

            handle.seek(0)
            while True:  # LK_LOCK gives up after ten seconds; an install takes longer.
                try:
                    msvcrt.locking(handle.fileno(), msvcrt.LK_LOCK, 1)
                    break
                except OSError:
                    continue
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _run(command: list[str]) -> None:
    """Run a tool in silence; if it fails, show its last lines and stop."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_USER", "PIP_TARGET", "PIP_PREFIX")
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    env.update(PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_NO_INPUT="1")
    done = subprocess.run(
        command,
        cwd=str(ROOT),
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        tail = "\n".join(done.stdout.splitlines()[-OUTPUT_LINES_MAX:])
        _fail("{}\n\nfailed ({}): {}".format(tail, done.returncode, " ".join(command)))


_on_terminal = sys.stderr.isatty()


def _say(text: str, end: str = "") -> None:
    """Show progress on one line of a terminal; elsewhere, only what ends a line."""
    if _on_terminal:
        sys.stderr.write("\r\033[K" + text + end)
    elif end:
        sys.stderr.write(text + end)
    sys.stderr.flush()


def _fail(text: str) -> NoReturn:
    _say("", end="\n" if _on_terminal else "")
    sys.exit(text)


if __name__ == "__main__":
    main()
