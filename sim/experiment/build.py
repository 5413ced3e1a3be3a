"""The parts of a run, built from an experiment: overlay, workload, settings of the brokers, timeline of the clients."""

from __future__ import annotations

from typing import Any

from broker.network import Network
from broker.settings import Failover, RankedRouting, Settings
from broker.transport import LinkModel
from routing.contract import RoutingOptions
from routing.overlay.graph import Overlay, build_overlay, load_overlay
from routing.rank import Rank
from routing.strategies import strategy
from sim.experiment.config import Experiment
from sim.experiment.config_methods import MatchingSection, RoutingSection
from sim.experiment.engines import RunInputs
from sim.experiment.faults import check_faults, read_faults
from sim.experiment.oracle import Rules
from sim.experiment.plan import PlannedRun
from sim.random_streams import Stream, streams
from sim.workloads import Workload, generate, load_workload
from sim.workloads.arrivals import Timeline, schedule


def overlay_of(experiment: Experiment, stream: Stream) -> Overlay:
    o, rng = experiment.overlay, stream("overlay")
    if o.file is not None:
        given = o.latency if "latency" in o.model_fields_set else None
        return load_overlay(o.file, rng, given, o.latency_attribute, o.map, o.latency_floor)
    return build_overlay(o.kind, o.brokers, rng, o.latency, o.map, o.latency_floor, **o.options)


def workload_of(experiment: Experiment, stream: Stream) -> Workload:
    section = experiment.workload
    if section.from_files:
        overlay = overlay_of(experiment, stream)  # files may call brokers by name
        files = section.subscriptions_file, section.events_file
        return load_workload(*files, experiment.schema_, overlay.called, section.time_unit).repeated(section.repeat)
    size = {"attributes": section.attributes, "subscriptions": section.subscriptions, "events": section.events}
    return generate(section.kind, stream, **size, **section.options)


def settings_of(experiment: Experiment, workload: Workload) -> Settings:
    routing, covering, matching = experiment.routing, experiment.covering, experiment.matching
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
        routing.options,
    )
    return Settings(
        routing=options,
        trees=routing.trees,
        failover=_failover(routing),
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
        service=experiment.broker.service.spec,
        queue_capacity=experiment.broker.queue,
        overflow=experiment.broker.overflow,
        links=LinkModel(**experiment.links.model_dump()),
    )


def _failover(routing: RoutingSection) -> Failover | None:
    if routing.failover == "none":
        return None
    return Failover(routing.failover, routing.heartbeat, routing.detect_after, routing.rejoin, routing.hold_down)


def _rank(matching: MatchingSection, workload: Workload) -> Rank:
    """What outranks what among the subscriptions of a workload."""
    given = matching.kind == "boxes" and matching.semantics == "exact"
    return Rank.of(workload.scores, workload.weights, given, matching.kind == "places")


def timeline_of(experiment: Experiment, stream: Stream, workload: Workload, overlay: Overlay) -> Timeline:
    section = experiment.arrivals
    where: dict[str, Any] = {"map": overlay.map, "spots": overlay.spots, "reranks": experiment.network_wide}
    return schedule(section.kind, stream, workload, overlay.brokers, **where, **section.options)


def inputs_of(experiment: Experiment, overlay: Overlay, workload: Workload, stream: Stream) -> RunInputs:
    timeline = timeline_of(experiment, stream, workload, overlay)
    return RunInputs(experiment, overlay, workload, timeline, settings_of(experiment, workload), stream)


def rules_of(s: Settings) -> Rules:
    """The rules by which the oracle judges a run with these settings."""
    far, network = s.ranking.max_distance, s.ranked is not None
    sends_to = strategy(s.strategy).sends_to
    return Rules(s.routing.semantics, s.k, s.kind, far, s.metric, network, sends_to, s.root, s.instant)


def check_files(runs: list[PlannedRun]) -> None:
    """Report mistakes in input files before the first run: a sweep might reach the file hours later."""
    seen = set()
    for run in runs:
        experiment = run.experiment
        read = experiment.model_dump_json(include={"overlay", "workload", "schema_", "arrivals", "faults", "matching"})
        # Faults name links, which depend on the seed of a generated overlay.
        about = read, *((run.seed,) if experiment.faults.file is not None else ())
        if not run.inputs or about in seen:
            continue
        seen.add(about)
        stream = streams(run.seed)
        overlay, workload = overlay_of(experiment, stream), workload_of(_without_generated_rows(experiment), stream)
        timeline_of(experiment, stream, workload, overlay)  # fails if a file names a broker that does not exist
        Network(overlay, settings_of(experiment, workload), stream)  # fails if a setting names no link
        if experiment.faults.file is not None:
            check_faults(overlay, read_faults(experiment.faults.file, overlay.called))


def _without_generated_rows(experiment: Experiment) -> Experiment:
    """Keep what is read from files; leave out generated rows, which cannot be wrong."""
    none = experiment.workload.model_copy(update={"subscriptions": 0, "events": 0})
    return experiment.model_copy(update={"workload": none})
