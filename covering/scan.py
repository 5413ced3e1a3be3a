"""Exact baseline: compare the query with every stored point, stop at the first that dominates it.

Cost: O(nD) worst case, no structure beside the store, updates O(1). The loop leaves a point at its first
failing coordinate, so it is the "scalar scan" that the other methods are measured against. A probe is an
entry looked at.
"""

from __future__ import annotations

import numpy as np

from covering.contract import CoveringIndex, Floats, Slots
from coverlay import kernel


@kernel
def scan_one(points: Floats, used: int, query: Floats) -> int:
    """First slot below `used` whose point dominates `query`, or −1."""
    for i in range(used):
        covers = True
        for j in range(query.shape[0]):
            if not points[i, j] >= query[j]:
                covers = False
                break
        if covers:
            return i
    return -1


@kernel
def _scan_many(points: Floats, used: int, queries: Floats) -> Slots:
    found = np.empty(queries.shape[0], np.int64)
    for i in range(queries.shape[0]):
        found[i] = scan_one(points, used, queries[i])
    return found


class ScanIndex(CoveringIndex):
    name = "scan"

    def _insert(self, slot: int) -> None:
        pass  # the store is the structure

    def _insert_many(self, first: int, count: int) -> None:
        pass

    def _delete(self, slot: int) -> None:
        pass

    def _search(self, query: Floats) -> int:
        slot = int(scan_one(self._points, self._used, query))
        self.stats.probes += slot + 1 if slot >= 0 else self._used
        self.stats.volume += 1.0
        return slot

    def _search_many(self, queries: Floats) -> Slots:
        slots: Slots = _scan_many(self._points, self._used, queries)
        self.stats.probes += int(np.where(slots >= 0, slots + 1, self._used).sum())
        self.stats.volume += len(queries)
        return slots
