"""Keys in Hilbert order, in any number of dimensions.

J. Skilling, "Programming the Hilbert curve", AIP Conf. Proc. 707 (2004): undo the rotations and reflections of
the sub-cubes from the coarsest bit down, then Gray-decode; the transformed coordinates, interleaved, are
the index. The first D·h bits depend only on the first h bits of each coordinate, so a standard cube is one
key range here as well; only which range differs from the Z curve.

Cost: O(D·k) per key.
"""

from __future__ import annotations

import numpy as np

from covering.curve.keys import Codes, Words, interleave, mirror
from covering.given import Floats
from coverlay import kernel


@kernel
def to_hilbert(codes: Codes, bits: int) -> None:
    """Transform coordinates in place; interleaving the result gives the Hilbert index."""
    dimensions = codes.shape[0]
    bit = 1 << (bits - 1)
    while bit > 1:
        low = bit - 1
        for j in range(dimensions):
            if codes[j] & bit:
                codes[0] ^= low  # reflect
            else:
                swap = (codes[0] ^ codes[j]) & low  # exchange the axes below this bit
                codes[0] ^= swap
                codes[j] ^= swap
        bit >>= 1
    for j in range(1, dimensions):
        codes[j] ^= codes[j - 1]
    flip = 0
    bit = 1 << (bits - 1)
    while bit > 1:
        if codes[dimensions - 1] & bit:
            flip ^= bit - 1
        bit >>= 1
    for j in range(dimensions):
        codes[j] ^= flip


@kernel
def key_rows(points: Floats, first: int, offset: Floats, scale: Floats, bits: int, hilbert: bool) -> Words:
    """For the points in slots first, first + 1, …: the words of the key, in Hilbert or Z order, then the slot."""
    dimensions = offset.shape[0]
    words = (dimensions * bits + 63) // 64
    rows = np.empty((points.shape[0], words + 1), np.uint64)
    codes = np.empty(dimensions, np.int64)
    for i in range(points.shape[0]):
        mirror(points[i], offset, scale, bits, codes)
        if hilbert:
            to_hilbert(codes, bits)
        interleave(codes, bits, rows[i])
        rows[i, words] = np.uint64(first + i)
    return rows


@kernel(inner=True)
def cube_range(corner: Codes, level: int, bits: int, hilbert: bool, low: Words, high: Words) -> None:
    """First and last key of the standard cube of side 2^level at `corner`, which is overwritten."""
    if hilbert:
        to_hilbert(corner, bits)
        for j in range(corner.shape[0]):
            corner[j] = (corner[j] >> level) << level
    interleave(corner, bits, low)
    for j in range(corner.shape[0]):
        corner[j] |= (1 << level) - 1
    interleave(corner, bits, high)
