"""Kernels of the strata index that answer: the flat buffer, merging the lists of a value, and overlap."""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.interval.heaps import keep_best, push_int, sift_down
from topk.position import encode

GROUP_BITS = 4  # list entries per group whose extreme end is kept: 2^4
START, FULL, END, _CERTAIN = 0, 1, 2, 3  # kinds of lists; certain: full, and no verification needed

_LANE_BITS = 6  # at most 3·(20 + 1) < 64 lists are merged
_LANES = 1 << _LANE_BITS
_PROBE = 64  # ranks scanned before anything else: a few dozen nanoseconds
_SCAN_RATE = 16  # ranks the scan passes in the time in which the lists yield one verified result
_MANY = 8  # asked for more than this part of all: the scan needs no heap
_SKIP = 64  # misses or groups passed over in one list before the others get their turn

# One flat float64 buffer holds everything: unpacking one array argument costs a call 0.3 µs, a tuple of six 2 µs.
# In order: header, table, bounds (n, 2), scores, ids (64-bit integers), smallest left and largest right end per group,
# offsets and lists (32-bit integers).
N, BITS, ROWS, USED, COMPARED, OPENED = 0, 1, 2, 3, 4, 5  # places in the header; compared and opened count work
HEADER = 6


@kernel
def unpack(buffer: Any) -> Any:
    """(table, bounds, scores, ids, offsets, lists, left ends, right ends): views into the buffer."""
    n, bits, rows = np.int64(buffer[N]), np.int64(buffer[BITS]), np.int64(buffer[ROWS])
    groups = ((3 * n) >> GROUP_BITS) + 1
    lists = 3 * ((2 << bits) - 1)
    at = np.int64(HEADER)
    table = buffer[at : at + 2 * rows].reshape(rows, 2)
    at += 2 * rows
    bounds = buffer[at : at + 2 * n].reshape(n, 2)
    at += 2 * n
    scores = buffer[at : at + n]
    at += n
    ids = buffer[at : at + n].view(np.int64)
    at += n
    left = buffer[at : at + groups]
    at += groups
    right = buffer[at : at + groups]
    at += groups
    offsets = buffer[at : at + (lists >> 1) + 1].view(np.int32)[: lists + 1]
    at += (lists >> 1) + 1
    return table, bounds, scores, ids, offsets, buffer[at:].view(np.int32), left, right


def room(n: int, bits: int, rows: int) -> int:
    """Buffer words for at most three copies of each interval."""
    groups = ((3 * n) >> GROUP_BITS) + 1
    lists = 3 * ((2 << bits) - 1)
    return HEADER + 2 * rows + 4 * n + 2 * groups + (lists >> 1) + 1 + (3 * n + 1) // 2


@kernel
def _forward(views: Any, value: float, t: int, end: int) -> Any:
    """The next entry of a list worth the heap: a hit, or where patience ends. Returns (entry, steps)."""
    bounds, lists, left, right = views[1], views[5], views[6], views[7]
    steps = 0
    while t < end and steps < _SKIP:
        steps += 1
        if t & ((1 << GROUP_BITS) - 1) == 0:
            group = t >> GROUP_BITS
            if left[group] > value or right[group] < value:
                t += 1 << GROUP_BITS
                continue
        r = lists[t]
        if bounds[r, 0] <= value and value <= bounds[r, 1]:
            break
        t += 1
    return min(t, end), steps


@kernel
def _merge(
    views: Any, bits: int, levels: int, value: float, k: int, out: Any, found: int, done: int
) -> Any:
    """The lists, from rank `done` on. Returns (found, entries compared, lists opened)."""
    bounds, offsets, lists = views[1], views[4], views[5]
    lanes = np.empty((4, _LANES), np.int64)
    heap, at, stop, kinds = lanes[0], lanes[1], lanes[2], lanes[3]
    code = encode(views[0], value)
    size = 0
    lane = 0
    cell = 0
    compared = 0
    for s in range(bits + 1):
        c = cell + (code >> s)
        cell += 1 << (bits - s)
        if (levels >> s) & 1 == 0:
            continue  # no interval is of this length
        for kind in range(3):
            t = offsets[3 * c + kind]
            end = offsets[3 * c + kind + 1]
            while t < end and lists[t] < done:  # the scan has been there
                t += 1
            if t < end:
                at[lane] = t
                stop[lane] = end
                kinds[lane] = _CERTAIN if kind == FULL and s > 0 else kind
                size = push_int(heap, size, (np.int64(lists[t]) << _LANE_BITS) | lane)
                lane += 1
    opened = lane
    while size > 0:
        key = heap[0]
        r = key >> _LANE_BITS
        lane = key & ((1 << _LANE_BITS) - 1)
        compared += 1
        certain = kinds[lane] == _CERTAIN
        if certain or (bounds[r, 0] <= value and value <= bounds[r, 1]):
            out[found] = r
            found += 1
            if found == k:
                break
        t = at[lane] + 1
        if not certain:
            t, steps = _forward(views, value, t, stop[lane])
            compared += steps
        at[lane] = t
        if t < stop[lane]:
            heap[0] = (np.int64(lists[t]) << _LANE_BITS) | lane
        else:
            size -= 1
            heap[0] = heap[size]
        if size > 1:
            sift_down(heap, size, 0)
    return found, compared, opened


