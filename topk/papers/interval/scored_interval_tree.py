"""Score-sorted interval tree: VLDB 2008, section 2.2.2; what its experiments call "Interval".

Each node keeps one list in score order, with the smallest and largest endpoint of its intervals. A query
opens every node on its path whose range contains the value and merges the lists with a heap of the next
stabbed interval of each. Finding the next stabbed interval of a node is a linear scan of its list:
O(Σ not stabbed + (log n + k) log log n) for k results.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.checks import Ints
from topk.papers.interval import skeleton
from topk.papers.interval.contract import COMPARED, NODES, Entries, IntervalIndex, Space, array_bytes
from topk.papers.interval.lanes import add_lane, advance_top, new_lanes


@kernel(inner=True)
def _next_in_list(data: Any, at: int, stop: int, low: float, high: float, work: Any) -> int:
    lo, hi, _, members, _, _ = data
    while at < stop:
        work[COMPARED] += 1
        i = members[at]
        if lo[i] <= high and low <= hi[i]:
            return at
        at += 1
    return at


@kernel
def _open_lists(tree: Any, data: Any, low: float, high: float, work: Any) -> Any:
    """Lanes of all nodes that [low, high] reaches, each at its first hit, and their number."""
    _, _, offsets, members, least, most = data
    lanes, lane = new_lanes(), 0
    stack, waiting = skeleton.start(tree)
    while waiting > 0:
        node, waiting = skeleton.step(tree, low, high, stack, waiting)
        if least[node] <= high and low <= most[node]:
            work[NODES] += 1
            stop = offsets[node + 1]
            at = _next_in_list(data, offsets[node], stop, low, high, work)
            if at < stop:
                lanes = add_lane(lanes, lane, np.int64(members[at]), at, stop, work)
                lane += 1
    return lanes, lane


@kernel
def _merge(data: Any, rows: Any, low: float, high: float, lanes: Any, size: Any, out: Any, work: Any) -> int:
    (ranks, which, at, stop), found = lanes, 0
    while found < len(out) and size[0] > 0:
        lane = which[0]
        out[found] = rows[ranks[0]]
        found += 1
        at[lane] = _next_in_list(data, at[lane] + 1, stop[lane], low, high, work)
        size[0] = advance_top(lanes, size[0], data[3], work)
    return found


class ScoredIntervalTree(IntervalIndex):
    name = "scored-interval-tree"

    def __init__(self, entries: Entries) -> None:
        super().__init__()
        self._rows, lo, hi, _, _ = entries.ranked()
        self._tree, self._node_of = skeleton.build(lo, hi)
        nodes = len(self._tree.centre)
        offsets, members = skeleton.group(self._node_of, np.arange(len(lo)), nodes)
        low, high = np.full(nodes, np.inf), np.full(nodes, -np.inf)
        np.minimum.at(low, self._node_of, lo)
        np.maximum.at(high, self._node_of, hi)
        self._data = (lo, hi, offsets, members, low, high)

    def _open(self, low: float, high: float) -> Any:
        lanes, size = _open_lists(self._tree, self._data, low, high, self.work)
        return low, high, lanes, np.array([size])

    def _advance(self, state: Any, out: Ints) -> int:
        return int(_merge(self._data, self._rows, *state, out, self.work))

    @property
    def nbytes(self) -> int:
        return array_bytes(self._rows, *self._tree, *self._data)

    @property
    def space(self) -> Space:
        """A node also keeps the range of its intervals."""
        nodes = len(self._tree.centre)
        return Space(len(self), nodes, nodes)

    def check(self) -> None:
        lo, hi, offsets, members, low, high = self._data
        skeleton.check(self._tree, lo, hi, self._node_of)
        for v in range(len(offsets) - 1):
            part = members[offsets[v] : offsets[v + 1]]
            assert (np.diff(part) > 0).all(), "a node's list is in score order"
            assert low[v] == lo[part].min(), "the node's smallest endpoint"
            assert high[v] == hi[part].max(), "the node's largest endpoint"
