"""Conventional R-tree in one dimension: VLDB 2008, section 2.1.3.

Intervals are grouped by their middle, so that groups are spatially tight. All stabbed intervals are found
before the first result, then returned from a heap of their ranks: O(n) at worst, since several paths may be
followed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from topk.checks import Ints
from topk.kernels.heaps import heapify
from topk.papers.interval import packed
from topk.papers.interval.contract import (
    BRANCHING,
    QUEUED,
    Entries,
    IntervalIndex,
    Space,
    array_bytes,
    branching_factor,
)
from topk.papers.interval.lanes import drain


def middles(lo: Any, hi: Any) -> Any:
    """The middle of each interval; a half-open one counts by its finite end, an open one as 0."""
    finite_lo = np.where(np.isfinite(lo), lo, np.where(np.isfinite(hi), hi, 0.0))
    finite_hi = np.where(np.isfinite(hi), hi, finite_lo)
    return finite_lo / 2 + finite_hi / 2


class RTree(IntervalIndex):
    name = "rtree"
    options = {"b": "branching factor"}  # noqa: RUF012

    def __init__(self, entries: Entries, b: int = BRANCHING) -> None:
        super().__init__()
        self._rows, lo, hi, _, _ = entries.ranked()
        self._rank = np.argsort(middles(lo, hi), kind="stable").astype(np.int32)  # by position in the tree
        self.tree = packed.pack(lo[self._rank], hi[self._rank], branching_factor(b))

    def _open(self, low: float, high: float) -> Any:
        explored = np.zeros(packed.MAX_LEVELS, np.int64)
        heap = self._rank[packed.meeting(self.tree, low, high, self.work, explored)].astype(np.int64)
        heapify(heap, heap, len(heap))
        self.work[QUEUED] += len(heap)
        return heap, np.array([len(heap)])

    def _advance(self, state: Any, out: Ints) -> int:
        return int(drain(state[0], state[1], self._rows, out, self.work))

    @property
    def nbytes(self) -> int:
        return array_bytes(self._rows, self._rank, *self.tree[:3])

    @property
    def space(self) -> Space:
        return packed.space(self.tree)

    def check(self) -> None:
        packed.check(self.tree)
        assert (np.sort(self._rank) == np.arange(len(self))).all(), "the arrangement is a permutation"
