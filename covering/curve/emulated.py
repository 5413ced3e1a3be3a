"""The answers and probe counts of the greedy Z-order search, from a closed form instead of enumeration.

Beyond two coordinates the greedy search enumerates hopelessly many cubes. But what it would find is known:
each stored point that dominates the query lies in one cube of the decomposition, whose side and rank in the
greedy order have closed forms (theory.level_of, theory.rank_of). The search finds the dominating point in
the largest cube, ties by key, then by slot, after rank + 1 probes, provided that ε and the cap allow that many.

So: find the points in the cells of the region by packed words (packed_words.py), keep the best that dominates, and
count its rank once. The points that come before it in the same order are the rows that the search compares in vain.
Same witness, probes, candidates, cubes and volume as `zorder` with the same options, at any D; `merge_runs` has no
closed form for its order and is not offered. The default is no cap: a count is free here.

Cost: O(n) with the constant of a vectorised scan, plus O((D·k)²) integer work per query.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from covering.contract import Slots
from covering.curve import theory
from covering.curve.keys import Codes, interleave, mirror
from covering.curve.resolution import Bits, GreedyBits, greedy_bits
from covering.curve.sfc_array import compare
from covering.given import Floats, check_limit
from covering.packed_points import PackedPoints
from covering.packed_words import dominates, dominating
from covering.quantiser import Quantiser
from coverlay import Key, kernel

_SLACK = 8.0 * 2.0**-53  # of the terms of an edge: more than the rounding errors of a code


@kernel
def near_edge(query: Floats, offset: Floats, scale: Floats, bits: int, lengths: Codes) -> Floats:
    """A point that every point in a cell of the search region dominates: just below the far corner of the region."""
    edge = np.empty_like(query)
    for j in range(query.shape[0]):
        code = (1 << bits) - lengths[j]
        if code == 0:
            edge[j] = -np.inf
        elif scale[j] == 0.0:  # all finite values are in the lowest cell
            edge[j] = np.inf
        else:
            width = code / scale[j]
            edge[j] = min(query[j], offset[j] + width - _SLACK * (abs(offset[j]) + width))
    return edge


@kernel(inner=True)
def _level_of(point: Floats, offset: Floats, scale: Floats, bits: int, lengths: Codes, codes: Codes) -> int:
    """theory.level_of of a stored point, −1 if it is outside of the region; its mirrored codes in `codes`."""
    mirror(point, offset, scale, bits, codes)
    level = bits
    for j in range(lengths.shape[0]):
        if codes[j] >= lengths[j]:
            return -1
        differing = codes[j] ^ lengths[j]
        while differing >> level == 0:
            level -= 1
    return level


@kernel
def first_met(
    points: Floats, query: Floats, near: Slots, offset: Floats, scale: Floats, bits: int, lengths: Codes, cell: Codes
) -> int:
    """The slot among `near` that the greedy search finds, its mirrored codes in `cell`; −1 if none is a cover."""
    dimensions = lengths.shape[0]
    words = (dimensions * bits + 63) // 64
    key, least = np.zeros(words + 1, np.uint64), np.zeros(words + 1, np.uint64)
    codes = np.empty(dimensions, np.int64)
    best, top = -1, -1
    for slot in near:
        if not dominates(points, slot, query):
            continue
        level = _level_of(points[slot], offset, scale, bits, lengths, codes)
        if level < top:
            continue
        interleave(codes, bits, key)
        key[words] = np.uint64(slot)
        # Within a cube the array is in key order; between cubes of one size the key decides as well.
        if level > top or compare(key, least) < 0:
            best, top = slot, level
            for i in range(words + 1):  # not slices, whose check of lengths takes seconds to compile
                least[i] = key[i]
            for j in range(dimensions):
                cell[j] = codes[j]
    return best


@kernel
def compared_before(
    points: Floats,
    near: Slots,
    offset: Floats,
    scale: Floats,
    bits: int,
    lengths: Codes,
    level: int,
    end: Codes,
    slot: int,
) -> int:
    """How many rows the greedy search compares before it reaches this cell and slot, in a cube of this level."""
    dimensions = lengths.shape[0]
    words = (dimensions * bits + 63) // 64
    key, last = np.zeros(words + 1, np.uint64), np.zeros(words + 1, np.uint64)
    codes = np.empty(dimensions, np.int64)
    interleave(end, bits, last)
    last[words] = np.uint64(slot)
    count = 0
    for other in near:
        larger = _level_of(points[other], offset, scale, bits, lengths, codes)
        if larger == level and larger >= 0:
            interleave(codes, bits, key)
            key[words] = np.uint64(other)
            count += compare(key, last) < 0
        else:
            count += larger > level
    return count


class EmulatedIndex(GreedyBits, PackedPoints):
    """What the greedy search finds and counts, without enumerating its cubes.

    >>> from covering.curve.emulated import EmulatedIndex
    >>> index = EmulatedIndex((0, 100), epsilon=0.1, bits=4)
    >>> index.add(1, (0, 90))
    >>> index.find_cover((10, 20)), index.stats.cubes
    (1, 1)
    """

    name = "zorder-emulated"
    touches = "keys"
    on_curve = True
    compares_candidates = True
    store = "yes or no"
    slow_beyond = 2_000
    priced_like = "zorder"
    compiled_with = ("bits", "probe_cap")
    takes_epsilon = True
    gives_up_with = {"probe_cap": None}  # noqa: RUF012

    def __init__(
        self,
        domain: ArrayLike,
        epsilon: float = 0.0,
        *,
        bits: Bits = None,
        probe_cap: Annotated[int | None, Key("probes after which the search ends; absent: never", "probes")] = None,
    ) -> None:
        super().__init__(domain, epsilon)
        if probe_cap is not None:
            check_limit("probe_cap", probe_cap)
        self.probe_cap = self.cap = probe_cap
        self._follows = bits is None
        self._divide(greedy_bits(0, 2 * self.attributes) if bits is None else bits)

    def _divide(self, bits: int) -> None:
        self._quantiser = Quantiser.of(self.domain, bits)
        self.bits = bits

    def search(self, query: Floats) -> int:
        q, codes = self._quantiser, np.empty(2 * self.attributes, np.int64)
        mirror(query, q.offset, q.scale, q.bits, codes)
        lengths = codes + 1
        plan = theory.plan(lengths.tolist(), self.bits, self.epsilon)
        quota = plan.quota if self.probe_cap is None else min(plan.quota, self.probe_cap)
        edge = near_edge(query, q.offset, q.scale, q.bits, lengths)
        near = dominating(self.points, self._words, self.used, self._fields.kernel, edge)
        slot = int(first_met(self.points, query, near, q.offset, q.scale, q.bits, lengths, codes))
        sides, cubes = lengths.tolist(), quota
        if slot >= 0:
            cubes = 1 + theory.rank_of(codes.tolist(), sides, self.bits, plan.levels)
        if slot < 0 or cubes > quota:
            slot, cubes, end = -1, quota, [0] * len(sides)
            level = theory.cube_at(quota, sides, self.bits, plan.levels, end)
            codes = np.array(end)
        else:
            level = theory.level_of(codes.tolist(), sides)
        compared = compared_before(self.points, near, q.offset, q.scale, q.bits, lengths, level, codes, max(slot, 0))
        stats = self.stats
        stats.probes += cubes
        stats.candidates += compared + (slot >= 0)
        stats.cubes += cubes
        stats.runs += cubes
        stats.volume += plan.fraction(cubes)
        stats.capped += slot < 0 and quota < plan.quota
        return slot
