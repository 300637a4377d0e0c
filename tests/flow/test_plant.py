"""The plant's rows are decided by their number: each reading comes once, but for the repeats."""

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st

from lakebed.flow.plant import arrivals, slots_per_second
from lakebed.flow.sources import SensorSource

plants = st.builds(
    SensorSource,
    sensors=st.integers(1, 40),
    seed=st.integers(0, 1_000),
    late_every=st.sampled_from([0, 1, 3, 10]),
    delay_seconds=st.integers(1, 9),
    duplicate_every=st.sampled_from([0, 1, 7]),
)
SECONDS = 30


@settings(max_examples=50)
@given(plants)
def test_each_reading_comes_and_only_repeats_come_twice(plant: SensorSource) -> None:
    rows = arrivals(plant, 0, SECONDS)
    seen = rows.group_by(["sensor_id", "ts"]).aggregate([("value", "count")])
    repeats = plant.sensors // plant.duplicate_every if plant.duplicate_every else 0
    assert set(seen["value_count"].to_pylist()) <= {1, 2}
    assert rows.num_rows - seen.num_rows <= repeats * SECONDS
    # What was read long enough ago has arrived, from every sensor and for every second.
    settled_ms = plant.start_ms + (SECONDS - plant.delay_seconds - 1) * 1_000
    old = seen.filter(pc.less(seen["ts"].cast("int64"), settled_ms * 1_000))
    assert old.num_rows == plant.sensors * (SECONDS - plant.delay_seconds - 1)


@settings(max_examples=50)
@given(plants, st.integers(1, SECONDS - 1))
def test_rows_do_not_depend_on_how_they_are_cut(plant: SensorSource, cut: int) -> None:
    whole = arrivals(plant, 0, SECONDS)
    parts = [arrivals(plant, 0, cut), arrivals(plant, cut, SECONDS)]
    assert whole.equals(pa.concat_tables(parts))


def test_the_default_plant_has_late_rows_and_repeats_and_a_sensor_falls_silent() -> None:
    plant = SensorSource(silent_sensor=17, silent_from_second=60)
    assert slots_per_second(plant) == 1_015
    rows = arrivals(plant, 0, 300)
    lateness = pc.subtract(rows["arrived_at"], rows["ts"]).cast("int64")
    assert pc.sum(pc.greater(lateness, 10_000_000)).as_py() > 1_000
    assert pc.max(lateness).as_py() <= 91_000_000
    silent = rows.filter(pc.equal(rows["sensor_id"], "sensor-0017"))
    assert len(pc.unique(silent["ts"])) == 60
    assert len(pc.unique(rows["sensor_id"])) == 1_000


def test_another_seed_gives_other_rows() -> None:
    first, second = (arrivals(SensorSource(seed=seed), 0, 3) for seed in (1, 2))
    assert first["value"].to_pylist() != second["value"].to_pylist()
