"""The page that `make demo` leaves behind: one file without scripts, light or dark."""

from datetime import UTC, datetime
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np
from demo_charts import Plot, nice_ticks, short

STYLE = """
:root { color-scheme: light dark;
  --paper: #fbfaf7; --card: #ffffff; --ink: #1d2733; --soft: #66727f; --line: #e5e2da;
  --sea: #1f7a8c; --sea-soft: #1f7a8c22; --sand: #c98a2b; --red: #c5383a; --red-soft: #c5383a14;
  --leaf: #2f8f6b; }
@media (prefers-color-scheme: dark) { :root {
  --paper: #10161c; --card: #18212a; --ink: #e6ebef; --soft: #93a1ae; --line: #2a3641;
  --sea: #4fb3c6; --sea-soft: #4fb3c622; --sand: #e0a94f; --red: #ef6f6c; --red-soft: #ef6f6c1c;
  --leaf: #57bd94; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 48px 24px 64px; }
h1 { font-size: 2.3rem; line-height: 1.15; letter-spacing: -0.02em; margin: 0 0 12px; }
h2 { font-size: 1.15rem; margin: 0 0 2px; }
p { margin: 0 0 10px; max-width: 46rem; }
.lead { font-size: 1.08rem; color: var(--soft); }
.lead b { color: var(--ink); font-weight: 600; }
.tiles { display: grid; gap: 12px; margin: 28px 0;
  grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 12px;
  padding: 14px 16px; }
.tile b { display: block; font-size: 1.55rem; letter-spacing: -0.01em;
  font-variant-numeric: tabular-nums; }
.tile span { color: var(--soft); font-size: 0.86rem; }
.tile.good b { color: var(--leaf); } .tile.bad b { color: var(--red); }
figure { background: var(--card); border: 1px solid var(--line); border-radius: 14px;
  margin: 0 0 18px; padding: 20px 22px 14px; }
figcaption { color: var(--soft); font-size: 0.92rem; margin-bottom: 12px; max-width: 52rem; }
svg { display: block; width: 100%; height: auto; overflow: visible; }
svg text { font: 11.5px system-ui, sans-serif; fill: var(--soft);
  font-variant-numeric: tabular-nums; }
svg .label { fill: var(--soft); font-size: 11.5px; }
svg .note { fill: var(--ink); font-size: 12.5px; font-weight: 600; }
.axis { stroke: var(--soft); stroke-width: 1; opacity: .55; }
.grid { stroke: var(--line); stroke-width: 1; }
.bar { fill: var(--sea); } .bar:hover, .dot:hover { fill: var(--sand); }
.sea { fill: none; stroke: var(--sea); stroke-width: 2; } .sea-area { fill: var(--sea-soft); }
.sand { fill: none; stroke: var(--sand); stroke-width: 2; }
.dot { fill: var(--sea); } .dot-sand { fill: var(--sand); }
.kill { stroke: var(--red); stroke-width: 1.6; stroke-dasharray: 4 3; }
svg .kill-text { fill: var(--red); font-weight: 600; }
.dead { fill: var(--red-soft); }
.merge { stroke: var(--sand); stroke-width: 1.4; stroke-dasharray: 4 3; }
svg .merge-text { fill: var(--sand); font-weight: 600; }
.full { fill: var(--leaf); opacity: .82; }
.hole { fill: var(--card); }
.midnight { stroke: var(--card); stroke-width: 1.5; opacity: .8; }
svg .midnight-text { fill: var(--card); font-weight: 600; }
.frame { fill: none; stroke: var(--ink); stroke-width: 1.3; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td, th { padding: 5px 22px 5px 0; text-align: right; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 500; font-size: 0.88rem; }
td:first-child, th:first-child { text-align: left; }
@media (min-width: 760px) { .pair { display: grid; grid-template-columns: 1fr 1fr; gap: 18px; } }
footer { color: var(--soft); font-size: 0.88rem; margin-top: 28px; }
"""


def page(facts: dict[str, Any]) -> str:
    """The whole report."""
    version = facts["killed_version"]
    before, after = facts["compacted"]
    plant = facts["plant"]
    lead = (
        f"{plant.sensors:,} sensors streamed <b>{facts['sent']:,} rows</b> through Spark into one "
        f"table. In the middle of a batch, at version {version}, the job was killed with "
        f"<b>kill -9</b> and started again. Then every reading was compared with what the plant "
        f"had sent: <b>none is missing, none is there twice</b>."
    )
    tiles = [
        ("good", f"{facts['rows']:,}", "readings in the table, each exactly once"),
        ("", f"{facts['repeats']:,}", "sent twice, kept once"),
        ("", f"{facts['late']:,}", f"came late, by up to {plant.delay_seconds} s"),
        ("bad", f"v{version}", "killed here; the next batch came again"),
        ("", f"{before} → {after}", "files, after compaction"),
        ("", f"{facts['seconds']:.0f} s", "for the whole story, on this machine"),
    ]
    figures = [
        ("Ingest", INGEST, ingest(facts)),
        ("Commits", COMMITS, commits(facts)),
        ("Files", FILES, files(facts)),
        ("Coverage", coverage_words(facts), coverage(facts)),
    ]
    body = "".join(
        f"<figure><h2>{escape(name)}</h2><figcaption>{words}</figcaption>{picture}</figure>"
        for name, words, picture in figures
    )
    made = datetime.fromtimestamp(facts["history"][-1]["time_ms"] / 1_000, UTC)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Lakebed: every reading, exactly once</title><style>{STYLE}</style></head><body>"
        f'<main><h1>Every reading, exactly once</h1><p class="lead">{lead}</p>'
        f'<div class="tiles">{"".join(_tile(*each) for each in tiles)}</div>{body}'
        f"<figure><h2>By day</h2><figcaption>Summarised by Spark, written back as the table "
        f"plant.daily.</figcaption>{_daily(facts['daily'])}</figure>"
        f"<footer>Made by <code>make demo</code> on {made:%Y-%m-%d %H:%M} UTC. Times of the plant "
        f"are simulated; rates, sizes and durations were measured.</footer></main></body></html>\n"
    )


