"""Quantised dominance points and their Z-order keys, of as many 64-bit words as they need.

Each coordinate becomes a code of k bits (quantiser.py). +∞ shares the top code 2^k − 1 with the uppermost part of the
domain: a code of its own would leave three cells of four at two bits, and greedy searches use one to three.

Codes are mirrored (2^k − 1 − code): the search region of a query becomes a rectangle [0, l_1) × … × [0, l_D)
at the origin, with side lengths l_j = code range above the query, as the slides draw it.

A key interleaves the mirrored codes, most significant bits first, coordinate 0 first ("Keys of Standard
Cubes": cell (0, 1) has key 01). Bit t of the key is bit 63 − t mod 64 of word t div 64: keys are left
aligned and compare word by word.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from covering.given import Floats
from coverlay import kernel

Words = NDArray[np.uint64]
Codes = NDArray[np.int64]


@kernel
def mirror(point: Floats, offset: Floats, scale: Floats, bits: int, codes: Codes) -> None:
    """Mirrored codes of a dominance point: 0 for the uppermost cell and above, 2^bits − 1 for the lowest and below."""
    top = (1 << bits) - 1
    for j in range(point.shape[0]):
        if point[j] == np.inf:
            codes[j] = 0
            continue
        above = point[j] - offset[j]
        if not above > 0.0:
            codes[j] = top
            continue
        scaled = above * scale[j]
        # An overflowing difference times a scale of zero is NaN: all finite values have one code, the lowest.
        if np.isnan(scaled):
            codes[j] = top
        elif scaled >= top:
            codes[j] = 0
        else:
            codes[j] = top - np.int64(scaled)


@kernel
def interleave(codes: Codes, bits: int, row: Words) -> None:
    """Write the key of `codes` into the first words of `row`."""
    dimensions = codes.shape[0]
    words = (dimensions * bits + 63) // 64
    for w in range(words):
        row[w] = np.uint64(0)
    t = 0
    for b in range(bits - 1, -1, -1):
        for j in range(dimensions):
            if (codes[j] >> b) & 1:
                row[t >> 6] |= np.uint64(1) << np.uint64(63 - (t & 63))
            t += 1
