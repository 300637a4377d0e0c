"""Lakebed: time-series tables on plain files.

    import lakebed

    catalog = lakebed.connect("sqlite:///warehouse/catalog.db")
    table = catalog.create_table("plant.readings", schema, partition_by=["day(ts)"])
    table.append(rows)
    table.scan("ts >= '2026-01-01'").to_arrow()

Names are loaded when they are first used, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakebed.commit.change import Commit, Isolation
    from lakebed.commit.policy import RetryPolicy
    from lakebed.errors import (
        AlreadyExistsError,
        BadDataFileError,
        BadMetadataError,
        BadTableError,
        CommitConflictError,
        CommitError,
        CommitUnknownError,
        IdentifierError,
        LakebedError,
        LimitExceededError,
        NotFoundError,
        ObjectExistsError,
        ObjectMissingError,
        PredicateError,
        RequestError,
        SchemaMismatchError,
        StorageError,
        TokenError,
        UnavailableError,
        UnsafePathError,
        UnsafeStoreError,
        UnsupportedVersionError,
    )
    from lakebed.expr.nodes import col
    from lakebed.format.datafile import ColumnStats, DataFile
    from lakebed.format.snapshot import Snapshot
    from lakebed.plan.read_plan import ReadPlan
    from lakebed.table.catalog import Catalog
    from lakebed.table.changes import Changes
    from lakebed.table.connect import connect
    from lakebed.table.resolution import Resolution
    from lakebed.table.scan import Scan
    from lakebed.table.table import Table

__version__ = "0.1.0"

_HOMES = {
    "lakebed.commit.change": ("Commit", "Isolation"),
    "lakebed.commit.policy": ("RetryPolicy",),
    "lakebed.errors": (
        "AlreadyExistsError",
        "BadDataFileError",
        "BadMetadataError",
        "BadTableError",
        "CommitConflictError",
        "CommitError",
        "CommitUnknownError",
        "IdentifierError",
        "LakebedError",
        "LimitExceededError",
        "NotFoundError",
        "ObjectExistsError",
        "ObjectMissingError",
        "PredicateError",
        "RequestError",
        "SchemaMismatchError",
        "StorageError",
        "TokenError",
        "UnavailableError",
        "UnsafePathError",
        "UnsafeStoreError",
        "UnsupportedVersionError",
    ),
    "lakebed.expr.nodes": ("col",),
    "lakebed.format.datafile": ("ColumnStats", "DataFile"),
    "lakebed.format.snapshot": ("Snapshot",),
    "lakebed.plan.read_plan": ("ReadPlan",),
    "lakebed.table.catalog": ("Catalog",),
    "lakebed.table.changes": ("Changes",),
    "lakebed.table.connect": ("connect",),
    "lakebed.table.resolution": ("Resolution",),
    "lakebed.table.scan": ("Scan",),
    "lakebed.table.table": ("Table",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AlreadyExistsError",
    "BadDataFileError",
    "BadMetadataError",
    "BadTableError",
    "Catalog",
    "Changes",
    "ColumnStats",
    "Commit",
    "CommitConflictError",
    "CommitError",
    "CommitUnknownError",
    "DataFile",
    "IdentifierError",
    "Isolation",
    "LakebedError",
    "LimitExceededError",
    "NotFoundError",
    "ObjectExistsError",
    "ObjectMissingError",
    "PredicateError",
    "ReadPlan",
    "RequestError",
    "Resolution",
    "RetryPolicy",
    "Scan",
    "SchemaMismatchError",
    "Snapshot",
    "StorageError",
    "Table",
    "TokenError",
    "UnavailableError",
    "UnsafePathError",
    "UnsafeStoreError",
    "UnsupportedVersionError",
    "__version__",
    "col",
    "connect",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'lakebed' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
