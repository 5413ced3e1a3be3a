"""Exact search on the sorted Z-order keys by jumps: BIGMIN (Tropf and Herzog, 1981).

Walk the SFC array from its start. At a key outside the search region, jump to the next key that is inside
("BIGMIN"), by one look-up; at a key inside, verify the entry. Our region always starts at the origin
(mirrored codes), which makes the jump simple: the next key inside agrees with the current key z up to some bit
t where z has 0, has 1 there, and zeros after it. Of the bits t where that stays inside the region, the last
one before z itself leaves the region gives the smallest such key.

"Inside" is decided bit by bit against the key of the region's far corner: a coordinate is *tight* while its
bits so far equal the corner's, free once smaller; z leaves the region when a tight coordinate has 1 over 0.

Cost: O(D·k) per jump, and as many jumps as the region has separate stretches of stored keys. A probe is a
lookup: a row visited, or the end of the array.
"""

from __future__ import annotations

import numpy as np

from covering.contract import Slots
from covering.curve.index import ExactCurveIndex
from covering.curve.keys import Words, interleave, mirror
from covering.curve.sfc_array import BLOCK, Arrays, locate
from covering.given import Floats
from covering.packed_words import dominates
from coverlay import kernel

INSIDE, JUMP, END = 0, 1, 2


@kernel(inner=True)
def next_inside(row: Words, corner: Words, bits: int, dimensions: int, target: Words) -> int:
    """INSIDE if the key is in the region; else JUMP, with the next key inside in `target`; END if there is none."""
    free = np.uint64(0)  # bit j: coordinate j is below the corner already
    one = np.uint64(1)
    last = -1
    left = False
    t, j = 0, 0
    while t < bits:
        shift = np.uint64(63 - (t & 63))
        z = (row[t >> 6] >> shift) & one
        c = (corner[t >> 6] >> shift) & one
        flag = one << np.uint64(j)
        if free & flag:
            if z == 0:
                last = t
        elif z < c:
            last = t
            free |= flag
        elif z > c:
            left = True
            break
        t += 1
        j += 1
        if j == dimensions:
            j = 0
    if not left:
        return INSIDE
    if last < 0:
        return END
    word = last >> 6
    for w in range(target.shape[0]):
        target[w] = row[w] if w < word else np.uint64(0)
    shift = np.uint64(63 - (last & 63))
    # Bits of z before `last`, then a one. Shifting by 64 is undefined, hence in two steps.
    target[word] = (((row[word] >> shift) >> one) << one | one) << shift
    return JUMP


@kernel(inner=True)
def _jump_to_cover(
    arrays: Arrays, points: Floats, offset: Floats, scale: Floats, bits: int, query: Floats
) -> tuple[int, int]:
    """(slot or −1, rows visited)."""
    rows, order, count, meta = arrays[0], arrays[2], arrays[3], arrays[4]
    dimensions = query.shape[0]
    width = rows.shape[1]
    codes = np.empty(dimensions, np.int64)
    corner, target = np.zeros(width, np.uint64), np.zeros(width, np.uint64)
    mirror(query, offset, scale, bits, codes)
    interleave(codes, bits, corner)
    at, inside, visited = 0, 0, 0
    while at < meta[0]:
        block = order[at]
        if inside == count[block]:
            at, inside = at + 1, 0
            continue
        i = block * BLOCK + inside
        visited += 1
        found = next_inside(rows[i], corner, dimensions * bits, dimensions, target)
        if found == INSIDE:
            slot = np.int64(rows[i, width - 1])
            if dominates(points, slot, query):
                return int(slot), visited
            inside += 1
        elif found == JUMP:
            at, inside = locate(arrays, target)
        else:
            return -1, visited
    return -1, visited + 1  # the lookup that returned nothing


@kernel
def jump_to_covers(
    arrays: Arrays, points: Floats, offset: Floats, scale: Floats, bits: int, queries: Floats, found: Slots
) -> int:
    """A slot or −1 for each query, into `found`; the number of rows visited."""
    visited = 0
    for i in range(queries.shape[0]):
        found[i], rows = _jump_to_cover(arrays, points, offset, scale, bits, queries[i])
        visited += rows
    return visited


class BigminIndex(ExactCurveIndex):
    """Jumps along the sorted Z keys from one stretch of the search region to the next.

    >>> from covering.curve.bigmin import BigminIndex
    >>> index = BigminIndex((0, 100), bits=8)
    >>> index.add(1, (0, 50))
    >>> index.find_cover((10, 20)), index.find_cover((40, 60))
    (1, None)
    """

    name = "bigmin"
    store = "next key"
    find = staticmethod(jump_to_covers)
