"""A forest of dynamic R-trees in score order: the R-trees inside the nodes of an IR-tree (VLDB 2008, section 3.1).

Each tree is a b-way B+-tree ordered by (score descending, id ascending) whose slots also carry the extent
of what lies below. Property: a slot's extent is the union of its child's extents and its key is the last
key of its child. getnext() is a left-first traversal that skips extents without the value. All intervals of an
interval-tree node share a point, so no extent has holes and each result costs O(b log_b n).

The paper says only that its R-trees are incrementally updatable. Ours splits full nodes on the way down, so
an insertion is one pass, and frees a node with its last slot. All trees share flat arrays (`slot_pool.py`),
because an interval tree has many nodes with two or three intervals.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.papers.interval.slot_pool import NOTHING, Forest, free_chunk, free_node, new_chunk, new_node

MAX_DEPTH = 32  # 2³¹ entries at b = 2
ABSENT = -2  # instead of a root: there is nothing to delete


@kernel(inner=True)
def after(score_a: float, id_a: int, score_b: float, id_b: int) -> Any:
    """Does a come after b (is it worse)?"""
    return score_a < score_b or (score_a == score_b and id_a > id_b)


@kernel(inner=True)
def _move(f: Any, source: int, target: int) -> None:
    _write(f, target, f.ref[source], f.lo[source], f.hi[source], f.score[source], f.id[source])


@kernel(inner=True)
def _write(f: Any, at: int, ref: int, lo: float, hi: float, score: float, id: int) -> None:
    f.ref[at], f.lo[at], f.hi[at] = ref, lo, hi
    f.score[at], f.id[at] = score, id


@kernel(inner=True)
def _open_slot(f: Any, node: int, slot: int) -> int:
    """Make room for one slot of a node that is not full; returns where it is."""
    if f.filled[node] == f.capacity[node]:
        old, capacity = f.start[node], f.capacity[node]
        new_chunk(f, node, capacity + 1)
        for t in range(f.filled[node]):
            _move(f, old + t, f.start[node] + t)
        free_chunk(f, old, capacity)
    begin = f.start[node]
    for t in range(f.filled[node], slot, -1):
        _move(f, begin + t - 1, begin + t)
    f.filled[node] += 1
    return begin + slot


@kernel(inner=True)
def _summarise(f: Any, at: int, child: int) -> None:
    """Recompute slot `at` from its child."""
    low, high = np.inf, -np.inf
    begin, end = f.start[child], f.start[child] + f.filled[child]
    for t in range(begin, end):
        low = min(low, f.lo[t])
        high = max(high, f.hi[t])
    _write(f, at, child, low, high, f.score[end - 1], f.id[end - 1])


@kernel(inner=True)
def _split(f: Any, parent: int, slot: int) -> None:
    """Split the full child in `slot` of a parent that is not full."""
    child = f.ref[f.start[parent] + slot]
    half = f.filled[child] // 2
    right = new_node(f, f.leaf[child], f.b)
    for t in range(f.filled[child] - half):
        _move(f, f.start[child] + half + t, f.start[right] + t)
    f.filled[right] = f.filled[child] - half
    f.filled[child] = half
    at = _open_slot(f, parent, slot + 1)
    _summarise(f, at, right)
    _summarise(f, f.start[parent] + slot, child)


@kernel(inner=True)
def _route(f: Any, node: int, score: float, id: int) -> Any:
    """The first slot whose last key is not before (score, id); count where all are before."""
    begin, low, high = f.start[node], np.int64(0), np.int64(f.filled[node])
    while low < high:
        middle = (low + high) >> 1
        if after(score, id, f.score[begin + middle], f.id[begin + middle]):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def insert(f: Any, root: int, row: int, lo: float, hi: float, score: float, id: int) -> int:
    """Add an entry; returns the root, which changes when it splits. NOTHING is the empty tree."""
    if root == NOTHING:
        root = new_node(f, 1, 2)
    if f.filled[root] == f.b:
        above = new_node(f, 0, min(4, f.b))
        f.filled[above] = 1
        f.ref[f.start[above]] = root
        _split(f, above, 0)
        root = above
    node = root
    while f.leaf[node] == 0:
        slot = min(_route(f, node, score, id), f.filled[node] - 1)
        if f.filled[f.ref[f.start[node] + slot]] == f.b:
            _split(f, node, slot)
            slot = min(_route(f, node, score, id), f.filled[node] - 1)
        at = f.start[node] + slot
        f.lo[at] = min(f.lo[at], lo)
        f.hi[at] = max(f.hi[at], hi)
        if after(score, id, f.score[at], f.id[at]):
            f.score[at], f.id[at] = score, id
        node = f.ref[at]
    at = _open_slot(f, node, _route(f, node, score, id))
    _write(f, at, row, lo, hi, score, id)
    return root


@kernel
def delete(f: Any, root: int, score: float, id: int) -> int:
    """Remove the entry with this key; returns the root, NOTHING when it was the last, ABSENT if there is none."""
    if root == NOTHING:
        return ABSENT
    path, slots = np.empty(MAX_DEPTH, np.int64), np.empty(MAX_DEPTH, np.int64)
    node, depth = root, 0
    while True:
        path[depth] = node
        slots[depth] = _route(f, node, score, id)
        at = f.start[node] + slots[depth]
        if slots[depth] == f.filled[node] or (f.leaf[node] and (f.score[at] != score or f.id[at] != id)):
            return ABSENT
        if f.leaf[node]:
            break
        node = f.ref[at]
        depth += 1
    for level in range(depth, -1, -1):
        node = path[level]
        begin = f.start[node]
        if level == depth or f.filled[path[level + 1]] == 0:
            if level < depth:
                free_node(f, path[level + 1])
            for t in range(slots[level] + 1, f.filled[node]):
                _move(f, begin + t, begin + t - 1)
            f.filled[node] -= 1
        else:
            _summarise(f, begin + slots[level], path[level + 1])
    if f.filled[root] == 0:
        free_node(f, root)
        return NOTHING
    while f.leaf[root] == 0 and f.filled[root] == 1:
        only = f.ref[f.start[root]]
        free_node(f, root)
        root = only
    return root


@kernel
def bulk(f: Any, rows: Any, lo: Any, hi: Any, scores: Any, ids: Any, packed: bool) -> int:
    """A tree over entries that are already in score order; returns its root. `packed`: without room for more."""
    n = len(rows)
    if n == 0:
        return NOTHING
    nodes = np.empty((n + f.b - 1) // f.b, np.int64)
    for v in range(len(nodes)):
        first, stop = v * f.b, min(n, v * f.b + f.b)
        nodes[v] = new_node(f, 1, stop - first, packed)
        f.filled[nodes[v]] = stop - first
        for t in range(first, stop):
            _write(f, f.start[nodes[v]] + t - first, rows[t], lo[t], hi[t], scores[t], ids[t])
    while len(nodes) > 1:
        above = np.empty((len(nodes) + f.b - 1) // f.b, np.int64)
        for v in range(len(above)):
            first, stop = v * f.b, min(len(nodes), v * f.b + f.b)
            above[v] = new_node(f, 0, stop - first, packed)
            f.filled[above[v]] = stop - first
            for t in range(first, stop):
                _summarise(f, f.start[above[v]] + t - first, nodes[t])
        nodes = above
    return nodes[0]


def members(forest: Forest, root: int) -> list[int]:
    """The slots of all entries of a tree, in score order."""
    if root == NOTHING:
        return []
    slots = range(int(forest.start[root]), int(forest.start[root]) + int(forest.filled[root]))
    if forest.leaf[root]:
        return list(slots)
    return [slot for child in slots for slot in members(forest, int(forest.ref[child]))]


def check(forest: Forest, root: int) -> None:
    """Order, extents and keys of one tree."""
    f = forest
    if root == NOTHING:
        return
    keys = [(-f.score[s], f.id[s]) for s in members(f, root)]
    assert keys == sorted(keys), "a tree is in score order"
    stack = [root]
    while stack:
        node = stack.pop()
        assert 0 < f.filled[node] <= min(f.capacity[node], f.b), "a node holds 1 to b slots"
        if f.leaf[node]:
            continue
        for at in range(f.start[node], f.start[node] + f.filled[node]):
            child = int(f.ref[at])
            inside = slice(f.start[child], f.start[child] + f.filled[child])
            assert f.lo[at] == f.lo[inside].min(), "an extent starts with its child"
            assert f.hi[at] == f.hi[inside].max(), "an extent ends with its child"
            assert f.id[at] == f.id[inside][-1], "a slot's key is its child's last"
            stack.append(child)
