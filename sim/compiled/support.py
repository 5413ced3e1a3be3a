"""What the compiled engine can run. Everything else is refused by name, never done differently."""

from __future__ import annotations

import numpy as np

from covering.curve.keys import greedy_bits
from sim.compiled.covers_emulated import WIDEST, fits
from sim.experiment.config import Experiment
from sim.workloads import Workload

STRATEGIES = ("flooding", "simple", "identity", "covering", "hierarchical")
# Covering methods, with the options that it knows.
METHODS = {
    "scan": (),
    "packed": (),
    "kdtree": ("node_budget",),
    "auto": (),
    "zorder-emulated": ("bits", "probe_cap"),
    "budget": ("budget",),
}
MATCHERS = ("scan", "auto")


def unsupported(experiment: Experiment) -> str | None:
    """The first setting that the compiled engine does not know, as a phrase; None if it knows them all."""
    routing, faults = experiment.routing, experiment.faults
    if routing.strategy not in STRATEGIES:
        return f"routing.strategy = {routing.strategy!r}"
    if routing.cover != "single":
        return f"routing.cover = {routing.cover!r}"
    if routing.advertisements != "none":
        return f"routing.advertisements = {routing.advertisements!r}"
    if faults.file is not None or faults.crash_fraction or faults.cut_fraction:
        return "faults"
    if experiment.links.loss:
        return f"links.loss = {experiment.links.loss}"
    if experiment.broker.queue is not None and experiment.broker.overflow != "drop":
        return f"broker.overflow = {experiment.broker.overflow!r}"
    if experiment.matching.kind != "boxes":
        return f"matching.kind = {experiment.matching.kind!r}"
    if experiment.matching.method not in MATCHERS:
        return f"matching.method = {experiment.matching.method!r}"
    if experiment.network_wide:
        return f"matching.scope = {experiment.matching.scope!r}"
    for option, value in experiment.matching.options.items():
        return f"matching.{option} = {value!r}"
    if routing.strategy in ("covering", "hierarchical"):
        return _unsupported_search(experiment)
    return None


def _unsupported_search(experiment: Experiment) -> str | None:
    covering = experiment.covering
    if covering.method not in METHODS:
        return f"covering.method = {covering.method!r}"
    for option in covering.options:
        if option not in METHODS[covering.method]:
            return f"covering.{option} = {covering.options[option]!r}"
    return None


def unsupported_workload(experiment: Experiment, workload: Workload) -> str | None:
    """What only shows once the workload is there."""
    if experiment.covering.method == "zorder-emulated" and experiment.routing.strategy in ("covering", "hierarchical"):
        dimensions = 2 * workload.lo.shape[1]
        bits = experiment.covering.options.get("bits") or greedy_bits(dimensions)
        epsilons = [experiment.covering.epsilon, *experiment.covering.epsilon_per_level]
        epsilons += experiment.covering.epsilon_per_link.values()
        if not all(fits(dimensions, bits, epsilon) for epsilon in epsilons):
            return f"zorder-emulated with {dimensions} × {bits} bits (at most {WIDEST}) or so fine an epsilon"
    if experiment.matching.semantics == "relaxed" and len(np.unique(workload.mentioned, axis=0)) > 64:
        return "relaxed matching with more than 64 different sets of attributes"
    return None
