# ruff: noqa: N802, D102, ARG002 - names, meaning and arguments are those of Spark's interfaces
"""The Java faces of a catalog and its tables, as Spark's SQL sees them through py4j.

py4j passes each call of an interface's method to the Python method of that name; methods that
Java would inherit from the interface have to be here too. An exception becomes the Java exception
that pyspark shows without a stack of Java's: what the user sees is our sentence.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any, NoReturn

from lakebed.errors import LakebedError, NotFoundError, RequestError
from lakebed.spark.reading.attach_plan import SqlPlan, sql_plan
from lakebed.spark.reading.native import READER_OPTIONS, quick_listing
from lakebed.table.catalog import Catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CATALOG = "org.apache.spark.sql.connector.catalog"
_PARQUET = "org.apache.spark.sql.execution.datasources"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_READ_ONLY = (
    "tables of lakebed cannot be changed by SQL names. "
    "Use lakebed.spark.write, merge, update or delete, or the catalog itself"
)


def _to_java(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let an error of ours reach the user as its message and nothing more."""

    @wraps(method)
    def wrapped(self: Any, *arguments: Any) -> Any:
        try:
            return method(self, *arguments)
        except LakebedError as error:
            self._java.throw("java.lang.IllegalArgumentException", str(error))

    return wrapped


class _Java:
    """The JVM of a session, and the few things we need of it."""

    def __init__(self, spark: "SparkSession") -> None:
        self.spark = spark
        self.session: Any = spark._jsparkSession
        self.gateway: Any = spark.sparkContext._gateway
        self.jvm: Any = spark._jvm

    def of(self, name: str) -> Any:
        """A class by its full name."""
        found = self.jvm
        for part in name.split("."):
            found = getattr(found, part)
        return found

    def array(self, name: str, values: Sequence[Any]) -> Any:
        made = self.gateway.new_array(self.of(name), len(values))
        for place, value in enumerate(values):
            made[place] = value
        return made

    def strings(self, values: Sequence[str]) -> Any:
        return self.array("java.lang.String", values)

    def throw(self, name: str, *arguments: Any) -> NoReturn:
        """Raise a Java exception from inside a call by Java."""
        from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

        raise Py4JJavaError("", self.of(name)(*arguments))

    def refuse(self, what: str) -> NoReturn:
        self.throw("java.lang.UnsupportedOperationException", f"{what}: {_READ_ONLY}")


