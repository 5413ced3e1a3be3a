"""One run: build the overlay and workload, let the clients act, let the network settle, judge, write."""

from __future__ import annotations

import json
import math
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

from broker import trace
from broker.network import Network, Settings
from broker.ranked_visit import RankedRouting
from broker.trace.disk import writing
from broker.trace.sampling import thin
from broker.transport import LinkModel
from coverlay import CoverlayError, __version__
from routing.contract import RoutingOptions
from routing.overlay.graph import Overlay, build_overlay, load_overlay
from routing.rank import Rank
from sim.experiment import oracle
from sim.experiment.config import Experiment
from sim.experiment.config_methods import MatchingSection
from sim.experiment.effects import idle, input_digests
from sim.experiment.engines import ENGINES, Ready, Tell, engine_for, nobody
from sim.experiment.faults import check_faults, read_faults
from sim.experiment.plan import PlannedRun
from sim.experiment.predict import Prediction, predict
from sim.machine import machine
from sim.random_streams import Stream, streams
from sim.workloads import Workload, generate, load_workload
from sim.workloads.arrivals import PUBLISH, Timeline, schedule

RUNS_KEPT = "finished runs are kept: make room, and --resume goes on from there"
FINEST = 1e-5  # ms between two times that can be told apart; work takes microseconds
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


def overlay_of(experiment: Experiment, stream: Stream) -> Overlay:
    section = experiment.overlay
    if section.file is not None:
        given = section.latency if "latency" in section.model_fields_set else None
        attribute, floor = section.latency_attribute, section.latency_floor
        return load_overlay(section.file, stream("overlay"), given, attribute, section.map, floor)
    return build_overlay(
        section.kind,
        section.brokers,
        stream("overlay"),
        section.latency,
        section.map,
        section.latency_floor,
        **section.options,
    )


def workload_of(experiment: Experiment, stream: Stream) -> Workload:
    section = experiment.workload
    if section.from_files:
        overlay = overlay_of(experiment, stream)  # files may call brokers by name
        return load_workload(section.subscriptions_file, section.events_file, experiment.schema_, overlay.called)
    size = {"attributes": section.attributes, "subscriptions": section.subscriptions, "events": section.events}
    return generate(section.kind, stream, **size, **section.options)


def settings_of(experiment: Experiment, workload: Workload) -> Settings:
    routing, covering, matching, broker = (
        experiment.routing,
        experiment.covering,
        experiment.matching,
        experiment.broker,
    )
    ranked = None
    if experiment.network_wide and matching.k is not None:
        ranked = RankedRouting(matching.k, routing.rank, routing.visit, routing.wave, routing.threshold)
    options = RoutingOptions(
        workload.schema.domain,
        matching.semantics,
        covering.method,
        covering.epsilon,
        covering.options,
        workload.schema.integral,
        routing.cover,
        routing.merge_waste,
        None if ranked is None or ranked.rank == "none" else _rank(matching, workload),
        ranked.k if ranked is not None and ranked.rank == "skyband" else None,
    )
    return Settings(
        routing=options,
        trees=routing.trees,
        root=routing.root,
        epsilon_per_level=tuple(covering.epsilon_per_level),
        epsilon_per_link=covering.links(),
        strategy=routing.strategy,
        mode=routing.mode,
        advertisements=routing.advertisements,
        ask_exact=covering.recall,
        kind=matching.kind,
        place=workload.schema.place,
        metric=matching.metric,
        max_distance=matching.max_distance,
        matcher=matching.method,
        matcher_options=matching.options,
        k=matching.k,
        ranked=ranked,
        service=broker.service.spec,
        queue_capacity=broker.queue,
        overflow=broker.overflow,
        links=LinkModel(**experiment.links.model_dump()),
    )


def _rank(matching: MatchingSection, workload: Workload) -> Rank:
    """What outranks what among the subscriptions of a workload."""
    given = matching.kind == "boxes" and matching.semantics == "exact"
    return Rank.of(workload.scores, workload.weights, given, matching.kind == "places")


def refuse_oversized(
    run: PlannedRun, subscriptions: int, events: int, brokers: int, engine: str, predicted: Callable[[], Prediction]
) -> None:
    """A run that is predicted to exceed `run.limit_bytes` in the chosen engine is not begun, unless forced."""
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
            "covering hold subscriptions back, or run it all the same with --force (run.force = true)"
        )


