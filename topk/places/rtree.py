"""A dynamic R-tree over places (Guttman, SIGMOD 1984) in flat arrays; each node also knows the range of α below it.

Nodes have up to 50 children, as in the paper. α counts as a third dimension: insertion goes where the three extents
grow least, an overflowing node is split along the axis and at the rank where the halves overlap least (as R*-trees
do), each getting at least 40 %. A leaf that falls below that is dissolved and its subscriptions inserted again; inner
nodes may run low but not empty. A catalogue is loaded by packing (`packed_levels`). Leaves repeat x, y and α of their
subscriptions, so that looking at a leaf does not touch fifty rows. With `token` the nodes also keep a forest (see
`forest`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from topk.places.base import Placed
from topk.places.forest import (
    ATTRIBUTE,
    COUNT,
    HI,
    LO,
    NEXT,
    WEIGHT,
    Forest,
    clear_node,
    drop_child,
    fill_groups,
    find_group,
    forest_has_room,
    set_child,
)  # fmt: skip
from topk.sparse.catalogue import Floats, Ints

FAN = 50  # children of a node, §6.1
LEAST = 20  # of a leaf, and of each half of a split
_PACKED = 45  # children of a packed node: room for a few insertions before it splits
_LAYERS = 16  # of α from 0 to 1 that packing keeps apart

# Columns of RTree.node
PARENT, SIZE, LEAF = range(3)
# Columns of RTree.rect
X_LO, Y_LO, X_HI, Y_HI, A_LO, A_HI = range(6)
# Entries of RTree.meta
ROOT, USED, FREE = range(3)


class RTree(NamedTuple):
    node: Ints  # (nodes, 3)
    child: Ints  # (nodes, FAN + 1) rows of a leaf, nodes otherwise
    spot: Floats  # (nodes, FAN + 1, 3) x, y, α of a leaf's rows
    rect: Floats  # (nodes, 6)
    home: Ints  # (rows,) leaf of each row
    meta: Ints
    forest: Forest


@njit(cache=True)
def new_node(t: RTree, parent: int, leaf: int) -> int:
    n = t.meta[FREE]
    if n >= 0:
        t.meta[FREE] = t.node[n, PARENT]
    else:
        n = t.meta[USED]
        t.meta[USED] += 1
    t.node[n, PARENT], t.node[n, SIZE], t.node[n, LEAF] = parent, 0, leaf
    return n


@njit(cache=True)
def free_node(t: RTree, n: int) -> None:
    t.node[n, SIZE] = -1
    t.node[n, PARENT] = t.meta[FREE]
    t.meta[FREE] = n


@njit(cache=True)
def attach(t: RTree, placed: Placed, n: int, child: int) -> None:
    at = t.node[n, SIZE]
    t.child[n, at] = child
    t.node[n, SIZE] = at + 1
    if t.node[n, LEAF]:
        t.spot[n, at, :] = placed.place[child, :]
        t.home[child] = n
    else:
        t.node[child, PARENT] = n


@njit(cache=True)
def child_rect(t: RTree, n: int, i: int, out: Any) -> None:
    if t.node[n, LEAF]:
        out[X_LO] = out[X_HI] = t.spot[n, i, 0]
        out[Y_LO] = out[Y_HI] = t.spot[n, i, 1]
        out[A_LO] = out[A_HI] = t.spot[n, i, 2]
    else:
        out[:] = t.rect[t.child[n, i], :]


@njit(cache=True, inline="always")
def grow_rect(rect: Any, other: Any) -> None:
    for low, high in ((X_LO, X_HI), (Y_LO, Y_HI), (A_LO, A_HI)):
        rect[low] = min(rect[low], other[low])
        rect[high] = max(rect[high], other[high])


@njit(cache=True)
def measure(t: RTree, n: int) -> None:
    """Recompute a node's rectangle and range of α."""
    one = np.empty(6)
    rect = t.rect[n]
    rect[X_LO] = rect[Y_LO] = rect[A_LO] = np.inf
    rect[X_HI] = rect[Y_HI] = rect[A_HI] = -np.inf
    for i in range(t.node[n, SIZE]):
        child_rect(t, n, i, one)
        grow_rect(rect, one)


