"""R^t-tree, extended as in §6.1 of Hu et al. (SSTD 2015) from Yu et al. (TKDE 2015).

The R-tree node's token set becomes, per attribute, one range and the largest weight; the tree is walked from the root
to the leaves. UB_t is the sum of the largest weights whose ranges hold the event: one hull per attribute instead of an
interval tree, which is what the R^I-tree adds. Ours reads the token sets of all children at once, in their parent's
groups; `rt-tree-paper` looks them up child by child.

The paper says neither in which order nodes are visited nor by which bound. Best first with Eq. 8 is its own Algorithm 1
without interval trees; depth first, and a bound that takes text and place for independent, are options. That bound is
what matters: with it the tree compares eleven times as many subscriptions (200,000, uniform: 16,834 instead of 1,476
per event, where TAS compares 2,024); depth first compares a seventh more. It is probably the paper's bound: only with
it is TAS between the R^I-tree and the R^t-tree where α is close to .5, as in Figure 11 (docs/reproduction.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from coverlay import kernel, unknown_name
from topk.kernels.heaps import offer
from topk.kernels.rows import floats, ints, longer
from topk.places.catalogue import PlacedCatalogue
from topk.places.contract import Ask, Placed, Workspace, arrays_of, similarity
from topk.places.ri_tree import FROM_PARENT, OWN_TOKENS, search, upper_bound
from topk.places.rtree import LEAF, ROOT, SIZE, PlaceTree
from topk.places.rtree_index import INSERTION, LAYERS, TokenTree
from topk.places.stabbing import spread_weights
from topk.sparse.rows import clear, spread
from topk.sparse.upkeep import COMPARISONS, ENTRIES, NODES, QUEUED

ORDERS = ("best", "deepest")
BOUNDS = ("tight", "sum")


@kernel
def walk(
    t: PlaceTree, placed: Placed, columns: Any, ask: Ask, k: int, space: Workspace, refined: int, tight: bool
) -> Any:
    """Depth first. The marks are for nodes."""
    event, total, counts = space
    spread(event, *columns)
    node, children, rect, f = t.node, t.child, t.rect, t.forest
    numbers = placed.rows.ids
    odd, attribute, lo, hi, weight, start, length, place = arrays_of(placed)
    slots, groups, group, entry, child = f.keys, f.values, f.group, f.entry, f.child
    ids, scores, size = ints(k), floats(k), 0
    stack, bounds, depth = ints(1024), floats(1024), 1
    stack[0], bounds[0] = t.meta[ROOT], np.inf
    while depth:
        depth -= 1
        n = stack[depth]
        if size == k and bounds[depth] < scores[0]:
            continue
        counts[NODES] += 1
        counts[QUEUED] += 1
        count = node[n, SIZE]
        if node[n, LEAF]:
            counts[ENTRIES] += count
            for i in range(count):
                row = children[n, i]
                counts[COMPARISONS] += length[row]
                score = similarity(placed, odd, attribute, lo, hi, weight, start, length, place, row, event, ask)
                if score >= 0.0:
                    size = offer(scores, ids, size, score, numbers[row])
                    counts[QUEUED] += 1
            continue
        if depth + count > len(stack):
            stack, bounds = longer(stack, depth + count), longer(bounds, depth + count)
        # The parent's forest repeats the token sets of its children: one pass bounds them all.
        spread_weights(slots, groups, group, entry, child, n, columns, total, counts)
        first = depth
        for i in range(count):  # insertion sort, the largest bound last: it is taken first
            c = children[n, i]
            bound = upper_bound(rect[c], total[c], ask, tight)
            total[c] = 0.0
            at = depth
            while at > first and bounds[at - 1] > bound:
                bounds[at], stack[at] = bounds[at - 1], stack[at - 1]
                at -= 1
            bounds[at], stack[at] = bound, c
            counts[QUEUED] += 1
            depth += 1
    clear(event, columns[0])
    return ids[:size], scores[:size]


class RTTree(TokenTree):
    """R-tree of places with one range and largest weight per attribute in every node."""

    name = "rt-tree"
    options: ClassVar[Mapping[str, str]] = {
        **TokenTree.options,
        "order": "which node comes next: the best one, or the deepest one, the best of its parent first",
        "bound": "how a node's text and place are added: tight (Eq. 8), or sum, as if one α did not weigh both",
    }
    kernel = staticmethod(search)
    refined = FROM_PARENT

    def __init__(
        self,
        catalogue: PlacedCatalogue,
        semantics: str = "similar",
        *,
        packing: str = LAYERS,
        order: str = ORDERS[0],
        bound: str = BOUNDS[0],
    ) -> None:
        super().__init__(catalogue, semantics, packing=packing)
        if order not in ORDERS:
            raise unknown_name("order", order, ORDERS)
        if bound not in BOUNDS:
            raise unknown_name("bound", bound, BOUNDS)
        self.tight = bound == BOUNDS[0]
        self.kernel = search if order == ORDERS[0] else walk


class RTTreePaper(RTTree):
    """R^t-tree as published, to compare with: a tree of the places grown by insertion; slower than rt-tree."""

    name = "rt-tree-paper"
    refined = OWN_TOKENS

    def __init__(
        self, catalogue: PlacedCatalogue, semantics: str = "similar", *, packing: str = INSERTION, **shared: Any
    ) -> None:
        super().__init__(catalogue, semantics, packing=packing, **shared)
