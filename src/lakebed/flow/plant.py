"""The simulated plant, computed without an engine: which rows arrive, one by one.

    second a of the plant's time:   |  S readings of now  |  L late ones  |  D repeats  |

Arrivals are numbered; a number alone decides its row, so any engine can make any range of them,
in any order and as often as it likes, and the rows are the same. All of it is arithmetic on whole
numbers. `lakebed.spark.pipeline_sources` says it once more in SQL; a test holds the two together.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from lakebed.flow.sources import SensorSource

if TYPE_CHECKING:
    import pyarrow as pa

REPEAT_SECONDS = 5  # how long after a reading its duplicate is sent
_NAME_DIGITS_MIN = 4


def late_lanes(plant: SensorSource) -> int:
    """How many readings of each second come late."""
    return plant.sensors // plant.late_every if plant.late_every else 0


def repeat_lanes(plant: SensorSource) -> int:
    """How many readings of each second come twice."""
    return plant.sensors // plant.duplicate_every if plant.duplicate_every else 0


def slots_per_second(plant: SensorSource) -> int:
    """How many numbers one second of the plant takes; some of them have no row."""
    return plant.sensors + late_lanes(plant) + repeat_lanes(plant)


def name_digits(plant: SensorSource) -> int:
    """How many digits the number in a sensor's name has."""
    return max(_NAME_DIGITS_MIN, len(str(plant.sensors - 1)))


def arrivals(plant: SensorSource, first_second: int, last_second: int) -> "pa.Table":
    """The rows that arrive in the seconds from `first_second` to before `last_second`.

    Columns: ts, sensor_id, value, status, arrived_at.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    width = slots_per_second(plant)
    number = np.arange(first_second * width, last_second * width, dtype=np.int64)
    now, slot = number // width, number % width
    second, sensor = _reading(plant, now, slot)
    exists = _exists(plant, slot, second, sensor)
    now, second, sensor = now[exists], second[exists], sensor[exists]
    milli, noise = _milli(plant, second, sensor)
    instant = pa.timestamp("us", tz="UTC")
    ts = (plant.start_ms + second * 1_000 + sensor * 997 % 1_000) * 1_000
    arrived = (plant.start_ms + (now + 1) * 1_000) * 1_000
    digits = pc.utf8_lpad(pa.array(sensor).cast(pa.string()), name_digits(plant), "0")
    return pa.table(
        {
            "ts": pa.array(ts).cast(instant),
            "sensor_id": pc.binary_join_element_wise("sensor", digits, "-"),
            "value": pa.array(milli / 1_000.0),
            "status": pa.array((noise >= 1_000).astype(np.int32)),
            "arrived_at": pa.array(arrived).cast(instant),
        }
    )


def _reading(plant: SensorSource, now: Any, slot: Any) -> tuple[Any, Any]:
    """Of which second and which sensor the reading in a slot is."""
    count, late = plant.sensors, late_lanes(plant)
    late_lane, repeat_lane = slot - count, slot - count - late
    delay = 1 + (late_lane * 37 + plant.seed) % plant.delay_seconds
    is_now, is_late = slot < count, slot < count + late
    second = np.where(is_now, now, np.where(is_late, now - delay, now - REPEAT_SECONDS))
    behind = (_late_offset(plant, second) + plant.late_every * late_lane) % count
    again = (_repeat_offset(plant, second) + plant.duplicate_every * repeat_lane) % count
    return second, np.where(is_now, slot, np.where(is_late, behind, again))


def _exists(plant: SensorSource, slot: Any, second: Any, sensor: Any) -> Any:
    """Whether a slot has a row: not before the start, not held back for later, not silent."""
    exists = second >= 0
    if late_lanes(plant):
        place = (sensor - _late_offset(plant, second)) % plant.sensors
        in_lane = place // plant.late_every < late_lanes(plant)
        held_back = (place % plant.late_every == 0) & in_lane
        exists &= (slot >= plant.sensors) | ~held_back
    if plant.silent_sensor is not None:
        silent = (sensor == plant.silent_sensor) & (second >= plant.silent_from_second)
        exists &= ~silent
    return exists


def _late_offset(plant: SensorSource, second: Any) -> Any:
    return (second * 7_919 + plant.seed * 104_729) % plant.sensors


def _repeat_offset(plant: SensorSource, second: Any) -> Any:
    return (second * 6_101 + plant.seed * 15_485_863 + 13) % plant.sensors


def _milli(plant: SensorSource, second: Any, sensor: Any) -> tuple[Any, Any]:
    """A value in thousandths, an hourly swing with noise on it; and the noise alone."""
    phase = (second + sensor * 7) % 3_600
    half = phase % 1_800
    arc = half * (1_800 - half) // 270
    mixed = second * 31 + sensor * 17 + plant.seed
    folded = mixed % 10_007
    noise = (folded * folded * 7_919 + mixed) % 1_009
    swing = np.where(phase < 1_800, arc, -arc)
    return 20_000 + sensor % 50 * 200 + swing + noise, noise
