"""Boxes for the covering benchmark and the reproductions: five shapes of workload on the unit domain."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import covering

Boxes = NDArray[np.float64]
Make = Callable[[int, int, np.random.Generator], Boxes]


def wide(n: int, d: int, rng: np.random.Generator) -> Boxes:
    """Two uniform bounds: a third of the domain on average."""
    return np.sort(rng.random((n, d, 2)), axis=2)


def narrow(n: int, d: int, rng: np.random.Generator) -> Boxes:
    """Uniform centres, up to 4 % of the domain wide."""
    return _around(rng.random((n, d)), rng.random((n, d)) * 0.02)


def zipf(n: int, d: int, rng: np.random.Generator) -> Boxes:
    """Fifty clusters of Zipf popularity, exponential widths."""
    centres = rng.random((50, d))
    popularity = 1 / np.arange(1, 51)
    cluster = rng.choice(50, n, p=popularity / popularity.sum())
    return _around(centres[cluster] + rng.normal(0, 0.03, (n, d)), rng.exponential(0.05, (n, d)))


def anisotropic(n: int, d: int, rng: np.random.Generator) -> Boxes:
    """Widths that differ by a factor of 300 between attributes: a large aspect ratio α."""
    return _around(rng.random((n, d)), rng.random((n, d)) * np.logspace(-3, -0.5, d))


def mixture(n: int, d: int, rng: np.random.Generator) -> Boxes:
    """Equalities, one-sided, unmentioned and interval predicates; the first attribute is always narrow."""
    boxes = wide(n, d, rng)
    kind = rng.random((n, d))
    kind[:, 0] *= 0.5
    equal = kind < 0.3
    boxes[equal] = np.floor(boxes[equal][:, :1] * 1000) / 1000
    boxes[:, 0, 1] = np.minimum(boxes[:, 0, 1], boxes[:, 0, 0] + 0.01)
    boxes[(kind > 0.5) & (kind < 0.7), 0] = -np.inf
    boxes[(kind > 0.7) & (kind < 0.9), 1] = np.inf
    boxes[kind > 0.9] = [-np.inf, np.inf]
    return boxes


def _around(centre: Boxes, half: Boxes) -> Boxes:
    return np.clip(np.stack([centre - half, centre + half], axis=2), 0.0, 1.0)


WORKLOADS: dict[str, Make] = {make.__name__: make for make in (wide, narrow, zipf, anisotropic, mixture)}


def adversarial(n: int, d: int, rng: np.random.Generator) -> tuple[Boxes, Boxes]:
    """(stored, queries): every stored box fails to contain every query in exactly one of its 2d bounds."""
    boxes = np.empty((n, d, 2))
    boxes[:, :, 0], boxes[:, :, 1] = rng.random((n, d)) * 0.3, 1 - rng.random((n, d)) * 0.3
    side = rng.integers(0, 2 * d, n)
    rows = np.arange(n)
    boxes[rows, side // 2, side % 2] = np.where(side % 2, 0.59, 0.41) + np.where(side % 2, -0.05, 0.05) * rng.random(n)
    queries = np.empty((64, d, 2))
    queries[:, :, 0], queries[:, :, 1] = 0.4 - rng.random((64, d)) * 0.05, 0.6 + rng.random((64, d)) * 0.05
    return boxes, queries


def split_queries(stored: Boxes, candidates: Boxes, count: int) -> tuple[Boxes, Boxes]:
    """(uncovered, covered) queries, up to `count` each.

    Where a workload covers nearly everything, the uncovered ones are completed by maximal stored boxes with one
    bound moved outwards: the queries next to the frontier, which are the hardest.
    """
    d = stored.shape[1]
    index = covering.create("kdtree", [[0, 1]] * d)
    index.add_many(np.arange(len(stored)), stored)
    missed = np.array([found is None for found in index.find_cover_many(candidates)], bool)
    uncovered, covered = candidates[missed][:count], candidates[~missed][:count]
    if len(uncovered) < count:
        # A maximal box is covered only by itself or an equal one. Moving a bound outwards leaves it without a cover.
        moved = stored[: 20 * count].copy()
        moved[:, 0, 0] -= 1e-4
        moved[:, -1, 1] += 1e-4
        # Queries outside the domain cost no index any work: they would flatter all methods.
        moved = moved[((moved >= 0) & (moved <= 1) | np.isinf(moved)).all(axis=(1, 2))]
        alone = np.array([found is None for found in index.find_cover_many(moved)], bool)
        uncovered = np.concatenate([uncovered, moved[alone][: count - len(uncovered)]])
    return np.ascontiguousarray(uncovered), np.ascontiguousarray(covered)