def timeline_of(experiment: Experiment, stream: Stream, workload: Workload, overlay: Overlay) -> Timeline:
    section = experiment.arrivals
    where: dict[str, Any] = {"map": overlay.map, "spots": overlay.spots, "reranks": experiment.network_wide}
    return schedule(section.kind, stream, workload, overlay.brokers, **where, **section.options)


def ready_of(experiment: Experiment, overlay: Overlay, workload: Workload, stream: Stream) -> Ready:
    timeline = timeline_of(experiment, stream, workload, overlay)
    return Ready(experiment, overlay, workload, timeline, settings_of(experiment, workload), stream)


def check_files(runs: list[PlannedRun]) -> None:
    """Find what is wrong with input files before the first run: a sweep may reach the file in question hours later."""
    seen = set()
    for run in runs:
        experiment = run.experiment
        read = experiment.model_dump_json(include={"overlay", "workload", "schema_", "arrivals", "faults", "matching"})
        if not run.inputs or read in seen:
            continue
        seen.add(read)
        stream = streams(run.seed)
        overlay, workload = overlay_of(experiment, stream), workload_of(_without_generated_rows(experiment), stream)
        timeline_of(experiment, stream, workload, overlay)  # brokers that the files name exist
        network = Network(overlay, settings_of(experiment, workload), stream)
        if experiment.faults.file is not None:
            check_faults(network, read_faults(experiment.faults.file, overlay.called))


def _without_generated_rows(experiment: Experiment) -> Experiment:
    """What is read from files stays; what is generated cannot be wrong and is left out."""
    none = experiment.workload.model_copy(update={"subscriptions": 0, "events": 0})
    return experiment.model_copy(update={"workload": none})


def late_faults(experiment: Experiment, timeline: Timeline) -> tuple[str, ...]:
    """A note about faults of a file that come when nobody subscribes or publishes any more."""
    file = experiment.faults.file
    faults = read_faults(file) if file is not None else []
    end = float(timeline.time[-1]) if len(timeline) else 0.0
    late = sum(fault.time > end for fault in faults)
    if not late:
        return ()
    note = f"{late} of {len(faults)} faults in {file} begin after the last thing that a client does"
    return (f"{note}; they can harm only what is still under way then",)


def _shifted(experiment: Experiment, workload: Workload, timeline: Timeline) -> tuple[str, ...]:
    """A note that recorded events come later than recorded."""
    published = timeline.time[timeline.kind == PUBLISH]
    kept = experiment.arrivals.publishing is not None or workload.times is None or not len(published)
    if kept or published[0] == workload.times[0]:  # type: ignore[index]
        return ()
    note = f"times in {experiment.workload.events_file} count from when the subscriptions have come and settled"
    return (f"{note}, not from 0: subscriptions have no times (arrivals.settle)",)


def _precision(finished: float) -> tuple[str, ...]:
    """A note about how coarse times are at the end of a run; they are doubles, and recordings may count from 1970."""
    if not math.isfinite(finished):
        raise CoverlayError(
            "simulated time went beyond the largest number, 1.8e308 ms: a rate is too low, or a time too high"
        )
    step = math.ulp(finished)
    coarse = f"times reach {finished:.2g} ms, where they go in steps of {step * 1000:.2g} µs"
    return () if step <= FINEST else (f"{coarse}, and so do latencies; let recorded times begin near 0",)


def _without_effect(experiment: Experiment, engine: str) -> tuple[str, ...]:
    """What a setting cannot do in the engine that was chosen for this run."""
    chosen = experiment.model_copy(update={"run": experiment.run.model_copy(update={"engine": engine})})
    return tuple(f"{item.key} has no effect: {item.reason}" for item in idle(chosen) if item.misleads)


def _unused_weights(experiment: Experiment, workload: Workload) -> tuple[str, ...]:
    """What events say about the weight of their attributes counts for predicates alone."""
    if (
        experiment.matching.kind == "predicates"
        or workload.event_weights is None
        or (workload.event_weights == 1).all()
    ):
        return ()
    return (f"weights of events have no effect: matching.kind = {experiment.matching.kind!r}, not 'predicates'",)


def _not_judged(verdict: oracle.Verdict) -> tuple[str, ...]:
    """What the oracle says nothing about."""
    if verdict.strays is not None:
        return ()
    spread = "subscriptions that exist before time 0 spread untraced, so the trace does not tell what tables hold"
    return (f"stray events (sent where no table entry matches) are not judged: {spread}; all else is",)


