"""A disk to look at and to break."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lakebed.storage.store import Store


def paths(store: Store) -> list[str]:
    return [info.path for info in store.list()]


def files_below(root: Path) -> list[str]:
    return sorted(str(p.relative_to(root)) for p in root.rglob("*") if not p.is_dir())


def failing(real: Callable[..., Any], number: int, *, at: int = 1) -> Callable[..., Any]:
    """The real function, but its call number `at` fails."""
    calls = iter(range(1, 1_000))

    def call(*args: Any, **kwargs: Any) -> Any:
        if next(calls) == at:
            raise OSError(number, os.strerror(number))
        return real(*args, **kwargs)

    return call
