"""Sweeps of many tiny runs, from the simulation to the page: is every step linear in the number of runs?

Each size is measured in a process of its own, whose Spark has started before. CPU seconds, not seconds, of Python and
Java together: other programs lengthen them little. The first aggregation of a process compiles its queries, which takes
as long for ten runs as for thousands. Finding is measured twice: in the run folders, and where compacted copies exist.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from sim.bench import Progress, Row, verdict
from sim.bench.timing import cpu_seconds, timed

SIZES, QUICK_SIZES = (10, 100, 1_000, 6_400), (10, 100)
POINTS = 10
MOST_MINUTES, MOST_GB = 30.0, 6.0  # of 6,400 runs, with two cores
CORES = 2
LINEAR = 1.5  # times as long per run as in the sweep of a tenth of the runs: more is not linear


def experiment(runs: int) -> dict[str, Any]:
    return {
        "name": "tiny runs",
        "seeds": list(range(1, runs // POINTS + 1)),
        "overlay": {"kind": "random-tree", "brokers": 10},
        "workload": {"kind": "zipf", "attributes": 2, "subscriptions": 50, "events": 20},
        "sweep": {"routing.strategy": ["simple", "covering"], "matching.k": [1, 2, 3, 4, 5]},
    }


def run(quick: bool, progress: Progress) -> list[Row]:
    rows = []
    for size in QUICK_SIZES if quick else SIZES:
        progress(f"a sweep of {size:,} runs")
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "sim.bench.sweeps", str(size), folder]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
    return rows


def verdicts(rows: list[Row]) -> list[Row]:
    judged: list[Row] = []
    for small, large in pairwise(rows):
        for step in ("simulate", "find", "find again"):  # what has no fixed part
            ratio = large[step] / small[step]
            target = f"{step}: a run of {large['runs']:,} takes at most {LINEAR:g} times one of {small['runs']:,}"
            judged.append(verdict(target, f"{ratio:.2f}×", ratio <= LINEAR if small["runs"] >= 100 else None))
    largest = rows[-1]
    minutes, full = largest["cpu_seconds"] / 60 / CORES, largest["runs"] == SIZES[-1]
    target = f"{SIZES[-1]:,} runs: at most {MOST_MINUTES:g} minutes of {CORES} cores"
    judged.append(
        verdict(target, f"{largest['runs']:,} runs: {minutes:.1f} min", minutes <= MOST_MINUTES if full else None)
    )
    target, measured = f"{SIZES[-1]:,} runs: at most {MOST_GB:g} GB", f"{largest['gigabytes']:.1f} GB"
    judged.append(verdict(target, measured, largest["gigabytes"] <= MOST_GB if full else None))
    return judged


def measure(runs: int, out: Path) -> Row:
    """CPU milliseconds per run and step, all CPU seconds, minutes on the clock, memory, and files on disk."""
    from analysis.aggregate import analyze
    from analysis.report.page import write_report
    from analysis.spark.session import java_process, session
    from analysis.spark.traces import compacted, find_runs
    from sim.experiment.plan import plan
    from sim.experiment.sweep import run_sweep

    session(f"local[{CORES}]")
    java, began = java_process(), time.monotonic()
    took: dict[str, float] = {}

    def step(name: str, task: Callable[[], Any]) -> Any:
        result, took[name] = timed(task, partial(cpu_seconds, java))
        return result

    experiments = plan(experiment(runs))
    step("simulate", lambda: run_sweep(experiments, out))
    sweep = step("find", lambda: find_runs(out))
    step("compact", lambda: compacted(sweep))
    step("find again", lambda: find_runs(out))
    step("aggregate", lambda: analyze(out))  # finds again
    step("page", lambda: write_report(out))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20 + _java_gigabytes(java)
    kept = {name: sum(1 for path in (out / name).rglob("*") if path.is_file()) for name in ("runs", "compacted")}
    per_run = {name: round(1000 * seconds / runs, 2) for name, seconds in took.items()}
    return {
        "runs": runs, **per_run, "cpu_seconds": round(sum(took.values()), 1),
        "minutes": round((time.monotonic() - began) / 60, 1), "gigabytes": round(memory, 2),
        "files": kept["runs"], "compacted_files": kept["compacted"],
    }  # fmt: skip


def _java_gigabytes(pid: int) -> float:
    """The most memory that the Java process had, as Linux tells."""
    (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 2**20


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), Path(sys.argv[2]))))  # noqa: T201
