"""The nodes of an R-tree over places (Guttman, SIGMOD 1984) in flat arrays; each also knows the range of α below it.

Nodes have up to 50 children, as in the paper. Leaves repeat place and α of their subscriptions, so that looking at a
leaf does not touch fifty rows. With `token` the nodes also keep a forest (see `forest`). A catalogue is loaded by
packing (`rtree_packing`) or grown by insertion; later subscriptions are inserted one by one (`rtree_updates`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coverlay import kernel
from topk.checks import Floats, Ints
from topk.kernels.rows import copy, give, take
from topk.places.contract import Ask, Placed, nearness
from topk.places.forest import ATTRIBUTE, HI, LO, NEXT, WEIGHT, Forest, drop_child, fill_groups, find_group, set_child

FAN = 50  # children of a node, §6.1
LEAST = 20  # of a leaf, and of each half of a split

# Columns of PlaceTree.node
PARENT, SIZE, LEAF = range(3)
# Columns of PlaceTree.rect
X_LO, Y_LO, X_HI, Y_HI, A_LO, A_HI, Z_LO, Z_HI = range(8)
AXES = ((X_LO, X_HI), (Y_LO, Y_HI), (A_LO, A_HI), (Z_LO, Z_HI))  # as the columns of Placed.place
ALPHA = 2  # the axis of α
# Entries of PlaceTree.meta
ROOT, USED, FREE, DIVIDED = range(4)  # DIVIDED: how many of AXES insertion and splits use, all or all but α


class PlaceTree(NamedTuple):
    node: Ints  # (nodes, 3)
    child: Ints  # (nodes, FAN + 1) rows of a leaf, nodes otherwise
    spot: Floats  # (nodes, FAN + 1, 4) x, y, α, z of a leaf's rows
    rect: Floats  # (nodes, 8)
    home: Ints  # (rows,) leaf of each row
    meta: Ints
    forest: Forest


@kernel(inline="always")
def box_nearness(r: Any, ask: Ask) -> Any:
    """UB_s (Eq. 6): no place in the box is nearer to the event than this."""
    dx = max(0.0, max(r[X_LO] - ask.x, ask.x - r[X_HI]))
    dy = max(0.0, max(r[Y_LO] - ask.y, ask.y - r[Y_HI]))
    dz = max(0.0, max(r[Z_LO] - ask.z, ask.z - r[Z_HI]))
    return nearness(dx, dy, dz, ask)


@kernel(inner=True)
def new_node(t: PlaceTree, parent: int, leaf: int) -> int:
    n = take(t.meta, FREE, USED, t.node[:, PARENT], 1)
    t.node[n, PARENT], t.node[n, SIZE], t.node[n, LEAF] = parent, 0, leaf
    return n


@kernel(inner=True)
def free_node(t: PlaceTree, n: int) -> None:
    t.node[n, SIZE] = -1
    give(t.meta, FREE, t.node[:, PARENT], n)


@kernel(inner=True)
def attach(t: PlaceTree, placed: Placed, n: int, child: int) -> None:
    at = t.node[n, SIZE]
    t.child[n, at] = child
    t.node[n, SIZE] = at + 1
    if t.node[n, LEAF]:
        copy(placed.place[child], t.spot[n, at])
        t.home[child] = n
    else:
        t.node[child, PARENT] = n


@kernel(inner=True)
def child_rect(t: PlaceTree, n: int, i: int, out: Any) -> None:
    if t.node[n, LEAF]:
        for axis, (low, high) in enumerate(AXES):
            out[low] = out[high] = t.spot[n, i, axis]
    else:
        copy(t.rect[t.child[n, i]], out)


@kernel(inline="always")
def grow_rect(rect: Any, other: Any) -> None:
    for low, high in AXES:
        rect[low] = min(rect[low], other[low])
        rect[high] = max(rect[high], other[high])


@kernel(inner=True)
def measure(t: PlaceTree, n: int) -> None:
    """Recompute a node's rectangle and range of α."""
    one = np.empty(2 * len(AXES))
    rect = t.rect[n]
    for low, high in AXES:
        rect[low], rect[high] = np.inf, -np.inf
    for i in range(t.node[n, SIZE]):
        child_rect(t, n, i, one)
        grow_rect(rect, one)


