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

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from coverlay import CoverlayError
from topk.base import Batch, Found, TopKIndex
from topk.catalogue import Catalogue, Floats, Ints
from topk.interval.heaps import push_int, sift_down
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
_PARALLEL = 256  # events in a batch below which threads cost more than they save
_PARALLEL_BUILD = 1 << 16  # the same for intervals in a build


class Layout(NamedTuple):
    """What the kernels get: few arrays, because each costs a call about 0.2 µs."""

    bounds: Floats  # (n, 2), by rank
    lists: NDArray[np.int32]  # ranks
    offsets: NDArray[np.int32]  # of the lists in `lists`; the cells of level 0, then of level 1, …
    table: Floats  # (_BUCKETS + 2, 2): code at the bucket's start, codes per bucket; last row: the parameters


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
def _level(low: int, high: int) -> int:
    """The level on which [low, high] touches two or three cells: cells of more than a quarter, at most half … w."""
    s = 0
    width = (high - low) >> 1
    while width > 0:
        s += 1
        width >>= 1
    return s


@njit(cache=True, nogil=True)
def _place(lo: Any, hi: Any, order: Any, table: Any, bits: int, bounds: Any, cells: Any, part: Any) -> None:
    """Bounds and first and last cell of the ranks part[0] … part[1]−1; parts run on separate threads."""
    for r in range(part[0], part[1]):
        i = order[r]
        bounds[r, 0] = lo[i]
        bounds[r, 1] = hi[i]
        a, b = encode(table, lo[i]), encode(table, hi[i])
        s = min(_level(a, b), bits)
        start = (2 << bits) - (2 << (bits - s))  # cells of the levels below s
        cells[r, 0] = start + (a >> s)
        cells[r, 1] = start + (b >> s)


@njit(cache=True, nogil=True)
def _fill(cells: Any, bits: int) -> Any:
    """Counting sort of the ranks into the lists of their cells."""
    offsets = np.zeros((2 << bits), np.int32)
    for r in range(len(cells)):
        for cell in range(cells[r, 0], cells[r, 1] + 1):
            offsets[cell + 1] += 1
    for cell in range(len(offsets) - 1):
        offsets[cell + 1] += offsets[cell]
    lists = np.empty(offsets[-1], np.int32)
    place = offsets.copy()
    for r in range(len(cells)):
        for cell in range(cells[r, 0], cells[r, 1] + 1):
            lists[place[cell]] = r
            place[cell] += 1
    return lists, offsets


@njit(cache=True, nogil=True)
def _sort_ties(order: Any, scores: Any, ids: Any) -> None:
    """Runs of equal scores by ascending id: an unstable sort of the scores, repaired."""
    begin = 0
    while begin < len(order):
        end = begin + 1
        while end < len(order) and scores[order[end]] == scores[order[begin]]:
            end += 1
        if end - begin > 1:
            run = order[begin:end]
            order[begin:end] = run[np.argsort(ids[run])]
        begin = end


@njit(cache=True, nogil=True)
def _merge(layout: Any, value: float, k: int, out: Any, found: int, done: int, lanes: Any) -> Any:
    """The lists, from rank `done` on. Returns (found, entries compared, lists opened)."""
    bounds, lists, offsets, table = layout
    heap, at, stop = lanes
    bits = 0
    while (4 << bits) < len(offsets):
        bits += 1
    bits += 0 if (2 << bits) == len(offsets) else 1
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
def _one(layout: Any, value: float, k: int, out: Any, lanes: Any) -> Any:
    """Ranks of the k best into out; returns (found, entries compared, lists opened)."""
    bounds = layout.bounds
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
    found, compared, opened = _merge(layout, value, k, out, found, done, lanes)
    return found, done + compared, opened


@njit(cache=True, nogil=True)
def _single(layout: Any, event: Any, k: int) -> Any:
    lanes = (np.empty(_LANES, np.int64), np.empty(_LANES, np.int64), np.empty(_LANES, np.int64))
    out = np.empty(k, np.int64)
    found, compared, opened = _one(layout, event[0], k, out, lanes)
    return out[:found], compared, opened


@njit(cache=True, nogil=True)
def _many(layout: Any, values: Any, k: int, ranks: Any, counts: Any, work: Any) -> None:
    lanes = (np.empty(_LANES, np.int64), np.empty(_LANES, np.int64), np.empty(_LANES, np.int64))
    for e in range(len(values)):
        if not np.isnan(values[e]):
            counts[e], compared, opened = _one(layout, values[e], k, ranks[e], lanes)
            work[0] += compared
            work[1] += opened


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


def ranked_order(scores: Floats, ids: Ints) -> Ints:
    """Rows best first, ties by ascending id."""
    order = np.argsort(-scores)
    _sort_ties(order, scores, ids)
    return order


