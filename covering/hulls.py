"""Hulls of boxes: with which box another is best merged into one, and how much of that nobody asked for.

Cost: O(n · d) for a partner among n boxes; the part that nobody asked for as in covering/subtraction.py.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from covering.given import Floats
from covering.subtraction import PIECES, left_over
from coverlay import kernel


@kernel
def volume(box: Floats, domain: Floats) -> float:
    """The share of the domain that a box takes; sides beyond the domain count up to its bounds."""
    share = 1.0
    for j in range(len(box)):
        extent = domain[j, 1] - domain[j, 0]
        low, high = max(box[j, 0], domain[j, 0]), min(box[j, 1], domain[j, 1])
        share *= max(high - low, 0.0) / extent if extent > 0 else 1.0
    return share


@kernel
def _is_perfect(a: Floats, b: Floats) -> bool:
    """Equal in all attributes but one, where the two ranges overlap or touch: the hull is the union."""
    differing = 0
    for j in range(len(a)):
        if a[j, 0] == b[j, 0] and a[j, 1] == b[j, 1]:
            continue
        differing += 1
        if max(a[j, 0], b[j, 0]) > np.nextafter(min(a[j, 1], b[j, 1]), np.inf):
            return False
    return differing <= 1


@kernel
def _contains(a: Floats, b: Floats) -> bool:
    inside = True
    for j in range(len(a)):
        inside &= a[j, 0] <= b[j, 0] and a[j, 1] >= b[j, 1]
    return inside


@kernel
def unasked(box: Floats, asked: Floats, domain: Floats) -> tuple[int, float]:
    """The part of `box` that no box of `asked` contains: its number of pieces, and its share of the volume.

    No piece left means that the union of `asked` is the box, to the last float (covering/subtraction.py).
    """
    count, left, _ = left_over(box, asked, PIECES)
    if count < 0:
        return PIECES, 1.0
    whole, total = volume(box, domain), 0.0
    for piece in left[:count]:
        total += volume(piece, domain)
    if whole > 0.0:
        return count, total / whole
    return count, 1.0 if count else 0.0


@kernel
def best_partner(
    box: Floats,
    filled: float,
    label: int,
    boxes: Floats,
    fills: Floats,
    labels: NDArray[np.int64],
    domain: Floats,
    waste: float,
) -> tuple[int, float]:
    """The row that merges with `box` at the least waste within the bound, and the volume then filled; row −1: none.

    `filled` is a lower bound on the volume that the parts of a box really ask for, so a merger of mergers
    keeps the bound too.
    """
    best, best_waste, best_filled = -1, np.inf, 0.0
    hull, common = np.empty_like(box), np.empty_like(box)
    for row in range(len(boxes)):
        if labels[row] != label:
            continue
        other = boxes[row]
        if _contains(box, other) or _contains(other, box):
            continue
        hull[:, 0] = np.minimum(box[:, 0], other[:, 0])
        hull[:, 1] = np.maximum(box[:, 1], other[:, 1])
        common[:, 0] = np.maximum(box[:, 0], other[:, 0])
        common[:, 1] = np.minimum(box[:, 1], other[:, 1])
        whole = volume(hull, domain)
        both = filled + fills[row] - volume(common, domain)
        union = max(both, filled, fills[row])
        if _is_perfect(box, other) and filled >= volume(box, domain) and fills[row] >= volume(other, domain):
            lost, union = 0.0, whole
        elif waste > 0.0 and whole > 0.0:
            lost = 1.0 - union / whole
        else:
            continue
        if lost <= waste and lost < best_waste:
            best, best_waste, best_filled = row, lost, union
    return best, best_filled
