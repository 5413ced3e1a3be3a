"""How many standard cubes and runs a search costs: closed forms in exact integers, and the slides' bounds.

The region is a mirrored extremal rectangle R = [0, l_1) × … × [0, l_D) in a grid of 2^k cells per side.
Rounding every side down to a multiple of 2^i leaves what cubes of side ≥ 2^i can fill ("this characterization
used to find the number of standard cubes of each size"), so that

    cubes of side 2^i  =  (Π_j ⌊l_j/2^i⌋·2^i − Π_j ⌊l_j/2^(i+1)⌋·2^(i+1)) / 2^(iD).

Python integers throughout: volumes pass 2^63 from D·k = 63 on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction


def cubes_per_level(lengths: Sequence[int], bits: int) -> list[int]:
    """Number of standard cubes of side 2^i in the greedy decomposition, for i = 0 … bits."""
    dimensions = len(lengths)
    filled = [math.prod(length >> i for length in lengths) for i in range(bits + 2)]
    return [filled[i] - (filled[i + 1] << dimensions) for i in range(bits + 1)]


@dataclass(frozen=True)
class Plan:
    """What the greedy search of one rectangle would do: cubes per level, and how many of them ε asks for."""

    levels: tuple[int, ...]  # cubes of side 2^i, index i
    dimensions: int
    total: int  # volume of the rectangle, in cells
    quota: int  # cubes to search, largest first, until the fraction searched is ≥ 1 − ε

    def volume_of(self, cubes: int) -> int:
        """Cells in the first `cubes` cubes of the greedy order."""
        volume, left = 0, cubes
        for i in range(len(self.levels) - 1, -1, -1):
            taken = min(left, self.levels[i])
            volume += taken << (i * self.dimensions)
            left -= taken
            if not left:
                break
        return volume

    def fraction(self, cubes: int) -> float:
        """The slides' γ after `cubes` cubes."""
        return self.volume_of(cubes) / self.total


def plan(lengths: Sequence[int], bits: int, epsilon: float = 0.0) -> Plan:
    """The greedy plan for a rectangle; ε is taken as the exact binary fraction that the float is."""
    levels = cubes_per_level(lengths, bits)
    dimensions, total = len(lengths), math.prod(lengths)
    wanted = (1 - Fraction(epsilon)) * total
    need = -(-wanted.numerator // wanted.denominator)  # cells, rounded up
    quota, volume = 0, 0
    for i in range(bits, -1, -1):
        shift = i * dimensions
        if volume + (levels[i] << shift) >= need:
            quota += -(-(need - volume) >> shift) if need > volume else 0
            break
        quota += levels[i]
        volume += levels[i] << shift
    return Plan(tuple(levels), dimensions, total, quota)
