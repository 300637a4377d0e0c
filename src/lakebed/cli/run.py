"""`lakebed run`: a pipeline from its TOML, watched until it ends."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from lakebed.cli.group import command
from lakebed.cli.session import Session
from lakebed.cli.text import count, escape, plural
from lakebed.errors import RequestError

if TYPE_CHECKING:
    from lakebed.flow.flow import Flow
    from lakebed.spark.pipeline.progress import Report


@command("run")
@click.argument("pipeline", type=click.Path())
@click.option("--once", is_flag=True, help="One batch, then stop.")
@click.option("--available-now", is_flag=True, help="What is there now, then stop.")
@click.option("--timeout", metavar="TIME", help='Stop after a time, as in "10 minutes".')
@click.option("--metrics", metavar="FILE", help="Append a line of JSON for each batch.")
@click.option("--check", is_flag=True, help="Only read PIPELINE and tell what it would do.")
@click.pass_obj
def run(
    session: Session,
    pipeline: str,
    once: bool,
    available_now: bool,
    timeout: str | None,
    metrics: str | None,
    check: bool,
) -> None:
    """Run the pipeline that a TOML file describes, on Spark.

    It goes on from its checkpoint, commits each batch exactly once, and runs until its source
    ends. Ctrl-C or SIGTERM lets the running batch finish; a second one stops at once, and loses
    nothing either. Paths in the file are relative to it; tables without a catalog are in the one
    that --catalog names.

    \b
    Example:
      name = "plant-readings"
      checkpoint = "checkpoints/plant-readings"
      [source]
      kind = "files"
      path = "incoming"
      format = "csv"
      schema = "ts timestamptz, sensor_id string, value double"
      [[transform]]
      name = "clean"
      sql = "select * from source where value is not null"
      [[sink]]
      table = "plant.readings"
      partition_by = ["day(ts)"]
    """  # noqa: D301 (click reads \b)
    from lakebed.flow.durations import parse_duration

    flow = _flow(session, pipeline, once=once, available_now=available_now)
    seconds = None if timeout is None else parse_duration(timeout) / 1_000
    if check:
        session.output.record(flow_record(flow), lambda: flow_card(flow))
        return
    report = _run(session, flow, seconds, metrics)
    session.output.done(report.as_record(), report_sentence(report))


def _flow(session: Session, pipeline: str, *, once: bool, available_now: bool) -> "Flow":
    """The flow of a file, on the catalog of this session if it names none itself."""
    from lakebed.flow.flow import Trigger, TriggerKind
    from lakebed.flow.placing import on_catalog
    from lakebed.flow.toml import read_flow

    if once and available_now:
        raise RequestError("--once and --available-now exclude each other")
    settings = session.settings
    flow = on_catalog(
        read_flow(pipeline),
        settings.catalog.value,
        warehouse=settings.warehouse.value,
        storage_options=settings.options(),
    )
    if once or available_now:
        kind = TriggerKind.ONCE if once else TriggerKind.AVAILABLE_NOW
        flow = replace(flow, trigger=Trigger(kind))
    return flow


def _run(session: Session, flow: "Flow", seconds: float | None, metrics: str | None) -> "Report":
    from lakebed.cli.run_progress import engine_log, watching
    from lakebed.spark.pipeline.run import run as run_flow

    with (
        watching(session, flow, metrics) as observer,
        engine_log(flow, open_to_all=session.debug),
    ):
        return run_flow(flow, progress=observer, timeout=seconds)


def flow_record(flow: "Flow") -> dict[str, Any]:
    """What a pipeline would do, for programs."""
    from lakebed.flow.toml_text import kind_of

    return {
        "pipeline": flow.name,
        "checkpoint": flow.checkpoint,
        "trigger": flow.trigger.kind.value,
        "sources": [{"name": each.name, "kind": kind_of(each)} for each in flow.sources],
        "transforms": [each.name for each in flow.transforms],
        "sinks": [
            {"table": each.table, "input": each.input or flow.last_step} for each in flow.sinks
        ],
    }


def flow_card(flow: "Flow") -> list[str]:
    """The same for people."""
    from lakebed.flow.toml_text import kind_of

    lines = [f"pipeline {escape(flow.name)} is sound"]
    lines += [f"  source     {each.name} ({kind_of(each)})" for each in flow.sources]
    lines += [f"  transform  {each.name}" for each in flow.transforms]
    lines += [
        f"  sink       {escape(each.table)} <- {each.input or flow.last_step}"
        for each in flow.sinks
    ]
    return [*lines, f"  checkpoint {escape(flow.checkpoint)}"]


def report_sentence(report: "Report") -> str:
    """What a run did, for people."""
    ended = {"end": "is done", "timeout": "stopped after its time"}
    tables = ", ".join(f"{escape(name)} v{count(v)}" for name, v in report.versions.items())
    return (
        f"{escape(report.flow)} {ended.get(report.stopped_by, f'stopped by {report.stopped_by}')}: "
        f"{plural(report.rows_in, 'row')} in, {plural(report.commits, 'commit')} of "
        f"{plural(report.files, 'file')} in {report.seconds:.1f} s"
        + (f", now at {tables}" if tables else "")
    )
