"""Experiments from Python and notebooks: what `coverlay run` does, with frames instead of a printed table.

    import analysis, sim
    results = sim.run("demo", {"overlay.brokers": 50}, out="out/demo")
    analysis.table(results)                  # pandas; see analysis/notebook.py for the rest

An experiment is the name of a shipped one, a file, or the same keys as a Python dict.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from analysis.aggregate import analyze
from analysis.notebook import Results
from analysis.report.page import Asked, write_report
from analysis.spark.java import find_java
from broker.trace.disk import folder_at
from coverlay import CoverlayError, quoted
from sim.cli import terminal
from sim.experiment import plan as plans
from sim.experiment.engines import nobody
from sim.experiment.folder_lock import FolderLock
from sim.experiment.objects import as_files, from_python, plugins_of
from sim.experiment.plan import Plan
from sim.experiment.sweep import SweepOptions, SweepResult, run_sweep
from sim.network import Network
from sim.network.parts import schema_table
from sim.tell.contents import contents
from sim.tell.keep import keep

Experiment = str | Path | Mapping[str, Any] | Plan | Network


def load(
    experiment: Experiment,
    settings: Mapping[str, Any] | None = None,
    *,
    plugins: str | Path | Sequence[str | Path] = (),
    out: str | Path | None = None,
) -> Plan:
    """The plan of an experiment with the given dotted keys changed. Every run is checked; `plan.runs` lists them.

    `plugins`: files and installed modules with methods of your own (docs/plugins.md).

    Where files are named, Python may give a NetworkX graph, a dict or list of graphs (which are swept), or a frame of
    pandas or Arrow; `schema` may be a frame of events to guess from, `workload.kind` a registered function. In a dict,
    keys may be dotted, and a list where the key takes none is swept. Objects are written to `out`/inputs (default:
    out/NAME), so that the experiment can be repeated from its file. Of a `Network`, the experiment does again what was
    done in it.
    """
    if isinstance(experiment, Plan):
        if not settings and not plugins:
            return experiment
        experiment = experiment.data
    inputs = (Path(out) if out is not None else Path("out") / _name(experiment)) / "inputs"
    named = [str(name) for name in ([plugins] if isinstance(plugins, str | Path) else plugins)]
    named += [*plugins_of(settings), *plugins_of(experiment)]
    changes, notes = _schema_as_table(settings or {})
    changes = as_files(changes, inputs)
    if isinstance(experiment, Network):
        return plans.load(str(experiment.save(inputs)), changes, named)
    if isinstance(experiment, Mapping):
        data, more = _schema_as_table(experiment)
        plan = plans.plan(from_python(as_files(data, inputs)), settings=changes, plugins=named)
        return replace(plan, notes=(*plan.notes, *notes, *more))
    plan = plans.load(str(experiment), changes, named)
    return replace(plan, notes=(*plan.notes, *notes))


def _schema_as_table(given: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """An experiment or settings with the schema as a file has it, and notes about what was guessed."""
    if given.get("schema") is None:
        return dict(given), ()
    table, notes = schema_table(given["schema"])
    return {**given, "schema": table}, notes


def _name(experiment: Experiment) -> str:
    """The name that the results of an experiment go by, if nobody names a folder."""
    if isinstance(experiment, Network):
        return experiment.settings.name
    given = experiment.get("name", "experiment") if isinstance(experiment, Mapping) else Path(str(experiment)).stem
    return str(given).replace("/", "-")


def run(
    experiment: Experiment,
    settings: Mapping[str, Any] | None = None,
    *,
    out: str | Path | None = None,
    jobs: int | None = None,
    resume: bool = False,
    spark: str | None = None,
    progress: bool = True,
    plugins: str | Path | Sequence[str | Path] = (),
) -> Results:
    """Simulate every run of an experiment, aggregate the traces on Spark, and return the results.

    Traces and results are written to `out` (default: out/NAME). `jobs` runs are simulated at a time (default: one per
    core), or all on the Spark cluster `spark`. A notebook shows the result as a table, the answer in words and the path
    of the page. `progress=False` shows no bar. Raises if a run failed or the oracle found a wrong delivery.
    """
    plan = load(experiment, settings, plugins=plugins, out=out)
    for note in plan.notes:
        warnings.warn(note, stacklevel=2)
    folder = folder_at(out) if out is not None else Path("out") / plan.name.replace("/", "-")
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
            write_report(folder, Asked(contents=contents(folder)))
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
