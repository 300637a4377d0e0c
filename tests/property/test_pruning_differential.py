"""Law: a planned scan gives what a full scan and a plain filter give, and a delete leaves the rest.

A failing case prints its seed and a recipe made as small as it could be; `problem` runs it again.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest
from tests.property.drawing import draw_recipe
from tests.property.kinds import exact
from tests.property.predicates import Column, Drawing, Predicate, smaller, sql_of
from tests.property.recipes import (
    Add,
    Append,
    Built,
    Recipe,
    build,
    expected_rows,
    file_rows,
    plain_rows,
)

from lakebed.errors import LakebedError, RequestError
from lakebed.plan.read_plan import ReadPlan
from lakebed.table.scan import Scan

PREDICATES_PER_TABLE = 16
TABLES_PER_CHUNK = 8
CHUNK_COUNT = 40  # times the two above: 5,120 pairs
_DELETED_SHARE = 0.3
_TRIES_MAX = 400
_FAILURES = (LakebedError, AssertionError, LookupError, TypeError, ValueError, pa.ArrowException)


def problem(recipe: Recipe, predicate: Predicate) -> str:
    """What is wrong with one predicate on one table; empty if nothing is."""
    with recipe.limits():
        case = Case(build(recipe))
        return case.table_problem() or case.pair_problem(predicate, deletes=True)


class Case:
    """One table, and the rows of its files."""

    def __init__(self, built: Built) -> None:
        self.built = built
        self._file_rows = file_rows(built)
        self.reached: Counter[str] = Counter()

    def table_problem(self) -> str:
        """What a scan of all rows gets wrong."""
        built = self.built
        found = plain_rows(built.table.scan().to_arrow(), built.columns)
        is_right = found == expected_rows(built, set(built.rows))
        return "" if is_right else f"the full scan gives {found}"

    def pair_problem(
        self, predicate: Predicate, *, deletes: bool, column: Column | None = None
    ) -> str:
        """What the library gets wrong with a predicate; extremes of one column, or of all."""
        built = self.built
        where = sql_of(predicate, built.columns)
        wanted = built.matching(predicate)
        scan = built.table.scan(where)
        found = plain_rows(scan.to_arrow(), built.columns)
        if found != expected_rows(built, wanted):
            return f"the scan gives rows {sorted(found)} where {sorted(wanted)} match"
        if scan.count() != len(wanted):
            return f"count() is {scan.count()} where {len(wanted)} rows match"
        odd = self._plan_problem(scan.plan, wanted)
        for each in [column] if column else built.columns.values():
            odd = odd or _extreme_problem(built, each, scan, wanted)
        return odd or (_delete_problem(built, where, wanted) if deletes else "")

    def _plan_problem(self, plan: ReadPlan, wanted: set[int]) -> str:
        kept = {file.path for file in plan.files}
        self.reached["pairs"] += 1
        self.reached["pairs with a file dropped"] += len(kept) < len(self._file_rows)
        self.reached["pairs with a certain file"] += bool(plan.certain_files)
        self.reached["pairs with a manifest unopened"] += (
            plan.manifests_opened < plan.manifests_total
        )
        certain = {file.path for file in plan.certain_files}
        for path, numbers in self._file_rows.items():
            if path not in kept and numbers & wanted:
                return f"{path} was dropped and has the matching rows {sorted(numbers & wanted)}"
            if path in certain and numbers - wanted:
                return f"{path} was called certain; rows {sorted(numbers - wanted)} do not match"
        return "" if kept <= self._file_rows.keys() else "the plan has files that are not live"


def _extreme_problem(built: Built, column: Column, scan: Scan, wanted: set[int]) -> str:
    values = [built.rows[number][column.key] for number in wanted]
    numbers = [exact(each, column.kind) for each in values if each is not None and each == each]
    least, most = scan.min(column.name), scan.max(column.name)
    for scalar, expected in (
        (least, min(numbers, default=None)),
        (most, max(numbers, default=None)),
    ):
        if scalar.type != column.kind.arrow:
            return f"an extreme of {column.name!r} is of type {scalar.type}"
        value = scalar.value if column.kind.unit_ns else scalar.as_py()
        if (None if value is None else exact(value, column.kind)) != expected:
            return f"an extreme of {column.name!r} is {value!r} and should be {expected!r}"
    return ""


def _delete_problem(built: Built, where: str, wanted: set[int]) -> str:
    before = built.table.version
    commit = built.table.delete(where)
    left = plain_rows(built.table.scan().to_arrow(), built.columns)
    if built.table.version != before:
        built.table.rollback(before)
    if left != expected_rows(built, set(built.rows) - wanted):
        return f"after the delete the rows {sorted(left)} are left; {sorted(wanted)} match"
    if (commit.version == before) is bool(wanted):
        return f"the delete of {len(wanted)} rows went from version {before} to {commit.version}"
    return ""


# ----------------------------------------------------------------------------------- reporting


def _fails(recipe: Recipe, predicate: Predicate) -> str:
    """The problem of a smaller case; what cannot be made is no case."""
    try:
        return problem(recipe, predicate)
    except (RequestError, KeyError):
        return ""
    except _FAILURES as error:
        return repr(error)


def _smaller_recipes(recipe: Recipe) -> Iterator[Recipe]:
    for place, step in enumerate(recipe.steps):
        before, after = recipe.steps[:place], recipe.steps[place + 1 :]
        yield replace(recipe, steps=before + after)
        if isinstance(step, Append):
            for row in range(len(step.rows)):
                rows = step.rows[:row] + step.rows[row + 1 :]
                yield replace(recipe, steps=(*before, Append(rows), *after))
    yield replace(recipe, parts=())
    for place in range(1, len(recipe.columns)):
        columns = recipe.columns[:place] + recipe.columns[place + 1 :]
        yield replace(recipe, columns=columns)
    if recipe.is_large:
        yield replace(recipe, is_large=False)
    if recipe.tail_max != 16:
        yield replace(recipe, tail_max=16)


def smallest(recipe: Recipe, predicate: Predicate) -> tuple[Recipe, Predicate]:
    """Leave out what can be left out while the case still fails."""
    tries = 0
    while tries < _TRIES_MAX:
        cases = [(each, predicate) for each in _smaller_recipes(recipe)]
        cases += [(recipe, each) for each in smaller(predicate)]
        for case in cases:
            tries += 1
            if case != (recipe, predicate) and _fails(*case):
                recipe, predicate = case
                break
        else:
            break
    return _without_strays(recipe), predicate


def _without_strays(recipe: Recipe) -> Recipe:
    """Leave out the values of columns that are not there any more."""
    known = {each.key for each in (*recipe.columns, *recipe.steps) if isinstance(each, Add)}
    steps = tuple(
        Append(tuple({key: row[key] for key in row if key in known} for row in step.rows))
        if isinstance(step, Append)
        else step
        for step in recipe.steps
    )
    return replace(recipe, steps=steps)


def _report(seed: str, recipe: Recipe, predicate: Predicate, found: str) -> str:
    small, simple = smallest(recipe, predicate)
    return (
        f"seed {seed!r}: {found}\n"
        f"a smaller case: {_fails(small, simple)}\n"
        f"problem(\n  {small!r},\n  {simple!r},\n)"
    )


def check_pairs(seed: str, table_count: int) -> Counter[str]:
    """Draw tables and predicates from a seed and hold them to the law; count what was reached."""
    reached: Counter[str] = Counter()
    for number in range(table_count):
        table_seed = f"{seed}-{number}"
        recipe = draw_recipe(table_seed)
        chance = Random(f"{table_seed}-predicates")
        with recipe.limits():
            case = Case(build(recipe))
            assert not case.table_problem(), f"seed {table_seed!r}: {case.table_problem()}"
            columns = list(case.built.columns.values())
            drawing = Drawing(chance, columns, case.built.values())
            for _ in range(PREDICATES_PER_TABLE):
                predicate = drawing.predicate()
                deletes = chance.random() < _DELETED_SHARE
                column = chance.choice(columns)
                try:
                    found = case.pair_problem(predicate, deletes=deletes, column=column)
                except _FAILURES as error:
                    found = repr(error)
                if found:
                    pytest.fail(_report(table_seed, recipe, predicate, found))
        reached += case.reached
    return reached


def test_planned_scans_equal_a_full_scan_and_a_plain_filter() -> None:
    reached = check_pairs("small", 6)
    assert reached["pairs"] == 6 * PREDICATES_PER_TABLE
    assert min(reached.values()) > 5, f"too little was pruned for the law to be tried: {reached}"


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNK_COUNT))
def test_planned_scans_equal_a_full_scan_and_a_plain_filter_on_many_tables(chunk: int) -> None:
    reached = check_pairs(f"chunk-{chunk}", TABLES_PER_CHUNK)
    assert reached["pairs"] * CHUNK_COUNT >= 5_000, "the promise of make test"
    assert len(reached) == 4, f"one kind of pruning did not happen: {reached}"
