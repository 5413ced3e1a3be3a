"""What is left of a box once other boxes are cut out of it: an exact test of whether they contain it together.

Each box is cut out of what is left, which splits a piece into at most 2d smaller ones. Bounds are closed, so a piece
ends at the float beside the cut: [0, 1] and [next float after 1, 2] together contain [0, 2], and no piece left means
contained to the last float. Cost: O(pieces) per box, pieces up to n^d; beyond `most` it gives up.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from covering.given import Floats
from coverlay import kernel

GAVE_UP = -1
PIECES = 1024  # at most, where giving up is safe


@kernel
def left_over(box: Floats, boxes: Floats, most: int) -> tuple[int, Floats, Any]:
    """(number of pieces of `box` that lie in none of `boxes`, or GAVE_UP; these pieces; which boxes cut something)."""
    dimensions = len(box)
    left, rest = np.empty((most, dimensions, 2)), np.empty((most, dimensions, 2))
    used = np.zeros(len(boxes), np.bool_)
    left[0], count = box, 1
    for row in range(len(boxes)):
        cut, kept = boxes[row], 0
        for piece in left[:count]:
            if kept + 2 * dimensions > most:
                return GAVE_UP, left, used
            apart = False
            for j in range(dimensions):
                apart |= piece[j, 0] > cut[j, 1] or piece[j, 1] < cut[j, 0]
            if apart:
                rest[kept] = piece
                kept += 1
                continue
            used[row] = True
            for j in range(dimensions):
                if piece[j, 0] < cut[j, 0]:
                    rest[kept] = piece
                    rest[kept, j, 1] = np.nextafter(cut[j, 0], -np.inf)
                    piece[j, 0] = cut[j, 0]
                    kept += 1
                if piece[j, 1] > cut[j, 1]:
                    rest[kept] = piece
                    rest[kept, j, 0] = np.nextafter(cut[j, 1], np.inf)
                    piece[j, 1] = cut[j, 1]
                    kept += 1
        left, rest, count = rest, left, kept
        if count == 0:
            break
    return count, left, used
