"""Of eight writers that are killed and come again, each token is in the table exactly once."""

import random
import time
from collections import Counter
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pyarrow as pa
import pytest
from tests.crash.test_killed import PROCESSES

import lakebed

pytestmark = pytest.mark.crash

NAME = "plant.readings"
WRITER_COUNT = 8
TOKEN_COUNT = 10
KILL_COUNT = 40
PAUSE_S = (0.0, 0.12)
SEED = 20260101
SECONDS_MAX = 120


def write_all(uri: str, warehouse: Path, writer: int) -> None:
    """Send every token from the first, as one does who remembers nothing."""
    with lakebed.connect(uri, warehouse=warehouse) as catalog:
        table = catalog.table(NAME)
        for number in range(TOKEN_COUNT):
            rows = pa.table({"writer": [writer, writer], "number": [number, number]})
            table.append(rows, token=(f"writer-{writer}", number))


def start(uri: str, warehouse: Path, writer: int) -> ForkServerProcess:
    process = PROCESSES.Process(target=write_all, args=(uri, warehouse, writer))
    process.start()
    return process


def contend(uri: str, warehouse: Path) -> int:
    """Let them write and be killed; return how many were killed before they were done."""
    chance = random.Random(SEED)
    writers = [start(uri, warehouse, number) for number in range(WRITER_COUNT)]
    interrupted = 0
    for _ in range(KILL_COUNT):
        time.sleep(chance.uniform(*PAUSE_S))
        victim = chance.randrange(WRITER_COUNT)
        if writers[victim].exitcode is None:
            writers[victim].kill()
            writers[victim].join()
            interrupted += 1
            writers[victim] = start(uri, warehouse, victim)
    for writer in writers:
        writer.join(SECONDS_MAX)
        assert writer.exitcode == 0
    return interrupted


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_each_token_is_in_the_table_exactly_once(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    if kind == "postgres":
        uri = request.getfixturevalue("postgres_uri")
    with lakebed.connect(uri, warehouse=tmp_path) as catalog:
        schema = pa.schema([("writer", pa.int64()), ("number", pa.int64())])
        table = catalog.create_table(NAME, schema)
        assert contend(uri, tmp_path) > 0, "nobody was killed in its work"
        found = Counter(
            (row["writer"], row["number"]) for row in table.scan().to_arrow().to_pylist()
        )
        expected = {(w, n): 2 for w in range(WRITER_COUNT) for n in range(TOKEN_COUNT)}
        assert found == expected
        assert table.version == WRITER_COUNT * TOKEN_COUNT
        assert catalog.doctor(NAME).problems == ()
