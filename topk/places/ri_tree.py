"""R^I-tree: an R-tree whose nodes hold forests of stabbing-max interval trees (Hu et al., SSTD 2015, §5).

Best-first search (Algorithm 1) by UB (Eq. 8) from UB_t (Eq. 5: the sum of the stabbing maxima of the event's
attributes) and UB_s (Eq. 6). Every subscription below a node has ψ ≤ UB (Theorem 1), so the search ends when the
k-th similarity exceeds the best bound that waits.

Ours changes how often bounds are computed. The parent's groups already say, child by child, which weights can hold:
one pass over them bounds all children at once, with the children's hulls instead of their interval trees. A node is
refined by its own forest only when it comes to the top. In a leaf the same pass gives the exact ψ_t of its
subscriptions up to rounding, so only those that can enter the answer are compared. Ours is also packed by layers of α.

`ri-tree-paper` computes UB of every node that is pushed, compares all subscriptions of a leaf, and grows a tree of the
places by insertion. With token sets instead of forests this is the search of the R^t-tree (`rt_tree`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.kernels.hashing import lookup
from topk.kernels.heaps import offer, pop, push
from topk.kernels.rows import floats, ints, longer
from topk.places.catalogue import PlacedCatalogue
from topk.places.contract import Ask, Placed, Workspace, arrays_of, row_nearness, similarity
from topk.places.forest import COUNT, HI, LO, START, WEIGHT
from topk.places.rtree import A_HI, A_LO, LEAF, ROOT, SIZE, PlaceTree, box_nearness
from topk.places.rtree_index import INSERTION, TokenTree
from topk.places.stabbing import spread_weights, stabbing_max
from topk.sparse.rows import clear, spread
from topk.sparse.scores import raised
from topk.sparse.upkeep import COMPARISONS, ENTRIES, NODES, QUEUED

# Where a node's UB_t comes from: its parent's groups; those, then its own forest when it comes to the top; its own
# forest; its own token set, which is a hull and the largest weight per attribute.
FROM_PARENT, AT_THE_TOP, OWN_FOREST, OWN_TOKENS = range(4)
_QUEUE = np.int64(256)  # entries that the queue has room for at first


@kernel(inner=True)
def upper_bound(r: Any, text: float, ask: Ask, tight: bool) -> float:
    """UB (Eq. 8) of a node's rectangle and range of α, for a given UB_t; not tight: as if both were independent."""
    near = box_nearness(r, ask)
    if r[A_HI] <= 1.0 - text or not tight:
        bound = r[A_HI] * near + text
    elif r[A_LO] >= 1.0 - text:
        bound = 1.0 - r[A_LO] + r[A_LO] * near
    else:
        bound = (1.0 - text) * near + text
    return raised(bound)  # sums are added in another order than ψ adds them


@kernel(inner=True)
def text_bound(keys: Any, values: Any, group: Any, entry: Any, n: int, columns: Any, stack: Any, counts: Any) -> float:
    """UB_t (Eq. 5)."""
    total = 0.0
    counts[COMPARISONS] += len(columns[0])  # look-ups
    for i in range(len(columns[0])):
        g = lookup(keys, values, n, columns[0][i])
        if g >= 0:
            begin = group[g, START]
            total += stabbing_max(entry, begin, begin + group[g, COUNT], columns[1][i], columns[2][i], stack, counts)
    return total


@kernel(inner=True)
def token_bound(keys: Any, values: Any, summary: Any, n: int, columns: Any, counts: Any) -> float:
    """UB_t of the R^t-tree: the largest weights of the attributes whose ranges hold the event."""
    total = 0.0
    counts[COMPARISONS] += len(columns[0])  # look-ups
    for i in range(len(columns[0])):
        g = lookup(keys, values, n, columns[0][i])
        if g >= 0:
            counts[COMPARISONS] += 1
            if summary[g, LO] <= columns[2][i] and columns[1][i] <= summary[g, HI]:
                total += summary[g, WEIGHT]
    return total


