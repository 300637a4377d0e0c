"""A table as the source of a stream: what it holds, and then each version as it comes.

    first     snapshot V ─► then versions V+1, V+2, …       (or from startingVersion on)
    batch     latestOffset(): how far ─► Spark notes it ─► partitions(start, end): which files
    restart   Spark says where it stands by asking for partitions(end, end)

Spark 4.1 asks its Python sources for the latest offset without saying where the query stands and
how much it wants, so the reader remembers the first, and takes the second from its options. Spark
4.2 says both (see source.py). The offsets are the same, so a checkpoint of one serves the other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from lakebed.errors import NotFoundError, RequestError
from lakebed.expr.bind import bind
from lakebed.expr.parse import as_predicate
from lakebed.spark.source.batch_read import Pinned
from lakebed.spark.source.options import Given, TablePlace
from lakebed.spark.source.stream_log import History, Limit, Manner
from lakebed.spark.source.stream_offset import Offset
from lakebed.spark.source.stream_tasks import StreamTask, TaskMaker

_LATEST = "latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRequest:
    """What a stream reads; made from options, pickled from process to process."""

    place: TablePlace
    said: Given
    pinned: Pinned

    @property
    def limit(self) -> Limit | None:
        """How much a batch may read; None if the user sets no limit."""
        limit = Limit(
            files=self.said.number("maxFilesPerTrigger", least=1),
            size_bytes=self.said.number("maxBytesPerTrigger", least=1),
        )
        return None if limit == Limit() else limit

    @property
    def manner(self) -> Manner:
        """How commits are taken that do more than append."""
        return Manner(
            feed=self.said.flag("readChangeFeed"),
            skip_changes=self.said.flag("skipChangeCommits"),
            ignore_deletes=self.said.flag("ignoreDeletes"),
        )

    def check(self) -> None:
        """Read every option once, so that what is wrong is said at once."""
        self.said.one_of("startingVersion", "startingTimestamp")
        self.said.flag("triggerAvailableNow")
        self.said.moment("startingTimestamp")
        if self.said.text("startingVersion") != _LATEST:
            self.said.number("startingVersion")
        _ = self.limit
        manner = self.manner
        if manner.feed and (manner.skip_changes or manner.ignore_deletes):
            raise RequestError(
                "readChangeFeed shows all changes, and skipChangeCommits or ignoreDeletes leave "
                "some out",
                hint="Use one of them",
            )


class TaskPartition(InputPartition):
    """One task of a batch."""

    def __init__(self, task: StreamTask) -> None:
        super().__init__(None)
        self.task = task


class LakebedStreamReader(DataSourceStreamReader):
    """The reader that Spark keeps in one process of the driver's for as long as a query runs.

    Another copy is pickled into the tasks, where only `read` is called.
    """

    def __init__(self, request: StreamRequest) -> None:
        self._request = request
        self._position: Offset | None = None  # how far Spark has been told, or has told us
        self._first: Offset | None = None
        self._has_begun = False

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._request,)

    # ---------------------------------------------------------------------- what Spark calls

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Where a query without a checkpoint begins; the same each time in one process."""
        return self.first().to_json()

    def latestOffset(self) -> dict[str, Any]:  # noqa: N802 - 4.1's form
        """How far the next batch goes; called before `initialOffset` in a new query."""
        limit = self._request.limit
        if limit is not None and self._request.said.flag("triggerAvailableNow"):
            limit = None  # Spark 4.1 runs one batch then: it has to go all the way.
        self._position = self.next_offset(self._position, limit, self.head_version())
        return self._position.to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The work between two offsets; called on a restart with the last known one, twice."""
        first, last = Offset.of(start), Offset.of(end)
        self._check(first)
        self._check(last)
        self._position = last
        if first.initial and not first.index:
            first = _same_snapshot(first, last)
        if last < first:
            if self._request.said.text("startingVersion") == _LATEST:
                return []  # A first batch that was repeated: it began at the latest of then.
            raise RequestError(f"the batch ends at {last} before it begins at {first}")
        tasks = self._maker.tasks(self.history.between(first, last))
        return [TaskPartition(task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of one task; called in a worker, once for each attempt."""
        assert isinstance(partition, TaskPartition), "made by partitions()"
        return partition.task.batches()

    # ------------------------------------------------------------------------------- inside

    @cached_property
    def history(self) -> History:
        """The table's history, at the columns that the stream gives out."""
        request = self._request
        table = request.place.open()
        columns = request.said.names("columns")
        return History(
            table=table,
            schema=table.scan(as_of=request.pinned.version).table_schema,
            columns=None if columns is None else tuple(columns),
            known=request.pinned.version,
            manner=request.manner,
        )

    @cached_property
    def _maker(self) -> TaskMaker:
        said, history = self._request.said, self.history
        node = as_predicate(said.text("filter"))
        return TaskMaker(
            table=history.table,
            schema=history.schema,
            columns=history.columns,
            where=None if node is None else bind(node, history.schema),
            nanoseconds=said.text("nanoseconds") or "refuse",
            feed=history.manner.feed,
        )

    def head_version(self) -> int:
        """The newest version there is."""
        return self.history.head().pointer.version

    def first(self) -> Offset:
        """Where a new query begins."""
        if self._first is None:
            self._first = _beginning(self.history, self._request.said)
        return self._first

    def begins_at_latest(self, place: Offset) -> bool:
        """Whether this is a new query that wants nothing of what is there; True only once.

        Its first batch has to be empty: until a batch has ended, Spark asks anew where the query
        begins, and the latest is another by then.
        """
        is_first = place == self._first and not self._has_begun
        self._has_begun = True
        return is_first and self._request.said.text("startingVersion") == _LATEST

    def next_offset(self, start: Offset | None, limit: Limit | None, until: int) -> Offset:
        """How far a batch goes that begins at `start`, or at the beginning if that is None."""
        place = start or self.first()
        self._check(place)
        if limit is not None:
            return self.history.limited(place, limit, until)
        if place.initial and not place.index:
            return Offset(table=place.table, version=place.version + 1)
        return Offset(table=place.table, version=until + 1) if place.version <= until else place

    def _check(self, place: Offset) -> None:
        """Raise if an offset is not one of this table as it is now."""
        head = self.history.head().pointer
        name = self.history.table.name
        if place.table != head.table_id:
            raise NotFoundError(
                f"{name} was dropped and created anew: the checkpoint belongs to the former table",
                hint="Start the query with a new checkpointLocation; it reads the new table from "
                "its beginning",
                table=name,
            )
        if place.version > head.version + 1:
            raise NotFoundError(
                f"the stream stands before version {place.version} of {name}, and its newest is "
                f"{head.version}: an older copy of the table was restored",
                hint="Choose: a new checkpointLocation reads the whole table again, with "
                f"startingVersion={head.version + 1} only what comes from now on",
                table=name,
            )


