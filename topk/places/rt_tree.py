"""R^t-tree, extended as in §6.1 of Hu et al. (SSTD 2015) from Yu et al. (TKDE 2015).

The R-tree node's token set becomes, per attribute, one range and the largest weight; the tree is walked from the root
to the leaves, children with the larger bound first. The bound is UB_t + α_max · UB_s, with UB_t the sum of the largest
weights whose ranges hold the event. One hull per attribute, depth first and without Eq. 8: what the R^I-tree adds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.kernels.heaps import offer
from topk.places.contract import Ask, Placed, Workspace, arrays_of, nearness, plain_similarity, similarity
from topk.places.rtree import A_HI, LEAF, ROOT, SIZE, X_HI, X_LO, Y_HI, Y_LO, RTree
from topk.places.rtree_index import TokenTree
from topk.places.stabbing import spread_weights
from topk.sparse.rows import clear, spread
from topk.sparse.scores import raised


@kernel
def walk(t: RTree, placed: Placed, columns: Any, ask: Ask, k: int, space: Workspace) -> Any:
    """Depth first. The marks are for nodes."""
    event, total, counts = space
    spread(event, *columns)
    node, children, rect, f = t.node, t.child, t.rect, t.forest
    numbers = placed.rows.ids
    odd, attribute, lo, hi, weight, start, length, place = arrays_of(placed)
    x, y, far = ask.x, ask.y, ask.far
    slots, groups, group, entry, child = f.keys, f.values, f.group, f.entry, f.child
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
                    score = similarity(placed, row, event, ask)
                else:
                    score = plain_similarity(attribute, lo, hi, weight, start[row], length[row], place, row, event, ask)
                if score >= 0.0:
                    size = offer(scores, ids, size, score, numbers[row])
            continue
        if depth + count > len(stack):
            stack = np.concatenate((stack, np.empty(len(stack), np.int64)))
            bounds = np.concatenate((bounds, np.empty(len(bounds))))
        # The parent's forest repeats the token sets of its children: one pass bounds them all.
        spread_weights(slots, groups, group, entry, child, n, columns, total)
        first = depth
        for i in range(count):  # insertion sort, the largest bound last: it is taken first
            c = children[n, i]
            r = rect[c]
            dx = max(0.0, max(r[X_LO] - x, x - r[X_HI]))
            dy = max(0.0, max(r[Y_LO] - y, y - r[Y_HI]))
            bound = raised(total[c] + r[A_HI] * nearness(dx, dy, far))
            total[c] = 0.0
            at = depth
            while at > first and bounds[at - 1] > bound:
                bounds[at], stack[at] = bounds[at - 1], stack[at - 1]
                at -= 1
            bounds[at], stack[at] = bound, c
            depth += 1
    clear(event, columns[0])
    return ids[:size], scores[:size]


class RTTree(TokenTree):
    """R-tree of places with one range and largest weight per attribute in every node."""

    name = "rt-tree"

    kernel = staticmethod(walk)
