"""Lists of ranks merged with a heap. Each open list is a lane; the heap holds the next rank of each, with its lane."""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.kernels.bits import bit_length
from topk.kernels.heaps import pop, push, sink
from topk.papers.interval.contract import QUEUED

_PATH = 64  # lanes made room for at first: the path of a value; an interval may need more


@kernel(inner=True)
def new_lanes() -> Any:
    """(ranks on the heap, their lanes, next position per lane, end per lane)."""
    return np.empty(_PATH, np.int64), np.empty(_PATH, np.int64), np.empty(_PATH, np.int64), np.empty(_PATH, np.int64)


@kernel(inner=True)
def add_lane(lanes: Any, lane: int, rank: int, at: int, stop: int, work: Any) -> Any:
    """Open one more lane, whose first element is `rank`; returns the lanes, grown where needed."""
    ranks, which, places, stops = lanes
    if lane == len(ranks):
        more = np.empty(lane, np.int64)
        ranks, which = np.append(ranks, more), np.append(which, more)
        places, stops = np.append(places, more), np.append(stops, more)
    places[lane], stops[lane] = at, stop
    push(ranks, which, lane, rank, lane)
    work[QUEUED] += bit_length(lane + 1)
    return ranks, which, places, stops


@kernel(inner=True)
def advance_top(lanes: Any, size: int, members: Any, work: Any) -> int:
    """The top lane has moved to places[lane]: its next rank, or one lane less; returns how many are left."""
    ranks, which, places, stops = lanes
    lane = which[0]
    work[QUEUED] += bit_length(size)
    if places[lane] == stops[lane]:
        return pop(ranks, which, size)
    sink(ranks, which, size, 0, np.int64(members[places[lane]]), lane)
    return size


@kernel
def drain(ranks: Any, size: Any, rows: Any, out: Any, work: Any) -> int:
    """Pop ranks from a heap whose size is in size[0] and write their rows; returns how many."""
    found = 0
    while found < len(out) and size[0] > 0:
        out[found] = rows[ranks[0]]
        found += 1
        work[QUEUED] += bit_length(size[0])
        size[0] = pop(ranks, ranks, size[0])
    return found
