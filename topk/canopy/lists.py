"""Build kernels of the canopy index: cells, and a counting sort of the intervals that matter into the cells' lists."""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.canopy.query import CLOSED, CUT, FLAGS
from topk.canopy.relevant import open_from

_FEW_CELLS = 8  # up to this many cells are walked one by one, more with `open_from`


@kernel
def cut(ends: Any, ends_per_cell: int, cell_of: Any) -> int:
    """Join neighbouring bins into cells with at most `ends_per_cell` of these endpoints; returns how many cells."""
    bins = len(cell_of)
    inside_bin = np.zeros(bins, np.int32)
    for r in range(len(ends)):
        first, last = ends[r, 0], ends[r, 1]
        if first >= 0:
            inside_bin[first] += 1
        if last < bins:
            inside_bin[last] += 1
    cell = 0
    inside = 0
    for b in range(bins):
        if inside > 0 and inside + inside_bin[b] > ends_per_cell:
            cell += 1
            inside = 0
        inside += inside_bin[b]
        cell_of[b] = cell
    return cell + 1


@kernel(inner=True)
def _all_open(cells: int) -> Any:
    """`following` for `open_from`, every cell open."""
    following = np.empty(cells + 1, np.int32)
    for cell in range(cells + 1):
        following[cell] = cell
    return following


@kernel
def count(spans: Any, depth: int, words: Any, part: Any) -> None:
    """Compute the first words of the lists of the cells part[0] … part[1]−1."""
    begin, stop = part[0], part[1]
    covers = np.zeros(stop, np.int32)
    following = _all_open(stop)
    for t in range(len(spans)):
        first, last = spans[t, 0], spans[t, 1]
        few = last - first < _FEW_CELLS
        cell, end = max(first, begin), min(last + 1, stop)
        while cell < end:
            if words[cell] & CLOSED == 0:
                words[cell] += 1 << FLAGS
                if first < cell and cell < last:
                    covers[cell] += 1
                    if covers[cell] == depth:
                        words[cell] |= CLOSED | CUT
                        following[cell] = cell + 1
            cell = cell + 1 if few else open_from(following, cell + 1)


@kernel
def fill(spans: Any, words: Any, offsets: Any, lists: Any, part: Any) -> None:
    """Write the ranks into the lists of their cells, best first, until a list has its length."""
    begin, stop = part[0], part[1]
    place = np.empty(stop, np.int32)
    following = _all_open(stop)
    for c in range(begin, stop):
        lists[offsets[c]] = words[c]
        place[c] = offsets[c] + 1
    for t in range(len(spans)):
        first, last = spans[t, 0], spans[t, 1]
        few = last - first < _FEW_CELLS
        cell, end = max(first, begin), min(last + 1, stop)
        while cell < end:
            at = place[cell]
            if at < offsets[cell + 1]:
                lists[at] = t
                place[cell] = at + 1
            elif not few:
                following[cell] = cell + 1
            cell = cell + 1 if few else open_from(following, cell + 1)
