"""Walking the standard cubes of an extremal rectangle in greedy order: by decreasing size, then by key.

The cubes of side 2^i, in units of their side, are the cells of A = [0, ⌊l_j/2^i⌋)^D outside
B = [0, 2⌊l_j/2^(i+1)⌋)^D, which larger cubes have taken. They are met in key order by descending the binary
trie of the interleaved key, one bit at a time. A node is entered only if its box meets A and is not inside
B; then its corner farthest from the origin within A is such a cell, so no descent is in vain.

Cost: O(D·k) steps of O(D) per cube, at any D; no list of cubes is kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from covering.curve.hilbert_keys import cube_range
from covering.curve.keys import Codes, Words
from coverlay import kernel


@kernel(inner=True)
def _open_level(lengths: Codes, level: int, limit: Codes, taken: Codes, cell: Codes, tried: Codes) -> bool:
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
def _next_cube(depth: int, height: int, limit: Codes, taken: Codes, cell: Codes, tried: Codes) -> int:
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


@kernel(inner=True)
def new_walk(lengths: Codes, bits: int) -> Any:
    """The state of a walk over all levels: see `_open_level` and `_next_cube`; last, the level and the depth."""
    limit, taken, cell = np.empty_like(lengths), np.empty_like(lengths), np.empty_like(lengths)
    tried = np.empty(len(lengths) * bits + 1, np.int64)
    return lengths, limit, taken, cell, tried, lengths.copy(), np.array([bits + 1, -1])


@kernel(inner=True)
def next_range(walk: Any, bits: int, hilbert: bool, low: Words, high: Words) -> int:
    """Write the first and last key of the next cube in greedy order; its level, or −1 when there are no more."""
    lengths, limit, taken, cell, tried, corner, at = walk
    level, depth = at[0], at[1]
    if depth >= 0:
        depth = _next_cube(depth, bits - level, limit, taken, cell, tried)
    while depth < 0 and level > 0:
        level -= 1
        if _open_level(lengths, level, limit, taken, cell, tried):
            depth = _next_cube(np.int64(0), bits - level, limit, taken, cell, tried)
    at[0], at[1] = level, depth
    if depth < 0:
        return -1
    for j in range(len(cell)):
        corner[j] = cell[j] << level
    cube_range(corner, level, bits, hilbert, low, high)
    return level


@kernel
def cube_rows(lengths: Codes, bits: int, hilbert: bool, quota: int) -> tuple[Words, Codes]:
    """First keys (as rows with slot 0) and levels of the first `quota` cubes in greedy order."""
    words = (len(lengths) * bits + 63) // 64
    rows, levels = np.zeros((quota, words + 1), np.uint64), np.empty(quota, np.int64)
    last, walk = np.zeros(words + 1, np.uint64), new_walk(lengths, bits)
    count = 0
    while count < quota:
        levels[count] = next_range(walk, bits, hilbert, rows[count], last)
        if levels[count] < 0:
            break
        count += 1
    return rows[:count], levels[:count]
