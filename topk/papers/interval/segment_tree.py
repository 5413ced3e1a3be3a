"""Scored segment tree: VLDB 2008, sections 2.1.2 and 2.2.1.

Property: an interval is kept at the maximal tree nodes whose extent it contains, so every interval on the
root-to-leaf path of a value is stabbed by it, and no comparison is needed. Lists are in score order and
merged with a heap over the O(log n) path nodes: O(log log n) per getnext(). The price is O(n log n) space.

The paper's atomic segments share their endpoints. Ours are exact for closed intervals: the m distinct
endpoints and the m+1 gaps between them alternate as 2m+1 slots. The tree is implicit (children 2i and 2i+1,
no pointers), and because intervals are added in score order the lists need no sorting.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.checks import Ints
from topk.kernels.segments import MOST, maximal_nodes
from topk.papers.interval.contract import NODES, Entries, IntervalIndex, Space, array_bytes
from topk.papers.interval.lanes import add_lane, advance_top, new_lanes

_NONE = -1


@kernel
def _fill(first: Any, last: Any, slots: int) -> Any:
    """Lists of ranks per node; first and last are each interval's slots."""
    offsets = np.zeros(2 * slots + 1, np.int64)
    nodes = np.empty(MOST, np.int64)
    for i in range(len(first)):
        for t in range(maximal_nodes(first[i] + slots, last[i] + slots, nodes)):
            offsets[nodes[t] + 1] += 1
    for v in range(2 * slots):
        offsets[v + 1] += offsets[v]
    members = np.empty(offsets[-1], np.int32)
    place = offsets[:-1].copy()
    for i in range(len(first)):
        for t in range(maximal_nodes(first[i] + slots, last[i] + slots, nodes)):
            members[place[nodes[t]]] = i
            place[nodes[t]] += 1
    return offsets, members


@kernel
def _open_nodes(offsets: Any, members: Any, first: int, last: int, work: Any) -> Any:
    """Lanes of the nodes above the slots first … last, and their number; for a single slot, a path."""
    lanes, lane, slots = new_lanes(), 0, (len(offsets) - 1) >> 1
    left, right = first + slots, last + slots
    while left > 0:
        for node in range(left, right + 1):
            work[NODES] += 1
            if offsets[node] < offsets[node + 1]:
                first_rank = np.int64(members[offsets[node]])
                lanes = add_lane(lanes, lane, first_rank, offsets[node], offsets[node + 1], work)
                lane += 1
        left >>= 1
        right >>= 1
    return lanes, lane


@kernel
def _merge(members: Any, rows: Any, lanes: Any, size: Any, last: Any, out: Any, work: Any) -> int:
    """Merge the lanes. Copies of an interval come out one after the other; last[0], the previous rank, reveals them."""
    ranks, which, at, _ = lanes
    found = 0
    while found < len(out) and size[0] > 0:
        if ranks[0] != last[0]:
            last[0] = ranks[0]
            out[found] = rows[last[0]]
            found += 1
        at[which[0]] += 1
        size[0] = advance_top(lanes, size[0], members, work)
    return found


class SegmentTree(IntervalIndex):
    name = "segment-tree"

    def __init__(self, entries: Entries) -> None:
        super().__init__()
        self._rows, self._lo, self._hi, _, _ = entries.ranked()
        self._ends = np.unique(np.concatenate((self._lo, self._hi)))
        first, last = (2 * np.searchsorted(self._ends, x) + 1 for x in (self._lo, self._hi))
        self._offsets, self._members = _fill(first, last, 2 * len(self._ends) + 1)

    def slot(self, value: float) -> int:
        """2i+1 at the i-th distinct endpoint, 2i in the gap before it."""
        i = int(np.searchsorted(self._ends, value))
        return 2 * i + 1 if i < len(self._ends) and self._ends[i] == value else 2 * i

    def _open(self, low: float, high: float) -> Any:
        lanes, size = _open_nodes(self._offsets, self._members, self.slot(low), self.slot(high), self.work)
        return lanes, np.array([size]), np.array([_NONE])

    def _advance(self, state: Any, out: Ints) -> int:
        return int(_merge(self._members, self._rows, *state, out, self.work))

    @property
    def nbytes(self) -> int:
        # The bounds are kept for `check` only: no query compares them.
        return array_bytes(self._rows, self._ends, self._offsets, self._members)

    @property
    def space(self) -> Space:
        return Space(len(self._members), 0, len(self._offsets) - 2)

    def check(self) -> None:
        slots = 2 * len(self._ends) + 1
        copies = np.bincount(self._members, minlength=len(self._rows))
        deepest = 2 * int(np.ceil(np.log2(slots + 1)))
        assert (copies <= deepest).all(), "an interval is kept at most twice per level"
        assert len(self._rows) == 0 or copies.min() >= 1, "every interval is kept somewhere"
        for node in range(1, 2 * slots):
            part = self._members[self._offsets[node] : self._offsets[node + 1]]
            assert (np.diff(part) > 0).all(), "a node's list is in score order"
