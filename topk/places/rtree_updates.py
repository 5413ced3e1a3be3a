"""Insertion into and deletion from the R-tree of places (Guttman, SIGMOD 1984).

Insertion goes where the extents grow least; an overflowing node is split along the axis and at the rank where the
halves overlap least (as R*-trees do), each getting at least 40 %. A leaf that falls below that is dissolved and its
subscriptions inserted again; inner nodes may run low but not empty. α counts as a dimension of its own unless the tree
is one of places only, as published (`rtree.DIVIDED`). An update costs O(fan · height), and with `token` what it changes
in the forests on the way up. `token` is True or None: for None, nothing that changes forests is compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.kernels.rows import ascending, copy, ints
from topk.places.contract import Placed
from topk.places.forest import ATTRIBUTE, clear_node, drop_child, free_group
from topk.places.rtree import (
    ALPHA,
    AXES,
    DIVIDED,
    FAN,
    LEAF,
    LEAST,
    PARENT,
    ROOT,
    SIZE,
    PlaceTree,
    attach,
    child_rect,
    fill_forest,
    free_node,
    grow_rect,
    hide,
    lift,
    measure,
    new_node,
    set_row,
    show,
)


@kernel(inner=True)
def spans(t: PlaceTree) -> Any:
    """The extent of everything stored along each axis, to make axes comparable; 1 where it is 0 or infinite."""
    r, unit = t.rect[t.meta[ROOT]], np.ones(len(AXES))
    for axis, (low, high) in enumerate(AXES):
        if 0.0 < r[high] - r[low] < np.inf:
            unit[axis] = r[high] - r[low]
    return unit


@kernel
def insert(t: PlaceTree, placed: Placed, row: int, token: Any) -> None:
    n, one = t.meta[ROOT], np.empty(2 * len(AXES))
    for axis, (low, high) in enumerate(AXES):
        one[low] = one[high] = placed.place[row, axis]
    unit = spans(t)
    while not t.node[n, LEAF]:
        best, best_growth, best_margin = -1, np.inf, np.inf
        for i in range(t.node[n, SIZE]):
            c = t.child[n, i]
            r = t.rect[c]
            growth, margin = 0.0, 0.0
            for axis, (low, high) in enumerate(AXES):
                if axis != ALPHA or t.meta[DIVIDED] == len(AXES):
                    margin += (r[high] - r[low]) / unit[axis]
                    growth += (max(r[high], one[high]) - min(r[low], one[low]) - r[high] + r[low]) / unit[axis]
            if growth < best_growth or (growth == best_growth and margin < best_margin):
                best, best_growth, best_margin = c, growth, margin
        n = best
    attach(t, placed, n, row)
    up = n
    while up >= 0:
        if t.node[up, SIZE] == 1 and t.node[up, LEAF]:
            copy(one, t.rect[up])
        grow_rect(t.rect[up], one)
        up = t.node[up, PARENT]
    if token is not None:
        set_row(t, placed, n, row)
        rows = placed.rows
        for p in range(rows.start[row], rows.start[row] + rows.length[row]):
            lift(t, n, rows.attribute[p])
    while n >= 0 and t.node[n, SIZE] > FAN:
        split(t, placed, n, token)
        n = t.node[n, PARENT]


@kernel
def insert_all(t: PlaceTree, placed: Placed, count: int) -> None:
    """Insert the first rows into a tree without forests."""
    for row in range(count):
        insert(t, placed, row, None)


@kernel(inner=True)
def split(t: PlaceTree, placed: Placed, n: int, token: Any) -> None:
    """Move the upper part of an overflowing node to a new sibling."""
    size = t.node[n, SIZE]
    rects = np.empty((size, 2 * len(AXES)))
    for i in range(size):
        child_rect(t, n, i, rects[i])
    best, best_overlap, best_order = LEAST, np.inf, ints(size)
    for i in range(size):
        best_order[i] = i
    unit = spans(t)
    centre, begin = np.empty(size), np.empty(size + 1)  # begin[i]: the least low end at place i or later
    for axis, (low, high) in enumerate(AXES):
        if axis == ALPHA and t.meta[DIVIDED] < len(AXES):
            continue
        for i in range(size):
            centre[i] = rects[i, low] + rects[i, high]
        order = ascending(centre, 1.0)
        begin[size], end = np.inf, -np.inf
        for i in range(size - 1, -1, -1):
            begin[i] = min(begin[i + 1], rects[order[i], low])
            end = max(end, rects[order[i], high])
        if begin[0] == end:
            continue  # all at one place along this axis, like the third coordinate of a plane
        end = -np.inf
        for cut in range(1, size - LEAST + 1):
            end = max(end, rects[order[cut - 1], high])
            if cut < LEAST:
                continue
            # Along the sorted axis: how far the left part reaches into the right one, less the gap at the cut.
            reach = end - begin[cut]
            gap = rects[order[cut], low] - rects[order[cut - 1], high]
            cost = (max(reach, 0.0) - max(gap, 0.0)) / unit[axis]
            if cost < best_overlap:
                best, best_overlap, best_order = cut, cost, order
    if t.node[n, PARENT] < 0:
        root = new_node(t, np.int64(-1), np.int64(0))
        t.meta[ROOT] = root
        attach(t, placed, root, n)
        if token is not None:
            show(t, n)
    up = t.node[n, PARENT]
    if token is not None:
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
        if token is not None:
            fill_forest(t, placed, part)
            show(t, part)
    measure(t, up)


@kernel
def remove(t: PlaceTree, placed: Placed, row: int, token: Any, again: Any) -> int:
    """Take a row out; rows that must be inserted again are left in `again`, their number is returned."""
    n = t.home[row]
    detach(t, n, row)
    t.home[row] = -1
    rows = placed.rows
    if token is not None:
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
        if token is not None:
            clear_node(t.forest, root)
        free_node(t, root)
        root = t.meta[ROOT]
    return count


@kernel(inner=True)
def detach(t: PlaceTree, n: int, child: int) -> None:
    at = 0
    while t.child[n, at] != child:
        at += 1
    last = t.node[n, SIZE] - 1
    t.child[n, at] = t.child[n, last]
    copy(t.spot[n, last], t.spot[n, at])
    t.node[n, SIZE] = last


@kernel(inner=True)
def dissolve(t: PlaceTree, n: int, token: Any) -> int:
    """Remove a node, and ancestors that become empty; returns the lowest that stays."""
    while True:
        up = t.node[n, PARENT]
        if token is not None:
            while t.forest.first[n] >= 0:
                attribute = t.forest.group[t.forest.first[n], ATTRIBUTE]
                free_group(t.forest, t.forest.first[n])
                lift(t, n, attribute)
        detach(t, up, n)
        free_node(t, n)
        if t.node[up, SIZE] > 0 or t.node[up, PARENT] < 0:
            if t.node[up, SIZE] == 0:
                t.node[up, LEAF] = 1  # the root lost everything
            return up
        n = up
