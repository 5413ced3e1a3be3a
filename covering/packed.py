"""Exact covering by scanning packed words, largest boxes first.

The static part is sorted by clipped volume Π_j (width within the domain + a small constant), descending. A
cover has at least the query's volume (a product of monotone factors, rounded monotonically), so the scan stops
at the first block whose largest volume is below it. Narrow queries scan all, at 0.1–0.2 ns per entry.

Cost: O(n) with a tiny constant, vectorised (packed_words.py); additions O(1) into the tail, a rebuild by sorting
every ≈ 43 √n of them (static_with_tail.py). A probe is an entry whose words were looked at.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from covering.contract import Slots
from covering.given import Floats
from covering.packed_words import FIRST, SCAN_BLOCK, pack, scan_fields
from covering.static_with_tail import StaticWithTail
from coverlay import kernel

_LEAST_WIDTH = 2.0**-20  # of the domain: keeps equality predicates from making every volume zero


@kernel(inner=True, inline="always")
def volume(point: Floats, domain: Floats) -> float:
    """Monotone in the dominance order: a larger box never has a smaller volume."""
    product = 1.0
    for j in range(domain.shape[0]):
        low = max(-point[2 * j], domain[j, 0])
        high = min(point[2 * j + 1], domain[j, 1])
        width = domain[j, 1] - domain[j, 0]
        inside = max(high - low, 0.0)
        product *= inside + _LEAST_WIDTH * width if width > 0.0 else 1.0
    return product


@kernel
def volumes(points: Floats, domain: Floats) -> Floats:
    """`volume` of each point."""
    result = np.empty(points.shape[0])
    for i in range(points.shape[0]):
        result[i] = volume(points[i], domain)
    return result


@kernel
def find_largest_first(state: Any, built: int, used: int, queries: Floats, found: Slots) -> tuple[int, int]:
    """Tail, then static part for each query, slots into `found`: (last slot, probes)."""
    points, words, grid, guards, domain, largest = state
    offset, scale = grid[0], grid[1]
    packed = np.empty(guards.shape[0], guards.dtype)
    query = np.empty(queries.shape[1])  # a copy: a row would count references
    slot, probes = -1, 0
    for i in range(queries.shape[0]):
        for j in range(query.shape[0]):
            query[j] = queries[i, j]
        pack(query, offset, scale, guards, packed)
        slot, looked = scan_fields(points, words, guards, query, packed, built, used)
        probes += looked
        if slot < 0 and built > 0:
            least = volume(query, domain)
            low, high = 0, largest.shape[0]
            while low < high:  # blocks whose largest volume is at least the query's; all if that is NaN
                middle = (low + high) >> 1
                if not largest[middle] < least:
                    low = middle + 1
                else:
                    high = middle
            slot, looked = scan_fields(points, words, guards, query, packed, FIRST, min(low * SCAN_BLOCK, built))
            probes += looked
        found[i] = slot
    return slot, probes


class PackedIndex(StaticWithTail):
    """Scans packed words, largest boxes first.

    >>> from covering.packed import PackedIndex
    >>> index = PackedIndex([[0, 100], [0, 100]])
    >>> index.add(7, [[0, 50], [0, float("inf")]])
    >>> index.find_cover([[1, 2], [3, 4]])
    7
    """

    name = "packed"
    touches = "words"
    compiled_with = ()

    def __init__(self, domain: ArrayLike, epsilon: float = 0.0) -> None:
        super().__init__(domain, epsilon)
        self._largest: Floats = np.empty(0)  # volume of the first entry of each block of the static part
        self._arrays_moved()

    def _arranged(self, points: Floats) -> Slots:
        sizes = volumes(points, self.domain)
        order: Slots = np.argsort(-sizes, kind="stable")
        self._largest = sizes[order[::SCAN_BLOCK]]
        return order

    def _arrays_moved(self) -> None:
        fields = self._fields
        self._state = (self.points, self._words, fields.grid, fields.guards, self.domain, self._largest)

    def search_into(self, queries: Floats, found: Slots) -> None:
        _, probes = find_largest_first(self._state, self._built, self.used, queries, found)
        self.stats.probes += probes
        self.stats.volume += len(queries)

    def structure_bytes(self) -> int:
        return super().structure_bytes() + self._largest.nbytes

    def check_structure(self) -> None:
        super().check_structure()
        bound = np.repeat(self._largest, SCAN_BLOCK)[: self._built]
        sizes = volumes(self.points[: self._built], self.domain)
        alive = ~np.isnan(sizes)
        assert (sizes[alive] <= bound[alive]).all()
