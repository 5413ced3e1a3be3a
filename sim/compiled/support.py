"""What the compiled engine can run. Everything else is refused by name, never done differently."""

from __future__ import annotations

import numpy as np

from covering.curve.keys import greedy_bits
from sim.compiled.covers_emulated import WIDEST, fits
from sim.compiled.records import COVERING, IDENTITY, SIMPLE
from sim.experiment.config import Experiment
from sim.workloads import Workload

# Strategies, and how their ledgers decide.
STRATEGIES = {
    "flooding": SIMPLE, "simple": SIMPLE, "identity": IDENTITY, "covering": COVERING, "hierarchical": COVERING,
}  # fmt: skip
# Covering methods, with the options that the engine knows.
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
    matching, broker, covering = experiment.matching, experiment.broker, experiment.covering
    searches = STRATEGIES.get(routing.strategy) == COVERING
    known = METHODS.get(covering.method, ())
    checks = [
        (routing.strategy in STRATEGIES, f"routing.strategy = {routing.strategy!r}"),
        (routing.cover == "single", f"routing.cover = {routing.cover!r}"),
        (routing.advertisements == "none", f"routing.advertisements = {routing.advertisements!r}"),
        (faults.file is None and not faults.crash_fraction and not faults.cut_fraction, "faults"),
        (not experiment.links.loss, f"links.loss = {experiment.links.loss}"),
        (broker.queue is None or broker.overflow == "drop", f"broker.overflow = {broker.overflow!r}"),
        (matching.kind == "boxes", f"matching.kind = {matching.kind!r}"),
        (matching.method in MATCHERS, f"matching.method = {matching.method!r}"),
        (not experiment.network_wide, f"matching.scope = {matching.scope!r}"),
        *((False, f"matching.{option} = {value!r}") for option, value in matching.options.items()),
        (not searches or covering.method in METHODS, f"covering.method = {covering.method!r}"),
        *((not searches or name in known, f"covering.{name} = {value!r}") for name, value in covering.options.items()),
    ]
    return next((setting for supported, setting in checks if not supported), None)


def unsupported_workload(experiment: Experiment, workload: Workload) -> str | None:
    """What is only known with the workload; a phrase or None, as above."""
    if experiment.covering.method == "zorder-emulated" and STRATEGIES[experiment.routing.strategy] == COVERING:
        dimensions = 2 * workload.lo.shape[1]
        bits = experiment.covering.options.get("bits") or greedy_bits(dimensions)
        epsilons = [experiment.covering.epsilon, *experiment.covering.epsilon_per_level]
        epsilons += experiment.covering.epsilon_per_link.values()
        if not all(fits(dimensions, bits, epsilon) for epsilon in epsilons):
            return f"zorder-emulated with {dimensions} × {bits} bits (at most {WIDEST}) or so fine an epsilon"
    if experiment.matching.semantics == "relaxed" and len(np.unique(workload.mentioned, axis=0)) > 64:
        return "relaxed matching with more than 64 different sets of attributes"
    return None
