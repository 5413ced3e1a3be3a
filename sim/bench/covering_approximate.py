"""Covering methods that may miss, beside the exact k-d tree: recall and µs per check, in one run.

The stored boxes are all that were drawn (`stored`), or those that a link has (`sent`), which no earlier one covers.
Queries are drawn like the boxes; some are covered, some are not. Every hit is verified here once more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import covering
from sim.bench import Progress, Row
from sim.bench.timing import mean_least
from sim.workloads.boxes import WORKLOADS, Boxes

EXACT = "kdtree (exact)"
METHODS: tuple[tuple[str, float, dict[str, Any]], ...] = (
    ("kdtree", 0.0, {}),
    *(("budget", 0.0, {"budget": budget}) for budget in (256, 1024, 4096)),
    *(("kdtree", 0.0, {"node_budget": nodes}) for nodes in (4, 16, 64)),
    *(("kdtree", epsilon, {}) for epsilon in (0.01, 0.1)),
)
QUERIES = 2000
BATCHES = 4  # the queries are asked in this many
REPEATS = 5


def rows(quick: bool, progress: Progress) -> list[Row]:
    found: list[Row] = []
    for case, workload, n, d in _grid(quick):
        progress(f"methods that may miss, {workload}, n = {n:,}, d = {d}, {case}")
        rng = np.random.default_rng([n, d, 3])
        stored = WORKLOADS[workload](n, d, rng)
        if case == "sent":
            stored = _sent(stored)
        found += _compared(case, workload, stored, WORKLOADS[workload](QUERIES, d, rng))
    return found


def _grid(quick: bool) -> Iterator[tuple[str, str, int, int]]:
    n = 20_000 if quick else 100_000
    yield from (("stored", workload, n, d) for workload, d in (("wide", 4), ("wide", 6), ("zipf", 4), ("narrow", 2)))
    yield from (("sent", workload, 2 * n, d) for workload, d in (("wide", 8), ("zipf", 4)))


def _sent(boxes: Boxes) -> Boxes:
    """Those that a link with exact lazy covering is sent, in this order."""
    index = covering.create("auto", [[0, 1]] * boxes.shape[1])
    kept = []
    for i, box in enumerate(boxes):
        if index.find_cover(box) is None:
            index.add(i, box)
            kept.append(i)
    return boxes[kept]


def _compared(case: str, workload: str, stored: Boxes, asked: Boxes) -> list[Row]:
    n, d = stored.shape[:2]
    indexes = {}
    yours: Any = ((name, 0.0, {}) for name in covering.METHODS.written if covering.may_miss(name, 0.0, {}))
    for name, epsilon, options in (*METHODS, *yours):
        parameter = f"ε = {epsilon}" if epsilon else " ".join(f"{key} = {value}" for key, value in options.items())
        index = covering.create(name, [[0, 1]] * d, epsilon, **options)
        index.add_many(np.arange(n), stored)
        shown = name if name in covering.METHODS.written else EXACT
        indexes[f"{name} {parameter}" if parameter else shown] = index
    hits, work = {}, {}
    for name, index in indexes.items():
        answers = index.find_cover_many(asked)
        hits[name], work[name] = np.array([id is not None for id in answers]), index.stats.copy()
        found = stored[[id for id in answers if id is not None]]
        if not ((found - asked[hits[name]]) * [-1, 1] >= 0).all():
            raise AssertionError(f"{name} invents a cover: {workload}, n = {n}, d = {d}")
    asks = {name: index.find_cover_many for name, index in indexes.items()}
    took = mean_least(asks, np.split(asked, BATCHES), REPEATS)
    covered = hits[EXACT].sum()
    return [
        {
            "case": f"may miss, {case}",
            "workload": workload,
            "n": n,
            "d": d,
            "method": name,
            "recall": hits[name].sum() / covered if covered else None,
            "capped": work[name].capped / len(asked),
            "us_batch": took[name] * BATCHES / len(asked) * 1e6,
            "probes": work[name].probes / len(asked),
            "ratio_to_exact": took[EXACT] / took[name],
        }
        for name in indexes
    ]