@kernel
def _one(views: Any, bits: int, levels: int, value: float, k: int, out: Any) -> Any:
    """Ranks of the k best into out; returns (found, entries compared, lists opened)."""
    bounds = views[1]
    n = len(bounds)
    found = 0
    done = 0
    chunk = min(_PROBE, n)
    while True:  # the scan, for as long as it promises to be the faster
        for r in range(done, chunk):
            if bounds[r, 0] <= value and value <= bounds[r, 1]:
                out[found] = r
                found += 1
                if found == k:
                    return found, r + 1, 0
        done = chunk
        if done == n:
            return found, n, 0
        if found * _SCAN_RATE < done and k * _MANY < n:
            break
        chunk = min(2 * chunk, n)
    found, compared, opened = _merge(views, bits, levels, value, k, out, found, done)
    return found, done + compared, opened


@kernel
def single(buffer: Any, value: float, ids: Any, scores: Any) -> int:
    """One event: the best len(ids) ids and scores. Returns how many; work is counted in the header."""
    views = unpack(buffer)
    bits, levels = np.int64(buffer[BITS]), np.int64(buffer[USED])
    found, compared, opened = _one(views, bits, levels, value, len(ids), ids)
    buffer[COMPARED] += compared
    buffer[OPENED] += opened
    for t in range(found):
        scores[t] = views[2][ids[t]]
        ids[t] = views[3][ids[t]]
    return found


@kernel
def many(buffer: Any, values: Any, silent: Any, answers: Any, work: Any) -> None:
    """All values; `silent` and `answers` are (ids, scores[, counts])."""
    views = unpack(buffer)
    out_ids, out_scores, counts = answers
    k = out_ids.shape[1]
    ranks = np.empty(k, np.int64)
    bits, levels = np.int64(buffer[BITS]), np.int64(buffer[USED])
    for e in range(len(values)):
        if np.isnan(values[e]):
            found = min(k, len(silent[0]))
            out_ids[e, :found] = silent[0][:found]
            out_scores[e, :found] = silent[1][:found]
            counts[e] = found
            continue
        found, compared, opened = _one(views, bits, levels, values[e], k, ranks)
        work[0] += compared
        work[1] += opened
        counts[e] = found
        for t in range(found):
            out_scores[e, t] = views[2][ranks[t]]
            out_ids[e, t] = views[3][ranks[t]]


@kernel
def _scan_overlap(bounds: Any, low: float, high: float, out: Any) -> Any:
    found = 0
    for r in range(len(bounds)):
        if bounds[r, 0] <= high and low <= bounds[r, 1]:
            out[found] = r
            found += 1
            if found == len(out):
                return found, r + 1
    return found, len(bounds)


@kernel
def meet(buffer: Any, low: float, high: float, out: Any) -> Any:
    """Ranks of the len(out) best that meet [low, high], in order; (found, entries compared, lists opened).

    Every list of every cell of the event, each as far as it can still better the k best so far; an interval counts in
    the first of the event's cells that it is in. An event of many cells meets many intervals: there the scan is faster.
    """
    views = unpack(buffer)
    bounds, offsets, lists = views[1], views[4], views[5]
    bits, levels, k = np.int64(buffer[BITS]), np.int64(buffer[USED]), len(out)
    first, last = encode(views[0], low), encode(views[0], high)
    if (last - first) * _PROBE > len(bounds) or k * _MANY > len(bounds):
        return *_scan_overlap(bounds, low, high, out), 0
    size: Any = 0
    compared = 0
    opened = 0
    start: Any = 0
    for s in range(bits + 1):
        begin, stop = start + (first >> s), start + (last >> s)
        start += 1 << (bits - s)
        if (levels >> s) & 1 == 0:
            continue
        for which in range(3 * begin, 3 * stop + 3):
            # Behind the first cell, only what starts there is new.
            if which >= 3 * begin + 3 and (which % 3 == END or (which % 3 == FULL and s > 0)):
                continue
            opened += offsets[which] < offsets[which + 1]
            for t in range(offsets[which], offsets[which + 1]):
                r = np.int64(lists[t])
                if size == k and r > -out[0]:
                    break
                compared += 1
                if bounds[r, 0] > high or bounds[r, 1] < low:
                    continue
                size = keep_best(out, size, r)
    out[:size] = np.sort(-out[:size])
    return size, compared, opened
