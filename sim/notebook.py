"""Experiments from Python and notebooks: what `coverlay run` does, with frames instead of a printed table.

    import analysis, sim
    results = sim.run("demo", {"overlay.brokers": 50}, out="out/demo")
    analysis.table(results)                  # pandas; see analysis/notebook.py for the rest

An experiment is the name of a shipped one, a file, or the same keys as a Python dict.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from analysis.aggregate import analyze
from analysis.notebook import Results
from analysis.report.page import write_report
from analysis.spark.java import find_java
from coverlay import CoverlayError, quoted
from sim.cli import terminal
from sim.experiment import plan as plans
from sim.experiment.engines import nobody
from sim.experiment.folder_lock import FolderLock
from sim.experiment.plan import Plan
from sim.experiment.sweep import SweepOptions, SweepResult, run_sweep
from sim.tell.keep import keep

Experiment = str | Path | Mapping[str, Any] | Plan


def load(experiment: Experiment, settings: Mapping[str, Any] | None = None) -> Plan:
    """The plan of an experiment with the given dotted keys changed. Every run is checked; `plan.runs` lists them."""
    if isinstance(experiment, Plan):
        if not settings:
            return experiment
        experiment = experiment.data
    settings = plain(settings or {})
    if isinstance(experiment, Mapping):
        return plans.plan(plain(experiment), settings=settings)
    return plans.load(str(experiment), settings)


def plain(value: Any) -> Any:
    """A value as a file would give it: lists for tuples, ranges and arrays, numbers for numpy's, text for paths."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | range):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return str(value) if isinstance(value, Path) else value


def run(
    experiment: Experiment,
    settings: Mapping[str, Any] | None = None,
    *,
    out: str | Path | None = None,
    jobs: int | None = None,
    resume: bool = False,
    spark: str | None = None,
    progress: bool = True,
) -> Results:
    """Simulate every run of an experiment, aggregate the traces on Spark, and return the results.

    Traces and results are written to `out` (default: out/NAME). `jobs` runs are simulated at a time (default: one per
    core), or all on the Spark cluster `spark`. A notebook shows the result as a table, the answer in words and the path
    of the page. `progress=False` shows no bar. Raises if a run failed or the oracle found a wrong delivery.
    """
    plan = load(experiment, settings)
    for note in plan.notes:
        warnings.warn(note, stacklevel=2)
    folder = Path(out) if out is not None else Path("out") / plan.name.replace("/", "-")
    if jobs is not None and (isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1):
        raise CoverlayError(f"jobs is {quoted(jobs)}; it must be a whole number of at least 1")
    find_java()  # fail now rather than after the last run
    many = jobs or os.cpu_count() or 1
    with FolderLock(folder) as lock:
        with terminal.progress(f"simulating {plan.name}") if progress else nullcontext(nobody) as update:
            swept = run_sweep(plan, folder, SweepOptions(many, spark, resume, update), lock)
        for note in swept.warnings:
            warnings.warn(note, stacklevel=2)
        _refuse_broken(swept, folder)
        keep(plan, folder, swept)
        with terminal.status("aggregating on Spark") if progress else nullcontext(None) as say:
            results = Results.of(analyze(folder, spark, say))
            write_report(folder)
        return results


def _refuse_broken(swept: SweepResult, folder: Path) -> None:
    """Raise instead of returning results that cannot be trusted: a notebook has no exit status."""
    if swept.failures:
        first, count = swept.failures[0], len(swept.failures)
        error = f"{count} {'run' if count == 1 else 'runs'} failed; the first: {first}"
        raise CoverlayError(error) if first.is_input else RuntimeError(error)
    if swept.wrong:
        first_wrong = swept.wrong[0]
        raise RuntimeError(f"run {first_wrong.run_id} in {folder} broke a guarantee: {first_wrong.broken}")
