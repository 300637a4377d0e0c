"""A catalog's tables as names in Spark's SQL, read at Spark's own speed.

    attach(spark, catalog)        SELECT … FROM lakebed.plant.readings VERSION AS OF 7

    SQL ─► Spark asks its catalog "lakebed" for a table ─► we plan, here, at that version
        ─► a table that can be read and nothing else ─► Spark's Parquet scan, filters pushed down

Spark's catalogs are Java classes. Ours is a Python object that py4j shows to Java, put where Spark
keeps the catalogs it has loaded. That needs a JVM in reach: it does not work over Spark Connect,
where a view (`lakebed.spark.view`) does the same for one table.

One scan serves all files of a table. Columns that were added, dropped or widened since a file was
written come out right by their names. If one was renamed, columns are found by field id, unless
an old name stands for another column by now: Spark prunes row groups by name even then, and would
lose rows. Such a table is refused, and `read` and `view` take it.
"""

import re
from typing import TYPE_CHECKING, Any

from lakebed.errors import IdentifierError, RequestError
from lakebed.spark.places import is_connect
from lakebed.spark.reading.attach_catalog import SqlCatalog
from lakebed.spark.schema import check_nanoseconds
from lakebed.table.catalog import Catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPARKS_OWN = ("spark_catalog", "system", "session", "global_temp")


def attach(
    spark: "SparkSession", catalog: Catalog, name: str = "lakebed", *, nanoseconds: str = "refuse"
) -> "Attached":
    """Let SQL of this session name the catalog's tables: `name.namespace.table`.

    Each query sees the newest version, or the one that `VERSION AS OF` (a version or a tag) or
    `TIMESTAMP AS OF` names. Nothing can be written through these names.

    Args:
        spark: a session with a JVM of its own.
        catalog: of `lakebed.connect`; keep it open as long as it is attached.
        name: the first part of each table's name.
        nanoseconds: `"long"` lets columns of nanoseconds be numbers; else tables that have such
            are refused.

    Raises:
        RequestError: over Spark Connect, or if another catalog has the name.
    """
    if is_connect(spark):
        raise RequestError(
            "names of a catalog need the JVM, which Spark Connect keeps to itself",
            hint="Register each table with lakebed.spark.view(spark, table)",
        )
    if not _WORD.fullmatch(name) or name.lower() in _SPARKS_OWN:
        raise IdentifierError(
            f"{name!r} cannot be the name of a catalog", hint="Use one word, as in 'lakebed'"
        )
    if check_nanoseconds(nanoseconds) == "truncate":
        raise RequestError(
            "names cannot cut nanoseconds",
            hint='Use nanoseconds="long", or lakebed.spark.view(…, nanoseconds="truncate")',
        )
    if spark.conf.get(f"spark.sql.catalog.{name}", None) is not None:
        raise RequestError(
            f"Spark has another catalog of the name {name!r}", hint="Attach under another name"
        )
    return Attached(spark, SqlCatalog(spark, catalog, name, nanoseconds))


class Attached:
    """A catalog under a name of Spark's; made by `attach`."""

    def __init__(self, spark: "SparkSession", catalog: SqlCatalog) -> None:
        _open_callbacks(spark)
        self._spark = spark
        self.name = catalog.name()
        self._catalogs().put(self.name, catalog)

    def __repr__(self) -> str:
        return f"Attached({self.name!r})"

    def detach(self) -> None:
        """Take the name away; frames that were made with it can still be read."""
        self._catalogs().remove(self.name)

    def _catalogs(self) -> Any:
        """The catalogs that this session has loaded: a private map, for there is no other way in.

        Tried with Spark 4.1; a version that keeps them elsewhere says so here.
        """
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]

        session: Any = self._spark._jsparkSession
        manager = session.sessionState().catalogManager()
        try:
            kept = manager.getClass().getDeclaredField("catalogs")
            kept.setAccessible(True)
            return kept.get(manager)
        except Py4JError as error:
            raise RequestError(
                f"Spark {self._spark.version} keeps its catalogs where we do not find them",
                hint="Register each table with lakebed.spark.view(spark, table)",
            ) from error


def _open_callbacks(spark: "SparkSession") -> None:
    """Let Java call Python, and let an exception that we choose arrive there as itself."""
    from pyspark.java_gateway import ensure_callback_server_started

    gateway: Any = spark.sparkContext._gateway
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    for name in ("python_parameters", "callback_server_parameters", "_callback_server_parameters"):
        parameters = getattr(gateway, name, None)
        if parameters is not None:
            parameters.propagate_java_exceptions = True


__all__ = ["Attached", "attach"]