class SqlCatalog:
    """`TableCatalog` and `SupportsNamespaces` over a catalog of ours; read-only."""

    def __init__(
        self, spark: "SparkSession", catalog: Catalog, name: str, nanoseconds: str
    ) -> None:
        self._java = _Java(spark)
        self._catalog = catalog
        self._name = name
        self._nanoseconds = nanoseconds

    # ------------------------------------------------------------------------------- plugin

    def initialize(self, name: str, options: Any) -> None:
        pass  # we come ready

    def name(self) -> str:
        return self._name

    def defaultNamespace(self) -> Any:
        return self._java.strings([])

    def capabilities(self) -> Any:
        return self._java.of("java.util.Collections").emptySet()

    def useNullableQuerySchema(self) -> bool:
        return True

    # ------------------------------------------------------------------------------- tables

    @_to_java
    def listTables(self, namespace: Any) -> Any:
        return self._java.array(f"{_CATALOG}.Identifier", self._identifiers(namespace))

    @_to_java
    def listTableSummaries(self, namespace: Any) -> Any:
        summary = self._java.of(f"{_CATALOG}.TableSummary")
        made = [summary.of(each, "EXTERNAL") for each in self._identifiers(namespace)]
        return self._java.array(f"{_CATALOG}.TableSummary", made)

    @_to_java
    def loadTable(self, identifier: Any, *asked: Any) -> Any:
        """A table at its newest version, or at the one that is asked for; never another.

        Spark asks with a version (text), a time (microseconds) or the privileges of a writer.
        """
        point: str | None = None
        match asked:
            case ():
                pass
            case (str(),):
                point = asked[0]
            case (int(),):
                moment = _EPOCH + timedelta(microseconds=asked[0])
                point = moment.isoformat().replace("+00:00", "Z")
            case (privileges,) if hasattr(privileges, "isEmpty"):
                if not privileges.isEmpty():
                    self._java.refuse(f"writing into {_dotted(identifier)}")
            case _:
                raise RequestError(
                    "this Spark asks for tables in a way that is not known here",
                    hint="Register each table with lakebed.spark.view(spark, table)",
                )
        try:
            table = self._catalog.table(_dotted(identifier))
        except NotFoundError:
            self._java.throw(
                "org.apache.spark.sql.catalyst.analysis.NoSuchTableException", identifier
            )
        plan = sql_plan(self._java.spark, table, point, self._nanoseconds)
        return SqlTable(self._java, f"{self._name}.{table.name}", plan)

    @_to_java
    def tableExists(self, identifier: Any) -> bool:
        return _dotted(identifier) in self._catalog.tables()

    def invalidateTable(self, identifier: Any) -> None:
        pass  # nothing is kept

    def createTable(self, *_: Any) -> NoReturn:
        self._java.refuse("CREATE TABLE")

    def alterTable(self, *_: Any) -> NoReturn:
        self._java.refuse("ALTER TABLE")

    def dropTable(self, identifier: Any) -> NoReturn:
        self._java.refuse("DROP TABLE")

    def purgeTable(self, identifier: Any) -> NoReturn:
        self._java.refuse("DROP TABLE")

    def renameTable(self, old: Any, new: Any) -> NoReturn:
        self._java.refuse("RENAME TABLE")

    # --------------------------------------------------------------------------- namespaces

    @_to_java
    def listNamespaces(self, *above: Any) -> Any:
        """Those directly below one, as many words deep as they are."""
        start = list(above[0]) if above else []
        if start:
            self._check_namespace(start)
        found = {
            tuple(each[: len(start) + 1]) for each in self._namespaces() if _is_below(each, start)
        }
        rows = [self._java.strings(each) for each in sorted(found)]
        made = self._java.gateway.new_array(self._java.jvm.java.lang.String, len(rows), 0)
        for place, row in enumerate(rows):
            made[place] = row
        return made

    @_to_java
    def namespaceExists(self, namespace: Any) -> bool:
        return self._has_namespace(list(namespace))

    @_to_java
    def loadNamespaceMetadata(self, namespace: Any) -> Any:
        self._check_namespace(list(namespace))
        return self._java.of("java.util.HashMap")()

    def createNamespace(self, *_: Any) -> NoReturn:
        self._java.refuse("CREATE NAMESPACE")

    def alterNamespace(self, *_: Any) -> NoReturn:
        self._java.refuse("ALTER NAMESPACE")

    def dropNamespace(self, *_: Any) -> NoReturn:
        self._java.refuse("DROP NAMESPACE")

    # ------------------------------------------------------------------------------- object

    def hashCode(self) -> int:
        return _hash(self._name)

    def equals(self, other: Any) -> bool:
        return other is self

    def toString(self) -> str:
        return f"lakebed {self._catalog.uri}"

    def _namespaces(self) -> list[list[str]]:
        return [name.split(".")[:-1] for name in self._catalog.tables()]

    def _has_namespace(self, namespace: list[str]) -> bool:
        return any(each[: len(namespace)] == namespace for each in self._namespaces())

    def _check_namespace(self, namespace: list[str]) -> None:
        if not self._has_namespace(namespace):
            self._java.throw(
                "org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException",
                self._java.strings(namespace),
            )

    def _identifiers(self, namespace: Any) -> list[Any]:
        above = list(namespace)
        if above:
            self._check_namespace(above)
        of = self._java.of(f"{_CATALOG}.Identifier").of
        names = [name.split(".") for name in self._catalog.tables()]
        return [of(self._java.strings(above), each[-1]) for each in names if each[:-1] == above]

    class Java:
        """What py4j shows to Java."""

        implements = (f"{_CATALOG}.TableCatalog", f"{_CATALOG}.SupportsNamespaces")


