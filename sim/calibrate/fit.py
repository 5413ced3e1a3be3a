"""Coefficients from counts and times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

Counts = tuple[float, ...]
Sample = tuple[Counts, float]  # counts per operation, without the 1 for the operation itself; microseconds


@dataclass(frozen=True)
class Fitted:
    """The coefficients of one kind of work, in microseconds, and how well they fit."""

    name: str  # as in `covering.kdtree`
    values: tuple[float, ...]
    error: float  # mean relative error over what was fitted
    held_out: float  # predicted ÷ measured, of what was not


def fit(samples: Sequence[Sample]) -> tuple[tuple[float, ...], float]:
    """Coefficients of 0 or more with the least sum of squared relative errors, and the mean relative error."""
    counts = np.array([(1.0, *sample[0]) for sample in samples])
    times = np.array([sample[1] for sample in samples])
    scaled = counts / times[:, None]
    best, least = np.zeros(counts.shape[1]), np.inf
    for size in range(1, counts.shape[1] + 1):
        for columns in combinations(range(counts.shape[1]), size):
            chosen = list(columns)
            solved = np.linalg.lstsq(scaled[:, chosen], np.ones(len(times)), rcond=None)[0]
            missed = float(((scaled[:, chosen] @ solved - 1.0) ** 2).sum())
            if (solved >= 0).all() and missed < least - 1e-12:
                best, least = np.zeros(counts.shape[1]), missed
                best[chosen] = solved
    error = float(np.abs(scaled @ best - 1.0).mean())
    return tuple(float(value) for value in best), error


def predicted(values: Sequence[float], samples: Sequence[Sample]) -> float:
    """Predicted ÷ measured time of all samples together."""
    expected = sum(values[0] + sum(v * c for v, c in zip(values[1:], counts, strict=True)) for counts, _ in samples)
    return expected / sum(took for _, took in samples)
