"""Walking trees without recursion: no predicate, however deep, meets Python's stack limit."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Tree(Protocol):
    """A node that knows the nodes below it; a leaf has none."""

    def parts(self) -> tuple[Any, ...]:
        """The nodes directly below."""


N = TypeVar("N", bound=Tree)


def fold(root: N, visit: Callable[[N, list[T]], T]) -> T:
    """Visit every node, children first; `visit` gets a node and what its children gave."""
    results: list[T] = []
    work: list[tuple[N, bool]] = [(root, False)]
    while work:
        node, opened = work.pop()
        children = node.parts()
        if children and not opened:
            work.append((node, True))
            work.extend((child, False) for child in reversed(children))
            continue
        split = len(results) - len(children)
        results[split:] = [visit(node, results[split:])]
    assert len(results) == 1, "each node leaves one result"
    return results[0]