# ---- the forest of a node -------------------------------------------------------------------------------


@njit(cache=True)
def set_row(t: RTree, placed: Placed, leaf: int, row: int) -> None:
    """The intervals of a subscription in its leaf, weights times 1 − α."""
    rows = placed.rows
    share = 1.0 - placed.place[row, 2]
    for p in range(rows.start[row], rows.start[row] + rows.length[row]):
        set_child(t.forest, leaf, rows.attribute[p], row, rows.lo[p], rows.hi[p], share * rows.weight[p])


@njit(cache=True)
def lift(t: RTree, n: int, attribute: int) -> None:
    """Show a node's summary of an attribute to its ancestors, as far as that changes anything."""
    f = t.forest
    while t.node[n, PARENT] >= 0:
        up = t.node[n, PARENT]
        above = find_group(f, up, attribute)
        low, high, weight = (f.summary[above, 0], f.summary[above, 1], f.summary[above, 2]) if above >= 0 else (
            np.nan, np.nan, np.nan
        )  # fmt: skip
        g = find_group(f, n, attribute)
        if g >= 0:
            above = set_child(f, up, attribute, n, f.summary[g, LO], f.summary[g, HI], f.summary[g, WEIGHT])
        else:
            above = drop_child(f, up, attribute, n)
        if above >= 0 and f.summary[above, 0] == low and f.summary[above, 1] == high and f.summary[above, 2] == weight:
            return
        n = up


@njit(cache=True)
def fill_forest(t: RTree, placed: Placed, n: int) -> None:
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
                bounds[at, :] = f.summary[g, :]
                at += 1
                g = f.group[g, NEXT]
    fill_groups(f, n, attribute, child, bounds)


@njit(cache=True)
def hide(t: RTree, n: int) -> None:
    """Take a node's summaries out of its parent's forest, not further up."""
    up = t.node[n, PARENT]
    g = t.forest.first[n]
    while g >= 0 and up >= 0:
        drop_child(t.forest, up, t.forest.group[g, ATTRIBUTE], n)
        g = t.forest.group[g, NEXT]


@njit(cache=True)
def show(t: RTree, n: int) -> None:
    up = t.node[n, PARENT]
    f = t.forest
    g = f.first[n]
    while g >= 0 and up >= 0:
        set_child(f, up, f.group[g, ATTRIBUTE], n, f.summary[g, LO], f.summary[g, HI], f.summary[g, WEIGHT])
        g = f.group[g, NEXT]


# ---- insertion and deletion -----------------------------------------------------------------------------


@njit(cache=True)
def spans(t: RTree) -> Any:
    """Extents of everything stored in latitude, longitude and α, to make them comparable; 1 where there is none."""
    r = t.rect[t.meta[ROOT]]
    unit = np.array([r[X_HI] - r[X_LO], r[Y_HI] - r[Y_LO], r[A_HI] - r[A_LO]])
    for axis in range(3):
        if not 0.0 < unit[axis] < np.inf:
            unit[axis] = 1.0
    return unit


