"""Predicates and what they mean, in plain Python: SQL text out, three-valued truth for a row."""

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.property.kinds import NULL, Constant, Kind, constant_near, exact

_OPS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_FLIPPED = {"=": "=", "!=": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True)
class Column:
    """A column as predicates see it; the key is for ever, name and kind can change."""

    key: int
    name: str
    kind: Kind

    @property
    def sql(self) -> str:
        """Its name in quotes."""
        return '"' + self.name.replace('"', '""') + '"'


@dataclass(frozen=True)
class Compare:
    """`x < 5`, or `5 > x` if flipped."""

    key: int
    op: str
    constant: Constant
    flipped: bool = False


@dataclass(frozen=True)
class In:
    """`x IN (1, 2)`."""

    key: int
    constants: tuple[Constant, ...]


@dataclass(frozen=True)
class Between:
    """`x BETWEEN 1 AND 2`."""

    key: int
    low: Constant
    high: Constant


@dataclass(frozen=True)
class IsNull:
    """`x IS NULL`."""

    key: int


@dataclass(frozen=True)
class IsNan:
    """`x IS NAN`."""

    key: int


@dataclass(frozen=True)
class Like:
    """`x LIKE 'a%'`; the escape is empty for none."""

    key: int
    pattern: str
    escape: str = ""


@dataclass(frozen=True)
class Not:
    """The opposite; `inside` writes `x NOT IN …` where there is such a form."""

    child: "Predicate"
    inside: bool = False


@dataclass(frozen=True)
class Join:
    """AND or OR of several."""

    word: str
    children: tuple["Predicate", ...]


@dataclass(frozen=True)
class Always:
    """TRUE, FALSE or NULL."""

    value: bool | None


Leaf = Compare | In | Between | IsNull | IsNan | Like
Predicate = Leaf | Not | Join | Always
Columns = Mapping[int, Column]
Row = Mapping[int, Any]


def sql_of(node: Predicate, columns: Columns) -> str:
    """The predicate as SQL."""
    match node:
        case Join():
            return f" {node.word} ".join(f"({sql_of(each, columns)})" for each in node.children)
        case Not(child=child, inside=inside):
            if inside and isinstance(child, In | Between | IsNull | IsNan | Like):
                return _leaf_sql(child, columns[child.key].sql, "NOT ")
            return f"NOT ({sql_of(child, columns)})"
        case Always(value=value):
            return "NULL" if value is None else str(value)
    return _leaf_sql(node, columns[node.key].sql, "")


def _leaf_sql(leaf: Leaf, name: str, negation: str) -> str:
    match leaf:
        case Compare(op=op, constant=constant, flipped=flipped):
            if flipped:
                return f"{constant.sql} {_FLIPPED[op]} {name}"
            return f"{name} {op} {constant.sql}"
        case In(constants=constants):
            return f"{name} {negation}IN ({', '.join(each.sql for each in constants)})"
        case Between(low=low, high=high):
            return f"{name} {negation}BETWEEN {low.sql} AND {high.sql}"
        case IsNull():
            return f"{name} IS {negation}NULL"
        case IsNan():
            return f"{name} IS {negation}NAN"
    quoted = leaf.pattern.replace("'", "''")
    escape = f" ESCAPE '{leaf.escape}'" if leaf.escape else ""
    return f"{name} {negation}LIKE '{quoted}'{escape}"


def truth(node: Predicate, row: Row, columns: Columns) -> bool | None:
    """TRUE, FALSE or NULL for one row."""
    match node:
        case Join(word=word, children=children):
            found = [truth(each, row, columns) for each in children]
            decisive = word == "OR"
            return decisive if decisive in found else None if None in found else not decisive
        case Not(child=child):
            inner = truth(child, row, columns)
            return None if inner is None else not inner
        case Always(value=value):
            return value
        case IsNull(key=key):
            return row[key] is None
    value = row[node.key]
    return None if value is None else _leaf_truth(node, value, columns[node.key].kind)


def _leaf_truth(leaf: Predicate, value: Any, kind: Kind) -> bool | None:
    match leaf:
        case IsNan():
            return math.isnan(value)
        case Like():
            return like(value, leaf.pattern, leaf.escape)
        case Compare(op=op, constant=constant):
            return _compared(exact(value, kind), op, constant)
        case In(constants=constants):
            found = [_compared(exact(value, kind), "=", each) for each in constants]
            return True if True in found else None if None in found else False
        case Between(low=low, high=high):
            ends = (
                _compared(exact(value, kind), ">=", low),
                _compared(exact(value, kind), "<=", high),
            )
            return False if False in ends else None if None in ends else True
    raise AssertionError(f"{leaf} is not a leaf")


