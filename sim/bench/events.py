"""Event traffic on both engines, and the full-scale run from the command line to the report.

Traffic: the network of the shipped `strategies` experiment with 20,000 subscriptions that are there before time 0, the
k = 10 best per broker, 10,000 events, on both engines; the hashes must agree. Times are of the events alone: the time
of the run, from the built workload to the finished tables, less that of the same run without events.

Full scale: `coverlay run scale` with 1,000 brokers, 1,000,000 subscriptions and 10,000 events, in a process of its own.
Its phases are timed: loading, events, oracle, writing, aggregating; the rest is drawing the workload, hashing the trace
and the report. Memory is the sum of the peaks of that process and of Spark's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sim.bench import Progress, Row, verdict
from sim.bench.engine_speed import SUBSCRIPTIONS, on_both
from sim.bench.timing import timed
from sim.experiment.plan import PlannedRun, load

EVENTS, STRATEGIES = 10_000, ("covering", "simple")
RATES = {"simpy": 20_000, "compiled": 200_000}  # event messages per second
BROKERS, MILLION = 1000, 1_000_000
SECONDS, BYTES, ORACLE_SHARE = 360.0, 8e9, 1 / 3


def traffic(quick: bool, progress: Progress) -> list[Row]:
    subscriptions, events = (SUBSCRIPTIONS // 10, EVENTS // 20) if quick else (SUBSCRIPTIONS, EVENTS)
    rows: list[Row] = []
    for strategy in STRATEGIES:
        case = f"event traffic, {strategy}, {subscriptions} subscriptions, {events} events"
        run, loading = (_run(strategy, subscriptions, published) for published in (events, 0))
        rows += on_both(case, _run(strategy, 50, 5), run, loading, progress)
    return rows


def _run(strategy: str, subscriptions: int, events: int) -> PlannedRun:
    settings = {"seeds": [1], "workload.subscriptions": subscriptions, "workload.events": events}
    arrivals = {"arrivals.kind": "preloaded", "arrivals.unsubscribe": 0.0, "broker.service": {"kind": "none"}}
    runs = load("strategies", settings | arrivals).runs
    return next(run for run in runs if run.experiment.routing.strategy == strategy)


def full_scale(quick: bool, progress: Progress) -> list[Row]:
    if quick:
        return []
    case = f"full scale, {BROKERS} brokers, {MILLION} subscriptions, {EVENTS} events"
    progress(case)
    command = [sys.executable, "-m", "sim.bench.events"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return [{"case": case, "engine": "compiled", **json.loads(done.stdout.splitlines()[-1])}]


def _measure() -> Row:
    """What `coverlay run scale` does, at full size, in this process; how long its phases took."""
    import pyarrow.parquet as pq

    import analysis.aggregate
    import sim.compiled.engine
    import sim.compiled.trace
    import sim.experiment.engines
    import sim.experiment.oracle
    from broker import trace

    took: dict[str, float] = {}
    phases: list[tuple[Any, str, str]] = [
        (sim.experiment.engines, "compiled_engine", "load"),
        (sim.compiled.engine.Engine, "run", "events"),
        (sim.compiled.trace, "tables_of", "events"),
        (sim.experiment.oracle, "judge", "oracle"),
        (trace, "write_run", "write"),
        (analysis.aggregate, "analyze", "aggregate"),
    ]
    with tempfile.TemporaryDirectory() as folder:
        _scale(Path(folder) / "small", 4, 50, 5)  # pays for compiling
        for owner, name, phase in phases:
            setattr(owner, name, _clocked(getattr(owner, name), took, phase))
        status, seconds = timed(lambda: _scale(Path(folder) / "full", BROKERS, MILLION, EVENTS))
        (path,) = Path(folder).glob("full/runs/run=*/run.parquet")
        names = ["event_messages", "deliveries", "missed", "duplicates", "judged_share"]
        counted, peak = pq.read_table(path, columns=names).to_pylist()[0], _peak(os.getpid())
    phase_seconds = {f"{phase}_seconds": value for phase, value in took.items()}
    return {"seconds": seconds, **phase_seconds, "peak": peak, "status": status, **counted}


def _peak(process: int) -> int:
    """Peak memory of a process plus the peaks of those that it started, in bytes; Linux."""
    folder = Path(f"/proc/{process}")
    try:
        told = (folder / "status").read_text()
        children = [int(child) for task in folder.glob("task/*/children") for child in task.read_text().split()]
    except (FileNotFoundError, ProcessLookupError):  # it has just ended
        return 0
    lines = (line for line in told.splitlines() if line.startswith("VmHWM"))
    own = next(lines, "VmHWM: 0 kB")  # a zombie has no memory
    return int(own.split()[1]) * 1024 + sum(_peak(child) for child in children)


def _scale(out: Path, brokers: int, subscriptions: int, events: int) -> int:
    """From the experiment to its page; 0 if nothing failed and no guarantee is broken."""
    import analysis.aggregate
    from analysis.report.page import Asked, write_report
    from sim.experiment.sweep import run_sweep

    sizes = {"overlay.brokers": brokers, "workload.subscriptions": subscriptions, "workload.events": events}
    result = run_sweep(load("scale", sizes), out)
    analysis.aggregate.analyze(out)
    write_report(out, Asked())
    return int(bool(result.failures or result.wrong))


def _clocked(function: Callable[..., Any], took: dict[str, float], phase: str) -> Callable[..., Any]:
    def clocked(*args: Any, **named: Any) -> Any:
        started = time.perf_counter()
        try:
            return function(*args, **named)
        finally:
            took[phase] = took.get(phase, 0.0) + time.perf_counter() - started

    return clocked


def verdicts(rows: list[Row]) -> list[Row]:
    """The rate and the full-scale run; the ratio to SimPy is judged with the other rows of the engines."""
    judged: list[Row] = []
    for row in rows:
        case = str(row["case"])
        if case.startswith("event traffic"):
            rate, aim = row["messages_per_s"], RATES[row["engine"]]
            met = rate >= aim if row["subscriptions"] >= SUBSCRIPTIONS else None
            judged.append(verdict(f"{case}, {row['engine']}: at least {aim:,}/s", f"{rate:,}/s", met))
        if case.startswith("full scale"):
            oracle, wrong = row["oracle_seconds"] / row["seconds"], row["missed"] + row["duplicates"]
            judged += [
                verdict(f"{case}: under {SECONDS:g} s", f"{row['seconds']:.0f} s", row["seconds"] < SECONDS),
                verdict(f"{case}: under {BYTES / 1e9:g} GB", f"{row['peak'] / 1e9:.1f} GB", row["peak"] < BYTES),
                verdict(f"{case}: the oracle at most a third", f"{oracle:.0%}", oracle <= ORACLE_SHARE),
                verdict(f"{case}: missed = duplicates = 0", str(wrong), wrong == 0 and row["status"] == 0),
            ]
    return judged


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_measure()) + "\n")
