"""SOPT-R-tree, the score-optimal R-tree: VLDB 2008, section 3.2.

Two intervals that do not meet may be stored in either order, because no value stabs both. Among all
arrangements that keep meeting intervals in score order, Algorithm 1 takes the one that goes from left to
right wherever it may; then of two consecutive nodes entered by a traversal at least one holds a stabbed
interval (Theorem 3.2): at most k holes and at most 2k nodes per level for k results, O(b·k·log_b n), in the
space of an R-tree.

An event that is an interval may meet two intervals that do not meet each other, and these may be in either
order: all that it meets are collected and sorted by rank before the first result, as in the conventional
R-tree.

Static: one insertion can change the whole arrangement. `topk.create` makes it dynamic by log-structured
rebuilds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from topk.checks import Ints
from topk.papers.interval import packed
from topk.papers.interval.arrangement import arrange, constraint_graph, to_slots
from topk.papers.interval.contract import Entries, SortedRows
from topk.papers.interval.scored_rtree import ScoredRTree


class SoptRTree(ScoredRTree):
    name = "sopt-rtree"
    calibrated = True

    def _arrange(self, ranked: Entries) -> Entries:
        first, last, slots = to_slots(ranked.lo, ranked.hi)
        tails, heads, self.blocks = constraint_graph(first, last, slots)
        self.edges = len(tails)
        order = arrange(first, tails, heads)
        self._rank_at = order.astype(np.int32)
        return ranked.take(order)

    def _open(self, low: float, high: float) -> Any:
        if low == high:
            return super()._open(low, high)
        positions = packed.meeting(self.tree, low, high, self.work, self.explored)
        return SortedRows(self._rows[positions[np.argsort(self._rank_at[positions])]], self.work)

    def _advance(self, state: Any, out: Ints) -> int:
        return state.hand_out(out) if isinstance(state, SortedRows) else super()._advance(state, out)

    @property
    def nbytes(self) -> int:
        return super().nbytes + self._rank_at.nbytes

    def check(self) -> None:
        super().check()
        n = len(self)
        assert self.edges <= 3 * n, "the constraint graph has at most 3n edges (Lemma 3.4)"
        lo, hi = self.tree.lo[:n], self.tree.hi[:n]
        for i in range(n):
            meets = (lo[:i] <= hi[i]) & (lo[i] <= hi[:i])
            assert (self._rank_at[:i][meets] < self._rank_at[i]).all(), "meeting intervals are in score order"
