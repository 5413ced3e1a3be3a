"""What the compiled engine can run. Everything else is refused by name, never done differently."""

from __future__ import annotations

import numpy as np

import covering
from broker.matchers import ROW_METHODS
from covering.curve.emulated import EmulatedIndex
from covering.curve.resolution import greedy_bits
from routing.strategies import strategy
from sim.compiled.covers_emulated import WIDEST, fits
from sim.compiled.records import SERVICES, compiled_as
from sim.experiment.config import Experiment
from sim.workloads import Workload


def _known_options(method: str) -> tuple[str, ...] | None:
    """The options of a covering method that the engine knows, as the class itself says; None if it lacks the method."""
    return vars(covering.METHODS[method]).get("compiled_with")


def unsupported(experiment: Experiment) -> str | None:
    """The first setting that the compiled engine does not know, as a phrase; None if it knows them all."""
    routing, faults = experiment.routing, experiment.faults
    matching, broker, searching = experiment.matching, experiment.broker, experiment.covering
    searches = strategy(routing.strategy).searches
    known = _known_options(searching.method)
    others = [option for option in searching.options if searches and option not in (known or ())]
    checks = [
        (compiled_as(routing.strategy) is not None, f"routing.strategy = {routing.strategy!r}"),
        (routing.cover == "single", f"routing.cover = {routing.cover!r}"),
        (routing.advertisements == "none", f"routing.advertisements = {routing.advertisements!r}"),
        (routing.failover == "none", f"routing.failover = {routing.failover!r}"),
        (faults.file is None and not faults.crash_fraction and not faults.cut_fraction, "faults"),
        (broker.service.kind in SERVICES, f"broker.service.kind = {broker.service.kind!r}"),
        (not experiment.links.loss, f"links.loss = {experiment.links.loss}"),
        (broker.queue is None or broker.overflow == "drop", f"broker.overflow = {broker.overflow!r}"),
        (matching.kind == "boxes", f"matching.kind = {matching.kind!r}"),
        (matching.method in ROW_METHODS, f"matching.method = {matching.method!r}"),
        (not experiment.network_wide, f"matching.scope = {matching.scope!r}"),
        *((False, f"matching.{option} = {value!r}") for option, value in matching.options.items()),
        (not searches or known is not None, f"covering.method = {searching.method!r}"),
        *((False, f"covering.{option} = {searching.options[option]!r}") for option in others),
    ]
    return next((setting for supported, setting in checks if not supported), None)


def unsupported_workload(experiment: Experiment, workload: Workload) -> str | None:
    """What is only known with the workload; a phrase or None, as above."""
    searches = strategy(experiment.routing.strategy).searches
    if searches and covering.METHODS[experiment.covering.method] is EmulatedIndex:
        dimensions = 2 * workload.lo.shape[1]
        bits = experiment.covering.options.get("bits") or greedy_bits(len(workload.lo), dimensions)
        epsilons = [experiment.covering.epsilon, *experiment.covering.epsilon_per_level]
        epsilons += experiment.covering.epsilon_per_link.values()
        if not all(fits(dimensions, bits, epsilon) for epsilon in epsilons):
            return f"zorder-emulated with {dimensions} × {bits} bits (at most {WIDEST}) or so fine an epsilon"
    if experiment.matching.semantics == "relaxed" and len(np.unique(workload.mentioned, axis=0)) > 64:
        return "relaxed matching with more than 64 different sets of attributes"
    return None
