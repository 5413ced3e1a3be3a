"""The two engines against each other, bulk loading up to a million subscriptions, and a sweep on one and two cores.

Engines: the shipped `strategies` experiment at 50 brokers and 20,000 subscriptions, each supported case on both; the
time is from the built workload to the finished trace tables, the same for both, and the hashes must agree. The
compiled engine needs a third of a second, and a busy host or fresh memory easily adds half of that; so it runs
TURNS times, the median counts, and the first time is shown too. Bulk: a random tree of 1,000 brokers, exact
covering, Zipf in two attributes, until all tables are complete; every size in a process of its own, so that its peak
memory is its own. A small run before it pays for compiling.
"""

from __future__ import annotations

import gc
import multiprocessing
import resource
import statistics
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from broker import trace
from sim.bench import Progress, Row, verdict
from sim.bench.timing import timed
from sim.experiment.build import inputs_of, overlay_of, workload_of
from sim.experiment.engines import ENGINES, RunInputs, compiled_engine
from sim.experiment.plan import PlannedRun, load, plan
from sim.experiment.sweep import SweepOptions, run_sweep
from sim.random_streams import streams

SUBSCRIPTIONS, RUNS = 20_000, 64  # what the targets of engines and sweeps are meant for; less is not judged
TURNS = 5  # of the compiled engine; SimPy takes half a minute once
SIZES = (125_000, 250_000, 500_000, 1_000_000)
CASES = (1, 3, 4)  # of the strategies experiment: simple, covering lazy, covering active
SPEED_UP, CONTROL_RATE, DOUBLING, BULK_SECONDS, BULK_BYTES, TWO_JOBS = 10.0, 1.2e6, 2.4, 180.0, 8e9, 1.7


def _inputs(run: PlannedRun) -> RunInputs:
    experiment, stream = run.experiment, streams(run.seed)
    return inputs_of(experiment, overlay_of(experiment, stream), workload_of(experiment, stream), stream)


def turns(run: PlannedRun, engine: str) -> tuple[float, float, int, set[str]]:
    """Median and first of the seconds from the built workload to the tables, messages, and the hashes that came out."""
    times, hashes = [], set()
    for _ in range(1 if engine == "simpy" else TURNS):
        inputs = _inputs(run)
        gc.collect()  # or one engine would pay for the garbage of the other
        ran, seconds = timed(partial(ENGINES[engine], inputs))
        tables = ran.tables
        times.append(seconds)
        hashes.add(trace.trace_hash(tables))
    messages = tables["control"].num_rows + tables["publications"].num_rows
    return statistics.median(times), times[0], messages, hashes


def on_both(case: str, small: PlannedRun, run: PlannedRun, less: PlannedRun | None, progress: Progress) -> list[Row]:
    """A row per engine, of what `run` takes beyond the run `less`; `small` pays for compiling."""
    rows: list[Row] = []
    seen: list[set[str]] = []
    for engine in ENGINES:
        turns(small, engine)
        progress(f"{case}, {engine}")
        before, first_before, sent_before, _ = turns(less, engine) if less is not None else (0.0, 0.0, 0, set())
        seconds, first, sent, hashes = turns(run, engine)
        seconds, first, sent = seconds - before, first - first_before, sent - sent_before
        seen.append(hashes)
        row = _row(case, engine, run.experiment.workload.subscriptions, sent, seconds, first_seconds=first)
        ratio = rows[0]["seconds"] / seconds if rows else 1.0
        rows.append(row | {"ratio": ratio, "same_trace": hashes == seen[0]})
    return rows


def engines(quick: bool, progress: Progress) -> list[Row]:
    subscriptions = SUBSCRIPTIONS // 10 if quick else SUBSCRIPTIONS
    small = load("strategies", {"seeds": [1], "workload.subscriptions": 50, "workload.events": 5}).runs
    runs = load("strategies", {"seeds": [1], "workload.subscriptions": subscriptions}).runs
    rows: list[Row] = []
    for case in CASES:
        name = " ".join(str(value) for value in runs[case].point.values())
        rows += on_both(f"{name}, {subscriptions} subscriptions", small[case], runs[case], None, progress)
    # The case without covering again, without events.
    alone = f"simple, {subscriptions} subscriptions, no events"
    progress(alone)
    settings = {"seeds": [1], "workload.subscriptions": subscriptions, "workload.events": 0}
    seconds, first, messages, _ = turns(load("strategies", settings).runs[CASES[0]], "compiled")
    return [*rows, _row(alone, "compiled", subscriptions, messages, seconds, first_seconds=first)]


