"""Spark's aggregation of a large trace against DuckDB, the honest peer on one machine.

The trace is written once (spark_trace.py); then every metric of every run is computed by the same Spark jobs that
`coverlay analyze` runs, and by DuckDB (spark_peers.py) from the same files on the same number of cores. Numbers must
agree before times are reported. Starting Spark is measured apart. The first aggregation after it still loads and
compiles much of Spark, later ones do not: the first and the best later one are reported; the latter has a target.
CPU seconds, Java's among them, are beside the seconds: other programs on the machine lengthen them less.

Where the comparison is unfair: DuckDB uses one machine only; Spark is built for many.

Most sweeps are small, and most of their time is the start of Python and Java. So an experiment whose six runs take less
than a second together is run to its report, and its traces are aggregated once more, each by a command of its own.
"""

from __future__ import annotations

import importlib.util
import math
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from subprocess import DEVNULL

import pandas as pd

from analysis.aggregate import aggregated
from analysis.spark.session import java_process, session, stop
from analysis.spark.traces import Sweep, find_runs
from coverlay import CoverlayError
from sim.bench import Progress, Row, spark_trace, verdict
from sim.bench.spark_peers import duckdb
from sim.bench.timing import cpu_seconds, timed

CORES = 2
MEMORY = "6g"
QUICK_ROWS = 1_000_000
REPEATS = 5  # of everything, in turns: the JVM keeps compiling for about a minute
TARGETS = {"later": 15.0}  # times DuckDB
CLOSE = 1e-6  # relative; sums are taken in different orders and units
SMALL = """
name = "small"
seeds = [1, 2, 3]
overlay = { kind = "random-tree", brokers = 20 }
workload = { kind = "zipf", attributes = 2, subscriptions = 300, events = 100 }
sweep = { "routing.strategy" = ["simple", "covering"] }
"""
SMALL_SECONDS = {"run to the report": 20.0, "analyze": 15.0}
SMALL_REPEATS = 3  # the best counts; the first may have to compile kernels
# A trace without faults has no value for these, so a peer may leave them out.
_WITHOUT_FAULTS = {"outage_mean", "repair_mean"}
Took = tuple[float, float]  # seconds, CPU seconds


def run(quick: bool, progress: Progress) -> list[Row]:
    times: dict[str, list[Took]] = {"Spark": [], "DuckDB": []}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        rows = spark_trace.write(out, QUICK_ROWS if quick else spark_trace.ROWS, progress)
        sweep = find_runs(out)
        nbytes = sweep.nbytes
        progress("starting Spark")
        stop()
        _, startup = timed(partial(session, f"local[{CORES}]", memory=MEMORY))
        clock = partial(cpu_seconds, java_process())
        for repeat in range(REPEATS):
            progress(f"Spark, {repeat + 1} of {REPEATS}")
            (values, cpu), seconds = timed(partial(timed, partial(_spark, sweep), clock))
            times["Spark"].append((seconds, cpu))
            if importlib.util.find_spec("duckdb") is not None:
                progress(f"DuckDB, {repeat + 1} of {REPEATS}")
                (theirs, cpu), seconds = timed(partial(timed, partial(duckdb, sweep, CORES, "6GB"), clock))
                times["DuckDB"].append((seconds, cpu))
                compare(values, theirs, "DuckDB")
        stop()
    return [*small_sweep(progress), *_rows(rows, nbytes, values.shape[1], startup, times)]


def small_sweep(progress: Progress, repeats: int = SMALL_REPEATS) -> list[Row]:
    """Seconds from the command to the end of its process."""
    best = dict.fromkeys(SMALL_SECONDS, math.inf)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "small.toml"
        file.write_text(SMALL)
        for repeat in range(repeats):
            out = f"{folder}/{repeat}"
            for what, verb in zip(best, (("run", str(file), "--out", out), ("analyze", out)), strict=True):
                progress(f"small sweep, {what}, {repeat + 1} of {repeats}")
                command = [sys.executable, "-m", "sim.cli.main", *verb]
                # No pipe: Java would keep it open for a moment after the command has ended.
                _, seconds = timed(partial(subprocess.run, command, stdout=DEVNULL, stderr=DEVNULL, check=True))
                best[what] = min(best[what], seconds)
    return [{"engine": "Spark", "what": f"small sweep, {what}", "seconds": best[what]} for what in best]


def _spark(sweep: Sweep) -> pd.DataFrame:
    """A row per run, a column per metric."""
    return aggregated(session(), sweep)["values"].set_index("run")


def compare(ours: pd.DataFrame, theirs: pd.DataFrame, name: str) -> None:
    """Raise unless a peer has every number that we have."""
    for metric in ours.columns:
        if metric in _WITHOUT_FAULTS and ours[metric].isna().all():
            continue
        mine = ours[metric].to_dict()
        other = theirs[metric].astype(float).to_dict() if metric in theirs.columns else {}
        for run, value in mine.items():
            found = other.get(run, math.nan)
            if math.isnan(found) and value == 0:
                continue  # no rows to count
            same = math.isclose(value, found, rel_tol=CLOSE, abs_tol=CLOSE) or (math.isnan(value) and math.isnan(found))
            if not same:
                raise CoverlayError(f"Spark and {name} disagree: {metric} of run {run} is {value} and {found}")


def _rows(rows: int, nbytes: int, metrics: int, startup: float, times: dict[str, list[Took]]) -> list[Row]:
    ours, base = times["Spark"], min(times["DuckDB"], default=None)
    took = {("Spark", "first aggregation"): ours[0], ("Spark", "later"): min(ours[1:]), ("DuckDB", "best"): base}
    same = {"rows": rows, "megabytes": round(nbytes / 1e6), "metrics": metrics}
    return [{"engine": "Spark", "what": "start-up", "seconds": startup}] + [
        {"engine": engine, "what": what, **same, "seconds": best[0], "cpu_seconds": best[1],
         "rows_per_s": round(rows / best[0]), "times_duckdb": best[0] / base[0] if base else None}
        for (engine, what), best in took.items()
        if best is not None
    ]  # fmt: skip


def verdicts(rows: list[Row]) -> list[Row]:
    by_name = {row["what"]: row for row in rows if row["engine"] == "Spark"}
    judged: list[Row] = []
    for what, most in SMALL_SECONDS.items():
        seconds = by_name[f"small sweep, {what}"]["seconds"]
        judged.append(verdict(f"small sweep, {what}: at most {most:g} s", f"{seconds:.1f} s", seconds <= most))
    for what, limit in TARGETS.items():
        target, ratio = f"{what}: at most {limit:g}× DuckDB's time", by_name[what]["times_duckdb"]
        known = ratio is not None
        measured = f"{ratio:.1f}×" if known else "DuckDB is not installed"
        judged.append(verdict(target, measured, ratio <= limit if known else None))
    return judged