def _refuse_changed_files(run: PlannedRun) -> Mapping[str, str]:
    """The digests of the input files, which must be those of the time when the run got its name."""
    found = input_digests(run.experiment)
    changed = [key for key, digest in run.inputs.items() if found[key] != digest]
    if changed:
        raise CoverlayError(f"{changed[0]} changed after the sweep began; begin it again")
    return found


def simulate(run: PlannedRun, tell: Tell = nobody) -> tuple[dict[str, pa.Table], tuple[str, ...]]:
    """The complete trace of a run, the run record included, and what the user should be told."""
    started, made = time.perf_counter(), time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
    inputs = _refuse_changed_files(run)
    experiment, stream = run.experiment, streams(run.seed)
    overlay, workload = overlay_of(experiment, stream), workload_of(experiment, stream)
    predicted = cache(lambda: predict(experiment, run.seed))
    trees = overlay.brokers if experiment.routing.trees == "per-source" else 1
    # Every subscription comes over every link and leaves again.
    at_most = overlay.brokers * (2.0 * trees * len(workload.lo) + len(workload.events))
    engine, why = engine_for(experiment, workload, at_most, predicted)
    refuse_oversized(run, len(workload.lo), len(workload.events), overlay.brokers, engine, predicted)
    ready = ready_of(experiment, overlay, workload, stream)
    late, settings = late_faults(experiment, ready.timeline), ready.settings
    ran = ENGINES[engine](replace(ready, tell=tell))
    coarse = _precision(ran.finished)
    tables = ran.tables
    matching = experiment.matching
    verdict = oracle.judge(
        workload,
        tables,
        matching.semantics,
        matching.k,
        matching.kind,
        settings.ranking.max_distance,
        settings.metric,
        strategy=settings.strategy,
        root=settings.root,
        instant=settings.instant,
        share=oracle.judged_share(experiment.run.sample_oracle, len(workload.lo), len(workload.events)),
        network=experiment.network_wide,
    )
    delivered = tables["deliveries"].num_rows + int(tables["deliveries_rest"].column("count").to_numpy().sum())
    tables = thin(tables, experiment.run.sample_decisions, experiment.run.sample_deliveries)
    record = {
        "run_id": run.run_id,
        "experiment": experiment.name,
        "seed": run.seed,
        "point": json.dumps(run.point),
        "parameters": json.dumps(experiment.parameters()),
        "inputs": json.dumps(inputs),
        "versions": json.dumps(_versions()),
        "engine": engine,
        "engine_reason": why,
        "trace_hash": trace.trace_hash(tables),
        "brokers": overlay.brokers,
        "links": ran.links,
        "geographic": overlay.geographic,
        "subscriptions": len(workload.lo),
        "active": ran.active,
        "events": len(workload.events),
        "attributes": len(workload.schema),
        "control_messages": _sent_before(tables) + _over_links(tables["control"]),
        "event_messages": _over_links(tables["publications"]),
        "deliveries": delivered,
        "simple_entries": ran.simple_entries,
        **vars(verdict),
        "finished": ran.finished,
        "wall_seconds": time.perf_counter() - started,
        "made": made,
        "machine": machine(),
        "file_digests": None,  # known when they are written
    }
    tables["run"] = trace.to_table("run", {name: [value] for name, value in record.items()})
    shifted = _shifted(experiment, workload, ready.timeline)
    idle_settings = (*_without_effect(experiment, engine), *_unused_weights(experiment, workload))
    told = (*shifted, *idle_settings, *late, *coarse, *_not_judged(verdict))
    return tables, (*overlay.warnings, *workload.warnings, *told)


def _over_links(messages: pa.Table) -> int:
    return int((messages.column("source").to_numpy() != trace.CLIENT).sum())


def _sent_before(tables: Mapping[str, pa.Table]) -> int:
    """Messages by which subscriptions spread before time 0: they are counted per request and not traced."""
    operations = tables["operations"].select(["kind", "messages"]).to_pandas()
    return int(operations.loc[operations["kind"] == "preload", "messages"].sum())


def execute(run: PlannedRun, out: Path, tell: Tell = nobody) -> Outcome:
    """Simulate a run and write its folder, atomically. `tell` hears how much of the simulated time has passed."""
    tables, warnings = simulate(run, tell)
    folder = out / "runs" / f"run={run.run_id}"
    with writing(folder, RUNS_KEPT):
        trace.write_run(folder, tables)
    return Outcome(run.run_id, tables["run"].to_pylist()[0], warnings)


def _versions() -> dict[str, str]:
    versions = {name: version(name) for name in VERSIONED}
    return {"coverlay": __version__, "python": platform.python_version(), **versions}
