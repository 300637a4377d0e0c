"""Law: a planned scan gives what a full scan and a plain filter give, and a delete leaves the rest.

A failing case prints its seed and a recipe made as small as it could be; `problem` runs it again.
"""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest
from tests.property.drawing import draw_recipe
from tests.property.kinds import exact
from tests.property.predicates import Column, Drawing, Predicate, smaller, sql_of
from tests.property.recipes import (
    Append,
    Built,
    Recipe,
    build,
    expected_rows,
    file_rows,
    plain_rows,
)

from lakebed.errors import LakebedError, RequestError

PREDICATES_PER_TABLE = 16
TABLES_PER_CHUNK = 8
CHUNK_COUNT = 40  # times the two above: 5,120 pairs
_DELETED_SHARE = 0.35
_TRIES_MAX = 400


def problem(recipe: Recipe, predicate: Predicate, *, deletes: bool = True) -> str:
    """What is wrong with one predicate on one table; empty if nothing is."""
    with recipe.limits():
        built = build(recipe)
        return _table_problem(built) or _pair_problem(built, predicate, deletes=deletes)


def _table_problem(built: Built) -> str:
    found = plain_rows(built.table.scan().to_arrow(), built.columns)
    return "" if found == expected_rows(built, set(built.rows)) else f"the full scan gives {found}"


def _pair_problem(built: Built, predicate: Predicate, *, deletes: bool) -> str:
    where = sql_of(predicate, built.columns)
    wanted = built.matching(predicate)
    scan = built.table.scan(where)
    found = plain_rows(scan.to_arrow(), built.columns)
    if found != expected_rows(built, wanted):
        return f"the scan gives rows {sorted(found)} where {sorted(wanted)} match"
    if scan.count() != len(wanted):
        return f"count() is {scan.count()} where {len(wanted)} rows match"
    files = file_rows(built)
    kept = {file.path for file in scan.plan.files}
    for path, numbers in files.items():
        if path not in kept and numbers & wanted:
            return f"{path} was dropped and has the matching rows {sorted(numbers & wanted)}"
    for file in scan.plan.certain_files:
        if not files[file.path] <= wanted:
            odd = sorted(files[file.path] - wanted)
            return f"{file.path} was called certain and has the rows {odd}, which do not match"
    extremes = next(
        (found for column in built.columns.values() if (found := _extreme(built, column, where, wanted))),
        "",
    )
    return extremes or (_delete_problem(built, where, wanted) if deletes else "")


def _extreme(built: Built, column: Column, where: str, wanted: set[int]) -> str:
    values = [built.rows[number][column.key] for number in wanted]
    numbers = [exact(each, column.kind) for each in values if each is not None and each == each]
    scan = built.table.scan(where)
    for which, expected in (
        ("min", min(numbers, default=None)),
        ("max", max(numbers, default=None)),
    ):
        scalar = scan.min(column.name) if which == "min" else scan.max(column.name)
        if scalar.type != column.kind.arrow:
            return f"{which} of {column.name!r} is of type {scalar.type}"
        value = scalar.value if column.kind.unit_ns else scalar.as_py()
        if (None if value is None else exact(value, column.kind)) != expected:
            return f"{which} of {column.name!r} is {value!r} where it should be {expected!r}"
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
    except (LakebedError, AssertionError) as error:
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
    return recipe, predicate


def _report(seed: str, recipe: Recipe, predicate: Predicate, found: str) -> str:
    small, simple = smallest(recipe, predicate)
    return (
        f"seed {seed!r}: {found}\n"
        f"a smaller case: {_fails(small, simple)}\n"
        f"problem(\n  {small!r},\n  {simple!r},\n)"
    )


def check_pairs(seed: str, table_count: int) -> int:
    """Draw tables and predicates from a seed and hold them to the law; the number of pairs."""
    pairs = 0
    for number in range(table_count):
        table_seed = f"{seed}-{number}"
        recipe = draw_recipe(table_seed)
        chance = Random(f"{table_seed}-predicates")
        with recipe.limits():
            built = build(recipe)
            assert not _table_problem(built), f"seed {table_seed!r}: {_table_problem(built)}"
            drawing = Drawing(chance, list(built.columns.values()), built.values())
            for _ in range(PREDICATES_PER_TABLE):
                predicate = drawing.predicate()
                deletes = chance.random() < _DELETED_SHARE
                found = _pair_problem(built, predicate, deletes=deletes)
                if found:
                    pytest.fail(_report(table_seed, recipe, predicate, found))
                pairs += 1
    return pairs


def test_planned_scans_equal_a_full_scan_and_a_plain_filter() -> None:
    assert check_pairs("small", 6) == 6 * PREDICATES_PER_TABLE


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNK_COUNT))
def test_planned_scans_equal_a_full_scan_and_a_plain_filter_on_many_tables(chunk: int) -> None:
    pairs = check_pairs(f"chunk-{chunk}", TABLES_PER_CHUNK)
    assert pairs * CHUNK_COUNT >= 5_000, "the promise of make test"
