"""Predicates on statistics: which groups of rows can match, and which match as a whole.

    may_match    False only if no row can be TRUE; then the file need not be opened
    must_match   True only if every row is TRUE for certain; then the file can go as a whole

Both are one pass of vector operations per leaf over all groups, whether files or manifests.
Pruning may keep too much and never too little: what is unknown is kept, and proves nothing.
"""

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np

from lakebed.expr.bound import Bound, BoundAnd, BoundConstant, BoundNot, BoundOr
from lakebed.expr.evidence import Evidence, OneOf, PartitionEvidence
from lakebed.expr.explain import leaf_reason
from lakebed.expr.facts import Facts, column_facts
from lakebed.expr.leaves import may_leaf, must_leaf
from lakebed.expr.tree import fold

__all__ = ["Evidence", "PartitionEvidence", "explain_drop", "may_match", "must_match"]

_REASON_COUNT_MAX = 3


def may_match(bound: Bound, evidence: Evidence) -> Any:
    """Tell for each group whether a row in it can be TRUE; a numpy mask."""
    return _evaluate(bound, evidence, may_leaf)


def must_match(bound: Bound, evidence: Evidence) -> Any:
    """Tell for each group whether every row in it is TRUE for certain; a numpy mask."""
    return _evaluate(bound, evidence, must_leaf)


def explain_drop(
    bound: Bound, evidence: Evidence, index: int, names: Mapping[int, str] | None = None
) -> str:
    """Say why no row of the group at `index` can match; empty if one can.

    `names` are the columns' names by field id.
    """
    one = OneOf(evidence, index)
    facts = _Known(one)

    def visit(node: Bound, inner: list[str]) -> str:
        match node:
            case BoundAnd():
                return next((reason for reason in inner if reason), "")
            case BoundOr():
                if not all(inner):
                    return ""
                more = ["…"] if len(inner) > _REASON_COUNT_MAX else []
                return "; ".join([*inner[:_REASON_COUNT_MAX], *more])
            case BoundConstant():
                return "" if node.value else "the predicate is never true"
            case BoundNot():
                leaf, negated = node.child, True
            case _:
                leaf, negated = node, False
        if may_leaf(leaf, facts.of(leaf), negated=negated)[0]:
            return ""
        return leaf_reason(leaf, facts.of(leaf), names or {}, negated=negated)

    return fold(bound, visit)


class _Known:
    """The facts about each column, gathered once."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._found: dict[int, Facts] = {}

    def of(self, leaf: Bound) -> Facts:
        """The facts about the column that a leaf looks at."""
        field_id: int = leaf.field_id  # type: ignore[attr-defined]
        if field_id not in self._found:
            kind = leaf.kind  # type: ignore[attr-defined]
            self._found[field_id] = column_facts(self._evidence, field_id, kind)
        return self._found[field_id]


def _evaluate(bound: Bound, evidence: Evidence, leaf: Callable[..., Any]) -> Any:
    facts = _Known(evidence)

    def visit(node: Bound, inner: list[Any]) -> Any:
        match node:
            case BoundAnd():
                return reduce(np.logical_and, inner)
            case BoundOr():
                return reduce(np.logical_or, inner)
            case BoundNot():
                return leaf(node.child, facts.of(node.child), negated=True)
            case BoundConstant():
                return np.full(evidence.length, node.value is True)
        return leaf(node, facts.of(node))

    return fold(bound, visit)