@kernel
def search(
    t: PlaceTree, placed: Placed, columns: Any, ask: Ask, k: int, space: Workspace, refined: int, tight: bool
) -> Any:
    """Algorithm 1. The marks are for rows and nodes."""
    event, total, counts = space
    spread(event, *columns)
    # Arrays by name: taking them out of the tuples in a loop would count references at every access.
    node, children, spot, rect = t.node, t.child, t.spot, t.rect
    f, numbers = t.forest, placed.rows.ids
    odd, attribute, lo, hi, weight, start, length, place = arrays_of(placed)
    slots, groups, group, entry, child, summary = f.keys, f.values, f.group, f.entry, f.child, f.summary
    ids, scores, size = ints(k), floats(k), np.int64(0)
    stack = np.empty((64, 2), np.int64)
    keys, items, waiting = floats(_QUEUE), ints(_QUEUE), np.int64(1)
    later = 1 if refined == AT_THE_TOP else 0
    keys[0], items[0] = -np.inf, 2 * t.meta[ROOT] + later  # odd: to be refined; keys are negated bounds
    while waiting:
        bound, item = -keys[0], items[0]
        if size == k and bound < scores[0]:
            break
        waiting = pop(keys, items, waiting)
        n = item >> 1
        counts[NODES] += 1
        counts[QUEUED] += 1
        if item & 1 and not node[n, LEAF]:
            text = text_bound(slots, groups, group, entry, n, columns, stack, counts)
            bound = min(bound, upper_bound(rect[n], text, ask, tight))
            if size == k and bound < scores[0]:
                continue
            if waiting and bound < -keys[0]:
                waiting = push(keys, items, waiting, -bound, 2 * n)
                counts[QUEUED] += 1
                continue
        count, leaf = node[n, SIZE], node[n, LEAF]
        if refined == AT_THE_TOP or (refined == FROM_PARENT and not leaf):
            spread_weights(slots, groups, group, entry, child, n, columns, total, counts)
        if leaf:
            counts[ENTRIES] += count
            here = spot[n]
            for i in range(count):
                row = children[n, i]
                possible = total[row] + here[i, 2] * row_nearness(here, i, ask)
                total[row] = 0.0
                if size < k or refined != AT_THE_TOP or raised(possible) >= scores[0]:
                    counts[COMPARISONS] += length[row]
                    score = similarity(placed, odd, attribute, lo, hi, weight, start, length, place, row, event, ask)
                    if score >= 0.0:
                        size = offer(scores, ids, size, score, numbers[row])
                        counts[QUEUED] += 1
            continue
        if waiting + count > len(keys):
            keys, items = longer(keys, waiting + count), longer(items, waiting + count)
        for i in range(count):
            c = children[n, i]
            text = total[c]
            total[c] = 0.0
            if refined == OWN_FOREST:
                text = text_bound(slots, groups, group, entry, c, columns, stack, counts)
            elif refined == OWN_TOKENS:
                text = token_bound(slots, groups, summary, c, columns, counts)
            possible = min(bound, upper_bound(rect[c], text, ask, tight))
            if size < k or possible >= scores[0]:
                waiting = push(keys, items, waiting, -possible, 2 * c + later)
                counts[QUEUED] += 1
    clear(event, columns[0])
    return ids[:size], scores[:size]


class RITree(TokenTree):
    """R-tree of places with a forest of stabbing-max interval trees in every node.

    >>> import topk
    >>> near, far = ([(0, "<", 5, 1.0)], (1.0, 1.0), 0.5), ([(0, "<", 9, 1.0)], (1.0, 6.0), 0.5)
    >>> index = topk.create("ri-tree", topk.places.from_located([near, far], max_distance=10.0))
    >>> index.top({0: 2}, place=(1.0, 1.0), k=2)
    [(0, 1.0), (1, 0.75)]
    """

    name = "ri-tree"
    calibrated = True

    kernel = staticmethod(search)
    refined = AT_THE_TOP


class RITreePaper(RITree):
    """R^I-tree as published, to compare with: a tree of the places grown by insertion; slower than ri-tree.

    >>> import topk
    >>> near, far = ([(0, "<", 5, 1.0)], (1.0, 1.0), 0.5), ([(0, "<", 9, 1.0)], (1.0, 6.0), 0.5)
    >>> index = topk.create("ri-tree-paper", topk.places.from_located([near, far], max_distance=10.0))
    >>> index.top({0: 2}, place=(1.0, 1.0), k=2)
    [(0, 1.0), (1, 0.75)]
    """

    name = "ri-tree-paper"
    refined = OWN_FOREST

    def __init__(self, catalogue: PlacedCatalogue, semantics: str = "similar", *, packing: str = INSERTION) -> None:
        super().__init__(catalogue, semantics, packing=packing)