class SqlTable:
    """One version of a table, as `SupportsRead` and no more: Spark finds nothing to write by.

    The scan is Spark's own, of its Parquet table over exactly the planned files.
    """

    def __init__(self, java: _Java, name: str, plan: SqlPlan) -> None:
        self._java = java
        self._name = name
        self._plan = plan
        self._schema = java.session.parseDataType(plan.schema.json())
        self._parquet = self._made()

    def _made(self) -> Any:
        java, plan = self._java, self._plan
        options = java.of("java.util.HashMap")()
        for key, value in {**READER_OPTIONS, **plan.options}.items():
            options.put(key, value)
        made = java.of(f"{_PARQUET}.v2.parquet.ParquetTable")(
            self._name,
            java.session,
            java.of("org.apache.spark.sql.util.CaseInsensitiveStringMap")(options),
            java.of("org.apache.spark.api.python.PythonUtils").toSeq(_uris(java, plan.uris)),
            java.of("scala.Option").apply(self._schema),
            java.of("org.apache.spark.util.Utils").classForName(
                f"{_PARQUET}.parquet.ParquetFileFormat",
                *(True, False),  # load it here, with this thread's loader
            ),
        )
        with quick_listing(java.spark, len(plan.uris), is_local=True):
            made.fileIndex()  # looks at the files now, and once
        return made

    def newScanBuilder(self, options: Any) -> Any:
        # Options of a query are not passed on: none may make a lost file no error.
        return self._parquet.newScanBuilder(
            self._java.of("org.apache.spark.sql.util.CaseInsensitiveStringMap").empty()
        )

    def name(self) -> str:
        return self._name

    def id(self) -> str:
        return self._plan.table_id

    def version(self) -> str:
        return str(self._plan.version)

    def schema(self) -> Any:
        return self._schema

    def columns(self) -> Any:
        util = self._java.of(f"{_CATALOG}.CatalogV2Util")
        return util.structTypeToV2Columns(self._schema)

    def partitioning(self) -> Any:
        return self._java.array("org.apache.spark.sql.connector.expressions.Transform", [])

    def constraints(self) -> Any:
        return self._java.array(f"{_CATALOG}.constraints.Constraint", [])

    def properties(self) -> Any:
        made = self._java.of("java.util.HashMap")()
        made.put("provider", "lakebed")
        made.put("location", self._plan.location)
        made.put("version", str(self._plan.version))
        return made

    def capabilities(self) -> Any:
        only = self._java.of(f"{_CATALOG}.TableCapability").BATCH_READ
        return self._java.of("java.util.Collections").singleton(only)

    def hashCode(self) -> int:
        return _hash(f"{self._name} {self._plan.table_id} {self._plan.version}")

    def equals(self, other: Any) -> bool:
        return isinstance(other, SqlTable) and self._key() == other._key()

    def toString(self) -> str:
        return f"{self._name} version {self._plan.version}"

    def _key(self) -> tuple[str, str, int]:
        return self._name, self._plan.table_id, self._plan.version

    class Java:
        """What py4j shows to Java."""

        implements = (f"{_CATALOG}.SupportsRead",)


def _dotted(identifier: Any) -> str:
    return ".".join([*identifier.namespace(), identifier.name()])


def _is_below(namespace: list[str], above: list[str]) -> bool:
    return len(namespace) > len(above) and namespace[: len(above)] == above


def _hash(text: str) -> int:
    """The same number in each process, within Java's int."""
    from zlib import crc32

    return crc32(text.encode()) >> 1


def _uris(java: _Java, uris: Sequence[str]) -> Any:
    """A Java list; made from one text, since py4j sends each element by itself."""
    if not uris or any("\n" in uri for uri in uris):
        made = java.of("java.util.ArrayList")()
        for uri in uris:
            made.add(uri)
        return made
    return java.of("java.util.regex.Pattern").compile("\n").splitAsStream("\n".join(uris)).toList()


__all__ = ["SqlCatalog", "SqlTable"]
