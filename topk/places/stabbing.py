"""Queries on the forests of the R^I-tree: the heaviest interval of a group that an event meets, and the weights of all
children of a node at once.

The first (UB_t's summand in Eq. 5 of Hu et al., SSTD 2015) visits O(log n) positions of a group's implicit tree plus
what cannot be ruled out; the second reads the groups of the event's attributes from their beginnings, sorted by low
end, up to the event.
"""

from __future__ import annotations

from typing import Any

from coverlay import kernel
from topk.kernels.hashing import lookup
from topk.places.forest import COUNT, HI, LO, MOST_HI, MOST_WEIGHT, START, WEIGHT
from topk.sparse.upkeep import COMPARISONS


@kernel(inner=True)
def stabbing_max(entry: Any, begin: int, end: int, low: float, high: float, stack: Any, counts: Any) -> float:
    """The largest weight of an interval of the group at [begin, end) that meets [low, high]; `stack` is scratch."""
    if end - begin <= 4:  # too few for a tree
        counts[COMPARISONS] += end - begin
        best = 0.0
        for i in range(begin, end):
            if entry[i, LO] <= high and entry[i, HI] >= low:
                best = max(best, entry[i, WEIGHT])
        return best
    best = 0.0
    stack[0, 0], stack[0, 1] = begin, end
    depth = 1
    while depth:
        depth -= 1
        left, right = stack[depth, 0], stack[depth, 1]
        if left >= right:
            continue
        middle = (left + right) >> 1
        counts[COMPARISONS] += 1
        if entry[middle, MOST_WEIGHT] <= best or entry[middle, MOST_HI] < low:
            continue
        if entry[middle, LO] <= high:
            if entry[middle, HI] >= low:
                best = max(best, entry[middle, WEIGHT])
            stack[depth, 0], stack[depth, 1] = middle + 1, right
            depth += 1
        stack[depth, 0], stack[depth, 1] = left, middle
        depth += 1
    return best


@kernel(inner=True)
def spread_weights(
    keys: Any, values: Any, group: Any, entry: Any, child: Any, n: int, columns: Any, total: Any, counts: Any
) -> None:
    """Add to each child of the node the weights of its intervals that the event meets."""
    counts[COMPARISONS] += len(columns[0])  # look-ups
    for i in range(len(columns[0])):
        g = lookup(keys, values, n, columns[0][i])
        if g < 0:
            continue
        low, high = columns[1][i], columns[2][i]
        first = group[g, START]
        end = first + group[g, COUNT]
        e = first
        while e < end and entry[e, LO] <= high:
            if entry[e, HI] >= low:
                total[child[e]] += entry[e, WEIGHT]
            e += 1
        counts[COMPARISONS] += min(e + 1, end) - first
