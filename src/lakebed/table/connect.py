"""From a URI to a catalog."""

import getpass
import os
import re
from collections.abc import Mapping
from typing import Any

from lakebed.catalog.backend import CatalogBackend
from lakebed.clock import Clock, SystemClock
from lakebed.commit.policy import RetryPolicy
from lakebed.errors import RequestError
from lakebed.ids import Ids, SystemIds
from lakebed.require import require
from lakebed.storage.open import open_store
from lakebed.storage.store import Store
from lakebed.table.catalog import Catalog
from lakebed.table.services import Connection

_POSTGRES = ("postgresql:", "postgres:")
_SQLITE = "sqlite:///"


def connect(
    uri: str | os.PathLike[str],
    *,
    warehouse: str | os.PathLike[str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    policy: RetryPolicy | None = None,
    clock: Clock | None = None,
    ids: Ids | None = None,
) -> Catalog:
    """Open a catalog, and make it if it is not there.

    `sqlite:///path/catalog.db` is a file (its directory is the warehouse), `postgresql://…` a
    database, `memory:` lives in this process, and a path or `s3://bucket/prefix` is a store with
    no database at all. `warehouse` says where new tables go; PostgreSQL remembers the first one
    it is told. `storage_options` are keys and endpoints for object stores.
    """
    ids = ids or SystemIds()
    clock = clock or SystemClock()
    options = dict(storage_options or {})
    text = os.fspath(uri)
    backend, store = _open(text, warehouse, options, clock, ids)
    place = backend.warehouse(None if warehouse is None else os.fspath(warehouse))
    if store is None and place is not None:
        store = open_store(place, options, ids=ids)
    return Catalog(
        backend,
        store,
        clock=clock,
        ids=ids,
        policy=policy,
        user=_user(),
        connection=Connection(
            uri=_absolute(text),
            warehouse=None if warehouse is None else os.fspath(warehouse),
            storage_options=options,
        ),
    )


def reconnect(connection: Connection) -> Catalog:
    """Open a catalog again, in another process or on another machine.

    Raises:
        RequestError: the catalog lives in the memory of the process that made it.
    """
    if not connection.is_shared:
        raise RequestError(
            "a catalog in memory cannot be reached from another process",
            hint="Use SQLite, PostgreSQL, or a directory or bucket",
        )
    return connect(
        connection.uri,
        warehouse=connection.warehouse,
        storage_options=connection.storage_options,
    )


def _open(
    uri: str,
    warehouse: str | os.PathLike[str] | None,
    options: Mapping[str, Any],
    clock: Clock,
    ids: Ids,
) -> tuple[CatalogBackend, Store | None]:
    if uri.startswith(_SQLITE):
        from lakebed.catalog.sqlite import SqliteCatalog

        return SqliteCatalog(uri.removeprefix(_SQLITE)), None
    if uri.startswith("sqlite:"):
        raise RequestError(
            "an SQLite catalog is named by its file",
            hint="Write sqlite:///warehouse/catalog.db, or sqlite:////absolute/path/catalog.db",
        )
    if uri.startswith(_POSTGRES):
        require("psycopg", extra="postgres")
        from lakebed.catalog.postgres import PostgresCatalog

        return PostgresCatalog(uri), None
    if uri.startswith("memory:"):
        return _memory(uri, warehouse)
    from lakebed.catalog.store import StoreCatalog

    if warehouse is not None:
        raise RequestError(
            "a catalog without a database is its own warehouse", hint="Leave `warehouse` out"
        )
    store = open_store(uri, options, ids=ids)
    return StoreCatalog(store, ids, clock), store


def _memory(
    uri: str, warehouse: str | os.PathLike[str] | None
) -> tuple[CatalogBackend, Store | None]:
    from lakebed.catalog.memory import MemoryCatalog
    from lakebed.storage.memory import MemoryStore

    name = re.sub(r"^memory:(//)?", "", uri)
    backend = MemoryCatalog.named(name) if name else MemoryCatalog()
    if warehouse is not None:
        return backend, None
    return backend, MemoryStore.named(name) if name else MemoryStore()


def _absolute(uri: str) -> str:
    """The same place from any working directory: another process may run in another one."""
    if uri.startswith(_SQLITE):
        return _SQLITE + os.path.abspath(uri.removeprefix(_SQLITE))
    return uri if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", uri) else os.path.abspath(uri)


def _user() -> str:
    """Who commits, for the log; a container may not know."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""
