"""What approximate search on the curve takes, beside exact search on the curve and elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import covering
from sim.reproduce.measure import Bout, counter
from sim.reproduce.rules import COUNTS, TIME
from sim.reproduce.sheet import Cause, Sheet
from sim.workloads.boxes import WORKLOADS, split_queries


def _asking(index: Any) -> Callable[[Any], Any]:
    return lambda box: index.find_cover(box)


Methods = dict[str, tuple[str, float, dict[str, Any]]]  # label → method, ε, options


def _bout(n: int, d: int, seed: int, methods: Methods, checks: int) -> Bout:
    """Uncovered checks: a search for nothing has to look everywhere."""
    rng = np.random.default_rng([seed, d])
    stored = WORKLOADS["narrow"](n, d, rng)
    warm_up = min(20, checks)
    asked, _ = split_queries(stored, WORKLOADS["narrow"](8 * checks, d, rng), checks + warm_up)
    indexes = {name: covering.create(m, [[0, 1]] * d, epsilon, **o) for name, (m, epsilon, o) in methods.items()}
    empty = {name: covering.create(m, [[0, 1]] * d, epsilon, **o) for name, (m, epsilon, o) in methods.items()}
    for index in indexes.values():
        index.add_many(np.arange(n), stored)
    # The idle indexes get a box that covers all, which is found at once: in an empty one, the curve is still walked.
    for index in empty.values():
        index.add(0, [[0, 1]] * d)
    return Bout(
        {name: _asking(index) for name, index in indexes.items()},
        list(asked[warm_up:]),
        list(asked[:warm_up]),
        {name: _asking(index) for name, index in empty.items()},
        {name: counter(index, lambda ix: ix.stats.probes) for name, index in indexes.items()},
    )


def searches(sheet: Sheet) -> None:
    """Approximate against exact search, at work."""
    n, checks = sheet.many(10_000, 100_000), sheet.many(100, 1000)
    exact, near = "exact", "ε = 5 %"
    curve: Methods = {
        exact: ("zorder", 0.0, {"merge_runs": True, "probe_cap": 1 << 30}),
        near: ("zorder", 0.05, {"merge_runs": True}),
    }
    few = sheet.sized(20, 100)  # an exact search on the curve looks up thousands of runs
    swept = sheet.sweep(
        "curve", "The curve's exact search and ε = 5 %", "attributes", [(1, lambda seed: _bout(n, 1, seed, curve, few))]
    )
    probes = {f"runs looked up, {name}": points[1] for name, points in swept.mean(COUNTS).items()}
    sheet.judge(
        "substantially-faster-curve",
        swept.each(lambda s: s[exact][1] / s[near][1]),
        Cause("the regions of narrow subscriptions have few runs", probes),
        size=f"{n:,} narrow boxes, {few} uncovered checks",
        figure="curve",
        overhead=swept.overhead,
        detail=", ".join(f"{name} {count:,.0f}" for name, count in probes.items()),
    )
    greedy, tree, jumps = "greedy, ε = 10 %", "k-d tree", "bigmin"
    methods: Methods = {
        greedy: ("zorder", 0.1, {}),
        tree: ("kdtree", 0.0, {}),
        jumps: ("bigmin", 0.0, {}),
    }
    points = [(d, lambda seed, d=d: _bout(n, d, seed, methods, checks)) for d in (1, 2, 3)]
    swept = sheet.sweep("exact", "Approximate search on the curve and exact search", "attributes", points)
    looked = swept.mean(COUNTS)
    sheet.judge(
        "substantially-faster-exact",
        {TIME: swept.each(lambda s: max(s[tree][d] / s[greedy][d] for d in s[tree]))[TIME]},
        Cause(
            "exact search need not enumerate cubes: jumps over the sorted keys or subtree maxima look at less than the "
            "greedy search looks up",
            {f"{name}, probes at d = {d}": looked[name][d] for d in (1, 3) for name in methods},
        ),
        size=f"{n:,} narrow boxes, {checks:,} uncovered checks",
        figure="exact",
        overhead=swept.overhead,
        detail="best of d = 1, 2, 3; µs: "
        + "; ".join(
            f"d = {d}: " + ", ".join(f"{name} {1e3 * swept.mean(TIME)[name][d]:.3g}" for name in methods)
            for d in (1, 2, 3)
        ),
    )