def _same_snapshot(first: Offset, last: Offset) -> Offset:
    """The beginning of a first batch, when it is repeated.

    Spark asks anew where a query begins as long as no batch has ended, and the table may have
    grown since. The end of the batch is noted, and says which snapshot it was.
    """
    version = last.version if last.initial else last.version - 1
    return Offset(table=first.table, version=version, initial=True)


def _beginning(history: History, said: Given) -> Offset:
    head = history.head().pointer
    here = Offset(table=head.table_id, version=head.version, initial=True)
    match said.one_of("startingVersion", "startingTimestamp"):
        case "startingVersion":
            if said.text("startingVersion") == _LATEST:
                return Offset(table=head.table_id, version=head.version + 1)
            version = said.number("startingVersion")
            assert version is not None, "it was given"
        case "startingTimestamp":
            version = _version_at(history, said)
        case _:
            return here
    if version > head.version + 1:
        raise NotFoundError(
            f"{history.table.name} has no version {version} yet; the newest is {head.version}",
            hint="Use startingVersion=latest to read what comes from now on",
            table=history.table.name,
        )
    return Offset(table=head.table_id, version=version)


def _version_at(history: History, said: Given) -> int:
    """The first version that was committed at the time or later."""
    moment = said.moment("startingTimestamp")
    assert moment is not None, "it was given"
    try:
        before = history.table.snapshot(moment)
    except NotFoundError:
        return 0  # The table is younger.
    wanted_ms = int(moment.timestamp() * 1000)
    version = before.version if before.timestamp_ms == wanted_ms else before.version + 1
    newest = history.head().pointer.version
    if version > newest:
        raise NotFoundError(
            f"no version of {history.table.name} was committed at {moment.isoformat()} or later",
            hint="Use startingVersion=latest to read what comes from now on",
            table=history.table.name,
        )
    return version


__all__ = ["LakebedStreamReader", "StreamRequest"]
