"""How many standard cubes and runs a search costs: closed forms in exact integers, and the slides' bounds.

The region is a mirrored extremal rectangle R = [0, l_1) × … × [0, l_D) in a grid of 2^k cells per side.
Rounding every side down to a multiple of 2^i leaves what cubes of side ≥ 2^i can fill ("this characterization
used to find the number of standard cubes of each size"), so that

    cubes of side 2^i  =  (Π_j ⌊l_j/2^i⌋·2^i − Π_j ⌊l_j/2^(i+1)⌋·2^(i+1)) / 2^(iD).

Python integers throughout: volumes pass 2^63 from D·k = 63 on.
"""

from __future__ import annotations

import math
from collections.abc import MutableSequence, Sequence
from dataclasses import dataclass
from fractions import Fraction


def cubes_per_level(lengths: Sequence[int], bits: int) -> list[int]:
    """Number of standard cubes of side 2^i in the greedy decomposition, for i = 0 … bits."""
    dimensions = len(lengths)
    filled = [math.prod([length >> i for length in lengths]) for i in range(bits + 2)]
    return [filled[i] - (filled[i + 1] << dimensions) for i in range(bits + 1)]


@dataclass(frozen=True)
class Plan:
    """What the greedy search of one rectangle would do: cubes per level, and how many of them ε asks for."""

    levels: tuple[int, ...]  # cubes of side 2^i, index i
    dimensions: int
    total: int  # volume of the rectangle, in cells
    quota: int  # cubes to search, largest first, until the fraction searched is ≥ 1 − ε

    def volume_of(self, cubes: int) -> int:
        return volume_of(self.levels, self.dimensions, cubes)

    def fraction(self, cubes: int) -> float:
        """The slides' γ after `cubes` cubes."""
        return self.volume_of(cubes) / self.total


