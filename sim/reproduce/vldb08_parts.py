"""What a relaxed query of VLDB 2008 is made of: results that the Threshold Algorithm takes, and where the time goes.

The reasons under the claims of Figures 7 to 9 rest on this: the algorithm's own work is the same for every index.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import topk
from sim.reproduce.measure import CLOCK, WARM_UP
from topk.papers.threshold_merge import over

_EVENTS = 40
LABELS = {"IR": "ir-tree", "SOPT-R": "sopt-rtree"}


def parts(catalogue: topk.Catalogue, points: Any, k: int) -> dict[str, float]:
    """Per query and index: results taken of a dimension, operations of the index for each, share of the time."""
    found = {}
    for label, name in LABELS.items():
        index: Any = over(topk.interval_indexes()[name])(catalogue, semantics="relaxed")
        for point in points[:WARM_UP]:
            index.top(point, k)
        merging = _Timed(index._kernel_rounds)
        index._kernel_rounds = merging
        results, operations, started = index.stats.getnexts, int(index._work().sum()), CLOCK()
        for point in points[WARM_UP : WARM_UP + _EVENTS]:
            index.top(point, k)
        whole, results = CLOCK() - started, index.stats.getnexts - results
        found["results taken of a dimension"] = results / _EVENTS / index.dimensions
        found[f"operations of {label} per result"] = (int(index._work().sum()) - operations) / results
        found[f"time of {label} in the Threshold Algorithm, %"] = 100.0 * merging.seconds / whole
    return found


class _Timed:
    """A function and the seconds spent in it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.seconds = function, 0.0

    def __call__(self, *arguments: Any) -> Any:
        started = CLOCK()
        try:
            return self.function(*arguments)
        finally:
            self.seconds += CLOCK() - started