INGEST = (
    "Rows per second, one bar for each batch, as wide as the batch took. The first batches of a "
    "process wait for the JVM to warm up. Shaded: killed, and not yet running again."
)
COMMITS = "Rows in the table. Each dot is a commit: all rows of a batch become visible at once."
FILES = (
    "A stream makes small files. At the end they are rewritten into a few large ones, sorted by "
    "sensor; every version before that can still be read."
)


def ingest(facts: dict[str, Any]) -> str:
    """Rows per second over the time of this machine."""
    batches, zero = facts["batches"], _zero(facts)
    end = (batches[-1]["time_ms"] - zero) / 1_000
    high = max(each["rows_per_second"] for each in batches)
    plot = Plot(x=(0, end), y=(0, high * 1.12), title="Ingested rows per second")
    plot.axis_y(nice_ticks(0, high * 1.1, 4), short, "rows per second")
    plot.axis_x(nice_ticks(0, end, 8), lambda at: f"{at:g} s")
    _shade_restart(plot, facts, zero, high * 1.12)
    for each in batches:
        done = (each["time_ms"] - zero) / 1_000
        start = max(done - each["lag_ms"] / 1_000, 0)
        hint = f"batch {each['batch']}: {each['rows_in']:,} rows in {each['lag_ms'] / 1000:.2f} s"
        plot.rect((start, done), (0, each["rows_per_second"]), "bar", hint=hint, gap=0.8)
    plot.upright((facts["killed_ms"] - zero) / 1_000, "kill", "kill -9")
    return plot.svg()


def commits(facts: dict[str, Any]) -> str:
    """Rows in the table over the time of this machine."""
    zero = _zero(facts)
    made = [each for each in facts["history"] if each["operation"] == "append"]
    points = [((each["time_ms"] - zero) / 1_000, each["rows"]) for each in made]
    end, high = points[-1][0], points[-1][1]
    plot = Plot(x=(0, end), y=(0, high * 1.08), title="Rows in the table over time")
    plot.axis_y(nice_ticks(0, high * 1.08, 4), short, "rows")
    plot.axis_x(nice_ticks(0, end, 8), lambda at: f"{at:g} s")
    _shade_restart(plot, facts, zero, high * 1.08)
    plot.steps([(0, 0), *points], "sea", fill="sea-area")
    for each, (at, rows) in zip(made, points, strict=True):
        plot.dot(at, rows, "dot", hint=f"version {each['version']}: {rows:,} rows", radius=3)
    plot.upright(
        (facts["killed_ms"] - zero) / 1_000,
        "kill",
        f"kill -9, at version {facts['killed_version']}",
    )
    return plot.svg()


def files(facts: dict[str, Any]) -> str:
    """Number of files and their mean size, version by version."""
    history = [each for each in facts["history"] if each["files"]]
    last = history[-1]["version"]
    merged = next(each["version"] for each in history if each["operation"] == "rewrite")
    counts = [(each["version"], each["files"]) for each in history]
    sizes = [(each["version"], each["bytes"] / each["files"] / 1e6) for each in history]
    pictures = []
    for points, css, label, wanted in (
        (counts, "sea", "number of files", 4),
        (sizes, "sand", "mean size, MB", 3),
    ):
        high = max(value for _, value in points) * 1.12
        plot = Plot(
            x=(1, last + 0.6),
            y=(0, high),
            width=510,
            height=230,
            margins=(22, 10, 32, 44),
            title=label,
        )
        plot.axis_y(nice_ticks(0, high, wanted), short, label)
        plot.axis_x([t for t in nice_ticks(1, last, 6) if t == int(t)], lambda at: f"v{at:g}")
        plot.steps(
            [*points, (last + 0.6, points[-1][1])], css, fill="sea-area" if css == "sea" else ""
        )
        plot.upright(facts["killed_version"], "kill", "kill -9")
        plot.upright(merged, "merge", "compacted", left=True)
        plot.dot(last, points[-1][1], "dot-sand", hint=f"{points[-1][1]:,.1f}", radius=3.5)
        pictures.append(plot.svg())
    return f'<div class="pair">{"".join(pictures)}</div>'


