"""R^t-tree, extended as in §6.1 of Hu et al. (SSTD 2015) from Yu et al. (TKDE 2015).

The R-tree node's token set becomes, per attribute, one range and the largest weight; the tree is walked from the root
to the leaves, children with the larger bound first. The bound is UB_t + α_max · UB_s, with UB_t the sum of the largest
weights whose ranges hold the event. One hull per attribute, depth first and without Eq. 8: what the R^I-tree adds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from topk.base import Found
from topk.places.base import NOT_ELIGIBLE, Placed, nearness, plain_text, similarity
from topk.places.forest import HI, LO, WEIGHT, lookup_group
from topk.places.rtree import A_HI, LEAF, ROOT, SIZE, X_HI, X_LO, Y_HI, Y_LO, RTree
from topk.places.rtree_index import RTreeIndex
from topk.select import push
from topk.sparse.store import clear, spread

_SLACK = 1.0 + 1e-9


@njit(cache=True, nogil=True)
def hull_bound(
    keys: Any, values: Any, summary: Any, r: Any, n: int, columns: Any, x: float, y: float, far: float
) -> float:
    total = 0.0
    for i in range(len(columns[0])):
        g = lookup_group(keys, values, n, columns[0][i])
        if g >= 0 and summary[g, LO] <= columns[2][i] and columns[1][i] <= summary[g, HI]:
            total += summary[g, WEIGHT]
    dx = max(0.0, max(r[X_LO] - x, x - r[X_HI]))
    dy = max(0.0, max(r[Y_LO] - y, y - r[Y_HI]))
    return (total + r[A_HI] * nearness(dx, dy, far)) * _SLACK


@njit(cache=True, nogil=True)
def walk(
    t: RTree, placed: Placed, columns: Any, event: Any, x: float, y: float, far: float, k: int, need: int, counts: Any
) -> Any:
    spread(event, *columns)
    place, rows = placed.place, placed.rows
    attribute, lo, hi, weight, start, length = rows.attribute, rows.lo, rows.hi, rows.weight, rows.start, rows.length
    odd, low_event, high_event = rows.odd, event[0], event[1]
    numbers, node, children = rows.ids, t.node, t.child
    rect, slots, groups, summary = t.rect, t.forest.keys, t.forest.values, t.forest.summary
    ids, scores, size = np.empty(k, np.int64), np.empty(k), 0
    stack, bounds, depth = np.empty(1024, np.int64), np.empty(1024), 1
    stack[0], bounds[0] = t.meta[ROOT], np.inf
    while depth:
        depth -= 1
        n = stack[depth]
        if size == k and bounds[depth] < scores[0]:
            continue
        counts[1] += 1
        count = node[n, SIZE]
        if node[n, LEAF]:
            counts[0] += count
            for i in range(count):
                row = children[n, i]
                if odd[row] >= 0:
                    score = similarity(placed, row, event, x, y, far, need)
                else:
                    first = start[row]
                    text = plain_text(
                        attribute, lo, hi, weight, first, first + length[row], low_event, high_event, need
                    )
                    near = nearness(place[row, 0] - x, place[row, 1] - y, far)
                    score = (1.0 - place[row, 2]) * text + place[row, 2] * near if text >= 0.0 else NOT_ELIGIBLE
                if score >= 0.0:
                    size = push(scores, ids, size, score, numbers[row])
            continue
        if depth + count > len(stack):
            stack = np.concatenate((stack, np.empty(len(stack), np.int64)))
            bounds = np.concatenate((bounds, np.empty(len(bounds))))
        first = depth
        for i in range(count):  # insertion sort, the largest bound last: it is taken first
            c = children[n, i]
            bound = hull_bound(slots, groups, summary, rect[c], c, columns, x, y, far)
            at = depth
            while at > first and bounds[at - 1] > bound:
                bounds[at], stack[at] = bounds[at - 1], stack[at - 1]
                at -= 1
            bounds[at], stack[at] = bound, c
            depth += 1
    clear(event, columns[0])
    return ids[:size], scores[:size]


class RTTree(RTreeIndex):
    """R-tree of places with one range and largest weight per attribute in every node."""

    name = "rt-tree"

    def _search(self, columns: Any, x: float, y: float, k: int) -> Found:
        ids, scores = walk(
            self._tree, self.placed, columns, self._event, x, y, self.max_distance, k, self._need, self._counts
        )
        return ids, scores
