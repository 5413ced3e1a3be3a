"""Kernels of the canopy index that build it: what matters, cells, and a counting sort into their lists."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from topk.canopy_query import CLOSED, CUT, FLAGS, HI, ID, LO, SCORE
from topk.position import encode

_FEW_CELLS = 8  # up to so many cells are walked one by one, more with `_open_from`


@njit(cache=True, nogil=True)
def gather(columns: Any, order: Any, records: Any, part: Any) -> None:
    """Columns into records in rank order. Nothing else happens here, so that cache misses overlap."""
    lo, hi, scores, ids = columns
    integers = records.view(np.int64)
    for r in range(part[0], part[1]):
        i = order[r]
        records[r, LO] = lo[i]
        records[r, HI] = hi[i]
        records[r, SCORE] = scores[i]
        integers[r, ID] = ids[i]


@njit(cache=True, nogil=True)
def encode_ends(table: Any, bins: int, records: Any, codes: Any, part: Any) -> None:
    """First and last bin of each rank; −1 and `bins` for unbounded sides, which are inside no bin."""
    for r in range(part[0], part[1]):
        lo, hi = records[r, LO], records[r, HI]
        codes[r, 0] = -1 if lo == -np.inf else encode(table, lo)
        codes[r, 1] = bins if hi == np.inf else encode(table, hi)


@njit(cache=True, nogil=True)
def _open_from(following: Any, cell: int) -> Any:
    """The first cell from `cell` on that is still open: union-find with path halving."""
    while following[cell] != cell:
        following[cell] = following[following[cell]]
        cell = following[cell]
    return cell


@njit(cache=True, nogil=True)
def relevant(codes: Any, shift: int, depth: int, covers: Any, out: Any) -> int:
    """The ranks that meet a cell (2^shift bins) not yet covered by `depth` better ones; returns how many.

    covers[c] is how many cover cell c, up to depth.
    """
    cells = len(covers)
    following = np.arange(cells + 1).astype(np.int32)
    found = 0
    for r in range(len(codes)):
        first, last = codes[r, 0] >> shift, codes[r, 1] >> shift
        cell = _open_from(following, max(first, 0))
        if cell > last or cell == cells:
            if following[0] == cells:
                break  # everything is covered
            continue
        out[found] = r
        found += 1
        while cell <= last and cell < cells:
            if first < cell and cell < last:
                covers[cell] += 1
                if covers[cell] == depth:
                    following[cell] = cell + 1
            cell = _open_from(following, cell + 1)
    return found


@njit(cache=True, nogil=True)
def cut(codes: Any, ranks: Any, ends_per_cell: int, cell_of: Any) -> int:
    """Join neighbouring bins into cells with at most so many endpoints of these ranks; returns how many cells."""
    bins = len(cell_of)
    ends = np.zeros(bins, np.int32)
    for t in range(len(ranks)):
        first, last = codes[ranks[t], 0], codes[ranks[t], 1]
        if first >= 0:
            ends[first] += 1
        if last < bins:
            ends[last] += 1
    cell = 0
    inside = 0
    for b in range(bins):
        if inside > 0 and inside + ends[b] > ends_per_cell:
            cell += 1
            inside = 0
        inside += ends[b]
        cell_of[b] = cell
    return cell + 1


@njit(cache=True, nogil=True)
def to_cells(codes: Any, ranks: Any, cell_of: Any, cells: int, spans: Any) -> None:
    """The first and last cell of these ranks; −1 and `cells` beyond."""
    for t in range(len(ranks)):
        first, last = codes[ranks[t], 0], codes[ranks[t], 1]
        spans[t, 0] = cell_of[first] if first >= 0 else -1
        spans[t, 1] = cell_of[last] if last < len(cell_of) else cells


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
def fill(spans: Any, ranks: Any, words: Any, offsets: Any, lists: Any, part: Any) -> None:
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
                lists[at] = ranks[t]
                place[cell] = at + 1
            elif not few:
                following[cell] = cell + 1
            cell = cell + 1 if few else _open_from(following, cell + 1)


@njit(cache=True, nogil=True)
def point_bins(cell_of: Any, offsets: Any, starts: Any) -> None:
    for b in range(len(cell_of)):
        starts[b] = offsets[cell_of[b]]
