"""A dynamic R-tree over places (Guttman, SIGMOD 1984) in flat arrays; each node also knows the range of α below it.

Nodes have up to 50 children, as in the paper. Insertion goes where the rectangle grows least; an overflowing node is
split along the axis and at the rank where the halves overlap least (as R*-trees do), each getting at least 40 %.
A leaf that falls below that is dissolved and its subscriptions inserted again; inner nodes may run low but not
empty. A catalogue is loaded by sort-tile-recursive packing. Leaves repeat x, y and α of their subscriptions, so that
looking at a leaf does not touch fifty rows. With `token` the nodes also keep a forest (see `forest`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from topk.places.base import Placed
from topk.places.forest import (
    ATTRIBUTE,
    COUNT,
    ENTRIES,
    GROUPS,
    HI,
    LO,
    NEXT,
    WEIGHT,
    Forest,
    clear_node,
    drop_child,
    find_group,
    forest_has_room,
    set_child,
)  # fmt: skip
from topk.sparse.catalogue import Floats, Ints

FAN = 50  # children of a node, §6.1
LEAST = 20  # of a leaf, and of each half of a split
_PACKED = 45  # children of a packed node: room for a few insertions before it splits

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
    """All intervals of a node, from its children."""
    f = t.forest
    for i in range(t.node[n, SIZE]):
        c = t.child[n, i]
        if t.node[n, LEAF]:
            set_row(t, placed, n, c)
        else:
            g = f.first[c]
            while g >= 0:
                set_child(f, n, f.group[g, ATTRIBUTE], c, f.summary[g, LO], f.summary[g, HI], f.summary[g, WEIGHT])
                g = f.group[g, NEXT]


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
def insert(t: RTree, placed: Placed, row: int, token: bool) -> None:
    x, y, alpha = placed.place[row, 0], placed.place[row, 1], placed.place[row, 2]
    n = t.meta[ROOT]
    while not t.node[n, LEAF]:
        best, best_growth, best_area = -1, np.inf, np.inf
        for i in range(t.node[n, SIZE]):
            c = t.child[n, i]
            r = t.rect[c]
            width, height = r[X_HI] - r[X_LO], r[Y_HI] - r[Y_LO]
            area = width * height
            growth = (max(r[X_HI], x) - min(r[X_LO], x)) * (max(r[Y_HI], y) - min(r[Y_LO], y)) - area
            if growth < best_growth or (growth == best_growth and area < best_area):
                best, best_growth, best_area = c, growth, area
        n = best
    attach(t, placed, n, row)
    one = np.array([x, y, x, y, alpha, alpha])
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
    for axis in range(2):
        order = np.argsort(rects[:, X_LO + axis] + rects[:, X_HI + axis])
        for cut in range(LEAST, size - LEAST + 1):
            # Along the sorted axis: how far the left part reaches into the right one, both ways of measuring it.
            reach = rects[order[:cut], X_HI + axis].max() - rects[order[cut:], X_LO + axis].min()
            gap = rects[order[cut], X_LO + axis] - rects[order[cut - 1], X_HI + axis]
            cost = max(reach, 0.0) - max(gap, 0.0)
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


def room_in_forest(f: Forest) -> tuple[int, int]:
    """Groups and entries in use, for those who size things."""
    return int(f.meta[GROUPS]), int(f.meta[ENTRIES])


def packed_levels(places: Floats, rows: Ints) -> list[list[Ints]]:
    """Sort-tile-recursive packing: for each level, lowest first, the members of each node."""
    levels: list[list[Ints]] = []
    members, where = rows, places
    while True:
        count = len(members)
        nodes = -(-count // _PACKED)
        slabs = max(1, int(np.ceil(np.sqrt(nodes))))
        by_x = np.argsort(where[:, 0], kind="stable")
        level: list[Ints] = []
        centres = []
        for slab in np.array_split(by_x, slabs):
            ordered = slab[np.argsort(where[slab, 1], kind="stable")]
            for part in np.array_split(ordered, max(1, -(-len(ordered) // _PACKED))):
                level.append(members[part])
                centres.append(where[part].mean(axis=0))
        levels.append(level)
        if len(level) == 1:
            return levels
        members, where = np.arange(len(level)), np.array(centres)