@njit(cache=True)
def insert(t: RTree, placed: Placed, row: int, token: bool) -> None:
    x, y, alpha = placed.place[row, 0], placed.place[row, 1], placed.place[row, 2]
    n = t.meta[ROOT]
    one = np.array([x, y, x, y, alpha, alpha])
    unit = spans(t)
    while not t.node[n, LEAF]:
        best, best_growth, best_margin = -1, np.inf, np.inf
        for i in range(t.node[n, SIZE]):
            c = t.child[n, i]
            r = t.rect[c]
            growth, margin = 0.0, 0.0
            for axis, (low, high) in enumerate(((X_LO, X_HI), (Y_LO, Y_HI), (A_LO, A_HI))):
                margin += (r[high] - r[low]) / unit[axis]
                growth += (max(r[high], one[high]) - min(r[low], one[low]) - r[high] + r[low]) / unit[axis]
            if growth < best_growth or (growth == best_growth and margin < best_margin):
                best, best_growth, best_margin = c, growth, margin
        n = best
    attach(t, placed, n, row)
    up = n
    while up >= 0:
        if t.node[up, SIZE] == 1 and t.node[up, LEAF]:
            t.rect[up, :] = one
        grow_rect(t.rect[up], one)
        up = t.node[up, PARENT]
    if token:
        set_row(t, placed, n, row)
        rows = placed.rows
        for p in range(rows.start[row], rows.start[row] + rows.length[row]):
            lift(t, n, rows.attribute[p])
    while n >= 0 and t.node[n, SIZE] > FAN:
        split(t, placed, n, token)
        n = t.node[n, PARENT]


@njit(cache=True)
def split(t: RTree, placed: Placed, n: int, token: bool) -> None:
    """Move the upper part of an overflowing node to a new sibling."""
    size = t.node[n, SIZE]
    rects = np.empty((size, 6))
    for i in range(size):
        child_rect(t, n, i, rects[i])
    best, best_overlap, best_order = 0, np.inf, np.arange(size)
    unit = spans(t)
    for axis, (low, high) in enumerate(((X_LO, X_HI), (Y_LO, Y_HI), (A_LO, A_HI))):
        order = np.argsort(rects[:, low] + rects[:, high])
        for cut in range(LEAST, size - LEAST + 1):
            # Along the sorted axis: how far the left part reaches into the right one, both ways of measuring it.
            reach = rects[order[:cut], high].max() - rects[order[cut:], low].min()
            gap = rects[order[cut], low] - rects[order[cut - 1], high]
            cost = (max(reach, 0.0) - max(gap, 0.0)) / unit[axis]
            if cost < best_overlap:
                best, best_overlap, best_order = cut, cost, order
    if t.node[n, PARENT] < 0:
        root = new_node(t, -1, 0)
        t.meta[ROOT] = root
        attach(t, placed, root, n)
        if token:
            show(t, n)
    up = t.node[n, PARENT]
    if token:
        hide(t, n)
        clear_node(t.forest, n)
    children = t.child[n, :size].copy()
    sibling = new_node(t, up, t.node[n, LEAF])
    t.node[n, SIZE] = 0
    for i in range(size):
        attach(t, placed, n if i < best else sibling, children[best_order[i]])
    attach(t, placed, up, sibling)
    for part in (n, sibling):
        measure(t, part)
        if token:
            fill_forest(t, placed, part)
            show(t, part)
    measure(t, up)


@njit(cache=True)
def remove(t: RTree, placed: Placed, row: int, token: bool, again: Any) -> int:
    """Take a row out; rows that must be inserted again are left in `again`, their number is returned."""
    n = t.home[row]
    detach(t, n, row)
    t.home[row] = -1
    rows = placed.rows
    if token:
        for p in range(rows.start[row], rows.start[row] + rows.length[row]):
            drop_child(t.forest, n, rows.attribute[p], row)
            lift(t, n, rows.attribute[p])
    count = 0
    if t.node[n, SIZE] < LEAST and t.node[n, PARENT] >= 0:
        count = t.node[n, SIZE]
        for i in range(count):
            again[i] = t.child[n, i]
            t.home[t.child[n, i]] = -1
        n = dissolve(t, n, token)
    while n >= 0:
        measure(t, n)
        n = t.node[n, PARENT]
    root = t.meta[ROOT]
    while not t.node[root, LEAF] and t.node[root, SIZE] == 1:
        t.meta[ROOT] = t.child[root, 0]
        t.node[t.meta[ROOT], PARENT] = -1
        if token:
            clear_node(t.forest, root)
        free_node(t, root)
        root = t.meta[ROOT]
    return count


