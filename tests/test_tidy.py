"""The style of the house as a test: sizes, names, docstrings, and what source must never do.

Each rule is a function from a parsed source to `(line, complaint)` pairs; the second half of the
file shows each rule its own offence, so a rule that has gone blind fails too.
"""

import ast
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src" / "lakebed"

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
EMPTY_NAMES = {"util", "utils", "common", "helper", "helpers", "manager", "managers", "misc"}
CATCH_ALL = {"Exception", "BaseException"}
UNSAFE_MODULES = {"pickle", "_pickle", "cloudpickle", "dill", "marshal", "shelve"}
UNSAFE_CALLS = {"eval", "exec", "yaml.load", "yaml.load_all", "yaml.unsafe_load"}
AMBIENT = {  # what must come through an injected Clock or Ids
    *(f"time.{name}" for name in ("time", "time_ns", "sleep", "monotonic", "monotonic_ns")),
    *(f"time.{name}" for name in ("perf_counter", "perf_counter_ns")),
    *(f"datetime.datetime.{name}" for name in ("now", "utcnow", "today")),
    *("datetime.date.today", "uuid.uuid1", "uuid.uuid4", "os.urandom"),
}
AMBIENT_MODULES = {"random", "secrets"}
AMBIENT_ALLOWED = ("clock.py", "ids.py", "testing/")

# Joined here, so that this file does not contain what it looks for.
REGISTRY_HOSTS = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pypi", "python", "org"),
        ("pythonhosted", "org"),
        ("maven", "org"),
        ("maven", "apache", "org"),
        ("anaconda", "org"),
        ("npmjs", "org"),
        ("crates", "io"),
        ("docker", "io"),
        ("ghcr", "io"),
        ("quay", "io"),
        ("proxy", "golang", "org"),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One Python file: where it is, below src/lakebed, and what it says."""

    path: str
    text: str
    tree: ast.Module


Complaints = Iterator[tuple[int, str]]
Rule = Callable[[Source], Complaints]


def file_is_short(source: Source) -> Complaints:
    count = len(source.text.splitlines())
    if count > FILE_LINES_MAX:
        yield FILE_LINES_MAX + 1, f"{count} lines, at most {FILE_LINES_MAX}: split along a noun"


def functions_are_short(source: Source) -> Complaints:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            count = (node.end_lineno or node.lineno) - node.lineno + 1
            if count > FUNCTION_LINES_MAX:
                yield node.lineno, f"{node.name}: {count} lines, at most {FUNCTION_LINES_MAX}"


def module_name_says_something(source: Source) -> Complaints:
    for part in Path(source.path).with_suffix("").parts:
        for word in part.strip("_").split("_"):
            if word in EMPTY_NAMES:
                yield 1, f"the name {part!r} says nothing: use a noun of the domain"


def module_has_docstring(source: Source) -> Complaints:
    if not (ast.get_docstring(source.tree) or "").strip():
        yield 1, "no module docstring: its first line says what the module is for"


def catches_only_what_it_means(source: Source) -> Complaints:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ExceptHandler):
            if node.type is None:
                yield node.lineno, "bare except: name the error that was meant"
                continue
            for caught in ast.walk(node.type):
                if isinstance(caught, ast.Name) and caught.id in CATCH_ALL:
                    yield node.lineno, f"except {caught.id}: name the error that was meant"


def never_runs_data_as_code(source: Source) -> Complaints:
    for line, name in used_names(source.tree):
        if name in UNSAFE_CALLS or name.split(".")[0] in UNSAFE_MODULES:
            yield line, f"{name}: bytes from outside must never become code"


def time_and_chance_are_injected(source: Source) -> Complaints:
    if source.path.startswith(AMBIENT_ALLOWED):
        return
    for line, name in used_names(source.tree):
        if name in AMBIENT or name.split(".")[0] in AMBIENT_MODULES:
            yield line, f"{name}: take a Clock or Ids instead (lakebed.clock, lakebed.ids)"


RULES: tuple[Rule, ...] = (
    file_is_short,
    functions_are_short,
    module_name_says_something,
    module_has_docstring,
    catches_only_what_it_means,
    never_runs_data_as_code,
    time_and_chance_are_injected,
)


def used_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Each imported or used name in full, whatever alias the file gave it."""
    meaning: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
                first = alias.name.split(".")[0]
                meaning[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}"
                meaning[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name):
            name = dotted(node)
            if name:
                first, dot, rest = name.partition(".")
                builtin = first in UNSAFE_CALLS and not dot
                if first in meaning or builtin:
                    yield node.lineno, meaning.get(first, first) + dot + rest


