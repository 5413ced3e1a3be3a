"""Conventional (endpoint-sorted) interval tree: VLDB 2008, sections 2.1.1 and 2.2.2.

Each node lists its intervals twice: by ascending left and by descending right endpoint. A query walks one
path and takes the prefix of one list per node, O(m(q) + log n) for m(q) stabbed intervals, all of them
before the first result. The paper then keeps a heap per node and one over the nodes; ours puts the ranks of
all stabbed intervals into one integer heap, O(m(q)) to build and O(log m(q)) per getnext().
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.checks import Ints
from topk.kernels.heaps import heapify
from topk.kernels.rows import longer
from topk.papers.interval import skeleton
from topk.papers.interval.contract import COMPARED, NODES, QUEUED, Entries, IntervalIndex, Space, array_bytes
from topk.papers.interval.lanes import drain


@kernel
def _collect(tree: Any, lo: Any, hi: Any, lists: Any, low: float, high: float, work: Any) -> Any:
    """The ranks of what meets [low, high], as a heap."""
    offsets, by_lo, by_hi = lists
    found, size = np.empty(64, np.int64), 0
    stack, waiting = skeleton.start(tree)
    while waiting > 0:
        node, waiting = skeleton.step(tree, low, high, stack, waiting)
        work[NODES] += 1
        c = tree.centre[node]
        for t in range(offsets[node], offsets[node + 1]):
            work[COMPARED] += 1
            i = by_lo[t] if high <= c else by_hi[t]
            if (lo[i] > high) if high <= c else (hi[i] < low):
                break
            if size == len(found):
                found = longer(found, size + 1)
            found[size] = i
            size += 1
    heapify(found, found, size)
    work[QUEUED] += size
    return found, size


class IntervalTree(IntervalIndex):
    name = "interval-tree"

    def __init__(self, entries: Entries) -> None:
        super().__init__()
        self._rows, self._lo, self._hi, _, _ = entries.ranked()
        self._tree, self._node_of = skeleton.build(self._lo, self._hi)
        nodes = len(self._tree.centre)
        offsets, by_lo = skeleton.group(self._node_of, np.argsort(self._lo, kind="stable"), nodes)
        _, by_hi = skeleton.group(self._node_of, np.argsort(-self._hi, kind="stable"), nodes)
        self._lists = (offsets, by_lo, by_hi)

    def _open(self, low: float, high: float) -> Any:
        heap, size = _collect(self._tree, self._lo, self._hi, self._lists, low, high, self.work)
        return heap, np.array([size])

    def _advance(self, state: Any, out: Ints) -> int:
        return int(drain(state[0], state[1], self._rows, out, self.work))

    @property
    def nbytes(self) -> int:
        return array_bytes(self._rows, self._lo, self._hi, *self._tree, *self._lists)

    @property
    def space(self) -> Space:
        return Space(2 * len(self), 0, len(self._tree.centre))

    def check(self) -> None:
        skeleton.check(self._tree, self._lo, self._hi, self._node_of)
        offsets, by_lo, by_hi = self._lists
        for v in range(len(offsets) - 1):
            part = slice(offsets[v], offsets[v + 1])
            left, right = self._lo[by_lo[part]], self._hi[by_hi[part]]  # may be infinite: compare, do not diff
            assert (left[:-1] <= left[1:]).all(), "left endpoints ascend"
            assert (right[:-1] >= right[1:]).all(), "right endpoints descend"
            assert set(by_lo[part]) == set(by_hi[part]), "both lists hold the same intervals"
