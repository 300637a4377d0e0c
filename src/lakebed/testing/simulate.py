"""Run seeded histories of concurrent writers under faults, and judge each by the oracle.

python -m lakebed.testing.simulate --histories 20000 --seed 1
python -m lakebed.testing.simulate --replay 4711
"""

import argparse
import gc
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa

from lakebed.clock import SystemClock
from lakebed.testing.faults import Fault
from lakebed.testing.history import Result
from lakebed.testing.scheduler import Workers
from lakebed.testing.simulate_run import Report, run_history

_PROGRESS_EVERY_MS = 1_000
_TRACE_LINE_COUNT_MAX = 400
_COLLECT_EVERY = 200


@dataclass(slots=True)
class Tally:
    """What a run of many histories reached: a state that never occurred was never tested."""

    history_count: int = 0
    step_count: int = 0
    faults: Counter[tuple[str, Fault]] = field(default_factory=Counter)
    steps: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[tuple[str, Result]] = field(default_factory=Counter)
    failures: list[Report] = field(default_factory=list)

    def add(self, report: Report) -> None:
        """Count one history in."""
        self.history_count += 1
        self.step_count += report.step_count
        self.faults.update(report.faults)
        self.steps.update(report.steps)
        self.outcomes.update(report.outcomes)
        if report.complaints:
            self.failures.append(report)


def run_histories(
    seeds: Iterable[int], *, stops: bool = True, each: Callable[[Tally], None] | None = None
) -> Tally:
    """Run a history for each seed; with `stops`, end at the first that breaks a law.

    `each` is called after each history, to show progress.
    """
    tally = Tally()
    workers = Workers()
    try:
        with undisturbed():
            for seed in seeds:
                tally.add(run_history(seed, workers))
                if each is not None:
                    each(tally)
                if tally.failures and stops:
                    break
                if tally.history_count % _COLLECT_EVERY == 0:
                    gc.collect()
    finally:
        workers.close()
    return tally


@contextmanager
def undisturbed() -> Iterator[None]:
    """Keep the collector and Arrow's thread pool out of the way: a third of the time is theirs."""
    thread_count = pa.cpu_count()
    pa.set_cpu_count(1)
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        pa.set_cpu_count(thread_count)


def describe(report: Report) -> str:
    """A broken history as text: what is wrong, and how it came to be."""
    trace = report.trace
    if len(trace) > _TRACE_LINE_COUNT_MAX:
        trace = [f"… {len(trace) - _TRACE_LINE_COUNT_MAX} lines", *trace[-_TRACE_LINE_COUNT_MAX:]]
    name = "a searched world" if report.seed is None else f"seed {report.seed}"
    lines = [f"{name} breaks a law:", *(f"  {text}" for text in report.complaints)]
    lines += [f"setting: {report.setting}", "trace:", *(f"  {line}" for line in trace)]
    if report.seed is not None:
        lines.append(f"replay: python -m lakebed.testing.simulate --replay {report.seed}")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """The command; 0 if every law was kept."""
    parser = argparse.ArgumentParser(prog="lakebed.testing.simulate", description=__doc__)
    parser.add_argument("--histories", type=int, default=1_000, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of the first history")
    parser.add_argument("--replay", type=int, metavar="SEED", help="run one, and show its trace")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at a failure")
    given = parser.parse_args(arguments)
    if given.replay is not None:
        return _replay(given.replay)
    clock = SystemClock()
    began_ms = clock.monotonic_ms()
    seeds = range(given.seed, given.seed + given.histories)
    show = _Progress(clock, given.histories) if sys.stderr.isatty() else None
    tally = run_histories(seeds, stops=not given.keep_going, each=show)
    _show(tally, clock.monotonic_ms() - began_ms)
    for report in tally.failures[:1]:
        print(describe(report))
    if len(tally.failures) > 1:
        print("all failing seeds:", *(report.seed for report in tally.failures))
    return 1 if tally.failures else 0


class _Progress:
    """A line on a terminal, about once a second."""

    def __init__(self, clock: SystemClock, history_count: int) -> None:
        self._clock = clock
        self._history_count = history_count
        self._began_ms = self._shown_ms = clock.monotonic_ms()

    def __call__(self, tally: Tally) -> None:
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._shown_ms > _PROGRESS_EVERY_MS:
            self._shown_ms = now_ms
            rate = tally.history_count * 1000 / (now_ms - self._began_ms)
            done = f"{tally.history_count:,} of {self._history_count:,}"
            print(f"\r{done} histories, {rate:.0f}/s ", end="", file=sys.stderr, flush=True)


def _replay(seed: int) -> int:
    report = run_history(seed, Workers())
    print(describe(report) if report.complaints else "\n".join(report.trace))
    print(f"fingerprint {report.fingerprint}")
    return 1 if report.complaints else 0


def _show(tally: Tally, duration_ms: float) -> None:
    names = [fault.value for fault in Fault]
    print(f"\n{'':>28}" + "".join(f"{name:>13}" for name in ("calls", *names)))
    for step in sorted(tally.steps):
        counts = [tally.steps[step], *(tally.faults[step, fault] for fault in Fault)]
        print(f"{step:>28}" + "".join(f"{count or '':>13}" for count in counts))
    print(f"\n{'':>28}" + "".join(f"{result.value:>13}" for result in Result))
    for kind in sorted({kind for kind, _ in tally.outcomes}):
        counts = [tally.outcomes[kind, result] for result in Result]
        print(f"{kind:>28}" + "".join(f"{count or '':>13}" for count in counts))
    rate = tally.history_count * 1000 / max(duration_ms, 1)
    failed = len(tally.failures)
    print(
        f"\n{tally.history_count:,} histories, {tally.step_count:,} steps, "
        f"{sum(tally.faults.values()):,} faults, {rate:.0f} histories/s: "
        f"{failed or 'no'} broken"
    )


if __name__ == "__main__":
    sys.exit(main())