# ---- the forest of a node -------------------------------------------------------------------------------


@kernel(inner=True)
def set_row(t: PlaceTree, placed: Placed, leaf: int, row: int) -> None:
    """The intervals of a subscription in its leaf, weights times 1 − α."""
    rows = placed.rows
    share = 1.0 - placed.place[row, 2]
    for p in range(rows.start[row], rows.start[row] + rows.length[row]):
        set_child(t.forest, leaf, rows.attribute[p], row, rows.lo[p], rows.hi[p], share * rows.weight[p])


@kernel(inner=True)
def lift(t: PlaceTree, n: int, attribute: int) -> None:
    """Pass a node's summary of an attribute on to its ancestors, as far as that changes theirs."""
    f = t.forest
    while t.node[n, PARENT] >= 0:
        up = t.node[n, PARENT]
        above = find_group(f, up, attribute)
        low, high, weight = np.nan, np.nan, np.nan
        if above >= 0:
            low, high, weight = f.summary[above, LO], f.summary[above, HI], f.summary[above, WEIGHT]
        g = find_group(f, n, attribute)
        if g >= 0:
            above = set_child(f, up, attribute, n, f.summary[g, LO], f.summary[g, HI], f.summary[g, WEIGHT])
        else:
            above = drop_child(f, up, attribute, n)
        if above >= 0 and f.summary[above, 0] == low and f.summary[above, 1] == high and f.summary[above, 2] == weight:
            return
        n = up


@kernel(inner=True)
def fill_forest(t: PlaceTree, placed: Placed, n: int) -> None:
    """All intervals of a node that has none yet, from its children, in one go."""
    f, rows = t.forest, placed.rows
    leaf, count = t.node[n, LEAF], 0
    for i in range(t.node[n, SIZE]):
        c = t.child[n, i]
        if leaf:
            count += rows.length[c]
        else:
            g = f.first[c]
            while g >= 0:
                count += 1
                g = f.group[g, NEXT]
    attribute, child, bounds = np.empty(count, np.int32), np.empty(count, np.int64), np.empty((count, 3))
    at = 0
    for i in range(t.node[n, SIZE]):
        c = t.child[n, i]
        if leaf:
            share = 1.0 - placed.place[c, 2]
            for p in range(rows.start[c], rows.start[c] + rows.length[c]):
                attribute[at], child[at] = rows.attribute[p], c
                bounds[at, LO], bounds[at, HI], bounds[at, WEIGHT] = rows.lo[p], rows.hi[p], share * rows.weight[p]
                at += 1
        else:
            g = f.first[c]
            while g >= 0:
                attribute[at], child[at] = f.group[g, ATTRIBUTE], c
                copy(f.summary[g], bounds[at])
                at += 1
                g = f.group[g, NEXT]
    fill_groups(f, n, attribute, child, bounds)


@kernel(inner=True)
def hide(t: PlaceTree, n: int) -> None:
    """Take a node's summaries out of its parent's forest, not further up."""
    up = t.node[n, PARENT]
    g = t.forest.first[n]
    while g >= 0 and up >= 0:
        drop_child(t.forest, up, t.forest.group[g, ATTRIBUTE], n)
        g = t.forest.group[g, NEXT]


@kernel(inner=True)
def show(t: PlaceTree, n: int) -> None:
    up = t.node[n, PARENT]
    f = t.forest
    g = f.first[n]
    while g >= 0 and up >= 0:
        set_child(f, up, f.group[g, ATTRIBUTE], n, f.summary[g, LO], f.summary[g, HI], f.summary[g, WEIGHT])
        g = f.group[g, NEXT]
