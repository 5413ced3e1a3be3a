"""What the reproduction of the ICDCS 2007 slides measures: recall, probes and times over ε, D and α."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

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
    n, checks = sheet.sized(2000, 20_000), sheet.sized(200, 1000)
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


def surface_study(seed: int, bits: int = 6, positions: int = 60) -> list[tuple[int, float, float]]:
    """(side, mean runs on the Z curve, on the Hilbert curve) of squares at random places in a 2^bits grid."""
    size = 1 << bits
    keys = np.empty((2, size, size), np.int64)
    for x in range(size):
        for y in range(size):
            cell = np.array([x, y])
            keys[0, x, y] = key_of((x, y), bits)
            to_hilbert(cell, bits)
            keys[1, x, y] = key_of(cell.tolist(), bits)
    rng = np.random.default_rng([9, seed])
    result = []
    for side in range(2, size // 2 + 1):
        corners = rng.integers(0, size - side + 1, (positions, 2)).tolist()
        runs = [
            np.mean(
                [1 + (np.diff(np.sort(keys[c, x : x + side, y : y + side], axis=None)) > 1).sum() for x, y in corners]
            )
            for c in (0, 1)
        ]
        result.append((side, float(runs[0]), float(runs[1])))
    return result
