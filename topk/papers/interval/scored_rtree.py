"""Scored R-tree: VLDB 2008, section 2.2.3. An R-tree packed in score order.

Left-first depth-first traversal meets the stabbed intervals best first, so k results may need only a prefix
of the tree. But groups ignore position: extents have *holes*, and a value may enter many leaves without a
stabbed interval, O(n) for one getnext() at worst. Events that are intervals cost nothing more: score order
is total, so the traversal is best first for any test on the extent.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from topk.checks import Ints
from topk.papers.interval import packed
from topk.papers.interval.contract import BRANCHING, Entries, IntervalIndex, Space, array_bytes, branching_factor


class ScoredRTree(IntervalIndex):
    name = "scored-rtree"
    options = {"b": "branching factor"}  # noqa: RUF012

    def __init__(self, entries: Entries, b: int = BRANCHING) -> None:
        super().__init__()
        rows, lo, hi, _, _ = self._arrange(entries.ranked())
        self._rows = rows.astype(np.int32)
        self.tree = packed.pack(lo, hi, branching_factor(b))
        self.explored = np.zeros(packed.MAX_LEVELS, np.int64)  # nodes entered per level, all queries

    def _arrange(self, ranked: Entries) -> Entries:
        return ranked

    def _open(self, low: float, high: float) -> Any:
        return low, high, packed.first(self.tree)

    def _advance(self, state: Any, out: Ints) -> int:
        low, high, at = state
        found = packed.traverse(self.tree, low, high, at, out, self.work, self.explored)
        out[:found] = self._rows[out[:found]]
        return int(found)

    @property
    def nbytes(self) -> int:
        return array_bytes(self._rows, *self.tree[:3])

    @property
    def space(self) -> Space:
        return packed.space(self.tree)

    def check(self) -> None:
        packed.check(self.tree)
