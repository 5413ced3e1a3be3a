"""What the reproduction of the ICDCS 2007 slides measures: recall, probes and times over ε, D and α."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import covering
from covering.curve import theory
from covering.curve.hilbert_keys import to_hilbert
from covering.curve.keys import interleave
from sim.reproduce.sheet import Sheet
from sim.workloads.boxes import WORKLOADS, Boxes

EPSILONS = (0.0, 0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5)


@dataclass(frozen=True)
class Recall:
    """One method at one ε on one workload."""

    method: str
    workload: str
    attributes: int
    epsilon: float
    checks: int
    covered: int  # by exact search
    found: int
    wrong: int  # answers that are no cover: must be 0
    volume: float  # mean fraction searched
    probes: float  # per check, mean
    micros: float  # per check

    @property
    def recall(self) -> float:
        return self.found / self.covered if self.covered else 1.0


def recall(method: str, workload: str, d: int, epsilon: float, stored: Boxes, asked: Boxes) -> Recall:
    """Compare a method's answers with the exact ones, box by box."""
    exact = covering.create("kdtree", [[0, 1]] * d)
    exact.add_many(np.arange(len(stored)), stored)
    truth = exact.find_cover_many(asked)
    index = covering.create(method, [[0, 1]] * d, epsilon)
    index.add_many(np.arange(len(stored)), stored)
    index.find_cover(asked[0])
    index.stats.reset()
    start = time.perf_counter()
    answers = [index.find_cover(box) for box in asked]
    micros = (time.perf_counter() - start) / len(asked) * 1e6
    wrong = sum(
        id is not None and not bool((stored[id, :, 0] <= box[:, 0]).all() and (box[:, 1] <= stored[id, :, 1]).all())
        for id, box in zip(answers, asked, strict=True)
    )
    return Recall(
        method,
        workload,
        d,
        epsilon,
        len(asked),
        sum(t is not None for t in truth),
        sum(a is not None for a in answers),
        wrong,
        index.stats.volume / len(asked),
        index.stats.probes / len(asked),
        micros,
    )


def recall_study(sheet: Sheet, seed: int) -> list[Recall]:
    """The greedy search (emulated, so that no cap interferes) and the k-d tree, over ε, d and workloads."""
    n, checks = sheet.many(2000, 20_000), sheet.many(200, 1000)
    result: list[Recall] = []
    for d in (1, 2) if sheet.quick else (1, 2, 3, 4):
        for workload in WORKLOADS:

            def measured(d: int = d, workload: str = workload) -> list[dict[str, Any]]:
                rng = np.random.default_rng([d, n, seed])
                stored, asked = (WORKLOADS[workload](count, d, rng) for count in (n, checks))
                methods = [(method, epsilon) for method in ("zorder-emulated", "kdtree") for epsilon in EPSILONS]
                return [asdict(recall(method, workload, d, epsilon, stored, asked)) for method, epsilon in methods]

            result += [Recall(**row) for row in sheet.kept(f"recall-{workload}-{d}-{seed}", measured)]
    return result


@dataclass(frozen=True)
class Cost:
    """Cubes and runs of one kind of rectangle, medians over random ones."""

    dimensions: int
    alpha: int
    epsilon: float
    approximate_cubes: float
    exact_cubes: float
    exact_runs: float
    upper_bound: float
    above_bound: int  # rectangles whose approximate search takes more cubes than the bound
    over_bound: float  # the largest share of the bound that one of them takes
    least_searched: float  # the smallest fraction that one of them searches


def cost_study(sheet: Sheet, seed: int, bits: int = 12) -> list[Cost]:
    """Random rectangles of aspect ratio α, shortest side of 8 bits, in a grid of 2^bits per side."""
    result = []
    for dimensions in (2, 4, 8) if sheet.quick else (2, 3, 4, 6, 8):
        for alpha in (0, 2, 4):
            count = sheet.sized(20, 100)
            rectangles = [random_rectangle(dimensions, alpha, 8, (seed, dimensions, alpha, i)) for i in range(count)]
            for epsilon in (0.01, 0.05, 0.1, 0.3):
                bound = theory.approximate_upper_bound(dimensions, alpha, epsilon)
                plans = [theory.plan(sides, bits, epsilon) for sides in rectangles]
                result.append(
                    Cost(
                        dimensions,
                        alpha,
                        epsilon,
                        statistics.median(plan.quota for plan in plans),
                        statistics.median(sum(plan.levels) for plan in plans),
                        statistics.median(theory.runs(sides, bits) for sides in rectangles),
                        bound,
                        sum(plan.quota > bound for plan in plans),
                        max(plan.quota / bound for plan in plans),
                        min(plan.fraction(plan.quota) for plan in plans),
                    )
                )
    return result


def random_rectangle(dimensions: int, alpha: int, bits: int, seed: tuple[int, ...]) -> list[int]:
    """Sides with bit lengths from `bits` to `bits` + α, both ends taken."""
    rng = np.random.default_rng(seed)
    lengths = [bits, bits + alpha, *(bits + rng.integers(0, alpha + 1, dimensions - 2)).tolist()]
    return [int(rng.integers(1 << (b - 1), 1 << b)) for b in rng.permutation(lengths).tolist()]


def key_of(cell: Sequence[int], bits: int) -> int:
    """The position of a cell on the Z curve."""
    row = np.zeros(2, np.uint64)
    interleave(np.array(cell), bits, row)
    return int(row[0]) >> (64 - len(cell) * bits)


def surface_study(bits: int = 6) -> list[tuple[int, float, float]]:
    """(side, mean runs on the Z curve, on the Hilbert curve) of squares, over all their places in a 2^bits grid."""
    size = 1 << bits
    walks = np.empty((2, size * size, 2), np.int64)  # the cells of both curves, in order
    for x in range(size):
        for y in range(size):
            cell = np.array([x, y])
            walks[0, key_of((x, y), bits)] = x, y
            to_hilbert(cell, bits)
            walks[1, key_of(cell.tolist(), bits)] = x, y
    return [
        (side, mean_runs(walks[0], side, size), mean_runs(walks[1], side, size)) for side in range(2, size // 2 + 1)
    ]


def mean_runs(walk: NDArray[np.int64], side: int, size: int) -> float:
    """The mean number of runs of a curve in a square of this side, over all its places in the grid.

    A square has a run for each of its cells, less one for each step of the curve that stays inside. A step stays inside
    the squares that contain both of its cells, so steps are counted instead of squares.
    """
    low, high = np.minimum(walk[:-1], walk[1:]), np.maximum(walk[:-1], walk[1:])
    first, last = np.maximum(high - side + 1, 0), np.minimum(low, size - side)  # places of squares that contain both
    inside = np.maximum(last - first + 1, 0).prod(axis=1).sum()
    return float(side * side - inside / (size - side + 1) ** 2)
