"""`zorder-emulated` among the covering indexes (covers.py): closed forms of `covering/curve/theory.py` in 64 bits.

A rectangle has at most 2^(D·bits) cells. Up to WIDEST bits every count is exact as a float64 too, so that quotients are
rounded as Python rounds the quotient of two ints; `fits` says whether an index can be kept here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from covering.curve import resolution, theory
from covering.curve.emulated import compared_before, first_met, near_edge
from covering.curve.keys import mirror
from covering.given import Floats
from covering.packed_words import dominating
from covering.quantiser import MAX_BITS, Quantiser
from sim.compiled.covers import points_of, words_of
from sim.compiled.state import inlined, inner

WIDEST = 52  # bits of a count; a float64 has 53
_FINEST = 62  # bits of the denominator of ε
_FORMULAS = (theory.cubes_for, theory.volume_of, theory.cells_before, theory.cube_at)
cubes_for, volume_of, cells_before, cube_at = map(inlined, _FORMULAS)
_greedy_bits, divided_with = inlined(resolution.greedy_bits), inlined(resolution.divided_with)
_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)


def fits(dimensions: int, bits: int, epsilon: float) -> bool:
    return dimensions * bits <= WIDEST and epsilon.as_integer_ratio()[1] <= 1 << _FINEST


def grids(domain: Floats) -> Floats:
    """The offsets of quantisers, then their scales for 1, 2, … bits."""
    quantisers = [Quantiser.of(domain, bits) for bits in range(1, MAX_BITS + 1)]
    return np.stack([quantisers[0].offset, *(quantiser.scale for quantiser in quantisers)])


@inlined
def bits_of(w: Any, s: int) -> int:
    """Bits per coordinate in force in an index."""
    return w.run[0].bits or _greedy_bits(w.indexes[s].divided, w.points.shape[1])


@inlined
def follow(w: Any, s: int) -> None:
    """After an addition or a removal: GreedyBits._follow."""
    w.indexes[s].divided = divided_with(w.indexes[s].divided, w.indexes[s].held)


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
def _level_of(cell: Any, lengths: Any, bits: int) -> int:
    """theory.level_of."""
    level = bits
    for j in range(cell.shape[0]):
        differing = cell[j] ^ lengths[j]
        while differing >> level == 0:
            level -= 1
    return level


@inlined
def _cubes_up_to(cell: Any, level: int, lengths: Any, bits: int, levels: Any) -> int:
    """1 + theory.rank_of."""
    dimensions = cell.shape[0]
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
    """(slot or −1, cubes searched, rows compared, fraction searched, capped, whether any point dominates).

    1 − ε = numerator / 2^shift.
    """
    bits, cap = bits_of(w, s), w.run[0].probe_cap
    offset, scale = curve[0], curve[bits]
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
    edge = near_edge(query, offset, scale, bits, lengths)
    near = dominating(points, words_of(w, s), used, (w.grid[0], w.grid[1], w.guards), edge)
    slot = first_met(points, query, near, offset, scale, bits, lengths, cell)
    cubes, level, any_at_all = quota, 0, slot >= 0
    if slot >= 0:
        level = _level_of(cell, lengths, bits)
        cubes = _cubes_up_to(cell, level, lengths, bits, levels)
    if slot < 0 or cubes > quota:
        slot, cubes = -1, quota
        level = cube_at(quota, lengths, bits, levels, cell)
    compared = compared_before(points, near, offset, scale, bits, lengths, level, cell, max(slot, 0))
    if slot >= 0:
        compared += 1
    searched = volume_of(levels, dimensions, cubes)
    return slot, cubes, compared, searched / total, slot < 0 and quota < planned, any_at_all
