"""Kernels of the canopy index that build it from what matters: cells, and a counting sort into their lists."""

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


@kernel
def to_cells(ends: Any, cell_of: Any, cells: int, part: Any, tally: Any) -> None:
    """Bins to cells, in place, −1 and `cells` beyond; and how many begin and end in each cell, −1 the first.

    For the ranks part[0] … part[1]−1.
    """
    for r in range(part[0], part[1]):
        first, last = ends[r, 0], ends[r, 1]
        first = cell_of[first] if first >= 0 else -1
        last = cell_of[last] if last < len(cell_of) else cells
        ends[r, 0], ends[r, 1] = first, last
        tally[first + 1, 0] += 1
        tally[last + 1, 1] += 1


@kernel
def mark_closed(covers: Any, shift: int, depth: int, cell_of: Any, words: Any) -> None:
    """A cell that `relevant` has left ranks out of cannot answer for more than `depth`."""
    for b in range(len(cell_of)):
        if covers[b >> shift] == depth:
            words[cell_of[b]] = CUT


@kernel(inner=True)
def _all_open(cells: int) -> Any:
    """For `open_from`."""
    following = np.empty(cells + 1, np.int32)
    for cell in range(cells + 1):
        following[cell] = cell
    return following


@kernel
def count(spans: Any, depth: int, words: Any, part: Any) -> None:
    """The words of the lists of the cells part[0] … part[1]−1."""
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
def offsets_of(words: Any, offsets: Any) -> None:
    """Where each cell's list begins: its word, then its ranks."""
    at = 0
    for c in range(len(words)):
        offsets[c] = at
        at += 1 + (words[c] >> FLAGS)
    offsets[len(words)] = at


@kernel
def fill(spans: Any, words: Any, offsets: Any, lists: Any, part: Any) -> None:
    """The ranks into the lists of their cells, best first, until a list has its length."""
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


@kernel
def lay_whole(tallies: Any, depth: int, words: Any, offsets: Any, lists: Any, places: Any) -> bool:
    """Words and offsets if no cell can be covered `depth` times, so that lists hold all that meets their cells.

    places[w, c] is then where share w of the ranks begins in the list of cell c. False: nothing was done.
    """
    cells, shares = len(words), len(tallies)
    running = np.empty(shares, np.int64)
    for w in range(shares):
        running[w] = tallies[w, 0, 0]
    for c in range(cells):
        covering = 0  # at most: what begins and ends here is counted once
        begun, ended = 0, 0
        for w in range(shares):
            running[w] += tallies[w, c + 1, 0]
            places[w, c] = running[w]
            covering += running[w]
            begun += tallies[w, c + 1, 0]
            ended += tallies[w, c + 1, 1]
            running[w] -= tallies[w, c + 1, 1]
        if covering - max(begun, ended) >= depth:
            return False
    at = 0
    for c in range(cells):
        offsets[c] = at
        following = at + 1
        for w in range(shares):
            meeting = places[w, c]
            places[w, c] = following
            following += meeting
        words[c] += (following - at - 1) << FLAGS
        lists[at] = words[c]
        at = following
    offsets[cells] = at
    return True


@kernel
def fill_whole(spans: Any, places: Any, lists: Any, part: Any) -> None:
    """The ranks part[0] … part[1]−1 into the lists of all cells they meet, the next one of cell c at places[c]."""
    cells = len(places)
    for t in range(part[0], part[1]):
        for cell in range(max(spans[t, 0], 0), min(spans[t, 1], cells - 1) + 1):
            lists[places[cell]] = t
            places[cell] += 1


@kernel
def point_bins(cell_of: Any, offsets: Any, starts: Any) -> None:
    for b in range(len(cell_of)):
        starts[b] = offsets[cell_of[b]]
