"""Where the stored keys lie: a binary trie over the key space whose nodes count the keys below them.

A node is a key prefix, that is a box of cells; its children halve one coordinate. Nodes are split, the fullest first,
until there are `most` leaves. Few counters are enough to say where in a search region stored points are expected: in a
leaf the keys are taken as spread evenly.

Invariant: `count[node]` is exactly the number of stored keys with the node's prefix, so a leaf that counts none has
none. An update walks down one path.

Cost: O(most · log n) to build, O(D·k) per update, 8·(3 + D) bytes a node, of which there are 2 · most − 1.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covering.curve.keys import Codes, Words, interleave
from covering.curve.sfc_array import Arrays, locate
from coverlay import kernel

LEAF = -1  # the child of a node that was not split
# child (the left one; the right one follows it), count, depth (bits of the prefix), low (least cell, one row a node).
Tree = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], Codes]


@kernel
def build(arrays: Arrays, dimensions: int, bits: int, most: int) -> Tree:
    """The trie over all rows of the SFC array, with at most `most` leaves."""
    order, held, meta = arrays[2], arrays[3], arrays[4]
    before = np.zeros(meta[0] + 1, np.int64)  # rows in the blocks before this one
    for at in range(meta[0]):
        before[at + 1] = before[at] + held[order[at]]
    nodes, deepest = 2 * most - 1, dimensions * bits
    child, count = np.full(nodes, LEAF), np.zeros(nodes, np.int64)
    depth, low = np.zeros(nodes, np.int64), np.zeros((nodes, dimensions), np.int64)
    first = np.zeros(nodes, np.int64)  # rows before the node
    row = np.zeros(arrays[0].shape[1], np.uint64)
    count[0] = before[meta[0]]
    used = 1
    fullest = [(-count[0], 0)]
    while used < nodes:
        _, node = heappop(fullest)
        if count[node] > 1 and depth[node] < deepest:
            j, weight = depth[node] % dimensions, np.int64(1) << (bits - 1 - depth[node] // dimensions)
            child[node] = used
            for side in range(2):
                depth[used + side] = depth[node] + 1
                for i in range(dimensions):
                    low[used + side, i] = low[node, i]
            low[used + 1, j] += weight
            interleave(low[used + 1], bits, row)
            at, inside = locate(arrays, row)
            first[used], first[used + 1] = first[node], before[at] + inside
            count[used] = first[used + 1] - first[node]
            count[used + 1] = count[node] - count[used]
            heappush(fullest, (-count[used], used))
            heappush(fullest, (-count[used + 1], used + 1))
            used += 2
        if len(fullest) == 0:
            break
    return child[:used].copy(), count[:used].copy(), depth[:used].copy(), low[:used].copy()


@kernel
def count_key(tree: Tree, row: Words, step: int) -> None:
    """A key came (step 1) or is gone (−1)."""
    child, count, depth = tree[0], tree[1], tree[2]
    node = 0
    count[0] += step
    while child[node] != LEAF:
        t = depth[node]
        node = child[node] + np.int64((row[t >> 6] >> np.uint64(63 - (t & 63))) & np.uint64(1))
        count[node] += step


@kernel(inner=True)
def expected(tree: Tree, leaf: int, lengths: Codes, bits: int) -> Any:
    """(How many of a leaf's keys are expected in the region, the leaf's share of the region.)"""
    dimensions, depth = lengths.shape[0], tree[2][leaf]
    points, share = float(tree[1][leaf]), 1.0
    for j in range(dimensions):
        side = np.int64(1) << (bits - depth // dimensions - (1 if j < depth % dimensions else 0))
        inside = min(side, lengths[j] - tree[3][leaf, j])
        points *= inside / side
        share *= inside / lengths[j]
    return points, share


@kernel(inner=True)
def leaves_within(tree: Tree, lengths: Codes, found: NDArray[np.int64]) -> int:
    """Write the leaves that count keys and meet the region into `found`, in key order; how many."""
    child, count, low = tree[0], tree[1], tree[3]
    pending = np.empty(found.shape[0] + 1, np.int64)
    pending[0] = 0
    top, leaves = 1, 0
    while top:
        top -= 1
        node = pending[top]
        if count[node] == 0:
            continue
        meets = True
        for j in range(lengths.shape[0]):  # the region starts at the origin: a box meets it iff its least cell does
            meets &= low[node, j] < lengths[j]
        if not meets:
            continue
        if child[node] == LEAF:
            found[leaves] = node
            leaves += 1
        else:
            pending[top], pending[top + 1] = child[node] + 1, child[node]
            top += 2
    return leaves


def check_counters(tree: Tree, rows: Words) -> None:
    """Raise AssertionError unless every node counts the rows with its prefix; slow, for tests."""
    child, count, depth, low = tree
    assert count[0] == len(rows)
    inner = np.flatnonzero(child != LEAF)
    assert (count[inner] == count[child[inner]] + count[child[inner] + 1]).all()
    assert sorted(np.concatenate([child[inner], child[inner] + 1, [0]]).tolist()) == list(range(len(child)))
    recounted = child.copy(), np.zeros_like(count), depth, low
    for row in rows:
        count_key(recounted, row, np.int64(1))
    assert (recounted[1] == count).all()
