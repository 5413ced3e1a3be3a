"""Binary min-heaps of plain integers, for merging lists whose elements are ranks.

Merging lists: each open list is a lane; a heap key is rank·2^LANE_BITS + lane.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel

LANE_BITS = 31  # ranks and lanes are 32-bit integers
LANE_MASK = (1 << LANE_BITS) - 1
_PATH = 64  # lanes made room for at first: the path of a value; an interval may need more


@kernel
def sift_down(heap: Any, size: int, i: int) -> None:
    item = heap[i]
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= item:
            break
        heap[i] = heap[child]
        i = child
    heap[i] = item


@kernel
def heapify(heap: Any, size: int) -> None:
    for i in range(size // 2 - 1, -1, -1):
        sift_down(heap, size, i)


@kernel
def push_int(heap: Any, size: int, item: int) -> int:
    i = size
    while i > 0:
        parent = (i - 1) >> 1
        if heap[parent] <= item:
            break
        heap[i] = heap[parent]
        i = parent
    heap[i] = item
    return size + 1


@kernel
def drain(heap: Any, size: Any, rows: Any, out: Any) -> int:
    """Pop ranks from a heap whose size is in size[0] and write their rows; returns how many."""
    found = 0
    left = size[0]
    while found < len(out) and left > 0:
        out[found] = rows[heap[0]]
        found += 1
        left -= 1
        heap[0] = heap[left]
        if left > 0:
            sift_down(heap, left, 0)
    size[0] = left
    return found


@kernel
def new_lanes() -> Any:
    """(heap, next position per lane, end per lane)."""
    return np.empty(_PATH, np.int64), np.empty(_PATH, np.int64), np.empty(_PATH, np.int64)


@kernel
def add_lane(lanes: Any, lane: int, key: int, at: int, stop: int) -> Any:
    """Open one more lane, whose first element is `key`; returns the lanes, grown where needed."""
    heap, places, stops = lanes
    if lane == len(heap):
        heap = np.append(heap, np.empty(lane, np.int64))
        places = np.append(places, np.empty(lane, np.int64))
        stops = np.append(stops, np.empty(lane, np.int64))
    places[lane] = at
    stops[lane] = stop
    push_int(heap, lane, (key << LANE_BITS) | lane)
    return heap, places, stops


@kernel
def advance_top(heap: Any, size: int, places: Any, stops: Any, members: Any) -> int:
    """The top lane has moved to places[lane]: its next key, or one lane less; returns how many are left."""
    lane = heap[0] & LANE_MASK
    if places[lane] < stops[lane]:
        heap[0] = (np.int64(members[places[lane]]) << LANE_BITS) | lane
    else:
        size -= 1
        heap[0] = heap[size]
    if size > 0:
        sift_down(heap, size, 0)
    return size


@kernel
def keep_best(best: Any, size: int, rank: int) -> int:
    """Offer a rank to the len(best) smallest, kept negated, from then on that they are full as a heap: worst on top.

    The caller has seen that it is better than −best[0] if they are full. Returns how many there are.
    """
    if size == len(best):
        best[0] = -rank
        sift_down(best, size, 0)
        return size
    best[size] = -rank
    if size + 1 == len(best):
        heapify(best, size + 1)
    return size + 1
