"""The d-dimensional Zipfian generator of "Scalable Ranked Publish/Subscribe" (VLDB 2008, section 4, Table 1).

Space is [0, 1)^d cut into `cells` equal parts per dimension. `regions` random hyper-rectangles of about
`volume` cells receive the points, shared between regions by a Zipf law of parameter `skew_across`. Within a
region, the cells are ordered by their distance from the region's middle and hit by a Zipf law of parameter
`skew_within`, so points far from the middle are unlikely. A point is then uniform within its cell.

The paper leaves the shape of a region open ("randomly selects hyper-rectangles" of bounded volume) and the
law over distances: ours draws each side around volume^(1/d) and ranks by the L∞ ring (rings of equal rank,
weight per ring ∝ ring^−skew), which needs no enumeration of 100^8/20 cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SIDE_SPREAD = 1.25  # a region's sides vary by up to this factor around the cube of the same volume
_LENGTH_STEPS = 100  # interval half-lengths come in hundredths of the domain, like the cells


def zipf_probabilities(count: int, skew: float) -> NDArray[np.float64]:
    """Probabilities ∝ rank^−skew of ranks 1 to count; skew 0 is uniform."""
    weights = np.arange(1, count + 1, dtype=np.float64) ** -skew
    return weights / weights.sum()


@dataclass(frozen=True)
class Regions:
    """Hyper-rectangles in cells: middles and half sides (regions, d), and how popular each region is."""

    middle: NDArray[np.int64]
    half: NDArray[np.int64]
    popularity: NDArray[np.float64]
    cells: int


def draw_regions(
    rng: np.random.Generator,
    d: int,
    *,
    regions: int = 10,
    cells: int = 100,
    volume: float | None = None,
    skew_across: float = 0.0,
) -> Regions:
    """Subscriptions and events share one draw of these; `volume` is in cells, by default cells**d / 20."""
    # cells · 20^(−1/d) rather than (cells^d / 20)^(1/d), which overflows from d = 155 on.
    side = cells * 20.0 ** (-1.0 / d) if volume is None else volume ** (1.0 / d)
    spread = rng.uniform(1.0 / _SIDE_SPREAD, _SIDE_SPREAD, (regions, d))
    half = np.clip(np.rint(side * spread / 2.0), 1, cells // 2).astype(np.int64)
    middle = np.floor(rng.uniform(half, cells - half)).astype(np.int64)
    return Regions(middle, half, zipf_probabilities(regions, skew_across), cells)


def draw_points(rng: np.random.Generator, n: int, regions: Regions, *, skew_within: float = 1.0) -> NDArray[np.float64]:
    """n points (n, d) in [0, 1)."""
    half, cells = regions.half, regions.cells
    d = half.shape[1]
    region = rng.choice(len(half), size=n, p=regions.popularity)
    rings = int(half.max())
    ring = rng.choice(rings, size=n, p=zipf_probabilities(rings, skew_within))
    ring = np.minimum(ring, half.max(axis=1)[region])  # smaller regions end earlier
    reach = np.minimum(ring[:, None], half[region] - 1)
    offset = np.floor(rng.random((n, d)) * (2 * reach + 1)).astype(np.int64) - reach
    face = rng.integers(0, d, n)  # one coordinate lies on the ring itself, the others within it
    sign = rng.integers(0, 2, n) * 2 - 1
    rows = np.arange(n)
    offset[rows, face] = sign * reach[rows, face]
    cell = np.clip(regions.middle[region] + offset, 0, cells - 1)
    points: NDArray[np.float64] = (cell + rng.random((n, d))) / cells
    return points


def regional_zipf(
    rng: np.random.Generator, n: int, d: int, *, skew_within: float = 1.0, **regions: Any
) -> NDArray[np.float64]:
    """n points (n, d) of a fresh draw of regions (options as of `draw_regions`), all from one generator."""
    return draw_points(rng, n, draw_regions(rng, d, **regions), skew_within=skew_within)


def zipf_lengths(
    rng: np.random.Generator, n: int, d: int, skew_length: float = 0.75, steps: int = _LENGTH_STEPS
) -> NDArray[np.float64]:
    """Half-lengths (n, d) in (0, 1): a Zipf-distributed hundredth of the domain, uniform within it."""
    step = rng.choice(steps, size=(n, d), p=zipf_probabilities(steps, skew_length))
    lengths: NDArray[np.float64] = (step + rng.random((n, d))) / steps
    return lengths