def coverage_words(facts: dict[str, Any]) -> str:
    """What the heat map shows."""
    silent = ", ".join(name for name, _, _ in facts["silent"]) or "no sensor"
    return (
        "All sensors from top to bottom, ten to a row; minutes of the plant from left to right. "
        f"Full green is a reading for each second. {escape(silent)} falls silent; at the right "
        "edge a few late readings are still on their way."
    )


def coverage(facts: dict[str, Any]) -> str:
    """How many of the readings that should be there are there, by sensor and minute."""
    found: Any = facts["coverage"]
    plant = facts["plant"]
    group = max(1, plant.sensors // 100)
    rows = -(-plant.sensors // group)
    padded = np.zeros((rows * group, found.shape[1]), np.int64)
    padded[: found.shape[0]] = found
    members = np.minimum(group, plant.sensors - np.arange(rows) * group)
    seconds = np.full(found.shape[1], 60)
    seconds[-1] = plant.seconds - 60 * (found.shape[1] - 1)
    share = padded.reshape(rows, group, -1).sum(axis=1) / (members[:, None] * seconds[None, :])
    minutes = found.shape[1]
    plot = Plot(x=(0, minutes), y=(rows, 0), height=360, margins=(6, 16, 34, 82), title="Coverage")
    plot.rect((0, minutes), (rows, 0), "full")
    for row in range(rows):
        for first, last, value in _runs(share[row]):
            if value < 0.9995:
                hint = f"{plant_time(plant, first)}: {value:.1%} of the readings of this row"
                # A tenth missing must be seen, so the colour is spent on the last fifth.
                missing = min(1.0, (1 - value) / 0.12)
                plot.rect((first, last), (row + 1, row), "hole", hint=hint, opacity=missing)
    plot.axis_x(nice_ticks(0, minutes, 9), lambda at: plant_time(plant, at))
    for sensor in range(0, plant.sensors, max(1, plant.sensors // 5)):
        plot.text(plot.left - 8, plot.y(sensor / group) + 9, f"sensor-{sensor:04d}", anchor="end")
    midnight = (-(plant.start_ms // 1_000) % 86_400) / 60
    if 0 < midnight < minutes:
        plot.upright(midnight, "midnight", "midnight: a new partition")
    _frame_silent(plot, facts, group, minutes)
    return plot.svg()


def _frame_silent(plot: Plot, facts: dict[str, Any], group: int, minutes: int) -> None:
    plant = facts["plant"]
    if plant.silent_sensor is None:
        return
    start, row = plant.silent_from_second / 60, plant.silent_sensor // group
    left, top = plot.x(start), plot.y(row) - 2
    height = plot.y(row + 1) - plot.y(row) + 4
    plot.parts.append(
        f'<rect class="frame" x="{left}" y="{top:.2f}" width="{plot.x(minutes) - left:.2f}" '
        f'height="{height:.2f}" rx="2"/>'
    )
    name = f"sensor-{plant.silent_sensor:04d} is silent from {plant_time(plant, start)}"
    plot.text(left, top - 6, name, css="note")


def plant_time(plant: Any, minute: float) -> str:
    """A minute of the plant's time as a clock shows it."""
    return f"{datetime.fromtimestamp(plant.start_ms / 1_000 + minute * 60, UTC):%H:%M}"


def _runs(values: Any) -> list[tuple[int, int, float]]:
    """Stretches of equal values, so that few rectangles are drawn."""
    edges = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
    return [(a, b, float(values[a])) for a, b in pairwise(edges)]


def _shade_restart(plot: Plot, facts: dict[str, Any], zero: float, high: float) -> None:
    """The time between the kill and the first batch after it."""
    killed = facts["killed_ms"]
    after = [each for each in facts["batches"] if each["time_ms"] > killed]
    if after:
        begin = (killed - zero) / 1_000
        end = (after[0]["time_ms"] - after[0]["lag_ms"] - zero) / 1_000
        plot.rect((begin, end), (0, high), "dead")
        if plot.x(end) - plot.x(begin) < 130:
            return
        plot.text(
            plot.x((begin + end) / 2),
            plot.height - plot.bottom - 10,
            "Spark starts again",
            anchor="middle",
            css="kill-text",
        )


def _zero(facts: dict[str, Any]) -> float:
    """When the first batch began."""
    first = facts["batches"][0]
    return float(first["time_ms"] - first["lag_ms"])


def _tile(css: str, number: str, words: str) -> str:
    return f'<div class="tile {css}"><b>{escape(number)}</b><span>{escape(words)}</span></div>'


def _daily(rows: list[dict[str, Any]]) -> str:
    keys = ("day", "readings", "sensors", "low", "mean", "high", "alarms")
    head = "".join(f"<th>{key}</th>" for key in keys)
    lines = "".join(
        "<tr>" + "".join(f"<td>{_cell(row[key])}</td>" for key in keys) + "</tr>"
        for row in sorted(rows, key=lambda each: each["day"])
    )
    return f"<table><tr>{head}</tr>{lines}</table>"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) else escape(str(value))
