"""Recipes drawn from a seed: rows in clusters, so that there is something to prune."""

import math
from collections.abc import Sequence
from random import Random
from typing import Any

from tests.property.kinds import KINDS, WIDENINGS, Kind
from tests.property.predicates import Column, Drawing
from tests.property.recipes import (
    ROW,
    Add,
    Append,
    Drop,
    Recipe,
    Remove,
    Rename,
    Repartition,
    Rollback,
    Step,
    Widen,
)

_NAMES = ("a", "b", "Ts", "x y", "in", "day", 'q"q', "naïve", "x.y", "_", "value", "%")
_NO_ORDER = ("float", "double", "boolean")
Parts = tuple[tuple[str, int, int], ...]


def draw_recipe(seed: str) -> Recipe:
    """The recipe of a seed."""
    return _Drawer(Random(seed)).recipe()


class _Drawer:
    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._columns: dict[int, Column] = {}
        self._palettes: dict[int, list[Any]] = {}
        self._partitioned: set[int] = set()  # columns of any spec so far
        self._current: set[int] = set()  # columns of the current one
        self._had: set[tuple[int, str]] = set()  # columns and what they were ever widened to
        self._next_key = ROW + 1
        self._next_row = 0
        self._numbers: list[int] = []
        self._steps: list[Step] = []
        self._past: list[tuple[dict[int, Column], dict[int, list[Any]], set[int]]] = []

    def recipe(self) -> Recipe:
        chance = self._chance
        first = [Add(ROW, "row", "long")]
        self._columns[ROW] = Column(ROW, "row", KINDS["long"])
        first += [self._add() for _ in range(chance.choice([1, 2, 3, 4]))]
        parts = self._parts() if chance.random() < 0.65 else ()
        self._remember()
        self._take(self._append())
        for _ in range(chance.randrange(6)):
            self._take(self._evolution())
            self._take(self._append())
        return Recipe(
            columns=tuple(first),
            steps=tuple(self._steps),
            parts=parts,
            tail_max=chance.choice([16, 1, 2]),
            is_large=chance.random() < 0.25,
            row_group_rows=chance.choice([1, 2, 5, 1_000_000]),
        )

    def _take(self, step: Step | None) -> None:
        if step is not None:
            self._steps.append(step)
            self._remember()

    def _remember(self) -> None:
        palettes = {key: list(values) for key, values in self._palettes.items()}
        self._past.append((dict(self._columns), palettes, set(self._current)))

    def _rollback(self) -> Rollback:
        count = self._chance.randrange(len(self._past))
        columns, palettes, current = self._past[count]
        self._columns, self._current = dict(columns), set(current)
        self._palettes = {key: list(values) for key, values in palettes.items()}
        return Rollback(count)

    # --------------------------------------------------------------------------------- columns

    def _name(self) -> str:
        taken = {column.name for column in self._columns.values()}
        return self._chance.choice([name for name in _NAMES if name not in taken])

    def _add(self) -> Add:
        chance = self._chance
        kind = KINDS[chance.choice(list(KINDS))]
        key, name = self._next_key, self._name()
        self._next_key += 1
        self._columns[key] = Column(key, name, kind)
        size = min(chance.choice([2, 4, 8]), len(kind.values))
        self._palettes[key] = sorted(chance.sample(kind.values, size), key=_order)
        return Add(key, name, kind.name)

    def _evolution(self) -> Step | None:
        chance = self._chance
        keys = [key for key in self._columns if key != ROW]
        words = "none none none add rename drop widen widen parts remove back"
        match chance.choice(words.split()):
            case "add" if len(self._columns) < 7:
                return self._add()
            case "rename":
                key, name = chance.choice(keys), self._name()
                self._columns[key] = Column(key, name, self._columns[key].kind)
                return Rename(key, name)
            case "drop" if len(keys) > 1:
                key = chance.choice(keys)
                if key not in self._current:
                    del self._columns[key]
                    return Drop(key)
            case "widen":
                return self._widen()
            case "parts":
                return Repartition(self._parts())
            case "back":
                return self._rollback()
            case "remove":
                columns = list(self._columns.values())
                values = {ROW: self._numbers, **self._palettes}
                return Remove(Drawing(chance, columns, values).predicate())
        return None

    def _widen(self) -> Step | None:
        chance = self._chance
        for key, column in self._columns.items():
            wider = WIDENINGS.get(column.kind.name, ()) if key != ROW else ()
            choices = [kind for kind in wider if self._may_widen(key, kind)]
            if choices:
                kind = KINDS[chance.choice(choices)]
                self._columns[key] = Column(key, column.name, kind)
                if kind.name == "double":
                    self._palettes[key] = [float(each) for each in self._palettes[key]]
                self._palettes[key] += chance.sample(kind.values, 2)
                self._palettes[key].sort(key=_order)
                self._had.add((key, kind.name))
                return Widen(key, kind.name)
        return None

    def _may_widen(self, key: int, kind: str) -> bool:
        """A column of doubles splits no rows; what was long or double once is not the other."""
        if kind == "double" and key in self._partitioned:
            return False
        other = {"double": "long", "long": "double"}.get(kind, "")
        return (key, other) not in self._had

    # -------------------------------------------------------------------------------- partitions

    def _parts(self) -> Parts:
        chance = self._chance
        parts: dict[tuple[str, int], tuple[str, int, int]] = {}
        for _ in range(chance.choice([0, 1, 1, 1, 2])):
            column = chance.choice(list(self._columns.values()))
            choices = _transforms(column.kind)
            if choices:
                transform = chance.choice(choices)
                width = 0
                if transform in ("bucket", "truncate"):
                    width = chance.choice([1, 2, 3, 7, 10, 16, 64, 100])
                parts[transform, column.key] = transform, column.key, width
        self._current = {key for _, key, _ in parts.values()}
        self._partitioned |= self._current
        return tuple(parts.values())

    # -------------------------------------------------------------------------------------- rows

    def _append(self) -> Append:
        chance = self._chance
        count = chance.choice([1, 2, 3, 5, 8])
        numbers = range(self._next_row, self._next_row + count)
        self._next_row += count
        self._numbers += numbers
        cells = {
            key: self._cells(self._palettes[key], count) for key in self._columns if key != ROW
        }
        return Append(
            tuple(
                {ROW: number, **{key: cells[key][place] for key in cells}}
                for place, number in enumerate(numbers)
            )
        )

    def _cells(self, palette: Sequence[Any], count: int) -> list[Any]:
        """One value, neighbours, all, or nothing but nulls or NaN; nulls now and then."""
        chance = self._chance
        start = chance.randrange(len(palette))
        some: Sequence[Any]
        match chance.choice(["one", "near", "near", "all", "all", "null", "nan"]):
            case "one":
                some = [palette[start]]
            case "near":
                some = palette[start : start + 2]
            case "null":
                some = [None]
            case "nan" if isinstance(palette[0], float):
                some = [math.nan]
            case _:
                some = palette
        nulls = chance.choice([0.0, 0.0, 0.3])
        return [None if chance.random() < nulls else chance.choice(some) for _ in range(count)]


def _order(value: Any) -> Any:
    return (1, 0.0) if isinstance(value, float) and math.isnan(value) else (0, value)


def _transforms(kind: Kind) -> list[str]:
    found = [] if kind.name in ("float", "double") else ["identity"]
    if kind.name not in _NO_ORDER:
        found.append("bucket")
    if kind.name in ("int", "long", "string", "binary") or kind.name.startswith("decimal"):
        found += ["truncate", "truncate"]
    if kind.family == "time":
        found += ["year", "month", "day"]
        found += [] if kind.name == "date" else ["hour"]
    return found
