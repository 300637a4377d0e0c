"""Files as they arrive: run examples/pipeline-files.toml twice, with new files in between.

    python examples/pipeline_files.py

The same as `lakebed run examples/pipeline-files.toml --available-now`, from Python.
"""

import tempfile
from dataclasses import replace
from pathlib import Path

import lakebed
from lakebed import spark as lake
from lakebed.flow.flow import Trigger, TriggerKind
from lakebed.flow.placing import anchored, on_catalog
from lakebed.flow.toml import parse_flow

TEXT = (Path(__file__).resolve().parent / "pipeline-files.toml").read_text()


def arrive(place: Path, minute: int) -> None:
    """A file of one minute: three sensors, one reading in ten seconds, and one that is wrong."""
    lines = ["ts,sensor_id,value"]
    for second in range(0, 60, 10):
        ts = f"2026-01-01T00:{minute:02d}:{second:02d}Z"
        lines += [f"{ts},sensor-{n},{20 + n + second / 100}" for n in range(3)]
    lines.append(f"2026-01-01T00:{minute:02d}:59Z,sensor-0,9999")
    # Written elsewhere and moved: a pipeline must not see half a file.
    whole = place / f"minute-{minute:02d}.csv"
    whole.write_text("\n".join(lines) + "\n")
    whole.rename(place / "incoming" / whole.name)


def main() -> None:
    """Ten files, a run; ten more, another run."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        (place / "incoming").mkdir()
        catalog = f"sqlite:///{place}/catalog.db"
        flow = on_catalog(anchored(parse_flow(TEXT), place), catalog)
        flow = replace(flow, trigger=Trigger(TriggerKind.AVAILABLE_NOW))
        spark = lake.session("local[2]")
        for minutes in (range(10), range(10, 20)):
            for minute in minutes:
                arrive(place, minute)
            report = lake.run(flow, spark)
            print(f"{report.rows_in} rows in, {report.commits} commits: {dict(report.versions)}")
        spark.stop()
        tables = lakebed.connect(catalog)
        readings, means = tables.table("plant.readings"), tables.table("plant.minutes")
        print(f"{readings.scan().count()} good readings, {means.scan().count()} finished minutes")
        first = means.scan("minute < '2026-01-01 00:03:00'").to_arrow().sort_by("minute")
        for row in first.to_pylist():
            print(f"  {row['minute']:%H:%M}  {row['sensor_id']}  {row['mean']:.2f}")


if __name__ == "__main__":
    main()
