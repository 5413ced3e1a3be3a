"""Strata: our own index for top-k stabbing in one dimension. Intervals by length, cells by position, lists by
score.

Property: an interval of length w lives on the level whose cells are between w/2 and w wide, in the two or
three cells it touches (a constant number of copies, unlike a segment tree's O(log n)). A value lies in one
cell per level, and each candidate in that cell contains it with probability about 0.6. All lists are in
score order because they are filled in score order: a counting sort, no comparison sort beyond that of the
scores.

Positions are made uniform first: a monotone map, learned from a sample of the endpoints, sends values to
integer codes of B bits, so that cells hold equal shares of a skewed distribution. Level s has 2^(B−s)
cells, cell = code >> s.

A query first scans the best ranks branch-free and goes on for as long as the hit rate promises k results
sooner than the lists would give them; then it merges at most B+1 lists with a heap of ranks and verifies
each candidate. Where almost everything matches it *is* the score-ordered scan; where little matches it
touches about 1.7·k entries.

O(n) space (about 2.5 list entries of 4 bytes and 16 bytes of bounds per interval), O(sort + n) build.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from coverlay import CoverlayError
from topk.base import Found, Match
from topk.catalogue import Catalogue, Floats, Ints
from topk.interval.heaps import push_int, sift_down
from topk.ranked import RankedIndex, ranked_order
from topk.threads import WORKERS, in_threads

_SAMPLE = 1 << 16  # endpoints that the position map is learned from
_BUCKETS = 1 << 12  # pieces of the map: 64 kB, stays in the second-level cache
_TAIL = 1e-3  # share of the sample on either side that the map's range leaves out, against outliers
_MAX_BITS = 20
_LANE_BITS = 5  # at most _MAX_BITS + 1 < 32 lists are merged
_LANES = 1 << _LANE_BITS
_PROBE = 64  # ranks scanned before anything else: a few dozen nanoseconds
_SCAN_RATE = 16  # ranks the scan passes in the time in which the lists yield one verified result
_SKIP = 16  # misses passed over in one list before the others get their turn
_PARALLEL_BUILD = 1 << 16  # intervals in a build below which threads cost more than they save


# One flat float64 buffer holds everything: unpacking one array argument costs a call 0.3 µs, a tuple of six 2 µs.
# In order: [n, bits], table, bounds (n, 2), scores, then as integers ids, offsets (32 bit) and lists (32 bit).
_TABLE = 2 * (_BUCKETS + 2)
_HEADER = 2


@njit(cache=True, nogil=True)
def unpack(buffer: Any) -> Any:
    """(table, bounds, scores, ids, offsets, lists): views into the buffer."""
    n, bits = np.int64(buffer[0]), np.int64(buffer[1])
    at = np.int64(_HEADER)
    table = buffer[at : at + _TABLE].reshape(_BUCKETS + 2, 2)
    at += _TABLE
    bounds = buffer[at : at + 2 * n].reshape(n, 2)
    at += 2 * n
    scores = buffer[at : at + n]
    at += n
    ids = buffer[at : at + n].view(np.int64)
    at += n
    offsets = buffer[at : at + (1 << bits)].view(np.int32)
    at += 1 << bits
    return table, bounds, scores, ids, offsets, buffer[at:].view(np.int32)


def _size(n: int, bits: int) -> int:
    """Buffer words for at most three copies of each interval."""
    return _HEADER + _TABLE + 4 * n + (1 << bits) + (3 * n + 1) // 2


@njit(cache=True, nogil=True)
def encode(table: Any, value: float) -> Any:
    """The monotone map: value → code in 0 … 2^B − 1."""
    last = len(table) - 2
    low, scale = table[last + 1, 0], table[last + 1, 1]
    if scale == 0.0:
        return np.int64(0)  # all endpoints are the same
    at = min(max((value - low) * scale, 0.0), np.float64(last))
    bucket = min(np.int64(at), last - 1)
    return np.int64(table[bucket, 0] + (at - bucket) * table[bucket, 1])


@njit(cache=True, nogil=True)
def _level(low: int, high: int) -> Any:
    """The bits of half the width: on that level [low, high] touches at most three cells. Branch-free."""
    width = np.int64(high - low) >> 1
    s = np.int64(width >= 1 << 16) << 4
    s += np.int64((width >> s) >= 1 << 8) << 3
    s += np.int64((width >> s) >= 1 << 4) << 2
    s += np.int64((width >> s) >= 1 << 2) << 1
    s += np.int64((width >> s) >= 1 << 1)
    return s + np.int64(width > 0)


@njit(cache=True, nogil=True)
def _gather(lo: Any, hi: Any, ids: Any, order: Any, buffer: Any, part: Any) -> None:
    """Columns into rank order. Nothing else happens here, so that cache misses overlap."""
    _, bounds, _, ranked_ids, _, _ = unpack(buffer)
    for r in range(part[0], part[1]):
        i = order[r]
        bounds[r, 0] = lo[i]
        bounds[r, 1] = hi[i]
        ranked_ids[r] = ids[i]


@njit(cache=True, nogil=True)
def _place(buffer: Any, cells: Any, part: Any) -> None:
    """First and last cell of the ranks part[0] … part[1]−1; parts run on separate threads."""
    table, bounds, _, _, _, _ = unpack(buffer)
    bits = np.int64(buffer[1])
    for r in range(part[0], part[1]):
        a, b = encode(table, bounds[r, 0]), encode(table, bounds[r, 1])
        s = min(_level(a, b), bits)
        start = (2 << bits) - (2 << (bits - s))  # cells of the levels below s
        cells[r, 0] = start + (a >> s)
        cells[r, 1] = start + (b >> s)


@njit(cache=True, nogil=True)
def _count(cells: Any, offsets: Any, part: Any) -> None:
    """offsets[c + 1] = copies in cell c, for the cells part[0] … part[1]−1."""
    for r in range(len(cells)):
        for cell in range(max(cells[r, 0], part[0]), min(cells[r, 1] + 1, part[1])):
            offsets[cell + 1] += 1


@njit(cache=True, nogil=True)
def _accumulate(offsets: Any) -> None:
    for cell in range(len(offsets) - 1):
        offsets[cell + 1] += offsets[cell]


@njit(cache=True, nogil=True)
def _fill(cells: Any, lists: Any, place: Any, part: Any) -> None:
    """The second half of a counting sort: ranks into the lists of their cells, in rank order."""
    for r in range(len(cells)):
        for cell in range(max(cells[r, 0], part[0]), min(cells[r, 1] + 1, part[1])):
            lists[place[cell]] = r
            place[cell] += 1


@njit(cache=True, nogil=True)
def _merge(views: Any, bits: int, value: float, k: int, out: Any, found: int, done: int, lanes: Any) -> Any:
    """The lists, from rank `done` on. Returns (found, entries compared, lists opened)."""
    table, bounds, _, _, offsets, lists = views
    heap, at, stop = lanes
    code = encode(table, value)
    size = 0
    lane = 0
    cell = 0
    compared = 0
    for s in range(bits + 1):
        c = cell + (code >> s)
        cell += 1 << (bits - s)
        t = offsets[c]
        end = offsets[c + 1]
        while t < end and lists[t] < done:  # the scan has been there
            t += 1
        if t < end:
            at[lane] = t
            stop[lane] = end
            size = push_int(heap, size, (np.int64(lists[t]) << _LANE_BITS) | lane)
            lane += 1
    opened = lane
    while size > 0:
        key = heap[0]
        r = key >> _LANE_BITS
        lane = key & ((1 << _LANE_BITS) - 1)
        compared += 1
        if bounds[r, 0] <= value and value <= bounds[r, 1]:
            out[found] = r
            found += 1
            if found == k:
                break
        t = at[lane] + 1
        end = min(t + _SKIP, stop[lane])
        while t < end - 1 and not (bounds[lists[t], 0] <= value and value <= bounds[lists[t], 1]):
            t += 1  # cheaper than passing a miss through the heap
            compared += 1
        at[lane] = t
        if t < stop[lane]:
            heap[0] = (np.int64(lists[t]) << _LANE_BITS) | lane
        else:
            size -= 1
            heap[0] = heap[size]
        if size > 1:
            sift_down(heap, size, 0)
    return found, compared, opened


@njit(cache=True, nogil=True)
def _one(views: Any, bits: int, value: float, k: int, out: Any, lanes: Any) -> Any:
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
        if found * _SCAN_RATE < done:
            break
        chunk = min(2 * chunk, n)
    found, compared, opened = _merge(views, bits, value, k, out, found, done, lanes)
    return found, done + compared, opened


@njit(cache=True, nogil=True)
def _single(buffer: Any, value: float, k: int, out: Any) -> int:
    """One event into out: k ids, k scores (as bits), entries compared, lists opened. Returns how many."""
    views = unpack(buffer)
    lanes = (np.empty(_LANES, np.int64), np.empty(_LANES, np.int64), np.empty(_LANES, np.int64))
    found, out[2 * k], out[2 * k + 1] = _one(views, np.int64(buffer[1]), value, k, out, lanes)
    scores = out[k : 2 * k].view(np.float64)
    for t in range(found):
        scores[t] = views[2][out[t]]
        out[t] = views[3][out[t]]
    return found


@njit(cache=True, nogil=True)
def _many(buffer: Any, events: Any, unmentioned: Any, answers: Any, work: Any) -> None:
    """All events; `answers` is (ids, scores, counts)."""
    views = unpack(buffer)
    lanes = (np.empty(_LANES, np.int64), np.empty(_LANES, np.int64), np.empty(_LANES, np.int64))
    out_ids, out_scores, counts = answers
    k = out_ids.shape[1]
    ranks = np.empty(k, np.int64)
    for e in range(len(events)):
        value = events[e, 0]
        if np.isnan(value):
            found = min(k, len(unmentioned))
            ranks[:found] = unmentioned[:found]
        else:
            found, compared, opened = _one(views, np.int64(buffer[1]), value, k, ranks, lanes)
            work[0] += compared
            work[1] += opened
        counts[e] = found
        for t in range(found):
            out_scores[e, t] = views[2][ranks[t]]
            out_ids[e, t] = views[3][ranks[t]]


def position_map(lo: Floats, hi: Floats, bits: int) -> Floats:
    """Learn the monotone map from a sample of the finite endpoints; half of the codes stay uniform in value.

    The uniform half keeps sparse regions resolved, where an event may fall although few endpoints do.
    """
    step = max(1, 2 * len(lo) // _SAMPLE)
    sample = np.concatenate((lo[::step], hi[::step]))
    sample = np.sort(sample[np.isfinite(sample)])
    if len(sample) == 0:
        sample = np.zeros(1)
    cut = int(len(sample) * _TAIL)
    low, high = float(sample[cut]), float(sample[-1 - cut])
    share = np.arange(_BUCKETS + 1) / _BUCKETS
    edges = low * (1 - share) + high * share  # not low + share·(high − low), which may overflow
    cumulative = np.searchsorted(sample, edges) / len(sample)
    cumulative[0], cumulative[-1] = 0.0, 1.0
    codes = np.floor((cumulative + share) / 2 * ((1 << bits) - 1))
    table = np.zeros((_BUCKETS + 2, 2))
    table[:-1, 0] = codes
    table[:-2, 1] = np.diff(codes)
    span = high / _BUCKETS - low / _BUCKETS
    scale = 1.0 / span if span > 0 else 0.0
    table[-1] = low, scale if np.isfinite(scale) else 0.0
    return table


class Strata(RankedIndex):
    """One dimension; both semantics (with one attribute they differ only in what is scored)."""

    name = "strata"

    def __init__(self, catalogue: Catalogue, semantics: str = "exact") -> None:
        super().__init__(catalogue, semantics)
        if catalogue.dimensions != 1:
            raise CoverlayError(f"strata indexes one attribute, not {catalogue.dimensions}; use slices or auto")
        relaxed = semantics == "relaxed"
        scores = catalogue.weights[:, 0] if relaxed else catalogue.scores
        rows = np.flatnonzero(catalogue.mentioned[:, 0]) if relaxed else slice(None)
        lo, hi = catalogue.lo[rows, 0], catalogue.hi[rows, 0]
        order, ranked = ranked_order(scores[rows], catalogue.ids[rows])
        # Ranks that match an event without the attribute; usually none, and then the gather is saved.
        silent = not catalogue.mentioned[rows, 0].all()
        unmentioned = np.flatnonzero(~catalogue.mentioned[rows, 0][order]) if silent else np.empty(0)
        self._unmentioned = unmentioned.astype(np.int64)
        self._bits = int(np.clip(np.log2(len(order) + 1) - 1, 4, _MAX_BITS))
        self._buffer = self._lay_out(lo, hi, ranked, catalogue.ids[rows], order)

    def _lay_out(self, lo: Floats, hi: Floats, scores: Floats, ids: Ints, order: Ints) -> Floats:
        n, bits = len(order), self._bits
        workers = WORKERS if n > _PARALLEL_BUILD else 1
        buffer = np.empty(_size(n, bits))  # pages that stay untouched are never committed
        buffer[:_HEADER] = n, bits
        table, _, ranked_scores, _, offsets, lists = unpack(buffer)
        table[:] = position_map(lo, hi, bits)
        ranked_scores[:] = scores
        cells = np.empty((n, 2), np.int32)
        shares = np.linspace(0, n, workers + 1).astype(np.int64)
        parts = [shares[w : w + 2] for w in range(workers)]

        def place_part(part: Ints) -> None:
            _gather(lo, hi, ids, order, buffer, part)
            _place(buffer, cells, part)

        in_threads(place_part, parts)
        # Each thread owns a range of cells with about the same number of copies, by a sample.
        sample = cells[:: max(1, n // 4096), 0] if n else np.zeros(1)
        cuts = np.quantile(sample, np.arange(1, workers) / workers)
        owned = np.concatenate(([0], cuts, [len(offsets) - 1])).astype(np.int64)
        ranges = [owned[w : w + 2] for w in range(len(owned) - 1)]
        offsets[:] = 0
        in_threads(lambda part: _count(cells, offsets, part), ranges)
        _accumulate(offsets)
        place = offsets.copy()
        in_threads(lambda part: _fill(cells, lists, place, part), ranges)
        used = len(buffer) - len(lists) // 2 + (int(offsets[-1]) + 1) // 2
        return buffer[:used]

    def _search(self, event: Floats, k: int) -> Found:
        out = self._raw(float(event[0]), k)
        found = int(out[-1])
        return out[:found], out[k : k + found].view(np.float64)

    def _raw(self, value: float, k: int) -> Ints:
        """k ids, k scores as bits, and at the end how many there are."""
        out = np.empty(2 * k + 3, np.int64)
        if value != value:
            ranks = self._unmentioned[:k]
            _, _, scores, ids, _, _ = unpack(self._buffer)
            out[: len(ranks)] = ids[ranks]
            out[k : k + len(ranks)] = scores[ranks].view(np.int64)
            out[-1] = len(ranks)
            return out
        out[-1] = _single(self._buffer, value, k, out)
        self.stats.entries += int(out[2 * k])
        self.stats.nodes += int(out[2 * k + 1])
        return out

    def top(self, event: ArrayLike, k: int | None) -> list[Match]:
        """As in the base class, with fewer steps: they would cost more than the search."""
        if self._residuals or k is None or not 0 < k <= len(self._given):
            return super().top(event, k)
        out = self._raw(float(self._event(event)[0]), k)
        self.stats.queries += 1
        found = int(out[-1])
        return list(zip(out[:found].tolist(), out[k : k + found].view(np.float64).tolist(), strict=True))

    def _batch(self, events: Floats, ids: Ints, scores: Floats, counts: Ints, work: Ints) -> None:
        _many(self._buffer, events, self._unmentioned, (ids, scores, counts), work)

    @property
    def nbytes(self) -> int:
        return self._buffer.nbytes + self._unmentioned.nbytes

    def check(self) -> None:
        table, bounds, scores, ids, offsets, lists = unpack(self._buffer)
        bits, n = self._bits, len(ids)
        lists = lists[: offsets[-1]]
        assert (np.diff(table[:-1, 0]) >= 0).all(), "the position map is monotone"
        keys = list(zip((-scores).tolist(), ids.tolist(), strict=True))
        assert keys == sorted(keys), "ranks are best first, ties by id"
        copies = np.bincount(lists, minlength=n)
        assert (copies <= 3).all(), "an interval has at most three copies"
        assert n == 0 or copies.min() >= 1, "every interval is in a list"
        cell = 0
        for s in range(bits + 1):
            for c in range(1 << (bits - s)):
                part = lists[offsets[cell] : offsets[cell + 1]]
                cell += 1
                assert (np.diff(part) > 0).all(), "a list is in score order"
                for r in part:
                    first, last = encode(table, bounds[r, 0]) >> s, encode(table, bounds[r, 1]) >> s
                    assert first <= c <= last, "an interval touches its cells"
