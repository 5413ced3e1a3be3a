"""The answers and probe counts of the greedy Z-order search, from a closed form instead of enumeration.

Beyond two coordinates the greedy search enumerates hopelessly many cubes. But what it would find is known:
each stored point that dominates the query lies in one cube of the decomposition, whose side and rank in the
greedy order have closed forms (theory.level_of, theory.rank_of). The search finds the dominating point in
the largest cube, ties by key, then by slot, after rank + 1 probes, provided that ε and the cap allow that many.

So: find the dominating points by packed words (packed_words.py), keep the best, count its rank once. Same witness,
probes, cubes and volume as `zorder` with the same options, at any D; `merge_runs` has no closed form for its
order and is not offered. The default is no cap: a count is free here.

Cost: O(n) with the constant of a vectorised scan, plus O((D·k)²) integer work per query.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from covering.contract import Slots
from covering.curve import theory
from covering.curve.keys import Bits, Codes, greedy_bits, interleave, mirror
from covering.curve.sfc_array import compare
from covering.given import Floats, check_limit
from covering.packed_points import PackedPoints
from covering.packed_words import dominating
from covering.quantiser import Quantiser
from coverlay import Key, kernel


@kernel
def first_met(
    points: Floats, candidates: Slots, offset: Floats, scale: Floats, bits: int, lengths: Codes, cell: Codes
) -> int:
    """The candidate that the greedy search meets first, its mirrored codes in `cell`; −1 if there is none."""
    dimensions = lengths.shape[0]
    words = (dimensions * bits + 63) // 64
    key, least = np.zeros(words + 1, np.uint64), np.zeros(words + 1, np.uint64)
    codes = np.empty(dimensions, np.int64)
    best, top = -1, -1
    for c in range(candidates.shape[0]):
        mirror(points[candidates[c]], offset, scale, bits, codes)
        level = bits
        for j in range(dimensions):
            differing = codes[j] ^ lengths[j]
            while differing >> level == 0:
                level -= 1
        if level < top:
            continue
        interleave(codes, bits, key)
        key[words] = np.uint64(candidates[c])
        # Within a cube the array is in key order; between cubes of one size the key decides as well.
        if level > top or compare(key, least) < 0:
            best, top = candidates[c], level
            for i in range(words + 1):  # not slices, whose check of lengths takes seconds to compile
                least[i] = key[i]
            for j in range(dimensions):
                cell[j] = codes[j]
    return best


class EmulatedIndex(PackedPoints):
    """What the greedy search finds and counts, without enumerating its cubes.

    >>> from covering.curve.emulated import EmulatedIndex
    >>> index = EmulatedIndex((0, 100), epsilon=0.1, bits=4)
    >>> index.add(1, (0, 90))
    >>> index.find_cover((10, 20)), index.stats.cubes
    (1, 2)
    """

    name = "zorder-emulated"
    touches = "keys"
    on_curve = True
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
        self.probe_cap = probe_cap
        self.bits = greedy_bits(2 * self.attributes) if bits is None else bits
        self._quantiser = Quantiser.of(self.domain, self.bits)

    def _search(self, query: Floats) -> int:
        q, codes = self._quantiser, np.empty(2 * self.attributes, np.int64)
        mirror(query, q.offset, q.scale, q.bits, codes)
        lengths = codes + 1
        plan = theory.plan(lengths.tolist(), self.bits, self.epsilon)
        quota = plan.quota if self.probe_cap is None else min(plan.quota, self.probe_cap)
        above = dominating(self._points, self._words, self._used, self._fields.kernel, query)
        slot = int(first_met(self._points, above, q.offset, q.scale, q.bits, lengths, codes))
        cubes = quota
        if slot >= 0:
            cubes = 1 + theory.rank_of(codes.tolist(), lengths.tolist(), self.bits, plan.levels)
            if cubes > quota:
                slot, cubes = -1, quota
        stats = self.stats
        stats.probes += cubes
        stats.cubes += cubes
        stats.runs += cubes
        stats.volume += plan.fraction(cubes)
        stats.capped += slot < 0 and quota < plan.quota
        return slot
