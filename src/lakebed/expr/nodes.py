"""Predicates as values: trees of frozen nodes, and `col("ts") >= x` to build them.

A tree names columns and holds the constants as given; `bind` fits it to a schema. `str(node)` is
SQL that `parse_predicate` reads back as an equal tree; equal trees are those of equal text.
BETWEEN, NOT IN, IS NOT NULL and the like are only ways to write, not nodes of their own.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NoReturn, TypeVar

from lakebed.errors import PredicateError
from lakebed.expr.like import WILDCARDS, like_parts
from lakebed.expr.literals import Literal, literal, literal_text, quoted_text
from lakebed.expr.tree import fold
from lakebed.limits import PREDICATE_DEPTH_MAX

KEYWORDS = frozenset(
    {"and", "between", "false", "in", "inf", "infinity", "is", "like", "nan", "not", "null", "or"}
    | {"true"}
)
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Op(StrEnum):
    """The comparisons."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


FLIPPED = {  # what `5 < x` says of x
    Op.EQ: Op.EQ,
    Op.NE: Op.NE,
    Op.LT: Op.GT,
    Op.LE: Op.GE,
    Op.GT: Op.LT,
    Op.GE: Op.LE,
}
NEGATED = {
    Op.EQ: Op.NE,
    Op.NE: Op.EQ,
    Op.LT: Op.GE,
    Op.LE: Op.GT,
    Op.GT: Op.LE,
    Op.GE: Op.LT,
}