def _row(case: str, engine: str, subscriptions: int, messages: int, seconds: float, **more: Any) -> Row:
    rate = round(messages / seconds)
    row = {"case": case, "engine": engine, "subscriptions": subscriptions, "messages": messages, "seconds": seconds}
    return {**row, "messages_per_s": rate, **more}


def bulk(quick: bool, progress: Progress) -> list[Row]:
    sizes = tuple(size // 50 for size in SIZES) if quick else SIZES
    rows: list[Row] = []
    for size in sizes:
        progress(f"bulk loading {size} subscriptions")
        # A fresh process: peak memory never falls within one.
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            entries, messages, seconds, peak = pool.apply(_bulk_size, (size,))
        before = rows[-1]["seconds"] if rows else None
        case = "bulk loading, 1000 brokers, exact covering, zipf d = 2"
        row = _row(case, "compiled", size, messages, seconds, entries=entries, peak_bytes=peak)
        rows.append(row | {"times_the_half": None if before is None else seconds / before})
    return rows


def _bulk_size(subscriptions: int) -> tuple[int, int, float, int]:
    for count in (200, subscriptions):  # the first one pays for compiling
        settings = {"workload.subscriptions": count, "overlay.brokers": 1000, "seeds": [1]}
        inputs = _inputs(load("scale", settings).runs[0])
        engine, seconds = timed(partial(compiled_engine, inputs))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    messages = int(engine.arrays.operations["messages"].sum())
    return int(engine.arrays.wires["entries"].sum()), messages, seconds, peak


def sweep(quick: bool, progress: Progress) -> list[Row]:
    runs = RUNS // 4 if quick else RUNS
    settings = {"seeds": list(range(runs)), "overlay.brokers": 30, "workload.subscriptions": 1000}
    small = plan({key: value for key, value in load("demo", settings).data.items() if key != "case"})
    rows: list[Row] = []
    for jobs in (1, 2):
        progress(f"sweep of {runs} runs, {jobs} jobs")
        with tempfile.TemporaryDirectory() as folder:
            result, seconds = timed(partial(run_sweep, small, Path(folder), SweepOptions(jobs=jobs)))
        assert not result.failures
        row = {"case": f"sweep of {runs} runs", "engine": "simpy", "runs": runs, "jobs": jobs}
        rows.append(row | {"seconds": seconds})
    return [row | {"ratio": rows[0]["seconds"] / row["seconds"]} for row in rows]


def verdicts(rows: list[Row]) -> list[Row]:
    """What was aimed at. Sizes below those of a target are not judged, unless the traces differ."""
    judged: list[Row] = []

    def judge(target: str, measured: str, met: bool, full: bool) -> None:
        judged.append(verdict(target, measured, met if full else None))

    for row in rows:
        seconds, case = row.get("seconds", 0.0), str(row["case"])
        size = row.get("subscriptions", 0)
        full = size >= SUBSCRIPTIONS
        if row["engine"] == "compiled" and "same_trace" in row:
            ratio, first = row["ratio"], row["first_seconds"] / seconds  # in fresh memory
            same = "same trace" if row["same_trace"] else "ANOTHER TRACE"
            met = ratio >= SPEED_UP and bool(row["same_trace"])
            measured = f"{ratio:.1f}× (first turn {ratio / first:.1f}×), {same}"
            target = f"{case}: at least {SPEED_UP:g}× SimPy, same trace"
            judge(target, measured, met, full or not row["same_trace"])
        elif case.endswith("no events"):
            rate, first = row["messages_per_s"], row["first_seconds"] / seconds
            measured = f"{rate:.3g}/s (first turn {rate / first:.3g}/s)"
            judge(f"{case}: at least {CONTROL_RATE:.2g} messages/s", measured, rate >= CONTROL_RATE, full)
        elif row.get("times_the_half") is not None:
            times = row["times_the_half"]
            target = f"{size} subscriptions: less than {DOUBLING:g}× half as many"
            judge(target, f"{times:.2f}×", times < DOUBLING, size >= SIZES[0])
        elif row.get("jobs") == 2:
            ratio, full = row["ratio"], row["runs"] >= RUNS
            judge(f"{case}: at least {TWO_JOBS:g}× faster with 2 jobs", f"{ratio:.2f}×", ratio >= TWO_JOBS, full)
        if "times_the_half" in row and size >= SIZES[-1]:
            peak = row["peak_bytes"]
            target = f"{case}, 1M: under {BULK_SECONDS:g} s and {BULK_BYTES / 1e9:g} GB"
            met = seconds < BULK_SECONDS and peak < BULK_BYTES
            judge(target, f"{seconds:.1f} s, {peak / 1e9:.2f} GB", met, True)
    return judged
