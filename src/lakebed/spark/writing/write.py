"""Writing a frame into a table, in one commit.

    frame ─► columns fitted to the table ─► files, in no version yet ─► one commit
             (refused with each difference)  (storing.py says who makes them)

    append      rows are added; the table is made if it is missing
    overwrite   all rows are replaced, or those that match replace_where, or the partitions that
                the new rows hit (partition_overwrite="dynamic")
    error       the table must not be there yet
    ignore      nothing happens if it is

A frame may be made of the very table that it overwrites: files are never deleted by a commit.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from lakebed.commit.change import Commit, commit_of
from lakebed.commit.head import Head
from lakebed.errors import (
    AlreadyExistsError,
    CommitUnknownError,
    LakebedError,
    NotFoundError,
    RequestError,
)
from lakebed.format.partition import parse_spec
from lakebed.spark.writing.incoming import check_has_columns, columns_of, incoming_columns, named_as
from lakebed.spark.writing.options import WriteOptions
from lakebed.spark.writing.replacing import overwrite_all, overwrite_hit, overwrite_matching
from lakebed.spark.writing.storing import collected, executor_files
from lakebed.spark.writing.workers import arrow_rows
from lakebed.table.appending import replanned
from lakebed.table.catalog import Catalog
from lakebed.table.connect import connect
from lakebed.table.staging import Staging
from lakebed.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"


def write(  # noqa: PLR0913 - what can be said of a write
    frame: "DataFrame",
    table: Table | str,
    mode: str = "append",
    *,
    catalog: Catalog | str | None = None,
    partition_by: Sequence[str] | str | None = None,
    replace_where: object = None,
    partition_overwrite: str | None = None,
    merge_schema: bool = False,
    txn: tuple[str, int] | None = None,
    properties: Mapping[str, str] | None = None,
    via: str | None = None,
) -> Commit:
    """Write a frame into a table, in one commit.

    Columns are matched by name; those that are missing become null. Types widen (int to long,
    float to double) and are never narrowed: what does not fit is refused, difference by
    difference, before anything is written.

    Args:
        frame: any DataFrame, of Spark Connect too.
        table: of `catalog.table`, or a name together with `catalog`.
        mode: `append`, `overwrite`, `error` (or `errorifexists`), `ignore`.
        catalog: a catalog or its URI, for a table that is given by its name; the table is made
            if it is missing, with the frame's columns, all of which can be null.
        partition_by: how a table that is made here is split, as in `["day(ts)", "site"]`.
        replace_where: SQL text or an expression; overwrite replaces the rows that match. The new
            rows must match it too.
        partition_overwrite: `dynamic` replaces the partitions that the new rows hit, `static`
            all rows; as `spark.sql.sources.partitionOverwriteMode` says if None.
        merge_schema: whether columns that the table lacks are added to it. Off, as Spark users
            expect it: then they are refused. (`Table.append` adds them.)
        txn: `("app", 7)` makes it exactly once, as in `Table.append`.
        properties: texts that stay with the commit.
        via: `driver` or `executors`. If None, frames that Spark estimates at up to 8 MB go over
            the driver, where a commit takes less than half the time; all others, and those of
            Spark Connect, are written by the executors.

    Returns:
        The commit; with `ignore`, of a table that is there, its newest version.

    Raises:
        SchemaMismatchError: the rows do not fit the table.
        AlreadyExistsError: the mode is `error` and the table is there.
        CommitConflictError: another commit changed what this one replaces.
        RequestError: the Spark job failed, or what is asked for contradicts itself.
    """
    options = WriteOptions.made(
        mode=mode,
        partition_by=partition_by,
        replace_where=replace_where,
        partition_overwrite=partition_overwrite,
        merge_schema=merge_schema,
        txn=txn,
        properties=dict(properties or {}),
        via=via,
    )
    check_has_columns(frame)
    if isinstance(table, Table):
        return write_frame(frame, table, options)
    with _catalog(catalog) as opened:
        return _write_by_name(frame, table, opened, options)


def write_frame(
    frame: "DataFrame", table: Table, options: WriteOptions, *, is_new: bool = False
) -> Commit:
    """Write a frame into a table that is there; `is_new` says that it was made for this write."""
    if not is_new:
        if options.mode == "error":
            raise AlreadyExistsError(
                f"the table {table.name} is there already",
                hint='Use mode="append" or mode="overwrite"',
                table=table.name,
            )
        if options.mode == "ignore":
            return unchanged(table)
        _check_partitioning(table, options)
    done = table.committed(options.txn)
    if done is not None:
        return done
    # Again if others gave out field ids that stand in our files: those have to be written anew.
    return replanned(lambda: _attempt(frame, table, options), replayable=True)


def unchanged(table: Table) -> Commit:
    """The report of a write that had nothing to do: the table stays at its version."""
    return replace(
        commit_of(table.current_snapshot()),
        added_files=0,
        added_rows=0,
        removed_files=0,
        removed_rows=0,
    )


def staged(
    frame: "DataFrame", table: Table, *, merge_schema: bool = False
) -> "tuple[DataFrame, Staging]":
    """The frame with the table's names, and a staging that takes its columns."""
    schema = table.schema
    named = named_as(frame, schema)
    return named, table.stage(incoming_columns(named, schema), evolve=merge_schema)


