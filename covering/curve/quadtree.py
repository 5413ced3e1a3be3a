"""Exact descent of the quad-trie that the sorted Z-order keys form, skipping empty cubes.

No tree is stored: a node is a key prefix, its entries a stretch of the SFC array, found by one look-up. The
descent takes one bit of the key, that is one halving of one coordinate, at a time (D halvings make the 2^D
children of a quad-tree node). A child outside the search region is not entered, an empty one is
skipped, and a stretch of at most 8 rows is compared directly. In a cube wholly in the interior of the
region, the first entry is a cover.

Larger mirrored codes are smaller boxes, so the 0-child comes first. Cost: the nodes on the region's boundary
that hold entries, O(log n) each. A probe is a look-up or an entry compared.
"""

from __future__ import annotations

import numpy as np

from covering.contract import Slots
from covering.curve.index import ExactCurveIndex
from covering.curve.keys import interleave, mirror
from covering.curve.sfc_array import BLOCK, Arrays, locate, same_prefix
from covering.given import Floats
from covering.packed_words import dominates
from coverlay import kernel

_FEW = 8  # rows that are compared directly; measured flat from 4 to 16


@kernel(inner=True)
def _find(arrays: Arrays, points: Floats, offset: Floats, scale: Floats, bits: int, query: Floats) -> tuple[int, int]:
    """(slot or −1, probes)."""
    rows, order, count, meta = arrays[0], arrays[2], arrays[3], arrays[4]
    dimensions, width = query.shape[0], rows.shape[1]
    codes = np.empty(dimensions, np.int64)
    corner = np.zeros(width, np.uint64)
    mirror(query, offset, scale, bits, codes)
    interleave(codes, bits, corner)
    depth = dimensions * bits
    # One pending node per depth at most (the 1-child beside the path), plus the current one.
    prefixes = np.zeros((depth + 2, width), np.uint64)
    lengths = np.empty(depth + 2, np.int64)
    free = np.empty(depth + 2, np.uint64)  # bit j: coordinate j is below the corner already
    one = np.uint64(1)
    lengths[0], free[0] = 0, np.uint64(0)
    top, probes = 1, 0
    while top:
        top -= 1
        t, loose, prefix = lengths[top], free[top], prefixes[top]
        at, inside = locate(arrays, prefix)
        probes += 1
        looked = 0
        more = True
        while at < meta[0] and looked <= _FEW:
            block = order[at]
            if inside == count[block]:
                at, inside = at + 1, 0
                continue
            row = rows[block * BLOCK + inside]
            if not same_prefix(row, prefix, t):
                more = False
                break
            if looked == _FEW and t < depth:
                break
            slot = np.int64(row[width - 1])
            probes += 1
            if dominates(points, slot, query):
                return int(slot), probes
            inside += 1
            if t < depth:
                looked += 1
        if not more or at == meta[0]:
            continue  # the whole stretch was compared
        word, shift, j = t >> 6, np.uint64(63 - (t & 63)), t % dimensions
        flag = one << np.uint64(j)
        c = (corner[word] >> shift) & one
        upper = (loose & flag) != 0 or c == one  # may the child with bit 1 be entered?
        if upper:
            prefixes[top] = prefix
            prefixes[top + 1] = prefix
            prefixes[top, word] |= one << shift
            lengths[top], free[top] = t + 1, loose
            top += 1
        lengths[top] = t + 1
        free[top] = loose | flag if c == one else loose
        top += 1
    return -1, probes


@kernel
def _find_many(
    arrays: Arrays, points: Floats, offset: Floats, scale: Floats, bits: int, queries: Floats, found: Slots
) -> int:
    probes = 0
    for i in range(queries.shape[0]):
        found[i], looked = _find(arrays, points, offset, scale, bits, queries[i])
        probes += looked
    return probes


class QuadtreeIndex(ExactCurveIndex):
    """Descends the quadtree that the sorted Z keys imply.

    >>> from covering.curve.quadtree import QuadtreeIndex
    >>> index = QuadtreeIndex((0, 100))
    >>> index.add(1, (0, 50))
    >>> index.find_cover((10, 20)), index.find_cover((40, 60))
    (1, None)
    """

    name = "quadtree"
    store = "next key"
    find = staticmethod(_find_many)
