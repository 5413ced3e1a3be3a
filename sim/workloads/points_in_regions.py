"""The d-dimensional Zipfian generator of "Scalable Ranked Publish/Subscribe" (VLDB 2008, section 4, Table 1).

Space is [0, 1)^d cut into `cells` equal parts per dimension. `regions` random hyper-rectangles of `v_min` to `v_max`
cells receive the points, shared between regions by a Zipf law of parameter `skew_across`. Within a region the cells are
ranked by their distance from its middle and hit by a Zipf law of parameter `skew_within` over these ranks, so points
far from the middle are unlikely; 0 is uniform. A point is then uniform within its cell.

The paper leaves the shape of a region and the distance open. We draw each side near that of a cube with the remaining
volume; the last two are chosen together, so that whole sides give the volume (five cells for d = 1, 20 by 25 for d = 2,
within three thousandths from d = 3 on). Distance is L∞: cells of a ring rank alike and share the weight of their ranks,
so that 100^8/20 cells need not be enumerated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.workloads.contract import Floats
from sim.workloads.zipf_law import zipf_probabilities

Ints = NDArray[np.int64]
REGIONS, CELLS, SKEW_ACROSS, SKEW_WITHIN, SKEW_LENGTH = 10, 100, 0.0, 1.0, 0.75  # defaults of Table 1
_SIDE_SPREAD = math.log(1.25)  # a side differs by up to this factor from that of a cube with the remaining volume
_PAIR_SPREAD = math.log(1.6)  # the same for the last two, which make up for all rounding
LENGTH_STEPS = 100  # of interval half-lengths, as many as cells: the paper names a Zipf law and not its steps
_EXACT_RANKS = 10_000  # weights up to this rank are summed, later ones integrated: the error is below 1e-9
_USUAL_SHARE = 20.0  # v_min and v_max are all cells divided by this (Table 1)


@dataclass(frozen=True)
class Regions:
    """Hyper-rectangles in cells: first cells and sides (regions, d), and how popular each region is."""

    start: Ints
    side: Ints
    popularity: Floats
    cells: int


def draw_regions(
    rng: np.random.Generator,
    d: int,
    *,
    regions: int = REGIONS,
    cells: int = CELLS,
    v_min: float | None = None,
    v_max: float | None = None,
    skew_across: float = SKEW_ACROSS,
) -> Regions:
    """Regions, which subscriptions and events share; volumes are in cells, by default cells**d / 20."""
    usual = d * math.log(cells) - math.log(_USUAL_SHARE)  # logarithms: 100^155 is no float
    least = usual if v_min is None else math.log(v_min)
    most = max(usual, least) if v_max is None else math.log(v_max)
    if v_min is None:
        least = min(least, most)
    bounds = np.clip((least, most), 0.0, d * math.log(cells))
    drawn = [_sides(rng, d, math.log(cells), bounds) for _ in range(regions)]
    side = np.array(drawn, dtype=np.int64).reshape(regions, d)
    start = rng.integers(0, cells - side + 1)
    return Regions(start, side, zipf_probabilities(regions, skew_across), cells)


def _sides(rng: np.random.Generator, d: int, longest: float, bounds: Any) -> Ints:
    """Whole sides, in random order, whose product is between the bounds, or nearest to them; arguments: logarithms."""
    low, high = bounds
    rest = float(rng.uniform(low, high))
    sides: list[int] = []
    while len(sides) < d - 2:
        after = d - len(sides) - 1
        wanted = rest / (after + 1) + float(rng.uniform(-_SIDE_SPREAD, _SIDE_SPREAD))
        needed = rest - after * longest  # the others cannot be longer than the domain
        side = round(math.exp(min(max(wanted, needed), longest, max(rest, 0.0))))
        side = max(side, 1, math.ceil(math.exp(needed) * (1 - 1e-12)))
        sides.append(side)
        rest -= math.log(side)
    if d == 1:
        return np.array([min(max(round(math.exp(rest)), 1), round(math.exp(longest)))])
    wanted = rest / 2 + float(rng.uniform(-_SIDE_SPREAD, _SIDE_SPREAD))
    one = np.arange(1, round(math.exp(longest)) + 1)
    other = np.clip(np.rint(math.exp(rest) / one), 1, len(one)).astype(np.int64)
    off = np.log(one * other) - rest
    before = sum(math.log(side) for side in sides)
    beyond = np.maximum(0.0, np.maximum(low - (off + rest + before), off + rest + before - high))
    odd = np.abs(np.log(one) - wanted)
    beyond[odd > _PAIR_SPREAD] += longest  # an extreme shape: only if nothing else fits
    best = int(np.lexsort((odd, np.round(beyond, 9)))[0])
    return rng.permutation(np.array([*sides, one[best], other[best]]))


def draw_points(rng: np.random.Generator, n: int, regions: Regions, *, skew_within: float = SKEW_WITHIN) -> Floats:
    """n points (n, d) in [0, 1)."""
    region = rng.choice(len(regions.side), size=n, p=regions.popularity)
    shares = ring_shares(regions.side, skew_within)
    drawn = np.searchsorted((shares + np.arange(len(shares))[:, None]).ravel(), region + rng.random(n), side="right")
    ring = np.minimum(drawn - region * shares.shape[1], (regions.side.max(axis=1)[region] - 1) // 2)
    side = regions.side[region]
    full, inner = _within(side, ring), _within(side, ring - 1)
    # The first coordinate that lies on the ring itself: those before it are within, those after it anywhere.
    missed = np.cumprod(inner / full, axis=1)
    aim = rng.random(n) * (1.0 - missed[:, -1])
    first = (aim[:, None] >= 1.0 - missed).sum(axis=1)
    axis = np.arange(side.shape[1])
    block = np.where(axis < first[:, None], inner, full)
    chosen = np.floor(rng.random(side.shape) * np.where(axis == first[:, None], full - inner, block)).astype(np.int64)
    rows = np.flatnonzero((ring > 0) & (first < len(axis)))
    chosen[rows, first[rows]] *= full[rows, first[rows]] - 1  # a ring has two cells along an axis: its ends
    cell = regions.start[region] + (side - block) // 2 + chosen
    points: Floats = (cell + rng.random(side.shape)) / regions.cells
    return points


def _within(side: Ints, ring: Any) -> Ints:
    """Cells of each side that are at most `ring` rings from the middle: one or two in ring 0."""
    wide = 2 * np.asarray(ring)[..., None] + 2 - side % 2
    return np.where(wide < 1, 0, np.minimum(wide, side))


def ring_shares(side: Ints, skew: float) -> Floats:
    """(regions, rings) share of a region's points up to each ring: the Zipf weights of all ranks up to there."""
    rings = np.arange(int((side.max() - 1) // 2) + 1)
    ranks = np.log(_within(side[:, None, :], np.broadcast_to(rings, (len(side), len(rings))))).sum(axis=2)
    weights = _weight_up_to(ranks, skew)
    return weights / weights[:, -1:]


def _weight_up_to(ranks: Floats, skew: float) -> Floats:
    """Σ rank^−skew from rank 1 on, up to ranks given by their logarithms; all divided by the same number if huge."""
    few = np.cumsum(np.arange(1, _EXACT_RANKS + 1, dtype=np.float64) ** -skew)
    exact = np.exp(np.minimum(ranks, math.log(_EXACT_RANKS)))
    summed = few[np.rint(exact).astype(np.int64) - 1]
    since = math.log(_EXACT_RANKS + 0.5)
    beyond = np.maximum(ranks + np.log1p(0.5 * np.exp(-ranks)), since)
    if abs(1.0 - skew) < 1e-9:
        return summed + (beyond - since)
    power = 1.0 - skew
    shift = max(0.0, float((power * beyond).max()) - 600.0)
    integral = (np.exp(power * beyond - shift) - math.exp(power * since - shift)) / power
    return summed * math.exp(-shift) + integral


def regional_points(
    rng: np.random.Generator, n: int, d: int, *, skew_within: float = SKEW_WITHIN, **regions: Any
) -> Floats:
    """n points (n, d) of a fresh draw of regions (options as of `draw_regions`), all from one generator."""
    return draw_points(rng, n, draw_regions(rng, d, **regions), skew_within=skew_within)


def zipf_lengths(
    rng: np.random.Generator, n: int, d: int, skew_length: float = SKEW_LENGTH, *, steps: int = LENGTH_STEPS
) -> Floats:
    """Half-lengths (n, d) in (0, 1): a Zipf-distributed step of the domain, uniform within it."""
    step = rng.choice(steps, size=(n, d), p=zipf_probabilities(steps, skew_length))
    lengths: Floats = (step + rng.random((n, d))) / steps
    return lengths
