"""What all tables of one catalog share: the pointer's keeper, the stores, the committer."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lakebed.catalog.backend import CatalogBackend
from lakebed.clock import Clock
from lakebed.commit.committer import Committer
from lakebed.commit.creation import Founder
from lakebed.errors import RequestError
from lakebed.files.metadata_files import MetadataFiles
from lakebed.format.pointer import Pointer
from lakebed.ids import Ids
from lakebed.storage.open import open_store
from lakebed.storage.store import Store

_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A table's directory as another process can open it; the options may hold secrets."""

    location: str
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def open(self) -> Store:
        """Open the directory."""
        return open_store(self.location, self.storage_options)


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """What `lakebed.connect` was given: enough to connect again from another process.

    The URI is not shown, since that of a database may hold a password.
    """

    uri: str = field(repr=False)
    warehouse: str | None = None
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def is_shared(self) -> bool:
        """Whether another process can connect to it at all."""
        return not self.uri.startswith("memory:")


@dataclass(frozen=True, kw_only=True)
class Services:
    """Built once per catalog and handed to its tables."""

    backend: CatalogBackend
    warehouse: Store | None
    committer: Committer
    founder: Founder
    clock: Clock
    ids: Ids
    connection: Connection = field(default_factory=lambda: Connection(uri="memory:"))
    _files: dict[tuple[str, str], MetadataFiles] = field(default_factory=dict, repr=False)

    def files_of(self, pointer: Pointer) -> MetadataFiles:
        """The files of a table; what was read of them is remembered for all who ask."""
        key = (pointer.table_id, pointer.location)
        found = self._files.get(key)
        if found is None:
            found = self._files.setdefault(key, MetadataFiles(self.open(pointer.location)))
        return found

    def place(self, store: Store) -> Place:
        """A table's directory, for other processes."""
        return Place(location=store.uri, storage_options=dict(self.connection.storage_options))

    def open(self, location: str) -> Store:
        """Open a table's directory: below the warehouse, or anywhere if it says where."""
        if _ABSOLUTE.match(location):
            return open_store(location, self.connection.storage_options, ids=self.ids)
        if self.warehouse is None:
            raise RequestError(
                f"{self.backend.uri} does not say where its tables are",
                hint="Name the directory or bucket: connect(uri, warehouse=…)",
            )
        return self.warehouse.child(location)