def dotted(node: ast.expr) -> str:
    """`a.b.c` for a chain of attributes on a plain name, else nothing."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value)
        return f"{owner}.{node.attr}" if owner else ""
    return ""


@cache
def sources() -> list[Source]:
    files = sorted(SRC.rglob("*.py"))
    assert files, f"no source under {SRC}"
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    return [
        Source(path=file.relative_to(SRC).as_posix(), text=text, tree=ast.parse(text, str(file)))
        for file, text in texts.items()
    ]


def tracked_files() -> list[Path]:
    """Files that are, or with the next commit would be, in the repository."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
        text=True,
    )
    if listing.returncode != 0:  # An unpacked archive: take all but environments and caches.
        hidden = (".venv", ".git/", "_cache/", "__pycache__/")
        every = (file for file in ROOT.rglob("*") if file.is_file())
        return sorted(file for file in every if not any(part in str(file) for part in hidden))
    files = (ROOT / name for name in listing.stdout.split("\0") if name)
    return sorted({file for file in files if file.is_file()})


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_source_keeps_the_rule(rule: Rule) -> None:
    found = [
        f"src/lakebed/{source.path}:{line}: {complaint}"
        for source in sources()
        for line, complaint in sorted(set(rule(source)))
    ]
    assert not found, "\n" + "\n".join(found)


def test_no_tracked_file_names_a_registry() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{number}: names {host}"
        for file in tracked_files()
        for number, line in enumerate(file.read_bytes().lower().splitlines(), start=1)
        for host in REGISTRY_HOSTS
        if host.encode() in line
    ]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-bench.lock"])
def test_lock_holds_pins_and_hashes_only(name: str) -> None:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if "==" in line.split(";")[0] and not line.startswith(" ")]
    found = [
        f"{name}:{number}: {line}"
        for number, line in enumerate(lines, start=1)
        if line not in pins and not line.startswith("    --hash=sha256:")
    ]
    assert pins
    assert not found, "\n" + "\n".join(found)


OFFENCES: list[tuple[Rule, str, str, int]] = [
    (file_is_short, "a.py", "x = 1\n" * 401, 401),
    (functions_are_short, "a.py", "\ndef f():\n" + "    x = 1\n" * 70, 2),
    (module_name_says_something, "files/path_utils.py", "", 1),
    (module_name_says_something, "common/a.py", "", 1),
    (module_has_docstring, "a.py", "x = 1", 1),
    (catches_only_what_it_means, "a.py", "try:\n    f()\nexcept:\n    raise", 3),
    (catches_only_what_it_means, "a.py", "try:\n    f()\nexcept Exception:\n    pass", 3),
    (catches_only_what_it_means, "a.py", "try:\n    f()\nexcept (E, BaseException):\n    pass", 3),
    (never_runs_data_as_code, "a.py", "import pickle", 1),
    (never_runs_data_as_code, "a.py", "from marshal import loads", 1),
    (never_runs_data_as_code, "a.py", "\neval('1')", 2),
    (never_runs_data_as_code, "a.py", "import yaml\nyaml.load(x)", 2),
    (time_and_chance_are_injected, "a.py", "import time as t\nt.sleep(1)", 2),
    (time_and_chance_are_injected, "a.py", "from time import time", 1),
    (time_and_chance_are_injected, "a.py", "from datetime import datetime\ndatetime.now()", 2),
    (time_and_chance_are_injected, "a.py", "import datetime\nx = datetime.datetime.now", 2),
    (time_and_chance_are_injected, "a.py", "import uuid\nuuid.uuid4()", 2),
    (time_and_chance_are_injected, "cli/ids.py", "import random", 1),
]

HARMLESS: list[tuple[Rule, str, str]] = [
    (file_is_short, "a.py", "x = 1\n" * 400),
    (functions_are_short, "a.py", "def f():\n" + "    x = 1\n" * 69),
    (module_name_says_something, "files/manifest.py", ""),
    (module_has_docstring, "a.py", '"""What it is for."""'),
    (catches_only_what_it_means, "a.py", "try:\n    f()\nexcept (A, b.C):\n    pass"),
    (never_runs_data_as_code, "a.py", "import re\nre.compile('x')\nframe.eval('x')"),
    (time_and_chance_are_injected, "clock.py", "import time\ntime.sleep(1)"),
    (time_and_chance_are_injected, "testing/simulate.py", "import random\nrandom.Random(7)"),
    (time_and_chance_are_injected, "a.py", "from datetime import datetime\ndatetime(2026, 1, 1)"),
    (time_and_chance_are_injected, "a.py", "def f(clock, time):\n    time.sleep(1)"),
]


def source_of(path: str, text: str) -> Source:
    return Source(path=path, text=text, tree=ast.parse(text))


@pytest.mark.parametrize(("rule", "path", "text", "line"), OFFENCES)
def test_rule_finds_its_offence(rule: Rule, path: str, text: str, line: int) -> None:
    assert line in {found for found, _ in rule(source_of(path, text))}


@pytest.mark.parametrize(("rule", "path", "text"), HARMLESS)
def test_rule_leaves_the_harmless_alone(rule: Rule, path: str, text: str) -> None:
    assert list(rule(source_of(path, text))) == []