class Strata(TopKIndex):
    """One dimension; both semantics (with one attribute they differ only in what is scored)."""

    name = "strata"

    def __init__(self, catalogue: Catalogue, semantics: str = "exact") -> None:
        super().__init__(catalogue, semantics)
        if catalogue.dimensions != 1:
            raise CoverlayError(f"strata indexes one attribute, not {catalogue.dimensions}; use slices or auto")
        relaxed = semantics == "relaxed"
        scores = catalogue.weights[:, 0] if relaxed else catalogue.scores
        rows = np.flatnonzero(catalogue.mentioned[:, 0]) if relaxed else slice(None)
        self._size = len(catalogue)
        self._given = catalogue
        self._row_of: dict[int, int] | None = None  # made when first asked for: a build should not pay for it
        lo, hi = catalogue.lo[rows, 0], catalogue.hi[rows, 0]
        order = ranked_order(scores[rows], catalogue.ids[rows])
        self._ids, self._scores = catalogue.ids[rows][order], scores[rows][order]
        self._unmentioned = np.flatnonzero(~catalogue.mentioned[rows, 0][order])  # ranks an empty event matches
        self._bits = int(np.clip(np.log2(len(order) + 1) - 1, 4, _MAX_BITS))
        self._layout = self._lay_out(lo, hi, order)
        self.stats.rebuilds += 1

    def _lay_out(self, lo: Floats, hi: Floats, order: Ints) -> Layout:
        n = len(order)
        table = position_map(lo, hi, self._bits)
        bounds, cells = np.empty((n, 2)), np.empty((n, 2), np.int32)
        edges = np.linspace(0, n, (WORKERS if n > _PARALLEL_BUILD else 1) + 1).astype(np.int64)
        parts = [edges[i : i + 2] for i in range(len(edges) - 1)]
        in_threads(lambda part: _place(lo, hi, order, table, self._bits, bounds, cells, part), parts)
        lists, offsets = _fill(cells, self._bits)
        return Layout(bounds, lists, offsets, table)

    def __len__(self) -> int:
        return self._size

    def __contains__(self, id: object) -> bool:
        return id in self._rows()

    def _rows(self) -> dict[int, int]:
        if self._row_of is None:
            self._row_of = dict(zip(self._given.ids.tolist(), range(self._size), strict=True))
        return self._row_of

    def _catalogue(self) -> Catalogue:
        return self._given

    def _subscription(self, id: int) -> Catalogue:
        c, row = self._given, [self._rows()[id]]
        return Catalogue(c.ids[row], c.lo[row], c.hi[row], c.scores[row], c.weights[row], c.mentioned[row])

    def _search(self, event: Floats, k: int) -> Found:
        if event[0] != event[0]:
            ranks = self._unmentioned[:k]
        else:
            ranks, compared, opened = _single(self._layout, event, k)
            self.stats.entries += compared
            self.stats.nodes += opened
        return self._ids[ranks], self._scores[ranks]

    def _search_range(self, low: Floats, high: Floats, k: int) -> Found:
        if np.isnan(low[0]):
            return self._search(low, k)
        self.stats.entries += len(self._ids)
        b = self._layout.bounds
        ranks = np.flatnonzero((b[:, 0] <= high[0]) & (low[0] <= b[:, 1]))[:k]
        return self._ids[ranks], self._scores[ranks]

    def top_many(self, events: ArrayLike, k: int | None) -> Batch:
        """All events in one kernel per core."""
        points, wanted = self._events(events), self._count(k)
        if self._residuals or wanted == 0:
            return super().top_many(events, k)
        self.stats.queries += len(points)
        values = np.ascontiguousarray(points[:, 0])
        ranks = np.zeros((len(values), wanted), np.int64)
        counts = np.zeros(len(values), np.int64)
        work = np.zeros((WORKERS, 2), np.int64)
        edges = np.linspace(0, len(values), (WORKERS if len(values) >= _PARALLEL else 1) + 1).astype(np.int64)

        def answer(w: int) -> None:
            part = slice(edges[w], edges[w + 1])
            _many(self._layout, values[part], wanted, ranks[part], counts[part], work[w])

        in_threads(answer, list(range(len(edges) - 1)))
        for e in np.flatnonzero(np.isnan(values)):
            free = self._unmentioned[:wanted]
            ranks[e, : len(free)], counts[e] = free, len(free)
        self.stats.entries += int(work[:, 0].sum())
        self.stats.nodes += int(work[:, 1].sum())
        if not len(self._ids):
            return Batch(ranks, ranks.astype(np.float64), counts)
        return Batch(self._ids[ranks], self._scores[ranks], counts)

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in (*self._layout, self._ids, self._scores, self._unmentioned))

    def check(self) -> None:
        bounds, lists, offsets, table = self._layout
        bits, n = self._bits, len(self._ids)
        assert (np.diff(table[:-1, 0]) >= 0).all(), "the position map is monotone"
        keys = list(zip((-self._scores).tolist(), self._ids.tolist(), strict=True))
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
