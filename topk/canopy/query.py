"""Query kernels of the canopy index: the flat buffer, stabbing and overlap."""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.kernels.heaps import heapify, in_order, offer
from topk.kernels.rows import copy
from topk.kernels.value_codes import encode

# One flat float64 buffer holds everything: unpacking one array argument costs a call 0.3 µs, a tuple of six 2 µs.
# In order: header, position table, records (n, 4), then 32-bit integers: the start of each bin's list, the lists.
N, BITS, ROWS, DEPTH, WHOLE = 0, 1, 2, 3, 4  # places in the header
HEADER = 8
LO, HI, SCORE, ID = 0, 1, 2, 3  # columns of a record; the id is a 64-bit integer
_PROBE = 64  # ranks that an overlap query scans before the lists, plus one per 64 list words
# A list starts with a word: its length, and two flags.
CUT = 1  # something that meets the cell was left out
CLOSED = 2  # `depth` of the list cover the whole cell; matters only while lists are made
FLAGS = 2  # bits


@kernel
def unpack(buffer: Any) -> Any:
    """(table, records, starts, lists): views into the buffer."""
    n, bins, rows = np.int64(buffer[N]), np.int64(1) << np.int64(buffer[BITS]), np.int64(buffer[ROWS])
    at = HEADER + 2 * rows
    records = buffer[at : at + 4 * n].reshape(n, 4)
    at += 4 * n
    starts = buffer[at : at + (bins >> 1)].view(np.int32)
    lists = buffer[at + (bins >> 1) :].view(np.int32)
    return buffer[HEADER : HEADER + 2 * rows].reshape(rows, 2), records, starts, lists


@kernel
def stab(views: Any, depth: int, value: float, k: int, out: Any) -> Any:
    """Write the ranks of the k best to `out`, which has room for one more; returns (found, compared), found −1 if the
    list is too short.

    No branch depends on the comparison, so the cache misses of the records, which are far apart, overlap.
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


@kernel
def pairs(buffer: Any, value: float, k: int) -> Any:
    """The k best as Python's own (id, score) pairs, k ≤ depth, and how many were compared."""
    views = unpack(buffer)
    ranks = np.empty(k + 1, np.int64)
    found, compared = stab(views, k, value, k, ranks)
    records = views[1]
    integers = records.view(np.int64)
    answer = [(np.int64(0), 0.0)] * found
    for t in range(found):
        answer[t] = (integers[ranks[t], ID], records[ranks[t], SCORE])
    return answer, compared


@kernel
def stab_many(buffer: Any, values: Any, silent: Any, answers: Any, work: Any) -> None:
    """`stab` for all values; `silent` and `answers` are (ids, scores[, counts]), a count −1 if a list is too short."""
    views = unpack(buffer)
    records = views[1]
    integers = records.view(np.int64)
    out_ids, out_scores, counts = answers
    k = out_ids.shape[1]
    ranks = np.empty(k + 1, np.int64)
    for e in range(len(values)):
        if np.isnan(values[e]):
            found = min(k, len(silent[0]))
            copy(silent[0][:found], out_ids[e])
            copy(silent[1][:found], out_scores[e])
        else:
            found, compared = stab(views, np.int64(buffer[DEPTH]), values[e], k, ranks)
            work[0] += compared
            work[1] += 1
            for t in range(found):
                out_ids[e, t] = integers[ranks[t], ID]
                out_scores[e, t] = records[ranks[t], SCORE]
        counts[e] = found


@kernel
def meet(buffer: Any, low: float, high: float, out: Any) -> Any:
    """Write the ranks of the len(out) best that meet [low, high], in order; returns (found, compared, cells), found −1
    as in `stab`.

    A rank counts in the first of the event's cells that it meets. Where it is missing there, enough better ones cover
    that cell, and they meet the event too.
    """
    table, records, starts, lists = unpack(buffer)
    k = len(out)
    at, stop = starts[encode(table, low)], starts[encode(table, high)]
    begin = at
    # A wide event meets many intervals: the best ranks alone may do, unless k is so large that others are needed.
    done = min(len(records), _PROBE + (stop - at) // _PROBE)
    if k > np.int64(buffer[DEPTH]) and buffer[WHOLE] == 0.0:
        done = 0
    size = np.int64(0)
    for r in range(done):
        if records[r, LO] <= high and low <= records[r, HI]:
            out[size] = r
            size += 1
            if size == k:
                return size, r + 1, 0
    compared: Any = done
    cells = 0
    for t in range(size):
        out[t] = -out[t]
    heapify(out, out, size)  # of negated ranks: the worst on top
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
            size = offer(out, out, size, -rank, -rank)
        at += 1 + (word >> FLAGS)
    in_order(out, out, size)
    for t in range(size):
        out[t] = -out[t]
    return size, compared, cells