def _attempt(frame: "DataFrame", table: Table, options: WriteOptions) -> Commit:
    named, staging = staged(frame, table, merge_schema=options.merge_schema)
    if options.mode == "overwrite":
        if options.replace_where is not None:
            return overwrite_matching(named, table, staging, options)
        if _is_dynamic(frame, staging, options):
            return overwrite_hit(named, staging, options)
        return overwrite_all(named, table, staging, options)
    rows = collected(named, staging.place, options.via)
    if rows is not None:
        seen = arrow_rows(rows, staging.schema)
        return table.append(seen, token=options.txn, properties=options.properties)
    added = executor_files(named, staging)
    return staging.commit(added, token=options.txn, properties=options.properties)


def _is_dynamic(frame: "DataFrame", staging: Staging, options: WriteOptions) -> bool:
    if not staging.spec.fields:
        return False
    mode = options.partition_overwrite
    if mode is None:
        mode = (frame.sparkSession.conf.get(_OVERWRITE_MODE) or "static").lower()
    return mode == "dynamic"


# --------------------------------------------------------------------------------- by its name


@contextmanager
def _catalog(catalog: Catalog | str | None) -> Iterator[Catalog]:
    if catalog is None:
        raise RequestError(
            "a table that is given by its name needs a catalog",
            hint='Write catalog="sqlite:////lake/catalog.db", or give catalog.table(name)',
        )
    if isinstance(catalog, Catalog):
        yield catalog
        return
    with connect(catalog) as opened:
        yield opened


def _write_by_name(
    frame: "DataFrame", name: str, catalog: Catalog, options: WriteOptions
) -> Commit:
    found = _found(catalog, name)
    if found is not None:
        return write_frame(frame, found, options)
    try:
        made = catalog.create_table(name, columns_of(frame), options.partition_by or ())
    except AlreadyExistsError:
        return write_frame(frame, catalog.table(name), options)  # somebody else was faster
    head = made.head()
    try:
        return write_frame(frame, made, options, is_new=True)
    except CommitUnknownError:
        raise
    except LakebedError:
        _take_back(made, head)
        raise


def _found(catalog: Catalog, name: str) -> Table | None:
    try:
        return catalog.table(name)
    except NotFoundError:
        return None


def _take_back(table: Table, head: Head) -> None:
    """Drop a table that was made for a write which failed, unless somebody has written to it."""
    with suppress(LakebedError):  # The write's own error tells more.
        table._services.founder.drop(head, table.files)  # refused if it is past that version


def _check_partitioning(table: Table, options: WriteOptions) -> None:
    if options.partition_by is None:
        return
    head = table.head()
    schema = head.metadata.schema(head.snapshot.schema_id)
    spec = head.metadata.spec(head.snapshot.spec_id)
    wanted = parse_spec(list(options.partition_by), schema, spec_id=0, first_field_id=1000)
    if wanted.describe(schema) != spec.describe(schema):
        raise RequestError(
            f"{table.name} is partitioned by {', '.join(spec.describe(schema)) or 'nothing'}, "
            f"not by {', '.join(wanted.describe(schema))}",
            hint="Leave partition_by out, or change the table: table.evolve()",
        )


__all__ = ["staged", "unchanged", "write", "write_frame"]
