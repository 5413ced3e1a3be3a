"""Walking the standard cubes of an extremal rectangle in greedy order: by decreasing size, then by key.

The cubes of side 2^i, in units of their side, are the cells of A = [0, ⌊l_j/2^i⌋)^D outside
B = [0, 2⌊l_j/2^(i+1)⌋)^D, which larger cubes have taken. They are met in key order by descending the binary
trie of the interleaved key, one bit at a time. A node is entered only if its box meets A and is not inside
B; then its corner farthest from the origin within A is such a cell, so no descent is in vain.

Cost: O(D·k) steps of O(D) per cube, at any D; no list of cubes is kept.
"""

from __future__ import annotations

import numpy as np

from covering.curve.hilbert_keys import cube_range
from covering.curve.keys import Codes, Words
from coverlay import kernel


@kernel(inner=True)
def open_level(lengths: Codes, level: int, limit: Codes, taken: Codes, cell: Codes, tried: Codes) -> bool:
    """Set up the walk over the cubes of side 2^level; False if there is none."""
    some, odd = True, False
    for j in range(lengths.shape[0]):
        limit[j] = lengths[j] >> level
        taken[j] = limit[j] & ~1
        cell[j] = 0
        some &= limit[j] > 0
        odd |= limit[j] != taken[j]
    tried[0] = 0
    return some and odd


@kernel(inner=True)
def next_cube(depth: int, height: int, limit: Codes, taken: Codes, cell: Codes, tried: Codes) -> int:
    """Advance `cell` to the next cube of the level; the new depth, or −1 when there are no more.

    `depth` is 0 at the start of a level, then what the last call returned; `height` is the bits per
    coordinate of a cell; `tried[t]` counts the children of the node at depth t that were tried.
    """
    dimensions = limit.shape[0]
    leaf = dimensions * height
    if depth == leaf:
        if leaf == 0:
            if tried[0] == 0:
                tried[0] = 1
                return 0  # the whole space is one cube
            return -1
        depth -= 1
        j, weight = depth % dimensions, 1 << (height - 1 - depth // dimensions)
        cell[j] &= ~weight
    while depth >= 0:
        if tried[depth] == 2:
            depth -= 1
            if depth >= 0:
                cell[depth % dimensions] &= ~(1 << (height - 1 - depth // dimensions))
            continue
        j, weight = depth % dimensions, 1 << (height - 1 - depth // dimensions)
        if tried[depth] == 1:
            if cell[j] + weight >= limit[j]:
                tried[depth] = 2
                continue
            cell[j] |= weight
        tried[depth] += 1
        inside = True
        for i in range(dimensions):
            size = weight if i <= j else 2 * weight
            inside &= cell[i] + size <= taken[i]
        if inside:
            cell[j] &= ~weight
            continue
        depth += 1
        if depth == leaf:
            return depth
        tried[depth] = 0
    return -1


@kernel
def cube_rows(lengths: Codes, bits: int, hilbert: bool, quota: int) -> tuple[Words, Codes]:
    """First keys (as rows with slot 0) and levels of the first `quota` cubes in greedy order."""
    dimensions = lengths.shape[0]
    words = (dimensions * bits + 63) // 64
    rows = np.zeros((quota, words + 1), np.uint64)
    levels = np.empty(quota, np.int64)
    limit, taken, cell = np.empty_like(lengths), np.empty_like(lengths), np.empty_like(lengths)
    corner, last = np.empty_like(lengths), np.zeros(words + 1, np.uint64)
    tried = np.empty(dimensions * bits + 1, np.int64)
    count = 0
    for level in range(bits, -1, -1):
        if count == quota or not open_level(lengths, level, limit, taken, cell, tried):
            continue
        depth = next_cube(0, bits - level, limit, taken, cell, tried)
        while depth >= 0 and count < quota:
            for j in range(dimensions):
                corner[j] = cell[j] << level
            cube_range(corner, level, bits, hilbert, rows[count], last)
            levels[count] = level
            count += 1
            depth = next_cube(depth, bits - level, limit, taken, cell, tried)
    return rows[:count], levels[:count]
