"""One run: build the overlay and workload, let the clients act, let the network settle, judge, write."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from broker import trace
from broker.network import Network, Settings
from broker.sampling import thin
from broker.transport import LinkModel
from coverlay import __version__
from routing.advertisements import advertisement_for
from routing.filter import Filter
from routing.link_strategy import RoutingOptions
from routing.overlay import Overlay, build_overlay, load_overlay
from sim import oracle
from sim.config import Experiment
from sim.experiments import Run
from sim.faults import Fault, cause, check_faults, draw_faults, publishing_period, read_faults
from sim.streams import Stream, streams
from sim.workloads import Workload, generate, load_workload
from sim.workloads.arrivals import PUBLISH, SUBSCRIBE, Timeline, schedule

VERSIONED = ("simpy", "networkx", "numpy", "numba", "pyarrow")


@dataclass(frozen=True)
class Outcome:
    """What a finished run tells the sweep; the rest is in its folder."""

    run_id: str
    record: dict[str, Any]
    warnings: tuple[str, ...]


def overlay_of(experiment: Experiment, stream: Stream) -> Overlay:
    section = experiment.overlay
    if section.file is not None:
        given = section.latency if "latency" in section.model_fields_set else None
        return load_overlay(section.file, stream("overlay"), given, section.latency_attribute, section.map)
    return build_overlay(
        section.kind, section.brokers, stream("overlay"), section.latency, section.map, **section.options
    )


def workload_of(experiment: Experiment, stream: Stream) -> Workload:
    section = experiment.workload
    if section.subscriptions_file is not None or section.events_file is not None:
        return load_workload(section.subscriptions_file, section.events_file, experiment.schema_)
    return generate(
        section.kind,
        stream,
        attributes=section.attributes,
        subscriptions=section.subscriptions,
        events=section.events,
        **section.options,
    )


def settings_of(experiment: Experiment, workload: Workload) -> Settings:
    covering, matching = experiment.covering, experiment.matching
    return Settings(
        routing=RoutingOptions(
            domain=workload.schema.domain,
            semantics=matching.semantics,
            method=covering.method,
            epsilon=covering.epsilon,
            method_options=covering.options,
            integral=workload.schema.integral,
            merge_waste=experiment.routing.merge_waste,
        ),
        trees=experiment.routing.trees,
        root=experiment.routing.root,
        epsilon_per_level=tuple(covering.epsilon_per_level),
        epsilon_per_link=covering.links(),
        strategy=experiment.routing.strategy,
        active=experiment.routing.mode == "active",
        advertisements=experiment.routing.advertisements,
        ask_exact=covering.recall,
        kind=matching.kind,
        place=workload.schema.place,
        max_distance=matching.max_distance,
        matcher=matching.method,
        matcher_options=matching.options,
        semantics=matching.semantics,
        k=matching.k,
        service=experiment.broker.service,
        queue_capacity=experiment.broker.queue,
        overflow=experiment.broker.overflow,
        links=LinkModel(**experiment.links.model_dump()),
    )


def faults_of(experiment: Experiment, stream: Stream, network: Network, timeline: Timeline) -> list[Fault]:
    section = experiment.faults
    if section.file is not None:
        return read_faults(section.file)
    published = timeline.time[timeline.kind == PUBLISH]
    return draw_faults(
        stream,
        network.overlay.brokers,
        network.links,
        publishing_period(published, (section.window[0], section.window[1])),
        crash_fraction=section.crash_fraction,
        cut_fraction=section.cut_fraction,
        downtime=section.downtime,
        state=section.state,
    )


def simulate(run: Run) -> tuple[dict[str, pa.Table], tuple[str, ...]]:
    """The complete trace of a run, the run record included, and what the user should be told."""
    started = time.perf_counter()
    experiment, stream = run.experiment, streams(run.seed)
    overlay = overlay_of(experiment, stream)
    workload = workload_of(experiment, stream)
    timeline = schedule(
        experiment.arrivals.kind, stream, workload, overlay.brokers, map=overlay.map, **experiment.arrivals.options
    )
    network = Network(overlay, settings_of(experiment, workload), stream)
    if experiment.routing.advertisements != "none":
        _advertise(network, workload, timeline)
    network.env.process(_clients(network, workload, timeline))
    faults = faults_of(experiment, stream, network, timeline)
    check_faults(network, faults)
    network.env.process(cause(network, faults))
    if experiment.run.samples and len(timeline):
        network.env.process(_sampler(network, float(timeline.time[-1]), experiment.run.samples))
    network.run()
    network.finish()
    tables = network.recorder.tables()
    matching = experiment.matching
    verdict = oracle.judge(
        workload, tables, matching.semantics, matching.k, matching.kind, network.settings.ranking.max_distance
    )
    delivered = tables["deliveries"].num_rows
    tables = thin(tables, experiment.run.sample_decisions, experiment.run.sample_deliveries)
    record = {
        "run_id": run.run_id,
        "experiment": experiment.name,
        "seed": run.seed,
        "point": json.dumps(run.point),
        "parameters": json.dumps(experiment.parameters()),
        "versions": json.dumps(_versions()),
        "engine": experiment.run.engine,
        "trace_hash": trace.trace_hash(tables),
        "brokers": overlay.brokers,
        "links": len(network.links),
        "subscriptions": len(workload.lo),
        "active": network.active_subscriptions,
        "events": len(workload.events),
        "control_messages": int((tables["control"].column("source").to_numpy() != trace.CLIENT).sum()),
        "event_messages": int((tables["publications"].column("source").to_numpy() != trace.CLIENT).sum()),
        "deliveries": delivered,
        **vars(verdict),
        "finished": network.env.now,
        "wall_seconds": time.perf_counter() - started,
    }
    tables["run"] = trace.to_table("run", {name: [value] for name, value in record.items()})
    return tables, overlay.warnings


def execute(run: Run, out: Path) -> Outcome:
    """Simulate a run and write its folder, atomically."""
    tables, warnings = simulate(run)
    trace.write_run(out / "runs" / f"run={run.run_id}", tables)
    return Outcome(run.run_id, tables["run"].to_pylist()[0], warnings)


def _clients(network: Network, workload: Workload, timeline: Timeline) -> Iterator[Any]:
    filters = [filter_of(workload, row) for row in range(len(workload.lo))]
    env = network.env
    for when, kind, index, broker in zip(
        timeline.time.tolist(),
        timeline.kind.tolist(),
        timeline.index.tolist(),
        timeline.broker.tolist(),
        strict=True,
    ):
        if when > env.now:
            yield env.timeout(when - env.now)
        if kind == SUBSCRIBE:
            network.subscribe(broker, index, filters[index])
        elif kind == PUBLISH:
            weights = None if workload.event_weights is None else workload.event_weights[index]
            network.publish(broker, index, workload.events[index], weights)
        else:
            network.unsubscribe(index)


def _advertise(network: Network, workload: Workload, timeline: Timeline) -> None:
    """Before anything else, every broker with publishers announces what they will publish."""
    publishing = timeline.kind == PUBLISH
    for broker in np.unique(timeline.broker[publishing]).tolist():
        events = timeline.index[publishing & (timeline.broker == broker)]
        network.advertise(broker, broker, advertisement_for(workload.events[events]))


def filter_of(workload: Workload, row: int) -> Filter:
    """Subscription `row` of a workload in the form that brokers route on."""
    return Filter(
        box=np.column_stack([workload.lo[row], workload.hi[row]]),
        residue=workload.residue(row),
        mentioned=tuple(workload.mentioned[row].tolist()),
        weights=workload.weights[row],
        score=float(workload.scores[row]),
        near=workload.nearest(row),
    )


def _sampler(network: Network, last: float, samples: int) -> Iterator[Any]:
    """Write table sizes down at even steps up to the last thing a client does."""
    for sample in range(samples):
        due = last * (sample + 1) / samples
        if due > network.env.now:
            yield network.env.timeout(due - network.env.now)
        network.sample_tables()


def _versions() -> dict[str, str]:
    versions = {name: version(name) for name in VERSIONED}
    return {"coverlay": __version__, "python": platform.python_version(), **versions}