def _compared(value: Any, op: str, constant: Constant) -> bool | None:
    return None if constant.value is None else bool(_OPS[op](value, constant.value))


def like(text: str, pattern: str, escape: str) -> bool:
    """Match by trying all; patterns and texts are short."""
    if not pattern:
        return not text
    first, rest = pattern[0], pattern[1:]
    if escape and first == escape:
        return text[:1] == rest[:1] and like(text[1:], rest[1:], escape)
    if first == "%":
        return any(like(text[start:], rest, escape) for start in range(len(text) + 1))
    return bool(text) and first in ("_", text[0]) and like(text[1:], rest, escape)


# ------------------------------------------------------------------------------------- drawing


class Drawing:
    """Draws predicates over columns whose values are known."""

    def __init__(
        self, chance: Random, columns: Sequence[Column], values: Mapping[int, Sequence[Any]]
    ) -> None:
        self._chance = chance
        self._columns = columns
        self._values = values

    def predicate(self, depth: int = 0) -> Predicate:
        """A leaf, or leaves joined."""
        chance = self._chance
        if depth < 3 and chance.random() < (0.45, 0.3, 0.2)[depth]:
            if chance.random() < 0.3:
                return Not(self.predicate(depth + 1), inside=chance.random() < 0.7)
            count = chance.choice([2, 2, 3])
            children = tuple(self.predicate(depth + 1) for _ in range(count))
            return Join(chance.choice(["AND", "OR"]), children)
        if chance.random() < 0.02:
            return Always(chance.choice([True, False, None]))
        leaf = self._leaf(chance.choice(self._columns))
        return Not(leaf, inside=True) if chance.random() < 0.2 else leaf

    def _leaf(self, column: Column) -> Leaf:
        chance, key = self._chance, column.key
        shape = chance.random()
        if shape < 0.1:
            return IsNull(key)
        if column.kind.family == "real" and shape < 0.2:
            return IsNan(key)
        if column.kind.family == "text" and shape < 0.35:
            return self._like(column)
        if shape < 0.5:
            count = chance.choice([1, 2, 2, 3, 5])
            return In(key, tuple(self._constant(column) for _ in range(count)))
        if shape < 0.6:
            return Between(key, self._constant(column), self._constant(column))
        op = chance.choice(list(_OPS))
        return Compare(key, op, self._constant(column), flipped=chance.random() < 0.15)

    def _constant(self, column: Column) -> Constant:
        chance = self._chance
        known = self._values[column.key]
        pool = known if known and chance.random() < 0.8 else column.kind.values
        return constant_near(chance.choice(pool), column.kind, chance) if pool else NULL

    def _like(self, column: Column) -> Like:
        chance = self._chance
        known = [each for each in self._values[column.key] if len(each) < 20] or ["ab"]
        text = chance.choice(known)
        cut = chance.randrange(len(text) + 1)
        shapes = [f"{text[:cut]}%"] * 4
        shapes += [f"%{text[cut:]}", f"%{text[:cut]}%", f"{text[:cut]}_", f"{text[:cut]}_%"]
        pattern = chance.choice([*shapes, text, "%", "_", f"_{text[1:]}", ""])
        if chance.random() < 0.2:
            escaped = "".join(f"~{each}" if each in "%_~" else each for each in text)
            return Like(column.key, f"{escaped}%", "~")
        return Like(column.key, pattern)


def smaller(node: Predicate) -> list[Predicate]:
    """Simpler predicates to try when one fails."""
    match node:
        case Not(child=child):
            return [child, *(Not(each, node.inside) for each in smaller(child))]
        case Join(word=word, children=children):
            found: list[Predicate] = list(children)
            for place, child in enumerate(children):
                before, after = children[:place], children[place + 1 :]
                if len(children) > 2:
                    found.append(Join(word, before + after))
                found += [Join(word, (*before, each, *after)) for each in smaller(child)]
            return found
        case In(key=key, constants=constants) if len(constants) > 1:
            return [
                In(key, constants[:place] + constants[place + 1 :])
                for place in range(len(constants))
            ]
        case Between(key=key, low=low, high=high):
            return [Compare(key, ">=", low), Compare(key, "<=", high)]
    return []
