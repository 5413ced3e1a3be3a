"""One run, from its plan to its folder: build its parts (build.py), let an engine run them, judge, record, write."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

import covering
from analysis.spark.records import times_and_preloads
from broker import trace
from broker.trace.disk import CURE, writing
from broker.trace.sampling import thin
from coverlay import CoverlayError, __version__
from routing.strategies import strategy
from sim.experiment import oracle
from sim.experiment.build import inputs_of, overlay_of, rules_of, workload_of
from sim.experiment.config import Experiment
from sim.experiment.effects import input_digests
from sim.experiment.engines import ENGINES, Tell, engine_for, nobody
from sim.experiment.plan import PlannedRun
from sim.experiment.predict import Prediction, predict
from sim.experiment.run_notes import notes_of, refuse_endless
from sim.experiment.switchovers import switchovers
from sim.machine import machine
from sim.random_streams import streams

ROW_BYTES = 256  # more than a message and its decision take
VERSIONED = ("simpy", "networkx", "numpy", "numba", "pyarrow")


@dataclass(frozen=True)
class Outcome:
    """What a finished run tells the sweep; the rest is in its folder."""

    run_id: str
    record: dict[str, Any]
    warnings: tuple[str, ...]

    @property
    def broken(self) -> str:
        """What the oracle counted that must not happen, in words; empty if nothing did."""
        counts = ((name.replace("_", " "), self.record[name]) for name in trace.MUST_BE_ZERO)
        return ", ".join(f"{name} {count}" for name, count in counts if count)


def refuse_oversized(
    run: PlannedRun, subscriptions: int, events: int, brokers: int, engine: str, predicted: Callable[[], Prediction]
) -> None:
    """Refuse a run that is predicted to exceed `run.limit_bytes` in the chosen engine, unless forced."""
    experiment, section = run.experiment, run.experiment.run
    trees = brokers if experiment.routing.trees == "per-source" else 1
    at_most = ROW_BYTES * brokers * (4.0 * trees * subscriptions + events)  # every subscription over every link
    if section.force or at_most < section.limit_bytes:
        return  # most runs need no better estimate
    size = predicted()
    needed = size.nbytes if engine == "simpy" else size.memory + size.state
    if needed > section.limit_bytes:
        raise CoverlayError(
            f"this run would take {size}, more than run.limit_bytes = {section.limit_bytes:g}; make it smaller, let "
            "covering hold subscriptions back, or run it anyway with --force (run.force = true)"
        )


def _refuse_changed_files(run: PlannedRun) -> Mapping[str, str]:
    """The digests of the input files, which must be those that the run was named by."""
    found = input_digests(run.experiment)
    changed = [key for key, digest in run.inputs.items() if found[key] != digest]
    if changed:
        raise CoverlayError(f"{changed[0]} changed after the sweep began; start it again")
    return found


def simulate(run: PlannedRun, tell: Tell = nobody) -> tuple[dict[str, pa.Table], tuple[str, ...]]:
    """The complete trace of a run, the run record included, and what the user should be told."""
    started, made = time.perf_counter(), time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
    digests = _refuse_changed_files(run)
    experiment, stream = run.experiment, streams(run.seed)
    overlay, workload = overlay_of(experiment, stream), workload_of(experiment, stream)
    predicted = cache(lambda: predict(experiment, run.seed))
    trees = overlay.brokers if experiment.routing.trees == "per-source" else 1
    # Every subscription comes over every link and leaves again.
    at_most = overlay.brokers * (2.0 * trees * len(workload.lo) + len(workload.events))
    engine, why = engine_for(experiment, workload, at_most, lambda: predicted().messages)
    refuse_oversized(run, len(workload.lo), len(workload.events), overlay.brokers, engine, predicted)
    inputs = inputs_of(experiment, overlay, workload, stream)
    # The last of so many samples is at the last time × samples ÷ samples.
    refuse_endless(float(inputs.timeline.time.max(initial=0.0)) * max(experiment.run.samples, 1))
    ran = ENGINES[engine](replace(inputs, tell=tell))
    refuse_endless(ran.finished)
    tables = ran.tables
    share = oracle.judged_share(experiment.run.sample_oracle, len(workload.lo), len(workload.events))
    verdict = oracle.judge(workload, tables, rules_of(inputs.settings), share)
    delivered = tables["deliveries"].num_rows + int(tables["deliveries_rest"].column("count").to_numpy().sum())
    tables = thin(tables, experiment.run.sample_decisions, experiment.run.sample_deliveries)
    before = times_and_preloads(tables["publications"], tables["operations"])
    record = {
        "run_id": run.run_id,
        "experiment": experiment.name,
        "seed": run.seed,
        "point": json.dumps(run.point),
        "parameters": json.dumps(experiment.parameters()),
        "inputs": json.dumps(digests),
        "may_miss": experiment.covering.approximate,
        **facts_of(experiment),
        "versions": json.dumps({**_versions(), **{plugin.name: plugin.digest for plugin in run.plugins}}),
        "engine": engine,
        "engine_reason": why,
        "trace_hash": trace.trace_hash(tables),
        "brokers": overlay.brokers,
        "links": ran.links,
        "spare_links": overlay.graph.number_of_edges() - ran.links,
        "geographic": overlay.geographic,
        "subscriptions": len(workload.lo),
        "active": ran.active,
        "events": len(workload.events),
        "attributes": len(workload.schema),
        **before,
        "control_messages": before["preload_messages"] + _over_links(tables["control"]),
        "event_messages": _over_links(tables["publications"]),
        "deliveries": delivered,
        "simple_entries": ran.simple_entries,
        **switchovers(tables, overlay, inputs.settings.failover, ran.finished),
        **vars(verdict),
        "finished": ran.finished,
        "wall_seconds": time.perf_counter() - started,
        "made": made,
        "machine": machine(),
        "file_digests": None,  # known when they are written
    }
    tables["run"] = trace.to_table("run", {name: [value] for name, value in record.items()})
    return tables, tuple(notes_of(inputs, ran.finished, verdict))


def _over_links(messages: pa.Table) -> int:
    return int((messages.column("source").to_numpy() != trace.CLIENT).sum())


def run_folder(out: Path, run: PlannedRun) -> Path:
    return out / "runs" / f"run={run.run_id}"


def has_runs(out: Path) -> bool:
    """Did any run of the sweep in this folder finish?"""
    return any((out / "runs").glob("run=*"))


def runs_kept(out: Path) -> str:
    """What is left of a sweep that cannot be written any further, and how to go on."""
    kept = f"finished runs are kept: {CURE}, and --resume goes on from there"
    return kept if has_runs(out) else f"no run was finished: {CURE}"


def execute(run: PlannedRun, out: Path, tell: Tell = nobody) -> Outcome:
    """Simulate a run and write its folder, atomically. `tell` hears how much of the simulated time has passed."""
    tables, warnings = simulate(run, tell)
    folder = run_folder(out, run)
    with writing(folder, partial(runs_kept, out)):
        trace.write_run(folder, tables)
    return Outcome(run.run_id, tables["run"].to_pylist()[0], warnings)


def _versions() -> dict[str, str]:
    versions = {name: version(name) for name in VERSIONED}
    return {"coverlay": __version__, "python": platform.python_version(), **versions}


def facts_of(experiment: Experiment) -> dict[str, Any]:
    """What the report needs to know of the strategy and the covering method, as their classes declare it."""
    chosen, section = strategy(experiment.routing.strategy), experiment.covering
    method, epsilon = covering.METHODS[section.method], section.epsilon
    index = method([[0.0, 1.0]], epsilon if method.takes_epsilon else 0.0, **section.options)
    return {
        "sends_to": chosen.sends_to,
        "searches": chosen.searches,
        "merges": chosen.merges,
        "holds_back": chosen.holds_back(),
        "on_curve": method.on_curve,
        "store": index.store or "",
        "epsilon_of": method.epsilon_of,
        "cap": index.cap or 0,
        "charged_as": index.choice if method.name in method.charged_as() else method.name,
    }
