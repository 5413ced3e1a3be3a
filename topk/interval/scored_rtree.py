"""Scored R-tree: VLDB 2008, section 2.2.3. An R-tree packed in score order.

Left-first depth-first traversal meets the stabbed intervals best first, so k results may need only a prefix
of the tree. But groups ignore position: extents have *holes*, and a value may enter many leaves without a
stabbed interval, O(n) for one getnext() at worst. Unlike the SOPT-R-tree it also answers events that are
intervals: score order is total, so the traversal is best first for any test on the extent.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from topk.catalogue import Ints
from topk.interval import packed
from topk.interval.base import Cursor, Entries, IntervalIndex, array_bytes, branching_factor


class ScoredRTree(IntervalIndex):
    name = "scored-rtree"
    options = {"b": "branching factor"}  # noqa: RUF012

    def __init__(self, entries: Entries, b: int = 50) -> None:
        super().__init__()
        self._rows, lo, hi, _, _ = self._arrange(entries.ranked())
        self.tree = packed.pack(lo, hi, branching_factor(b))
        self.explored = np.zeros(packed.MAX_LEVELS, np.int64)  # nodes entered per level, all queries

    def _arrange(self, ranked: Entries) -> Entries:
        return ranked

    def __len__(self) -> int:
        return len(self._rows)

    def _open(self, value: float) -> Any:
        return value, value, packed.first(self.tree)

    def overlapping(self, low: float, high: float) -> Cursor:
        """An iterator over the intervals that meet [low, high], best first."""
        return Cursor(self, (low, high, packed.first(self.tree)))

    def _advance(self, state: Any, out: Ints) -> int:
        low, high, at = state
        found = packed.traverse(self.tree, low, high, at, out, self.work, self.explored)
        out[:found] = self._rows[out[:found]]
        return int(found)

    @property
    def nbytes(self) -> int:
        return array_bytes(self._rows, *self.tree[:3])

    def check(self) -> None:
        packed.check(self.tree)
