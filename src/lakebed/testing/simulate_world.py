"""The world of one history: a store, a catalog, and clients that open them through faults."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import pyarrow as pa

from lakebed.catalog.backend import CatalogBackend
from lakebed.catalog.memory import MemoryCatalog
from lakebed.catalog.store import StoreCatalog
from lakebed.commit.policy import RetryPolicy
from lakebed.errors import CommitUnknownError
from lakebed.format.datafile import ColumnStats, DataFile
from lakebed.format.paths import data_path
from lakebed.format.pointer import Move
from lakebed.limits import TAIL_FILE_COUNT_MAX, TIER_FANOUT
from lakebed.storage.memory import MemoryStore
from lakebed.table.catalog import Catalog
from lakebed.testing.faults import Faults
from lakebed.testing.faults_catalog import FaultyCatalog, Line
from lakebed.testing.faults_store import FaultyStore
from lakebed.testing.history import Ending, History, Row
from lakebed.testing.oracle_chain import read_chain, read_rows, write_rows
from lakebed.testing.scheduler import Policy, PriorityChange, RandomWalk, Scheduler, Workers
from lakebed.testing.scheduler_clock import SimulatedClock, SimulatedIds, serial_of
from lakebed.testing.simulate_setting import KEYS, TABLES, Backend, Beginning, Setting

SCHEMA = pa.schema([(name, pa.int64()) for name in Row._fields])
_START_MS = 10_000.0
_STEP_COUNT_TYPICAL = 150
_DATA_SIZE_BYTES_MAX = 1 << 20


class Process:
    """One actor's process: its clock and ids; what it opened is lost when it crashes."""

    def __init__(self, world: "World", name: str) -> None:
        self.name = name
        self.incarnation = 0
        self.clock = SimulatedClock(world.scheduler, world.faults.pause)
        self.ids = SimulatedIds(self.clock, world.chance)
        world.faults.clocks[name] = self.clock


class World:
    """Everything that the actors of one history share."""

    def __init__(
        self, seed: int, setting: Setting, workers: Workers, policy: Policy | None = None
    ) -> None:
        self.setting = setting
        self.chance = random.Random(seed)
        self.scheduler = Scheduler(
            policy=policy or _policy(setting, self.chance), workers=workers, chance=self.chance
        )
        self.faults = Faults(self.scheduler, self.chance, setting.rates)
        self.history = History(is_serializable=setting.is_serializable)
        self.unknown: dict[int, CommitUnknownError] = {}  # by serial: errors yet to be resolved
        self.line = Line(holds=setting.holds_line)
        self.store = MemoryStore("simulated", clock=SimulatedClock(self.scheduler, _no_sleep))
        self.shared = MemoryCatalog(queues=False)
        start = _start(
            setting.backend,
            setting.beginning,
            is_partitioned=setting.is_partitioned,
            is_serializable=setting.is_serializable,
        )
        for path, content in start.objects.items():
            self.store.create(path, content)
        for moves in start.moves:
            self.shared.restore(moves)
        self.scheduler.now_ms = _START_MS  # what was there before is old

    def open(self, process: Process) -> Catalog:
        """Open the catalog as one process sees it."""
        store = FaultyStore(self.store, self.faults)
        policy = RetryPolicy(
            attempt_count_max=self.setting.attempt_count_max,
            answer_count_max=self.setting.answer_count_max,
        )
        return Catalog(
            self._backend(process, store),
            store,
            clock=process.clock,
            ids=process.ids,
            policy=policy,
        )

    def stand_in(self, process: Process, rows: Iterable[Row]) -> tuple[DataFile, bytes]:
        """A small data file that holds these rows, all of one key."""
        return _stand_in(process.ids, tuple(rows), is_partitioned=self.setting.is_partitioned)

    def put(self, table: str, file: DataFile, content: bytes) -> None:
        """Store a data file through the faults."""
        FaultyStore(self.store, self.faults).create(f"{table}/{file.path}", content)

    def rows_of(self, table: str, files: Iterable[str]) -> frozenset[Row]:
        """What data files hold; no faults, since this is the simulator's own knowledge."""
        return frozenset(row for path in files for row in read_rows(self._data(table, path)))

    def ending(self, told: dict[str, list[tuple[int, str]]]) -> Ending:
        """Everything that is there when all is over, and what the product told of it."""
        infos = list(self.store.list())
        objects = {info.path: self.store.read(info.path, size_bytes_max=1 << 30) for info in infos}
        chains, heads, rows = {}, {}, {}
        backend = self._backend(Process(self, "end"), FaultyStore(self.store, self.faults))
        for table in told:
            head = backend.load(table)
            heads[table] = head.version, head.commit_id
            paths = self._snapshot_paths(table, list(objects))
            chains[table] = read_chain(objects, head.location, paths, serial_of)
            for path in {path for link in chains[table] for path in link.files}:
                content = objects.get(f"{head.location}/{path}")
                if content is not None:
                    rows[path] = read_rows(content)
        return Ending(chains=chains, rows=rows, present=frozenset(objects), heads=heads, told=told)

    def _backend(self, process: Process, store: FaultyStore) -> CatalogBackend:
        if self.setting.backend is Backend.MEMORY:
            return FaultyCatalog(self.shared, self.faults, self.line)
        return StoreCatalog(store, process.ids, process.clock, probes=False)

    def _snapshot_paths(self, table: str, objects: Sequence[str]) -> list[str]:
        """The chain by the catalog, or by the names of files where those are the catalog."""
        if self.setting.backend is Backend.MEMORY:
            pointers = self.shared.history(self.shared.load(table))
            return [pointer.snapshot_path for pointer in pointers][::-1]
        prefix = f"{table}/"
        below = sorted(path.removeprefix(prefix) for path in objects if path.startswith(prefix))
        return [path for path in below if path.startswith("metadata/snap-")]

    def _data(self, table: str, path: str) -> bytes:
        return self.store.read(f"{table}/{path}", size_bytes_max=_DATA_SIZE_BYTES_MAX)


