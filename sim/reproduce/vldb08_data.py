"""What the experiments of VLDB 2008 run on: the generator with the defaults of Table 1, and the indexes compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sim.reproduce.measure import WARM_UP
from sim.reproduce.series import Series
from sim.workloads.points_in_regions import LENGTH_STEPS, SKEW_LENGTH, regional_points, zipf_lengths
from topk.papers.interval.contract import Entries

NAMES = {
    "Interval": "scored-interval-tree",
    "R": "scored-rtree",
    "Segment": "segment-tree",
    "IR": "ir-tree",
    "SOPT-R": "sopt-rtree",
}
K = 20
SEED = 2008

Data = tuple[Any, Any, Any]  # middles, half-lengths, events


def generate(
    n: int, d: int, events: int, skew_length: float = SKEW_LENGTH, seed: int = 1, *, steps: int = LENGTH_STEPS
) -> Data:
    rng = np.random.default_rng([SEED, n, d, seed])  # the same regions and points for every skew_length
    points = regional_points(rng, n + events, d)
    return points[:n], zipf_lengths(rng, n, d, skew_length, steps=steps), points[n:]


def entries_of(data: Data) -> Entries:
    middle, half = data[0][:, 0], data[1][:, 0]
    n = len(middle)
    return Entries(np.arange(n), middle - half, middle + half, 1 - half, np.arange(n))


def one_dimension(n: int, seed: int) -> tuple[Entries, Any]:
    data = generate(n, 1, 1000 + WARM_UP, seed=seed)
    return entries_of(data), data[2][:, 0]


AWAY = 2.0  # outside of the domain: an interval there is never stabbed


def nothing() -> Entries:
    """As good as empty; an index that really is empty takes short cuts."""
    away = np.full(1, AWAY)
    return Entries(np.arange(1), away, away, away, np.arange(1))


def others(series: Series, x: float) -> dict[str, float]:
    """What the paper's other indexes take at x."""
    return {name: series[name][x] for name in NAMES if name != "SOPT-R" and x in series[name]}


def behind(series: Series, x: float, choose: Callable[..., float]) -> float:
    """The best or the slowest other ÷ SOPT-R."""
    return choose(others(series, x).values()) / series["SOPT-R"][x]
