"""Predicates fitted to a schema: field ids for names, storage values for constants.

A bound tree is in negation normal form: NOT stands only above leaves that have no opposite leaf.
For floating point columns `NOT x < 5` is not `x >= 5`, because NaN makes the first one true.

    BoundCompare   x op value          value is in storage form, of exactly the column's type
    BoundIn        x IN values         two values or more, sorted, without NULL and NaN
    BoundLike      x LIKE pattern      as split by `like_parts`, with at least one wildcard
    BoundIsNull    x IS NULL           the only leaf for nested columns
    BoundIsNan     x IS NAN            NULL where x is
    BoundNonNull   truth for every x   NULL where x is: what `x = 5.5` comes to for integers
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from lakebed.expr.nodes import NEGATED, Op
from lakebed.expr.tree import fold
from lakebed.format.types import FLOATS, Primitive, Type

StorageValue = bool | int | float | Decimal | str | bytes


class Bound:
    """A predicate over field ids."""

    __slots__ = ()

    def parts(self) -> "tuple[Bound, ...]":
        """The predicates directly below this one."""
        return ()

    def field_ids(self) -> frozenset[int]:
        """The columns that the predicate looks at."""
        return fold(self, _ids)

    def __str__(self) -> str:
        return fold(self, _text)


@dataclass(frozen=True, slots=True)
class BoundCompare(Bound):
    """A column against a value of its own type."""

    field_id: int
    kind: Primitive
    op: Op
    value: StorageValue


@dataclass(frozen=True, slots=True)
class BoundIn(Bound):
    """A column against several values of its own type."""

    field_id: int
    kind: Primitive
    values: tuple[StorageValue, ...]


@dataclass(frozen=True, slots=True)
class BoundLike(Bound):
    """A string column against a pattern in the form of `like_parts`."""

    field_id: int
    kind: Primitive
    pattern: tuple[str, ...]

    @property
    def prefix(self) -> str:
        """The plain text that every match begins with."""
        return self.pattern[0][1:] if self.pattern[0].startswith("=") else ""

    @property
    def is_prefix(self) -> bool:
        """Whether every text with that beginning matches."""
        return len(self.pattern) == 2 and self.pattern[1] == "%" and bool(self.prefix)


@dataclass(frozen=True, slots=True)
class BoundIsNull(Bound):
    """Whether a column has no value."""

    field_id: int
    kind: Type


@dataclass(frozen=True, slots=True)
class BoundIsNan(Bound):
    """Whether a floating point column is not a number; NULL where it has no value."""

    field_id: int
    kind: Primitive


@dataclass(frozen=True, slots=True)
class BoundNonNull(Bound):
    """The same truth for each row where the column has a value, NULL for the others."""

    field_id: int
    kind: Primitive
    truth: bool


@dataclass(frozen=True, slots=True)
class BoundAnd(Bound):
    """All of them."""

    children: tuple[Bound, ...]

    def parts(self) -> tuple[Bound, ...]:
        """The predicates that are joined."""
        return self.children


@dataclass(frozen=True, slots=True)
class BoundOr(Bound):
    """Any of them."""

    children: tuple[Bound, ...]

    def parts(self) -> tuple[Bound, ...]:
        """The predicates that are joined."""
        return self.children


@dataclass(frozen=True, slots=True)
class BoundNot(Bound):
    """The opposite of a leaf; NULL stays NULL."""

    child: Bound

    def parts(self) -> tuple[Bound, ...]:
        """The leaf that is negated."""
        return (self.child,)


@dataclass(frozen=True, slots=True)
class BoundConstant(Bound):
    """TRUE, FALSE or NULL for every row."""

    value: bool | None


TRUE, FALSE, UNKNOWN = BoundConstant(value=True), BoundConstant(value=False), BoundConstant(None)


def negated_leaf(leaf: Bound) -> Bound:
    """The leaf that is true where this one is false, false where true, and NULL where NULL."""
    match leaf:
        case BoundCompare(field_id=field_id, kind=kind, op=op, value=value):
            # NaN is neither below nor above: for floats the two orders are not opposites.
            if kind.kind not in FLOATS or op in (Op.EQ, Op.NE):
                return BoundCompare(field_id, kind, NEGATED[op], value)
        case BoundNonNull(field_id=field_id, kind=kind, truth=truth):
            return BoundNonNull(field_id, kind, not truth)
        case BoundConstant(value=None):
            return leaf
        case BoundConstant(value=value):
            return BoundConstant(not value)
        case BoundNot(child=child):
            return child
    return BoundNot(leaf)


def all_of(children: Iterable[Bound]) -> Bound:
    """AND, without constants that do not matter and with inner ANDs spliced in."""
    return _joined(children, BoundAnd, neutral=TRUE, decisive=FALSE)


def any_of(children: Iterable[Bound]) -> Bound:
    """OR, without constants that do not matter and with inner ORs spliced in."""
    return _joined(children, BoundOr, neutral=FALSE, decisive=TRUE)


def _joined(
    children: Iterable[Bound],
    kind: type[BoundAnd] | type[BoundOr],
    *,
    neutral: BoundConstant,
    decisive: BoundConstant,
) -> Bound:
    found: dict[Bound, None] = {}  # keeps order, drops repetitions
    for child in children:
        found.update(dict.fromkeys(child.parts() if isinstance(child, kind) else (child,)))
    found.pop(neutral, None)
    if decisive in found:
        return decisive
    if len(found) < 2:
        return next(iter(found), neutral)
    return kind(tuple(found))


def _ids(node: Bound, inner: list[frozenset[int]]) -> frozenset[int]:
    if inner:
        return frozenset().union(*inner)
    field_id = getattr(node, "field_id", None)
    return frozenset() if field_id is None else frozenset({field_id})


def _text(node: Bound, inner: list[str]) -> str:
    match node:
        case BoundCompare():
            return f"#{node.field_id} {node.op.value} {node.value!r}"
        case BoundIn():
            return f"#{node.field_id} IN ({', '.join(map(repr, node.values))})"
        case BoundLike():
            return f"#{node.field_id} LIKE {' '.join(node.pattern)!r}"
        case BoundIsNull():
            return f"#{node.field_id} IS NULL"
        case BoundIsNan():
            return f"#{node.field_id} IS NAN"
        case BoundNonNull():
            return f"#{node.field_id} HAS VALUE AND {str(node.truth).upper()}"
        case BoundConstant():
            return "NULL" if node.value is None else str(node.value).upper()
        case BoundNot():
            return f"NOT ({inner[0]})"
    return "(" + (" AND " if isinstance(node, BoundAnd) else " OR ").join(inner) + ")"
