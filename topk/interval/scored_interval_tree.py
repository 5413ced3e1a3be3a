"""Score-sorted interval tree: VLDB 2008, section 2.2.2; what its experiments call "Interval".

Each node keeps one list in score order, with the smallest and largest endpoint of its intervals. A query
opens every node on its path whose range contains the value and merges the lists with a heap of the next
stabbed interval of each. Finding the next stabbed interval of a node is a linear scan of its list: O(Σ not-
stabbed + (log n + k) log log n) for k results.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from topk.catalogue import Ints
from topk.interval import skeleton
from topk.interval.base import Entries, IntervalIndex, array_bytes
from topk.interval.heaps import push_int, sift_down

# A heap key is rank·2^_LANE_BITS + lane; a path has at most 2^_LANE_BITS nodes (depth of 2·10⁶ endpoints: 21).
LANE_BITS = 6
LANES = 1 << LANE_BITS


@njit(cache=True)
def _next_in_list(lo: Any, hi: Any, members: Any, at: int, stop: int, value: float, work: Any) -> int:
    while at < stop:
        work[1] += 1
        i = members[at]
        if lo[i] <= value and value <= hi[i]:
            return at
        at += 1
    return at


@njit(cache=True)
def _open_path(tree: Any, data: Any, value: float, state: Any, work: Any) -> None:
    lo, hi, offsets, members, low, high = data
    heap, at, stop, size = state
    lane = 0
    node = 0 if len(tree.centre) else -1
    while node != -1:
        if low[node] <= value and value <= high[node]:
            work[0] += 1
            stop[lane] = offsets[node + 1]
            at[lane] = _next_in_list(lo, hi, members, offsets[node], stop[lane], value, work)
            if at[lane] < stop[lane]:
                size[0] = push_int(heap, size[0], (np.int64(members[at[lane]]) << LANE_BITS) | lane)
                lane += 1
        c = tree.centre[node]
        if value == c:
            break
        node = tree.left[node] if value < c else tree.right[node]


@njit(cache=True)
def _merge(data: Any, rows: Any, value: float, state: Any, out: Any, work: Any) -> int:
    lo, hi, _, members, _, _ = data
    heap, at, stop, size = state
    found = 0
    while found < len(out) and size[0] > 0:
        key = heap[0]
        lane = key & (LANES - 1)
        out[found] = rows[key >> LANE_BITS]
        found += 1
        at[lane] = _next_in_list(lo, hi, members, at[lane] + 1, stop[lane], value, work)
        if at[lane] < stop[lane]:
            heap[0] = (np.int64(members[at[lane]]) << LANE_BITS) | lane
        else:
            size[0] -= 1
            heap[0] = heap[size[0]]
        if size[0] > 0:
            sift_down(heap, size[0], 0)
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

    def __len__(self) -> int:
        return len(self._rows)

    def _open(self, value: float) -> Any:
        heap, at, stop = (np.empty(LANES, np.int64) for _ in range(3))
        lanes = (heap, at, stop, np.zeros(1, np.int64))
        _open_path(self._tree, self._data, value, lanes, self.work)
        return value, lanes

    def _advance(self, state: Any, out: Ints) -> int:
        return int(_merge(self._data, self._rows, state[0], state[1], out, self.work))

    @property
    def nbytes(self) -> int:
        return array_bytes(self._rows, *self._tree, *self._data)

    def check(self) -> None:
        lo, hi, offsets, members, low, high = self._data
        skeleton.check(self._tree, lo, hi, self._node_of)
        for v in range(len(offsets) - 1):
            part = members[offsets[v] : offsets[v + 1]]
            assert (np.diff(part) > 0).all(), "a node's list is in score order"
            assert low[v] == lo[part].min(), "the node's smallest endpoint"
            assert high[v] == hi[part].max(), "the node's largest endpoint"
