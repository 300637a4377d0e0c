"""The catalog as users see it: tables by name, and commits over several of them."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

from lakebed.catalog.backend import CatalogBackend
from lakebed.clock import Clock, SystemClock
from lakebed.commit.committer import Committer
from lakebed.commit.creation import Founder
from lakebed.commit.policy import RetryPolicy
from lakebed.errors import CommitUnknownError, RequestError
from lakebed.files.arrow_schema import from_arrow
from lakebed.files.metadata_files import MetadataFiles
from lakebed.format.metadata import TableMetadata
from lakebed.format.partition import PARTITION_FIELD_ID_FIRST, parse_spec
from lakebed.format.schema import check_table_name
from lakebed.ids import Ids, SystemIds
from lakebed.storage.store import Store
from lakebed.table.audit import Audit, audit_table
from lakebed.table.properties import check_properties
from lakebed.table.purge import listed_files, purge_files
from lakebed.table.resolution import Resolution, resolve_commit
from lakebed.table.schema_input import arrow_schema_of
from lakebed.table.services import Connection, Services
from lakebed.table.table import Table
from lakebed.table.transaction import Transaction

_SUFFIX_LENGTH = 8


class Catalog:
    """Named tables; made by `lakebed.connect`, used from several threads."""

    def __init__(
        self,
        backend: CatalogBackend,
        warehouse: Store | None,
        *,
        clock: Clock | None = None,
        ids: Ids | None = None,
        policy: RetryPolicy | None = None,
        user: str = "",
        connection: Connection | None = None,
    ) -> None:
        clock, ids = clock or SystemClock(), ids or SystemIds()
        self._services = Services(
            backend=backend,
            warehouse=warehouse,
            committer=Committer(backend, clock=clock, ids=ids, policy=policy, user=user),
            founder=Founder(backend, clock=clock, ids=ids, policy=policy, user=user),
            clock=clock,
            ids=ids,
            connection=connection or Connection(uri="memory:"),
        )

    def __repr__(self) -> str:
        return f"Catalog({self.uri!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def uri(self) -> str:
        """Where the catalog is; carries no password."""
        return self._services.backend.uri

    @property
    def connection(self) -> Connection:
        """How another process opens this catalog."""
        return self._services.connection

    def create_table(
        self,
        name: str,
        schema: Any,
        partition_by: Sequence[str] = (),
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
        *,
        description: str = "",
    ) -> Table:
        """Create a table.

        Args:
            name: words joined by dots, as in `plant.readings`.
            schema: a pyarrow schema, or any object with rows whose columns it shall have.
            partition_by: transforms of columns, as in `["day(ts)", "bucket(16, sensor_id)"]`.
            location: where its files go, if not below the warehouse.
            properties: settings, as in `{"write.parquet.compression-codec": "zstd"}`.
            description: a sentence for people.

        Raises:
            AlreadyExistsError: the name is taken.
        """
        check_table_name(name)
        ids = self._services.ids
        columns = from_arrow(arrow_schema_of(schema))
        if isinstance(partition_by, str):
            partition_by = [partition_by]
        spec = parse_spec(
            list(partition_by), columns, spec_id=0, first_field_id=PARTITION_FIELD_ID_FIRST
        )
        metadata = TableMetadata(
            table_id=ids.new(),
            name=name,
            created_ms=self._services.clock.now_ms(),
            schemas=(columns,),
            specs=(spec,),
            last_field_id=columns.last_id,
            last_partition_field_id=PARTITION_FIELD_ID_FIRST + len(spec.fields) - 1,
            properties=check_properties(properties or {}),
            description=description,
        )
        place = self._location(name, metadata.table_id, location)
        files = MetadataFiles(self._services.open(place))
        pointer = self._services.founder.create(metadata, location=place, files=files)
        return Table(self._services, pointer)

    def table(self, name: str) -> Table:
        """Open a table, or raise NotFoundError."""
        return Table(self._services, self._services.backend.load(check_table_name(name)))

    def tables(self) -> list[str]:
        """The names of all tables, in order."""
        return self._services.backend.tables()

    def drop_table(self, name: str, purge: bool = False) -> None:  # noqa: FBT001, FBT002
        """Take a table out of the catalog; with `purge` its files are deleted too.

        Only files that the table's own history lists are deleted, after it is out of the
        catalog for certain.
        """
        table = self.table(name)
        head = table.head()
        listed = listed_files(table.files, head) if purge else None
        tombstone = self._services.founder.drop(head, table.files)
        if listed is not None:
            keeps_versions = self._services.backend.decides_by_snapshot
            purge_files(table.files, listed, tombstone, keeps_versions=keeps_versions)

    def transaction(self) -> Transaction:
        """Begin a commit over several tables: all of it happens, or nothing.

        with catalog.transaction() as tx:
            tx.append(readings, rows)
            tx.append(alarms, more_rows)
        """
        return Transaction(self._services)

    def resolve(self, commit: str | CommitUnknownError) -> Resolution:
        """Tell what became of a commit whose answer was lost, from this or another process.

        Takes the commit id, or the error itself, which allows a definite answer.
        """
        return resolve_commit(self._services, commit)

    def doctor(self, name: str) -> Audit:
        """Verify a table: each metadata file reads, each data file is there and of its size."""
        return audit_table(self.table(name))

    def close(self) -> None:
        """Release connections."""
        self._services.backend.close()

    def _location(self, name: str, table_id: str, given: str | None) -> str:
        services = self._services
        if services.backend.decides_by_snapshot:
            if given is not None:
                raise RequestError(
                    "a catalog without a database keeps each table below itself",
                    hint="Leave `location` out",
                )
            return name
        place = name if given is None else given
        if not _is_used(services.open(place)):
            return place
        if given is not None:
            raise RequestError(
                f"there is a table at {given} already", hint="Name an empty directory"
            )
        return f"{name}-{table_id[-_SUFFIX_LENGTH:]}"


def _is_used(store: Store) -> bool:
    return next(iter(store.list("metadata/")), None) is not None
