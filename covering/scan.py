"""Exact baseline: compare the query with every stored point, stop at the first that dominates it.

Cost: O(nD) worst case, no structure beside the store, updates O(1). The loop leaves a point at its first
failing coordinate, so it is the "scalar scan" that the other methods are measured against. A probe is an
entry looked at.
"""

from __future__ import annotations

from covering.contract import CoveringIndex, Slots
from covering.given import Floats
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
def _scan_many(points: Floats, used: int, queries: Floats, found: Slots) -> int:
    """`scan_one` for each query, into `found`; the number of entries looked at."""
    probes = 0
    for i in range(queries.shape[0]):
        slot = scan_one(points, used, queries[i])
        found[i] = slot
        probes += slot + 1 if slot >= 0 else used
    return probes


class ScanIndex(CoveringIndex):
    """Compares the query with one stored box after the other.

    >>> from covering.scan import ScanIndex
    >>> index = ScanIndex((0, 100))
    >>> index.add_many([1, 2], [(0, 50), (40, 60)])
    >>> index.find_cover((42, 48)), index.stats.probes
    (1, 1)
    """

    name = "scan"
    touches = "boxes"
    compiled_with = ()

    def insert_many(self, first: int, count: int) -> None:
        pass  # the store is the structure

    def search_into(self, queries: Floats, found: Slots) -> None:
        self.stats.probes += _scan_many(self.points, self.used, queries, found)
        self.stats.volume += len(queries)
