"""Kernels of the canopy index: the flat buffer, its construction, and stabbing and overlap queries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from topk.interval.heaps import heapify, sift_down
from topk.position import encode

# One flat float64 buffer holds everything: unpacking one array argument costs a call 0.3 µs, a tuple of six 2 µs.
# In order: header, position table, records (n, 4), then 32-bit integers: the start of each bin's list, the lists.
N, BITS, ROWS, DEPTH, COMPARED, CALLS = 0, 1, 2, 3, 4, 5  # places in the header; the last two count work
HEADER = 8
LO, HI, SCORE, ID = 0, 1, 2, 3  # columns of a record; the id is a 64-bit integer
_PROBE = 64  # ranks that an overlap query scans before the lists, and list words that are worth one more
# A list starts with a word: its length, and two flags.
CUT = 1  # something that meets the cell was left out
_CLOSED = 2  # `depth` of the list cover the whole cell; matters only while lists are made
FLAGS = 2  # bits
_FEW_CELLS = 8  # up to so many cells are walked one by one, more with `_open_from`


@njit(cache=True, nogil=True)
def unpack(buffer: Any) -> Any:
    """(table, records, starts, lists): views into the buffer."""
    n, bins, rows = np.int64(buffer[N]), np.int64(1) << np.int64(buffer[BITS]), np.int64(buffer[ROWS])
    at = HEADER + 2 * rows
    records = buffer[at : at + 4 * n].reshape(n, 4)
    at += 4 * n
    starts = buffer[at : at + (bins >> 1)].view(np.int32)
    lists = buffer[at + (bins >> 1) :].view(np.int32)
    return buffer[HEADER : HEADER + 2 * rows].reshape(rows, 2), records, starts, lists


# ---- construction ---------------------------------------------------------------------------------------


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
            if words[cell] & _CLOSED == 0:
                words[cell] += 1 << FLAGS
                if first < cell and cell < last:
                    covers[cell] += 1
                    if covers[cell] == depth:
                        words[cell] |= _CLOSED | CUT
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


# ---- queries --------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def stab(views: Any, depth: int, value: float, k: int, out: Any) -> Any:
    """Ranks of the k best into out, which has room for one more; (found, compared), found −1 if the list is too
    short.

    Without a branch on the comparison: records are far apart, and so their cache misses overlap.
    """
    table, records, starts, lists = views
    start = starts[encode(table, value)]
    word = lists[start]
    if word & CUT and k > depth:
        return -1, 1
    found: Any = 0
    for t in range(start + 1, start + 1 + (word >> FLAGS)):
        r = lists[t]
        out[found] = r
        found += np.int64(records[r, LO] <= value) & np.int64(value <= records[r, HI])
        if found == k:
            return found, t - start
    return found, word >> FLAGS


@njit(cache=True)
def pairs(buffer: Any, value: float, k: int) -> Any:
    """The k best as Python's own (id, score) pairs, k ≤ depth: one call from value to answer."""
    views = unpack(buffer)
    ranks = np.empty(k + 1, np.int64)
    found, compared = stab(views, k, value, k, ranks)
    buffer[COMPARED] += compared
    buffer[CALLS] += 1
    records = views[1]
    integers = records.view(np.int64)
    answer = [(np.int64(0), 0.0)] * found
    for t in range(found):
        answer[t] = (integers[ranks[t], ID], records[ranks[t], SCORE])
    return answer


@njit(cache=True, nogil=True)
def stab_many(buffer: Any, values: Any, silent: Any, answers: Any, work: Any) -> bool:
    """All values; `silent` and `answers` are (ids, scores[, counts]). False if a list was too short."""
    views = unpack(buffer)
    records = views[1]
    integers = records.view(np.int64)
    out_ids, out_scores, counts = answers
    k = out_ids.shape[1]
    ranks = np.empty(k + 1, np.int64)
    for e in range(len(values)):
        if np.isnan(values[e]):
            found = min(k, len(silent[0]))
            out_ids[e, :found] = silent[0][:found]
            out_scores[e, :found] = silent[1][:found]
        else:
            found, compared = stab(views, np.int64(buffer[DEPTH]), values[e], k, ranks)
            if found < 0:
                return False
            work[0] += compared
            work[1] += 1
            for t in range(found):
                out_ids[e, t] = integers[ranks[t], ID]
                out_scores[e, t] = records[ranks[t], SCORE]
        counts[e] = found
    return True


@njit(cache=True, nogil=True)
def meet(buffer: Any, low: float, high: float, out: Any) -> Any:
    """Ranks of the len(out) best that meet [low, high], in order; (found, compared, cells), found −1 as in `stab`.

    A rank counts in the first of the event's cells that it meets. Where it is missing there, enough better ones cover
    that cell, and they meet the event too.
    """
    table, records, starts, lists = unpack(buffer)
    k = len(out)
    at, stop = starts[encode(table, low)], starts[encode(table, high)]
    begin = at
    # A wide event meets many intervals: the best ranks alone may do.
    done = min(len(records), _PROBE + (stop - at) // _PROBE)
    size = 0
    for r in range(done):
        if records[r, LO] <= high and low <= records[r, HI]:
            out[size] = r
            size += 1
            if size == k:
                return size, r + 1, 0
    compared: Any = done
    cells = 0
    out[:size] = -out[:size]  # a heap of negated ranks: the worst on top
    while at <= stop:
        word = lists[at]
        if word & CUT and k > np.int64(buffer[DEPTH]):
            return -1, compared, cells
        cells += 1
        for t in range(at + 1, at + 1 + (word >> FLAGS)):
            rank = np.int64(lists[t])
            if size == k and rank > -out[0]:
                break
            compared += 1
            lo = records[rank, LO]
            if rank < done or lo > high or records[rank, HI] < low:
                continue
            if at != begin and (lo == -np.inf or starts[encode(table, lo)] != at):
                continue
            if size < k:
                out[size] = -rank
                size += 1
                if size == k:
                    heapify(out, size)
            else:
                out[0] = -rank
                sift_down(out, size, 0)
        at += 1 + (word >> FLAGS)
    out[:size] = np.sort(-out[:size])
    return size, compared, cells
