"""`zorder-emulated` among the covering indexes (covers.py): closed forms of `covering/curve/theory.py` in 64 bits.

A rectangle has at most 2^(D·bits) cells. Up to WIDEST bits every count is exact as a float64 too, so that quotients are
rounded as Python rounds the quotient of two ints; `fits` says whether an index can be kept here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from covering.curve import theory
from covering.curve.emulated import first_met
from covering.curve.keys import mirror
from covering.packed_words import dominating
from sim.compiled.covers import points_of, words_of
from sim.compiled.state import inlined, inner

WIDEST = 52  # bits of a count; a float64 has 53
_FINEST = 62  # bits of the denominator of ε
cubes_for, volume_of, cells_before = map(inlined, (theory.cubes_for, theory.volume_of, theory.cells_before))
_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


def fits(dimensions: int, bits: int, epsilon: float) -> bool:
    return dimensions * bits <= WIDEST and epsilon.as_integer_ratio()[1] <= 1 << _FINEST


def asked_share(epsilon: float) -> tuple[int, int]:
    """1 − ε as (numerator, log2 of the denominator)."""
    part, whole = epsilon.as_integer_ratio()
    return whole - part, whole.bit_length() - 1


@inlined
def share_of(numerator: int, shift: int, total: int) -> Any:
    """⌈numerator · total / 2^shift⌉ by a product of 128 bits."""
    a, b = np.uint64(numerator), np.uint64(total)
    low = (a & _LOW) * (b & _LOW)
    middle = (a >> _HALF) * (b & _LOW) + (low >> _HALF)  # below 2^62 + 2^32
    other = (a & _LOW) * (b >> _HALF) + (middle & _LOW)
    high = (a >> _HALF) * (b >> _HALF) + (middle >> _HALF) + (other >> _HALF)
    low = (other << _HALF) | (low & _LOW)
    if shift == 0:
        return np.int64(low)
    s = np.uint64(shift)
    quotient = (high << (np.uint64(64) - s)) | (low >> s)
    rest = low & ((np.uint64(1) << s) - np.uint64(1))
    return np.int64(quotient) + (1 if rest else 0)


@inlined
def _cubes_up_to(cell: Any, lengths: Any, bits: int, levels: Any) -> int:
    """1 + theory.rank_of."""
    level, dimensions = bits, cell.shape[0]
    for j in range(dimensions):
        differing = cell[j] ^ lengths[j]
        while differing >> level == 0:
            level -= 1
    cubes = 1
    for i in range(level + 1, levels.shape[0]):
        cubes += levels[i]
    at, limits, prefix = np.empty(dimensions, np.int64), np.empty(dimensions, np.int64), np.empty(dimensions, np.int64)
    for even in range(2):
        for j in range(dimensions):
            at[j], limits[j], prefix[j] = cell[j] >> level, (lengths[j] >> level) & ~even, 0
        before = cells_before(at, bits - level, limits, prefix)
        cubes += -before if even else before
    return cubes


@inner
def search_emulated(w: Any, s: int, query: Any, curve: Any, numerator: int, shift: int) -> Any:
    """(slot or −1, cubes searched, fraction searched, capped, whether any point dominates).

    1 − ε = numerator / 2^shift.
    """
    offset, scale, bits, cap = curve[0], curve[1], w.run[0].bits, w.run[0].probe_cap
    points, used = points_of(w, s), w.indexes[s].used
    dimensions = query.shape[0]
    lengths, cell = np.empty(dimensions, np.int64), np.empty(dimensions, np.int64)
    mirror(query, offset, scale, bits, lengths)
    lengths += 1
    levels, filled = np.empty(bits + 1, np.int64), np.empty(bits + 2, np.int64)
    for i in range(bits + 2):
        filled[i] = 1
        for j in range(dimensions):
            filled[i] *= lengths[j] >> i
    for i in range(bits + 1):
        levels[i] = filled[i] - (filled[i + 1] << dimensions)
    total = filled[0]
    need = share_of(numerator, shift, total)
    planned = cubes_for(levels, dimensions, need)
    quota = planned if cap < 0 else min(planned, cap)
    above = dominating(points, words_of(w, s), used, (w.grid[0], w.grid[1], w.guards), query)
    slot = first_met(points, above, offset, scale, bits, lengths, cell)
    cubes = quota
    if slot >= 0:
        cubes = _cubes_up_to(cell, lengths, bits, levels)
        if cubes > quota:
            slot, cubes = -1, quota
    searched = volume_of(levels, dimensions, cubes)
    return slot, cubes, searched / total, slot < 0 and quota < planned, above.shape[0] > 0