def plan(lengths: Sequence[int], bits: int, epsilon: float = 0.0) -> Plan:
    """The greedy plan for a rectangle; ε is taken as the exact binary fraction that the float is."""
    levels = cubes_per_level(lengths, bits)
    dimensions, total = len(lengths), math.prod(lengths)
    part, whole = epsilon.as_integer_ratio()
    need = -(-(whole - part) * total // whole)  # cells, rounded up
    return Plan(tuple(levels), dimensions, total, cubes_for(levels, dimensions, need))


# The compiled engine compiles the next four too (sim/compiled/covers_emulated.py).


def cubes_for(levels: Sequence[int], dimensions: int, need: int) -> int:
    """How many cubes of the greedy order hold `need` cells."""
    cubes, volume = 0, 0
    for i in range(len(levels) - 1, -1, -1):
        shift = i * dimensions
        if volume + (levels[i] << shift) >= need:
            cubes += -(-(need - volume) >> shift) if need > volume else 0
            break
        cubes += levels[i]
        volume += levels[i] << shift
    return cubes


def volume_of(levels: Sequence[int], dimensions: int, cubes: int) -> int:
    """Cells in the first `cubes` cubes of the greedy order."""
    volume, left = 0, cubes
    for i in range(len(levels) - 1, -1, -1):
        taken = min(left, levels[i])
        volume += taken << (i * dimensions)
        left -= taken
        if not left:
            break
    return volume


def cells_before(cell: Sequence[int], bits: int, limits: Sequence[int], prefix: MutableSequence[int]) -> int:
    """How many cells of [0, limit_1) × … have a smaller Z key than `cell`, coordinates of `bits` bits.

    Each such cell agrees with `cell` up to a bit where `cell` has 1 and it has 0, and is arbitrary after it:
    a box, whose overlap with the limits is a product. `prefix`: scratch space, a zero per coordinate.
    """
    total = 0
    for b in range(bits - 1, -1, -1):
        for j, coordinate in enumerate(cell):
            if coordinate >> b & 1:
                count = 1
                for i, limit in enumerate(limits):
                    size = 1 << (b if i <= j else b + 1)
                    count *= max(0, min(size, limit - prefix[i]))
                    if not count:
                        break
                total += count
                prefix[j] |= 1 << b
    return total


def cube_at(rank: int, lengths: Sequence[int], bits: int, levels: Sequence[int], corner: MutableSequence[int]) -> int:
    """The level of the cube at this place of the greedy order, its least cell in `corner`; −1 if there are fewer cubes.

    The inverse of `rank_of`: descend the bits of the key, and take bit 0 unless all cubes with bit 0 come before.
    """
    level, left = len(levels) - 1, rank
    while level >= 0 and left >= levels[level]:
        left -= levels[level]
        level -= 1
    for j in range(len(lengths)):
        corner[j] = 0
    for b in range(bits - level - 1 if level >= 0 else -1, -1, -1):
        for j in range(len(lengths)):
            inside, taken = 1, 1  # cells of this half, and those of them that larger cubes have taken
            for i in range(len(lengths)):
                size, limit = 1 << (b if i <= j else b + 1), lengths[i] >> level
                inside *= max(0, min(size, limit - corner[i]))
                taken *= max(0, min(size, (limit & ~1) - corner[i]))
            if left >= inside - taken:
                left -= inside - taken
                corner[j] |= 1 << b
    for j in range(len(lengths)):
        corner[j] <<= max(0, level)
    return level


def level_of(cell: Sequence[int], lengths: Sequence[int]) -> int:
    """log2 of the side of the standard cube that the greedy decomposition gives to a cell of the rectangle.

    The cube of side 2^i around the cell fits iff ⌊m_j/2^i⌋ < ⌊l_j/2^i⌋ for all j, that is iff i is at most the
    highest bit in which m_j and l_j differ.
    """
    return min((m ^ length).bit_length() - 1 for m, length in zip(cell, lengths, strict=True))


def rank_of(cell: Sequence[int], lengths: Sequence[int], bits: int, levels: Sequence[int]) -> int:
    """Position, from 0, of the cube that holds `cell` in the greedy order (by size, then by key)."""
    level = level_of(cell, lengths)
    larger = sum(levels[level + 1 :])
    at = [m >> level for m in cell]
    limits = [length >> level for length in lengths]
    taken = [limit & ~1 for limit in limits]
    before = [cells_before(at, bits - level, most, [0] * len(cell)) for most in (limits, taken)]
    return larger + before[0] - before[1]


def runs(lengths: Sequence[int], bits: int) -> int:
    """Maximal stretches of consecutive Z keys in the rectangle: the minimum cost of an exact search.

    A run ends at a key z in the rectangle whose successor is not. z = P01…1, z + 1 = P10…0: only the
    coordinate j that owns the changing bit grows, by one, so z_j = l_j − 1, whose trailing ones show that
    the bit is the lowest one of l_j, at height v. The others are arbitrary above their trailing ones, of which
    those before j have v and those after it v + 1:

        runs = Σ_{j: l_j < 2^k}  Π_{i<j} ⌊l_i/2^v⌋ · Π_{i>j} ⌊l_i/2^(v+1)⌋,   v = trailing zeros of l_j

    (and 1 if the rectangle is the whole space). 257 × 257: 128 + 257 = 385, as on the slides.
    """
    if all(length == 1 << bits for length in lengths):
        return 1
    total = 0
    for j, length in enumerate(lengths):
        if length == 1 << bits:
            continue
        v = (length & -length).bit_length() - 1
        total += math.prod(other >> (v if i < j else v + 1) for i, other in enumerate(lengths) if i != j)
    return total


def aspect_ratio(lengths: Sequence[int]) -> int:
    """The slides' α ≈ log2(l_max/l_min), as the difference in bit lengths b(l), which the proofs use."""
    return max(lengths).bit_length() - min(lengths).bit_length()


def approximate_upper_bound(dimensions: int, alpha: int, epsilon: float) -> float:
    """log2(D/ε) · (2^(α+1)·D/ε)^(D−1): the slides' bound on the cost of approximate search, constant 1."""
    ratio = dimensions / epsilon
    return math.log2(ratio) * float(2 ** (alpha + 1) * ratio) ** (dimensions - 1)


def exact_lower_bound(dimensions: int, alpha: int, shortest: int) -> Fraction:
    """(2^(α−1)·l_min)^(D−1): the slides' bound on the runs of exact search (for their worst-case rectangle)."""
    return (Fraction(2) ** (alpha - 1) * shortest) ** (dimensions - 1)


def worst_rectangle(dimensions: int, alpha: int, shortest_bits: int) -> list[int]:
    """A rectangle that meets the lower bound: one side 2^b − 1, the others 2^(b+α−1), b = `shortest_bits`.

    The slides' example with b = 2, α = 1: sides 100 and 011 in binary. The cubes along the far face of the
    short side have an odd last bit there and cannot be joined to their predecessors.
    """
    return [1 << (shortest_bits + alpha - 1)] * (dimensions - 1) + [(1 << shortest_bits) - 1]
