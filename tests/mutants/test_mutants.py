"""Every planted bug applies to the code as it is, names tests that exist, and is noticed."""

import ast
import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
COUNT_MIN = 15
CHEAPEST = (
    "unknown-is-made",
    "time-goes-back",
    "name-before-content",
    "create-replaces",
    "manifest-checksum-not-verified",
)


def load_script() -> ModuleType:
    """`scripts/mutants.py` as a module; scripts are no package."""
    spec = importlib.util.spec_from_file_location("lakebed_mutants", ROOT / "scripts/mutants.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # Its dataclasses look for their module there.
    spec.loader.exec_module(module)
    return module


script: Any = load_script()
MUTANTS: list[Any] = script.read_mutants()


def named(mutant: Any) -> str:
    return str(mutant.name)


@cache
def names_in(path: Path) -> frozenset[str]:
    """Names of the tests in a file, and of classes with what they have or inherit."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
            inside = [each.name for each in node.body if isinstance(each, ast.FunctionDef)]
            inside += [name for base in bases for name in contract_tests(base)]
            found |= {f"{node.name}::{name}" for name in inside}
    return frozenset(name for name in found if name.rpartition("::")[2].startswith("test_"))


@cache
def contract_tests(class_name: str) -> frozenset[str]:
    """The tests of a contract that test classes inherit."""
    for path in (ROOT / "src/lakebed/testing").glob("contract_*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and node.name == class_name:
                return frozenset(e.name for e in node.body if isinstance(e, ast.FunctionDef))
    return frozenset()


def test_there_are_enough_planted_bugs() -> None:
    assert len(MUTANTS) >= COUNT_MIN
    assert len({mutant.breaks for mutant in MUTANTS}) == len(MUTANTS)


def test_every_patch_applies_to_the_code_as_it_is() -> None:
    with script.copied_source() as copy:
        for mutant in MUTANTS:
            script.apply(mutant, copy, check_only=True)


@pytest.mark.parametrize("mutant", MUTANTS, ids=named)
def test_the_tests_that_a_patch_names_exist(mutant: Any) -> None:
    for test in mutant.caught_by:
        path, _, name = test.partition("::")
        assert name.partition("[")[0] in names_in(ROOT / path), test


@pytest.mark.parametrize("text", ["", "# breaks: x\n", "# caught by: y\n", "# breaks:  \n"])
def test_a_patch_without_both_headers_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "01-bad.patch"
    path.write_text(f"{text}--- a\n# breaks: too late\n# caught by: too late\n")
    with pytest.raises(script.MutantError, match="01-bad"):
        script._read(path)


def test_a_patch_that_does_not_apply_is_told(tmp_path: Path) -> None:
    path = tmp_path / "01-stale.patch"
    place = "src/lakebed/clock.py"
    path.write_text(f"--- a/{place}\n+++ b/{place}\n@@ -1 +1 @@\n-no such line\n+another\n")
    verdict = script.judge(script.Mutant(path, "nothing", ("tests/test_clock.py",)))
    assert not verdict.is_caught
    assert "does not apply" in verdict.complaint


@pytest.mark.parametrize(
    ("code", "endings", "complaint"),
    [
        (1, [("call", "AssertionError", "t.py::a[1]"), ("call", "Failed", "t.py::b")], ""),
        (0, [], "SURVIVED"),
        (1, [("call", "AssertionError", "t.py::a")], "t.py::b did not notice"),
        (1, [("setup", "ValueError", "t.py::a")], "broke"),
        (1, [("call", "NameError", "t.py::a"), ("call", "Failed", "t.py::b")], "broke"),
        (2, [], "ended with 2"),
        (9, [], "ended with 9"),
    ],
)
def test_a_bug_is_caught_only_if_each_named_test_fails_and_none_breaks(
    code: int, endings: list[tuple[str, str, str]], complaint: str
) -> None:
    mutant = script.Mutant(Path("01-x.patch"), "x", ("t.py::a", "t.py::b"))
    found = script._complaint(mutant, script._Run(code, tuple(endings), ""))
    assert complaint in found
    assert bool(complaint) == bool(found)


@pytest.mark.slow
def test_a_patch_that_harms_nothing_is_said_to_survive(tmp_path: Path) -> None:
    place = "src/lakebed/clock.py"
    first, second = (ROOT / place).read_text(encoding="utf-8").splitlines()[:2]
    path = tmp_path / "01-harmless.patch"
    hunk = f"@@ -1,2 +1,3 @@\n {first}\n+# harmless\n {second}\n"
    path.write_text(f"--- a/{place}\n+++ b/{place}\n{hunk}")
    verdict = script.judge(script.Mutant(path, "nothing", ("tests/test_clock.py",)))
    assert verdict.complaint.startswith("SURVIVED")


@pytest.mark.slow
def test_a_run_on_the_installed_code_is_refused() -> None:
    """Where the copy lost to the installed package every bug would seem to survive."""
    with script.copied_source() as copy:
        (copy / "src").rename(copy / "elsewhere")
        run = script._pytest(copy, ["tests/test_clock.py"])
    assert run.code == 9
    assert "tested would be" in run.output


@pytest.mark.slow
@pytest.mark.parametrize("name", CHEAPEST)
def test_a_cheap_bug_is_noticed(name: str) -> None:
    (mutant,) = script.read_mutants([name])
    verdict = script.judge(mutant)
    assert verdict.is_caught, verdict.complaint
