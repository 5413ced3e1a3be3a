"""Kernels of the canopy index that build it: what matters, cells, and a counting sort into their lists."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from topk.canopy_query import CLOSED, CUT, FLAGS, HI, ID, LO, SCORE
from topk.position import encode

_FEW_CELLS = 8  # up to so many cells are walked one by one, more with `_open_from`


@njit(cache=True, nogil=True)
def fetch(columns: Any, rows: Any, sides: Any, part: Any) -> None:
    """Bounds in rank order. Nothing else happens here, so that cache misses overlap."""
    lo, hi = columns[0], columns[1]
    for t in range(part[0], part[1]):
        sides[t, LO] = lo[rows[t]]
        sides[t, HI] = hi[rows[t]]


@njit(cache=True, nogil=True)
def encode_ends(table: Any, bins: int, sides: Any, codes: Any, part: Any) -> None:
    """First and last bin of each; −1 and `bins` for unbounded sides, which are inside no bin."""
    for t in range(part[0], part[1]):
        lo, hi = sides[t, LO], sides[t, HI]
        codes[t, 0] = -1 if lo == -np.inf else encode(table, lo)
        codes[t, 1] = bins if hi == np.inf else encode(table, hi)


@njit(cache=True, nogil=True)
def place(columns: Any, rows: Any, sides: Any, keep: Any, records: Any, part: Any) -> None:
    """The kept ones of a block into their records."""
    scores, ids = columns[2], columns[3]
    integers = records.view(np.int64)
    for r in range(part[0], part[1]):
        t = keep[r]
        records[r, LO] = sides[t, LO]
        records[r, HI] = sides[t, HI]
        records[r, SCORE] = scores[rows[t]]
        integers[r, ID] = ids[rows[t]]


@njit(cache=True, nogil=True)
def _open_from(following: Any, cell: int) -> Any:
    """The first cell from `cell` on that is still open: union-find with path halving."""
    while following[cell] != cell:
        following[cell] = following[following[cell]]
        cell = following[cell]
    return cell


@njit(cache=True, nogil=True)
def relevant(codes: Any, shift: int, depth: int, covers: Any, following: Any, keep: Any, ends: Any) -> int:
    """Which of the next ranks meet a cell (2^shift bins) not yet covered by `depth` better ones; returns how many.

    ends are their codes; covers[c] is how many cover cell c, up to depth; `following` is for `_open_from`.
    """
    cells = len(covers)
    found = 0
    for t in range(len(codes)):
        first, last = codes[t, 0] >> shift, codes[t, 1] >> shift
        cell = _open_from(following, max(first, 0))
        if cell > last or cell == cells:
            continue
        keep[found] = t
        ends[found, 0], ends[found, 1] = codes[t, 0], codes[t, 1]
        found += 1
        while cell <= last and cell < cells:
            if first < cell and cell < last:
                covers[cell] += 1
                if covers[cell] == depth:
                    following[cell] = cell + 1
            cell = _open_from(following, cell + 1)
    return found


@njit(cache=True, nogil=True)
def cut(ends: Any, ends_per_cell: int, cell_of: Any) -> int:
    """Join neighbouring bins into cells with at most so many of these endpoints; returns how many cells."""
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


@njit(cache=True, nogil=True)
def to_cells(ends: Any, cell_of: Any, cells: int) -> None:
    """Bins to cells, in place; −1 and `cells` beyond."""
    for r in range(len(ends)):
        first, last = ends[r, 0], ends[r, 1]
        ends[r, 0] = cell_of[first] if first >= 0 else -1
        ends[r, 1] = cell_of[last] if last < len(cell_of) else cells


@njit(cache=True, nogil=True)
def mark_closed(covers: Any, shift: int, depth: int, cell_of: Any, words: Any) -> None:
    """A cell that `relevant` has left ranks out of cannot answer for more than `depth`."""
    for b in range(len(cell_of)):
        if covers[b >> shift] == depth:
            words[cell_of[b]] = CUT


@njit(cache=True, nogil=True)
def count_open(spans: Any, depth: int, words: Any) -> bool:
    """`count` where no cell is covered `depth` times, which makes it simple; False, and nothing done, elsewhere."""
    cells = len(words)
    starts = np.zeros(cells, np.int32)
    ends = np.zeros(cells, np.int32)
    within = np.zeros(cells, np.int32)  # both start and end
    running = 0
    for t in range(len(spans)):
        first, last = spans[t, 0], spans[t, 1]
        if first < 0:
            running += 1
        else:
            starts[first] += 1
        if last < cells:
            ends[last] += 1
        if first == last:
            within[first] += 1
    for c in range(cells):
        running += starts[c]
        if running - starts[c] - ends[c] + within[c] >= depth:
            return False
        within[c] = running << FLAGS
        running -= ends[c]
    for c in range(cells):
        words[c] += within[c]
    return True


@njit(cache=True, nogil=True)
def count(spans: Any, depth: int, words: Any, part: Any) -> None:
    """The words of the lists of the cells part[0] … part[1]−1."""
    begin, stop = part[0], part[1]
    covers = np.zeros(stop, np.int32)
    following = np.arange(stop + 1).astype(np.int32)
    for t in range(len(spans)):
        first, last = spans[t, 0], spans[t, 1]
        if first >= stop or last < begin:
            continue
        few = last - first < _FEW_CELLS
        cell = max(first, begin)
        while cell <= last and cell < stop:
            if words[cell] & CLOSED == 0:
                words[cell] += 1 << FLAGS
                if first < cell and cell < last:
                    covers[cell] += 1
                    if covers[cell] == depth:
                        words[cell] |= CLOSED | CUT
                        following[cell] = cell + 1
            cell = cell + 1 if few else _open_from(following, cell + 1)


@njit(cache=True, nogil=True)
def offsets_of(words: Any, offsets: Any) -> None:
    """Where each cell's list begins: its word, then its ranks."""
    at = 0
    for c in range(len(words)):
        offsets[c] = at
        at += 1 + (words[c] >> FLAGS)
    offsets[len(words)] = at


@njit(cache=True, nogil=True)
def fill(spans: Any, words: Any, offsets: Any, lists: Any, part: Any) -> None:
    """The ranks into the lists of their cells, best first, until a list has its length."""
    begin, stop = part[0], part[1]
    place = offsets[:stop] + 1
    following = np.arange(stop + 1).astype(np.int32)
    for c in range(begin, stop):
        lists[offsets[c]] = words[c]
    for t in range(len(spans)):
        first, last = spans[t, 0], spans[t, 1]
        if first >= stop or last < begin:
            continue
        few = last - first < _FEW_CELLS
        cell = max(first, begin)
        while cell <= last and cell < stop:
            at = place[cell]
            if at < offsets[cell + 1]:
                lists[at] = t
                place[cell] = at + 1
            elif not few:
                following[cell] = cell + 1
            cell = cell + 1 if few else _open_from(following, cell + 1)


@njit(cache=True, nogil=True)
def point_bins(cell_of: Any, offsets: Any, starts: Any) -> None:
    for b in range(len(cell_of)):
        starts[b] = offsets[cell_of[b]]
