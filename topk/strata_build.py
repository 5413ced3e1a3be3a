"""Kernels of the strata index that build it: a counting sort of ranks into the lists of their cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.position import encode
from topk.strata_query import BITS, END, FULL, GROUP_BITS, START, unpack


@kernel
def _level(low: int, high: int) -> Any:
    """The bits of half the width: on that level [low, high] touches at most three cells. Branch-free."""
    width = np.int64(high - low) >> 1
    s = np.int64(width >= 1 << 16) << 4
    s += np.int64((width >> s) >= 1 << 8) << 3
    s += np.int64((width >> s) >= 1 << 4) << 2
    s += np.int64((width >> s) >= 1 << 2) << 1
    s += np.int64((width >> s) >= 1 << 1)
    return s + np.int64(width > 0)


@kernel
def gather(columns: Any, order: Any, buffer: Any, part: Any) -> None:
    """Columns into rank order. Nothing else happens here, so that cache misses overlap."""
    lo, hi, scores, ids = columns
    _, bounds, ranked_scores, ranked_ids, _, _, _, _ = unpack(buffer)
    for r in range(part[0], part[1]):
        i = order[r]
        bounds[r, 0] = lo[i]
        bounds[r, 1] = hi[i]
        ranked_scores[r] = scores[i]
        ranked_ids[r] = ids[i]


@kernel
def place(buffer: Any, cells: Any, part: Any) -> None:
    """First and last cell of the ranks part[0] … part[1]−1; parts run on separate threads."""
    table, bounds, _, _, _, _, _, _ = unpack(buffer)
    bits = np.int64(buffer[BITS])
    for r in range(part[0], part[1]):
        a, b = encode(table, bounds[r, 0]), encode(table, bounds[r, 1])
        s = min(_level(a, b), bits)
        start = (2 << bits) - (2 << (bits - s))  # cells of the levels below s
        cells[r, 0] = start + (a >> s)
        cells[r, 1] = start + (b >> s)


@kernel
def list_of(cell: int, first: int, last: int) -> Any:
    kind = FULL if (cell != first and cell != last) or first == last else START if cell == first else END
    return 3 * cell + kind


@kernel
def count(cells: Any, offsets: Any, part: Any) -> None:
    """offsets[l + 1] = copies in list l, for the lists of the cells part[0] … part[1]−1."""
    for r in range(len(cells)):
        first, last = cells[r, 0], cells[r, 1]
        for cell in range(max(first, part[0]), min(last + 1, part[1])):
            offsets[list_of(cell, first, last) + 1] += 1


@kernel
def accumulate(offsets: Any) -> None:
    for cell in range(len(offsets) - 1):
        offsets[cell + 1] += offsets[cell]


@kernel
def fill(cells: Any, views: Any, place: Any, part: Any) -> None:
    """The second half of a counting sort: ranks into the lists of their cells, in rank order.

    Groups may span lists, and then the extreme of a group covers both: it is only ever too generous. Two threads may
    meet in the group at their border; the caller recomputes those.
    """
    bounds, lists, left, right = views[1], views[5], views[6], views[7]
    for r in range(len(cells)):
        first, last = cells[r, 0], cells[r, 1]
        for cell in range(max(first, part[0]), min(last + 1, part[1])):
            t = place[list_of(cell, first, last)]
            place[list_of(cell, first, last)] = t + 1
            lists[t] = r
            left[t >> GROUP_BITS] = min(left[t >> GROUP_BITS], bounds[r, 0])
            right[t >> GROUP_BITS] = max(right[t >> GROUP_BITS], bounds[r, 1])
