"""The rows of all benchmarks: a thousand sensors, one reading each millisecond."""

import numpy as np
import pyarrow as pa

SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("sensor_id", pa.string()),
        ("value", pa.float64()),
        ("status", pa.int32()),
    ]
)
ROW_COUNT = 10_000
SENSOR_COUNT = 1_000
START_US = 1_767_225_600_000_000  # 2026-01-01 UTC
_STEP_US = 1_000
_NAMES = pa.array([f"sensor-{number:04d}" for number in range(SENSOR_COUNT)])


def rows(number: int, count: int = ROW_COUNT) -> pa.Table:
    """The batch of that number; the same each time it is asked for."""
    random = np.random.default_rng(number)
    first = START_US + number * count * _STEP_US
    ts = first + np.arange(count, dtype=np.int64) * _STEP_US
    columns = [
        pa.array(ts).view(pa.timestamp("us", "UTC")),
        _NAMES.take(pa.array(random.integers(0, SENSOR_COUNT, count))),
        pa.array(np.round(random.normal(20, 5, count), 2)),
        pa.array(random.integers(0, 4, count), pa.int32()),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)