@njit(cache=True)
def detach(t: RTree, n: int, child: int) -> None:
    at = 0
    while t.child[n, at] != child:
        at += 1
    last = t.node[n, SIZE] - 1
    t.child[n, at] = t.child[n, last]
    t.spot[n, at, :] = t.spot[n, last, :]
    t.node[n, SIZE] = last


@njit(cache=True)
def dissolve(t: RTree, n: int, token: bool) -> int:
    """Remove a node, and ancestors that become empty; returns the lowest that stays."""
    while True:
        up = t.node[n, PARENT]
        if token:
            attributes = np.empty(0, np.int64)
            while t.forest.first[n] >= 0:
                attribute = t.forest.group[t.forest.first[n], ATTRIBUTE]
                g = t.forest.first[n]
                for i in range(t.forest.group[g, COUNT] - 1, -1, -1):
                    drop_child(t.forest, n, attribute, t.forest.child[t.forest.group[g, 0] + i])
                lift(t, n, attribute)
            attributes = attributes[:0]
        detach(t, up, n)
        free_node(t, n)
        if t.node[up, SIZE] > 0 or t.node[up, PARENT] < 0:
            if t.node[up, SIZE] == 0:
                t.node[up, LEAF] = 1  # the root lost everything
            return up
        n = up


@njit(cache=True)
def fill_from(t: RTree, placed: Placed, order: Any, begin: int, widest: int) -> int:
    """Forests of the nodes order[begin:], children before parents; stops where the arrays must grow."""
    for i in range(begin, len(order)):
        if not forest_has_room(t.forest, widest, 2 * (FAN + 1) * widest):
            return i
        fill_forest(t, placed, order[i])
    return len(order)


@njit(cache=True)
def load_level(t: RTree, placed: Placed, order: Any, ends: Any, below: Any, leaf: int, nodes: Any) -> None:
    """Make the nodes of a packed level: node i has order[ends[i − 1] : ends[i]], rows or positions in `below`."""
    begin = 0
    for i in range(len(ends)):
        n = new_node(t, -1, leaf)
        nodes[i] = n
        for at in range(begin, ends[i]):
            attach(t, placed, n, order[at] if leaf else below[order[at]])
        measure(t, n)
        begin = ends[i]


def packed_levels(places: Floats) -> list[tuple[Ints, Ints]]:
    """Per level, lowest first: rows, or nodes of the level below, in order, and where those of each node end.

    Layers of similar α come first, each packed by sort-tile-recursion over its places. α weighs text against place,
    so a node that mixes all α can be ruled out by neither: for its smallest α text decides, for its largest nearness.
    """
    spread = float(np.subtract(*np.quantile(places[:, 2], (0.95, 0.05)))) if len(places) else 0.0
    count = max(1, min(round(_LAYERS * spread), len(places) // _PACKED**2))
    layers = np.array_split(np.argsort(places[:, 2], kind="stable"), count)
    levels: list[tuple[Ints, Ints]] = []
    where = places[:, :2]
    while True:
        tiled = [_tiles(layer, where) for layer in layers]
        parts = [part for tiles in tiled for part in tiles]
        order, sizes = np.concatenate(parts), np.array([len(part) for part in parts])
        levels.append((order, np.cumsum(sizes)))
        if len(parts) == 1:
            return levels
        where = np.add.reduceat(where[order], np.cumsum(sizes) - sizes) / sizes[:, None]
        numbers = np.arange(len(parts))
        mixed = len(parts) == len(layers)  # one node each: above them layers share nodes
        layers = [numbers] if mixed else np.split(numbers, np.cumsum([len(tiles) for tiles in tiled])[:-1])


def _tiles(members: Ints, where: Floats) -> list[Ints]:
    nodes = -(-len(members) // _PACKED)
    by_x = members[np.argsort(where[members, 0], kind="stable")]
    tiles: list[Ints] = []
    for strip in np.array_split(by_x, max(1, int(np.ceil(np.sqrt(nodes))))):
        by_y = strip[np.argsort(where[strip, 1], kind="stable")]
        tiles += np.array_split(by_y, max(1, -(-len(by_y) // _PACKED)))
    return tiles
