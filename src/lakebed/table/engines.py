"""Engines that take a scan: found by name among installed packages, never imported from here.

An engine stands on a floor above this one, or in a package of somebody else's. It makes itself
known by an entry point of the group `lakebed.engines` that takes (session, scan).
"""

from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import entry_points
from typing import Any

from lakebed.errors import RequestError

GROUP = "lakebed.engines"


@lru_cache(maxsize=8)
def engine(name: str) -> Callable[[Any, Any], Any]:
    """Load what turns a scan into an engine's frame, or raise RequestError."""
    for found in entry_points(group=GROUP, name=name):
        loaded: Callable[[Any, Any], Any] = found.load()
        return loaded
    raise RequestError(
        f"no engine {name!r} is installed", hint="Install lakebed as a package: pip install lakebed"
    )