@dataclass(frozen=True, slots=True)
class _Start:
    """The state before a history: made once, copied for each."""

    objects: dict[str, bytes]
    moves: tuple[tuple[Move, ...], ...]  # per table


class _RecordingCatalog(MemoryCatalog):
    """Remembers the moves, so that `restore` can make them again."""

    def __init__(self) -> None:
        super().__init__(queues=False)
        self.moves: dict[str, list[Move]] = {}

    def create(self, move: Move) -> None:
        super().create(move)
        self.moves[move.new.name] = [move]

    def swap(self, moves: Sequence[Move]) -> bool:
        for move in moves:
            self.moves[move.new.name].append(move)
        return super().swap(moves)


@cache
def _start(
    backend: Backend,
    beginning: Beginning,
    *,
    is_partitioned: bool,
    is_serializable: bool,
) -> _Start:
    chance = random.Random(f"{backend} {beginning} {is_partitioned} {is_serializable}")
    scheduler = Scheduler(policy=RandomWalk(chance), workers=Workers(), chance=chance)
    clock = SimulatedClock(scheduler, _no_sleep)
    ids = SimulatedIds(clock, chance)
    store = MemoryStore("simulated", clock=clock)
    recorder = _RecordingCatalog()
    in_store = StoreCatalog(store, ids, clock, probes=False)
    catalog = Catalog(
        recorder if backend is Backend.MEMORY else in_store, store, clock=clock, ids=ids
    )
    for name in TABLES:
        table = catalog.create_table(
            name,
            SCHEMA,
            partition_by=["key"] if is_partitioned else [],
            properties={"commit.isolation-level": "serializable"} if is_serializable else {},
        )
        number = 0
        for count in _commits(beginning):
            files = []
            for _ in range(count):
                number += 1
                row = Row(KEYS[number % len(KEYS)], 0, number)
                file, content = _stand_in(ids, (row,), is_partitioned=is_partitioned)
                store.create(f"{name}/{file.path}", content)
                files.append(file)
            table.commit_append(files, verify=False)
    objects = {info.path: store.read(info.path, size_bytes_max=1 << 30) for info in store.list()}
    return _Start(objects, tuple(tuple(moves) for moves in recorder.moves.values()))


def _commits(beginning: Beginning) -> list[int]:
    """How many files each commit before the history adds."""
    match beginning:
        case Beginning.EMPTY:
            return []
        case Beginning.FEW:
            return [len(KEYS)]
        case Beginning.EDGE:
            return [TAIL_FILE_COUNT_MAX]
        case Beginning.DEEP:
            return [TAIL_FILE_COUNT_MAX + 1] * (TIER_FANOUT - 1) + [TAIL_FILE_COUNT_MAX]


def _stand_in(
    ids: SimulatedIds, rows: tuple[Row, ...], *, is_partitioned: bool
) -> tuple[DataFile, bytes]:
    content = write_rows(rows)
    key = rows[0].key
    assert all(row.key == key for row in rows), "a stand-in is wholly inside or outside a predicate"
    file = DataFile(
        path=data_path(ids.new()),
        row_count=len(rows),
        size_bytes=len(content),
        partition=(key,) if is_partitioned else (),
        stats={1: ColumnStats(null_count=0, lower=key, upper=key)},
    )
    return file, content


def _policy(setting: Setting, chance: random.Random) -> Policy:
    if setting.walks:
        return RandomWalk(chance)
    change_count = chance.randrange(1, 6)
    return PriorityChange(chance, change_count=change_count, step_count=_STEP_COUNT_TYPICAL)


def _no_sleep(duration_ms: float) -> None:
    """For clocks that nobody waits by."""