class Node:
    """A predicate; combine them with `&`, `|` and `~`."""

    __slots__ = ()

    def parts(self) -> "tuple[Node, ...]":
        """The predicates directly below this one."""
        return ()

    def __and__(self, other: "Node") -> "Node":
        return And((self, _predicate(other)))

    def __or__(self, other: "Node") -> "Node":
        return Or((self, _predicate(other)))

    def __invert__(self) -> "Node":
        return Not(self)

    def __bool__(self) -> NoReturn:
        raise PredicateError(
            "a predicate is neither true nor false until it meets rows",
            hint="Join predicates with & | ~ (in parentheses), not with and, or, not; "
            "for ranges use .between()",
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return fold(self, _text)


@dataclass(frozen=True, slots=True, eq=False)
class Compare(Node):
    """A column against a constant."""

    column: str
    op: Op
    value: Literal

    def __post_init__(self) -> None:
        _set(self, "column", _column_name(self.column))
        _set(self, "op", Op(self.op))
        _set(self, "value", literal(self.value))


@dataclass(frozen=True, slots=True, eq=False)
class In(Node):
    """A column against several constants."""

    column: str
    values: tuple[Literal, ...]

    def __post_init__(self) -> None:
        _set(self, "column", _column_name(self.column))
        _set(self, "values", tuple(literal(value) for value in self.values))
        if not self.values:
            raise PredicateError("an IN list is empty", hint="Write FALSE for what never matches")


@dataclass(frozen=True, slots=True, eq=False)
class IsNull(Node):
    """Whether a column has no value."""

    column: str

    def __post_init__(self) -> None:
        _set(self, "column", _column_name(self.column))


@dataclass(frozen=True, slots=True, eq=False)
class IsNan(Node):
    """Whether a floating point column is not a number; NULL where it has no value."""

    column: str

    def __post_init__(self) -> None:
        _set(self, "column", _column_name(self.column))


@dataclass(frozen=True, slots=True, eq=False)
class Like(Node):
    """Text against a pattern: `%` is any text, `_` any one character; no escape unless given."""

    column: str
    pattern: str
    escape: str | None = None

    def __post_init__(self) -> None:
        _set(self, "column", _column_name(self.column))
        for text in (self.pattern, *([] if self.escape is None else [self.escape])):
            if not isinstance(literal(text), str):
                raise PredicateError("a LIKE pattern and its escape are text")
        if self.escape is not None and len(self.escape) != 1:
            raise PredicateError("the ESCAPE of a LIKE is one character")
        like_parts(self.pattern, self.escape)  # an escape before nothing is found now, not later


@dataclass(frozen=True, slots=True, eq=False)
class And(Node):
    """All of them; an And directly inside is spliced in."""

    children: tuple[Node, ...]
    depth: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _set(self, "children", _spliced(And, self.children))
        _set(self, "depth", _depth(self.children))

    def parts(self) -> tuple[Node, ...]:
        """The predicates that are joined."""
        return self.children


@dataclass(frozen=True, slots=True, eq=False)
class Or(Node):
    """Any of them; an Or directly inside is spliced in."""

    children: tuple[Node, ...]
    depth: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _set(self, "children", _spliced(Or, self.children))
        _set(self, "depth", _depth(self.children))

    def parts(self) -> tuple[Node, ...]:
        """The predicates that are joined."""
        return self.children


@dataclass(frozen=True, slots=True, eq=False)
class Not(Node):
    """The opposite; NULL stays NULL."""

    child: Node
    depth: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _set(self, "depth", _depth((_predicate(self.child),)))

    def parts(self) -> tuple[Node, ...]:
        """The predicate that is negated."""
        return (self.child,)


@dataclass(frozen=True, slots=True, eq=False)
class Constant(Node):
    """TRUE, FALSE or NULL for every row."""

    value: bool | None

    def __post_init__(self) -> None:
        if not (self.value is None or isinstance(self.value, bool)):
            raise PredicateError("a constant predicate is True, False or None")


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A column by name, to be compared: `col("ts") >= "2026-01-01"`."""

    name: str

    def __post_init__(self) -> None:
        _column_name(self.name)

    def __eq__(self, value: object) -> Node:  # type: ignore[override]
        return Compare(self.name, Op.EQ, literal(value))

    def __ne__(self, value: object) -> Node:  # type: ignore[override]
        return Compare(self.name, Op.NE, literal(value))

    def __lt__(self, value: object) -> Node:
        return Compare(self.name, Op.LT, literal(value))

    def __le__(self, value: object) -> Node:
        return Compare(self.name, Op.LE, literal(value))

    def __gt__(self, value: object) -> Node:
        return Compare(self.name, Op.GT, literal(value))

    def __ge__(self, value: object) -> Node:
        return Compare(self.name, Op.GE, literal(value))

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> NoReturn:
        raise PredicateError(
            f"the column {self.name!r} is not a truth value",
            hint="Compare it, as in col('flag') == True, and join with & | ~",
        )

    def is_in(self, values: Iterable[Any]) -> Node:
        """One of the values; of none of them if there are none."""
        if isinstance(values, str | bytes):
            raise PredicateError("is_in takes a list of values, not one text")
        found = tuple(values)
        return In(self.name, found) if found else Constant(value=False)

    def is_null(self) -> Node:
        """Has no value."""
        return IsNull(self.name)

    def is_not_null(self) -> Node:
        """Has a value."""
        return Not(IsNull(self.name))

    def is_nan(self) -> Node:
        """Is not a number; NULL where there is no value."""
        return IsNan(self.name)

    def like(self, pattern: str, *, escape: str | None = None) -> Node:
        """Match `%` with any text and `_` with any one character."""
        return Like(self.name, pattern, escape)

    def starts_with(self, prefix: str) -> Node:
        """Begin with exactly this text."""
        return starts_with(self.name, prefix)

    def between(self, low: object, high: object) -> Node:
        """Lie between two values, both included."""
        return (self >= low) & (self <= high)


def col(name: str) -> Column:
    """Name a column, to build a predicate with Python's operators."""
    return Column(name)


def starts_with(column: str, prefix: str) -> Like:
    """The LIKE that holds for texts beginning with `prefix`."""
    if not isinstance(prefix, str):
        raise PredicateError("starts_with takes text")
    if not WILDCARDS & set(prefix):
        return Like(column, f"{prefix}%")
    escaped = re.sub(r"([%_\\])", r"\\\1", prefix)
    return Like(column, f"{escaped}%", "\\")


def name_text(name: str) -> str:
    """A column's name as SQL: bare if it can be, else in double quotes."""
    if _PLAIN_NAME.fullmatch(name) and name.lower() not in KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def _text(node: Node, inner: list[str]) -> str:
    match node:
        case Compare(column=column, op=op, value=value):
            return f"{name_text(column)} {op.value} {literal_text(value)}"
        case Constant(value=value):
            return literal_text(value)
        case And(children=children):
            return " AND ".join(map(_enclosed, children, inner))
        case Or(children=children):
            return " OR ".join(inner)
        case Not(child=child):
            return _leaf_text(child, "NOT ") or f"NOT {_enclosed(child, inner[0])}"
    return _leaf_text(node, "")


def _leaf_text(node: Node, negation: str) -> str:
    match node:
        case In(column=column, values=values):
            listed = ", ".join(literal_text(value) for value in values)
            return f"{name_text(column)} {negation}IN ({listed})"
        case IsNull(column=column):
            return f"{name_text(column)} IS {negation}NULL"
        case IsNan(column=column):
            return f"{name_text(column)} IS {negation}NAN"
        case Like(column=column, pattern=pattern, escape=escape):
            suffix = "" if escape is None else f" ESCAPE {quoted_text(escape)}"
            return f"{name_text(column)} {negation}LIKE {quoted_text(pattern)}{suffix}"
    return ""


def _enclosed(node: Node, text: str) -> str:
    return f"({text})" if isinstance(node, And | Or) else text


C = TypeVar("C", And, Or)


def _spliced(kind: type[C], children: Iterable[Node]) -> tuple[Node, ...]:
    found: list[Node] = []
    for child in children:
        found.extend(child.parts() if isinstance(child, kind) else (_predicate(child),))
    if len(found) < 2:
        raise PredicateError("AND and OR join two predicates or more")
    return tuple(found)


def _depth(children: tuple[Node, ...]) -> int:
    depth = 1 + max(getattr(child, "depth", 1) for child in children)
    if depth > PREDICATE_DEPTH_MAX:
        raise PredicateError(
            f"a predicate is nested more than {PREDICATE_DEPTH_MAX} deep",
            hint="Use IN for many values, and let AND and OR take many predicates at once",
        )
    return depth


def _predicate(value: object) -> Node:
    if isinstance(value, Node):
        return value
    raise PredicateError(
        f"a predicate cannot be joined with a value of type {type(value).__name__}",
        hint="Put each comparison in parentheses: (col('a') > 1) & (col('b') < 2)",
    )


def _column_name(name: object) -> str:
    if not isinstance(name, str) or not name or not isinstance(literal(name), str):
        raise PredicateError("a column is named by text that is not empty")
    return name


def _set(node: object, name: str, value: object) -> None:
    object.__setattr__(node, name, value)  # the dataclasses are frozen once built
