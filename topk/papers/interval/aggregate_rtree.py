"""Baseline: an aggregate R-tree in one dimension, after the Ra*-tree (Jürgens & Lenz 1998; VLDB 2008, section 5).

Intervals are grouped by position, as in the conventional R-tree, and every node also keeps the best rank below it. A
query takes nodes best first from a queue: what comes out is the next result, or a node whose children that contain the
value are queued. Unlike the score-sorted structures it does not stop at the first hit of a node, and unlike the
conventional R-tree it does not collect everything first: O(b·log_b n) per result where positions and scores agree, O(n)
at worst.

The paper says that such trees need k up front. Ours does not: the queue is the state of the iterator.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.checks import Ints
from topk.kernels.bits import bit_length
from topk.kernels.heaps import pop, push
from topk.papers.interval.contract import BRANCHING, COMPARED, NODES, QUEUED, Entries, array_bytes
from topk.papers.interval.packed import fill_levels
from topk.papers.interval.rtree import RTree


@kernel
def _advance(tree: Any, best: Any, low: float, high: float, queue: Any, out: Any, work: Any) -> Any:
    """Positions of the next results; the queue holds (best rank, node), nodes of level l numbered from starts[l]."""
    keys, items, size = queue
    starts, b = tree.starts, tree.b
    found = 0
    while size > 0 and found < len(out):
        at = items[0]
        work[QUEUED] += bit_length(size)
        size = pop(keys, items, size)
        if at < starts[1]:
            out[found] = at
            found += 1
            continue
        work[NODES] += 1
        level = 1
        while at >= starts[level + 1]:
            level += 1
        first = starts[level - 1] + (at - starts[level]) * b
        if size + b > len(keys):
            keys = np.concatenate((keys, np.empty(len(keys) + b, np.int64)))
            items = np.concatenate((items, np.empty(len(items) + b, np.int64)))
        for child in range(first, min(first + b, starts[level])):
            work[COMPARED] += 1
            if tree.lo[child] <= high and low <= tree.hi[child]:
                size = push(keys, items, size, np.int64(best[child]), child)
                work[QUEUED] += bit_length(size)
    return (keys, items, size), found


class AggregateRTree(RTree):
    name = "aggregate-rtree"

    def __init__(self, entries: Entries, b: int = BRANCHING) -> None:
        super().__init__(entries, b)
        self._best = np.empty(int(self.tree.starts[-1]), np.int32)
        self._best[: len(self._rank)] = self._rank
        fill_levels(self._best, self.tree.starts, self.tree.b, np.minimum)
        self._rows = self._rows[self._rank].astype(np.int32)
        self._rank = self._best[: len(self._rank)]

    def _open(self, low: float, high: float) -> Any:
        keys, items = np.zeros(64, np.int64), np.zeros(64, np.int64)
        size = int(len(self) > 0)
        items[0] = len(self._best) - 1  # the root is the last
        return [low, high, (keys, items, size)]

    def _advance(self, state: Any, out: Ints) -> int:
        state[2], found = _advance(self.tree, self._best, state[0], state[1], state[2], out, self.work)
        out[:found] = self._rows[out[:found]]
        return int(found)

    @property
    def nbytes(self) -> int:
        return array_bytes(self._rows, self._best, *self.tree[:3])

    def check(self) -> None:
        super().check()
        expected = self._best.copy()
        fill_levels(expected, self.tree.starts, self.tree.b, np.minimum)
        assert (expected == self._best).all(), "a node keeps the best rank below it"
