"""A flow: sources, named SELECTs over them, and the tables that take the rows.

    source ──┐
             ├─> transform ─> transform ──┬─> sink (a table)
    source ──┘                            └─> sink (another)

The value knows no engine: a TOML file becomes one, SQL will, and `lakebed.spark.pipeline` runs
it. A flow that exists is sound as far as that can be told without opening anything.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum

from lakebed.errors import RequestError
from lakebed.flow.sources import Source
from lakebed.format.schema import check_table_name

PREVIOUS = "previous"  # how SQL calls the rows of the step before
_STEP_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_FLOW_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


class TriggerKind(StrEnum):
    """When a batch begins."""

    CONTINUOUS = "continuous"  # as soon as the one before is done
    INTERVAL = "interval"  # so often, if there is something new
    AVAILABLE_NOW = "available now"  # until all that is there now is done; then stop
    ONCE = "once"  # one batch; then stop


@dataclass(frozen=True, slots=True)
class Trigger:
    """When batches begin, and whether the flow ends by itself."""

    kind: TriggerKind = TriggerKind.CONTINUOUS
    interval_ms: int = 0

    def __post_init__(self) -> None:
        if (self.kind is TriggerKind.INTERVAL) != (self.interval_ms > 0):
            raise RequestError("a trigger by interval has a length of time, and no other has")


@dataclass(frozen=True, slots=True, kw_only=True)
class Transform:
    """A step: a SELECT over sources and steps before it, or the first row of each key.

    `unique_by` needs a watermark: a repeat that comes later than its delay is a new row.
    """

    name: str
    sql: str = ""
    unique_by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if bool(self.sql.strip()) == bool(self.unique_by):
            raise RequestError(
                f"the transform {self.name!r} must have either sql or unique_by",
                hint='Write sql = "select … from source", or unique_by = ["sensor_id", "ts"]',
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """A table that takes the rows of one step, each batch in one commit."""

    table: str
    input: str = ""  # the step; the last one if empty
    catalog: str = ""  # the flow's if empty
    warehouse: str = ""
    create: bool = True  # make the table if it is not there
    partition_by: tuple[str, ...] = ()
    merge_schema: bool = False  # let new columns into the table

    def __post_init__(self) -> None:
        check_table_name(self.table)
        if self.partition_by and not self.create:
            raise RequestError(
                f"{self.table}: partition_by is for a table that is made, and create is false",
                hint="Leave partition_by out; `lakebed evolve --partition-by` changes a table",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """A pipeline as one value; `engine` holds settings that only the engine understands."""

    name: str
    sources: tuple[Source, ...]
    sinks: tuple[Sink, ...]
    checkpoint: str
    transforms: tuple[Transform, ...] = ()
    trigger: Trigger = Trigger()
    catalog: str = ""
    warehouse: str = ""
    storage_options: Mapping[str, str] = field(default_factory=dict)
    engine: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _FLOW_NAME.fullmatch(self.name):
            raise RequestError(
                f"{self.name!r} cannot be the name of a pipeline",
                hint="Use letters, digits, '_', '-' and '.', as in plant-readings",
            )
        if not self.checkpoint:
            raise RequestError(
                "a pipeline needs a checkpoint",
                hint="Name a directory in which it remembers how far it came",
            )
        _check_steps(self)
        _check_sinks(self)

    @property
    def steps(self) -> list[str]:
        """The names of sources and transforms, in order."""
        return [each.name for each in self.sources] + [each.name for each in self.transforms]

    @property
    def last_step(self) -> str:
        """The step whose rows a sink takes if it names none."""
        return self.steps[-1]

    def sinks_by_step(self) -> dict[str, tuple[Sink, ...]]:
        """The steps that reach a table: each is one stream, whatever the number of its sinks."""
        found: dict[str, tuple[Sink, ...]] = {}
        for sink in self.sinks:
            step = sink.input or self.last_step
            found[step] = (*found.get(step, ()), sink)
        return found


def nearest(name: str, known: Iterable[str]) -> str:
    """` (did you mean …?)` if something like the name is known."""
    close = get_close_matches(name.lower(), {each.lower(): each for each in known}, n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _check_steps(flow: Flow) -> None:
    if not flow.sources:
        raise RequestError("a pipeline needs a source")
    if not any(source.follows for source in flow.sources):
        raise RequestError(
            "no source of the pipeline brings new rows",
            hint="A table with follow = false can only be joined to a source that goes on",
        )
    seen: set[str] = set()
    for name in flow.steps:
        folded = name.lower()
        if not _STEP_NAME.fullmatch(name) or folded == PREVIOUS:
            raise RequestError(
                f"{name!r} cannot be the name of a source or transform",
                hint="SQL uses it: letters, digits and '_', not 'previous', which is the step "
                "before",
            )
        if folded in seen:
            raise RequestError(
                f"two steps of the pipeline are called {name!r}",
                hint="Give each source and transform a name of its own",
            )
        seen.add(folded)
    unique = [step.name for step in flow.transforms if step.unique_by]
    if unique and not any(source.watermark for source in flow.sources):
        raise RequestError(
            f"the transform {unique[0]!r} has unique_by, and no source has a watermark",
            hint='Say how long to remember rows: watermark = { column = "ts", delay = "1 hour" }',
        )


def _check_sinks(flow: Flow) -> None:
    if not flow.sinks:
        raise RequestError("a pipeline needs a sink", hint="Name the table that takes the rows")
    steps = flow.steps
    if not flow.transforms and len(flow.sources) > 1 and not all(s.input for s in flow.sinks):
        raise RequestError(
            "the pipeline has several sources and no transform, so a sink must name its input",
            hint=f"Write input = one of: {', '.join(steps)}",
        )
    for sink in flow.sinks:
        if sink.input and sink.input not in steps:
            raise RequestError(
                f"the sink {sink.table} takes the rows of {sink.input!r}, which is no step"
                + nearest(sink.input, steps),
                hint=f"The steps are: {', '.join(steps)}",
            )
    for step, sinks in flow.sinks_by_step().items():
        tables = [(sink.catalog or flow.catalog, sink.table) for sink in sinks]
        if len(set(tables)) < len(tables):
            raise RequestError(
                f"two sinks put the rows of {step!r} into the same table",
                hint="Each row would be there twice: leave one out",
            )
