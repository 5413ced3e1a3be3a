"""Virtual construct intervals: geometry of SCI and LCI (IBM 2004, sections 2.2, 2.3, 3 and 4.1).

At each position start L intervals of the lengths 1, 2, …, L (simple, SCI), or log2(L)+1 of the lengths
1, 2, 4, …, L (logarithmic, LCI). Their ids, called coordinates:

    SCI: c = a·L + (b − a) − 1                 (Eq. 1)
    LCI: c = a·(log2 L + 1) + log2(b − a)      (Eq. 2)

for [a, b], a counted from the start of the range. A value j ≥ L can only be covered by coordinates from
C_min to C_max, its covering segment, of L²+1 (SCI) or L(log2 L+1)+1 (LCI) coordinates. Those that do cover
it lie at distances from C_min that are the same for every j: the distance table of L(L+3)/2 (SCI) or
2L+log2 L (LCI) entries (Eq. 3). A value strictly between two positions needs less: L(L+1)/2 and 2L−1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coverlay import CoverlayError, kernel
from topk.checks import Ints
from topk.kernels.bits import bit_length


class Shape(NamedTuple):
    """Which construct intervals there are; `per_start` of them begin at each position."""

    logarithmic: bool
    longest: int  # L
    per_start: int


def shape(logarithmic: bool, longest: int) -> Shape:
    if longest < 1 or (logarithmic and longest & (longest - 1)):
        kind = "a power of two" if logarithmic else "at least 1"
        raise CoverlayError(f"the longest construct interval L must be {kind}, not {longest}")
    longest = int(longest)
    return Shape(logarithmic, longest, longest.bit_length() if logarithmic else longest)


@kernel
def find_coordinate(s: Any, a: int, b: int) -> int:
    """Eq. 1 and Eq. 2."""
    if s.logarithmic:
        return a * s.per_start + bit_length(b - a) - 1
    return a * s.per_start + (b - a) - 1


@kernel
def decode(s: Any, c: int) -> Any:
    """The construct interval [a, b] of a coordinate: one division, as in section 4."""
    a = c // s.per_start
    rest = c - a * s.per_start
    return a, a + ((1 << rest) if s.logarithmic else rest + 1)


@kernel
def piece(s: Any, x: int, y: int) -> int:
    """Where the first construct interval of the decomposition of [x, y] ends."""
    if y - x > s.longest:
        return x + s.longest
    return x + (1 << (bit_length(y - x) - 1)) if s.logarithmic else y


@kernel
def covering_segment(s: Any, j: int, between: bool) -> Any:
    """(C_min, C_max) of position j, or of the gap after it; C_min may be negative for j < L."""
    back = s.longest - 1 if between else s.longest
    return (j - back) * s.per_start + s.per_start - 1, j * s.per_start + s.per_start - 1


def distance_table(s: Shape, between: bool = False) -> Ints:
    """Distances from C_min of all coordinates that do cover a position (or the gap after it)."""
    j = s.longest  # any j ≥ L gives the same table
    low, high = covering_segment(s, j, between)
    reach = j + 1 if between else j
    distances = []
    for c in range(low, high + 1):
        a, b = decode(s, c)
        if a <= j and reach <= b:
            distances.append(c - low)
    return np.array(distances, dtype=np.int64)


def storage(s: Shape, cells: int, bitmap: str) -> int:
    """Bytes of headers (4 each) and bitmap vectors, without predicate id lists; bitmap: full, clipped or none."""
    coordinates = cells * s.per_start
    bits = {"full": coordinates, "clipped": s.longest * s.per_start + 1, "none": 0}[bitmap]
    return 4 * coordinates + cells * 8 * -(-bits // 64)
