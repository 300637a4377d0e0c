"""Where rows come from: files as they arrive, Kafka, a clock, a simulated plant, another table.

Each source is a value with a name by which SQL calls its rows. Nothing here opens anything.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from lakebed.errors import RequestError
from lakebed.format.schema import Schema, check_table_name
from lakebed.limits import TIME_MS_MAX

_SENSOR_COUNT_MAX = 1_000_000
_START_MS = 1_767_225_600_000  # 2026-01-01
_DELAY_SECONDS_MAX = 3_600


class FileFormat(StrEnum):
    """What files hold."""

    CSV = "csv"
    JSON = "json"  # one object per line
    PARQUET = "parquet"


class KafkaFormat(StrEnum):
    """What a message's value holds."""

    JSON = "json"  # an object, whose columns `schema` names
    RAW = "raw"  # bytes: the columns are those of Kafka (key, value, topic, …)


class KafkaStart(StrEnum):
    """Where a new pipeline begins; one that goes on knows where it was."""

    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Watermark:
    """How late a row may be by the time in `column`; aggregates wait that long for it."""

    column: str
    delay_ms: int

    def __post_init__(self) -> None:
        _need(bool(self.column), "a watermark names a column")
        _need(self.delay_ms >= 0, "a watermark's delay is not negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What all sources share; `options` go to the engine as they are."""

    name: str = "source"
    watermark: Watermark | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def follows(self) -> bool:
        """Whether new rows keep coming; a source that does not is read once, at the start."""
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSource(Source):
    """Files that appear in a directory, each read once; without a schema, `sample` tells it."""

    path: str
    format: FileFormat
    schema: Schema | None = None
    sample: str = ""  # a file or directory to learn the columns from; what is in `path` if empty
    files_per_batch: int | None = None

    def __post_init__(self) -> None:
        _need(bool(self.path), "a source of files names a path")
        _need(not (self.schema and self.sample), "with a schema there is nothing to learn: sample")
        _positive("files_per_batch", self.files_per_batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSource(Source):
    """Messages of a topic; `topic` may name several, separated by commas."""

    servers: str
    topic: str
    format: KafkaFormat = KafkaFormat.JSON
    schema: Schema | None = None
    starting: KafkaStart = KafkaStart.EARLIEST
    rows_per_batch: int | None = None

    def __post_init__(self) -> None:
        _need(bool(self.servers and self.topic), "a source of Kafka names servers and a topic")
        is_json = self.format is KafkaFormat.JSON
        _need(is_json == (self.schema is not None), "json has a schema, and raw has none")
        _positive("rows_per_batch", self.rows_per_batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class RateSource(Source):
    """A clock: rows of (timestamp, value), so many each second."""

    rows_per_second: int = 1

    def __post_init__(self) -> None:
        _positive("rows_per_second", self.rows_per_second)


@dataclass(frozen=True, slots=True, kw_only=True)
class SensorSource(Source):
    """A simulated plant: each sensor reads once a second of the plant's own time.

    The same values give the same rows, also after a restart: `lakebed.flow.plant` computes them
    without any engine. One reading in `late_every` comes up to `delay_seconds` late, one in
    `duplicate_every` comes twice (0: none), and one sensor falls silent.
    """

    sensors: int = 1_000
    seed: int = 0
    start_ms: int = _START_MS
    seconds: int | None = None  # how long the plant runs; None: it never ends
    seconds_per_batch: int = 60
    late_every: int = 100
    delay_seconds: int = 90
    duplicate_every: int = 200
    silent_sensor: int | None = None
    silent_from_second: int = 0

    def __post_init__(self) -> None:
        for name in ("sensors", "seconds", "seconds_per_batch", "delay_seconds"):
            _positive(name, getattr(self, name))
        for name in ("seed", "late_every", "duplicate_every", "silent_from_second"):
            _need(0 <= getattr(self, name) < 1 << 31, f"{name} is a number from 0 up")
        _need(self.sensors <= _SENSOR_COUNT_MAX, f"at most {_SENSOR_COUNT_MAX:,} sensors")
        _need(self.delay_seconds <= _DELAY_SECONDS_MAX, "delay_seconds is at most an hour")
        _need(0 <= self.start_ms <= TIME_MS_MAX, "start is between 1970 and 9999")
        if self.silent_sensor is not None:
            _need(0 <= self.silent_sensor < self.sensors, "silent_sensor is the number of a sensor")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSource(Source):
    """Another table: followed commit by commit, or with `follow = false` read once as it is."""

    table: str
    catalog: str = ""
    warehouse: str = ""
    follow: bool = True
    starting_version: int | None = None  # None: all rows that are there, then what is new
    files_per_batch: int | None = None

    def __post_init__(self) -> None:
        check_table_name(self.table)
        _positive("files_per_batch", self.files_per_batch)
        _need((self.starting_version or 0) >= 0, "starting_version is a version")
        _need(self.follow or self.starting_version is None, "a table read once has no start")

    @property
    def follows(self) -> bool:
        """Whether its commits are followed."""
        return self.follow


def _positive(name: str, number: int | None) -> None:
    _need(number is None or 0 < number < 1 << 31, f"{name} is a number above 0")


def _need(is_so: bool, rule: str) -> None:  # noqa: FBT001 (a condition and its words)
    if not is_so:
        raise RequestError(rule)
