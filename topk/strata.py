"""Strata: our own index for top-k stabbing in one dimension. Intervals by length, cells by position, lists by
score.

1. An interval of length w lives on the level whose cells are between w/2 and w wide, in the two or three
   cells it touches: a constant number of copies, unlike a segment tree's O(log n). A value lies in one
   cell per level.
2. A cell has three lists: intervals that start in it, that end in it, that contain it (on level 0: that do both in
   it). All are in score order because they are filled in score order: a counting sort.
3. All intervals of a start list share the cell's right edge, so the value is inside one iff the smallest
   left end is not beyond it; likewise for end lists. So the smallest left end (largest right end) of 16
   entries says exactly whether one of them is a hit: the IR-tree's "no holes" without a tree.

Positions are made uniform first: a monotone map, learned from a sample of the endpoints, sends values to
integer codes of B bits, so that cells hold equal shares of a skewed distribution. Level s has 2^(B−s)
cells, cell = code >> s.

A query first scans the best ranks and goes on for as long as the hit rate promises k results sooner than
the lists would give them; then it merges at most 3·(B+1) lists, most of them empty, with a heap of ranks.
Where almost everything matches it *is* the score-ordered scan.

O(n) space (about 2.5 list entries of 4 bytes, bounds, score and id), O(sort + n) build.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from coverlay import CoverlayError
from topk.base import Found, Match, Stats
from topk.catalogue import Catalogue, Floats, Ints
from topk.interval.heaps import push_int, sift_down
from topk.ranked import RankedIndex, ranked_order
from topk.threads import WORKERS, in_threads

_SAMPLE = 1 << 16  # endpoints that the position map is learned from
_BUCKETS = 1 << 12  # pieces of the map: 64 kB, stays in the second-level cache
_TAIL = 1e-3  # share of the sample on either side that the map's range leaves out, against outliers
_MAX_BITS = 20
_LANE_BITS = 6  # at most 3·(_MAX_BITS + 1) < 64 lists are merged
_LANES = 1 << _LANE_BITS
_PROBE = 64  # ranks scanned before anything else: a few dozen nanoseconds
_SCAN_RATE = 16  # ranks the scan passes in the time in which the lists yield one verified result
_MANY = 8  # asked for more than this part of all: the scan needs no heap
_SKIP = 64  # misses or groups passed over in one list before the others get their turn
_GROUP_BITS = 4  # list entries per group whose extreme end is kept: 2^4
_START, _FULL, _END, _CERTAIN = 0, 1, 2, 3  # kinds of lists; certain: full, and no verification needed
_PARALLEL_BUILD = 1 << 16  # intervals in a build below which threads cost more than they save


# One flat float64 buffer holds everything: unpacking one array argument costs a call 0.3 µs, a tuple of six 2 µs.
# In order: [n, bits, used levels, entries compared, lists opened], table, bounds (n, 2), scores, ids (64-bit integers),
# smallest left and largest right end per group, offsets and lists (32-bit integers).
_TABLE = 2 * (_BUCKETS + 2)
_HEADER = 5
_USED, _COMPARED, _OPENED = 2, 3, 4  # places in the header


@njit(cache=True, nogil=True)
def unpack(buffer: Any) -> Any:
    """(table, bounds, scores, ids, offsets, lists, left ends, right ends): views into the buffer."""
    n, bits = np.int64(buffer[0]), np.int64(buffer[1])
    groups = ((3 * n) >> _GROUP_BITS) + 1
    lists = 3 * ((2 << bits) - 1)
    at = np.int64(_HEADER)
    table = buffer[at : at + _TABLE].reshape(_BUCKETS + 2, 2)
    at += _TABLE
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


def _room(n: int, bits: int) -> int:
    """Buffer words for at most three copies of each interval."""
    groups = ((3 * n) >> _GROUP_BITS) + 1
    lists = 3 * ((2 << bits) - 1)
    return _HEADER + _TABLE + 4 * n + 2 * groups + (lists >> 1) + 1 + (3 * n + 1) // 2


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
    _, bounds, _, ranked_ids, _, _, _, _ = unpack(buffer)
    for r in range(part[0], part[1]):
        i = order[r]
        bounds[r, 0] = lo[i]
        bounds[r, 1] = hi[i]
        ranked_ids[r] = ids[i]


@njit(cache=True, nogil=True)
def _place(buffer: Any, cells: Any, part: Any) -> None:
    """First and last cell of the ranks part[0] … part[1]−1; parts run on separate threads."""
    table, bounds, _, _, _, _, _, _ = unpack(buffer)
    bits = np.int64(buffer[1])
    for r in range(part[0], part[1]):
        a, b = encode(table, bounds[r, 0]), encode(table, bounds[r, 1])
        s = min(_level(a, b), bits)
        start = (2 << bits) - (2 << (bits - s))  # cells of the levels below s
        cells[r, 0] = start + (a >> s)
        cells[r, 1] = start + (b >> s)


@njit(cache=True, nogil=True)
def _list_of(cell: int, first: int, last: int) -> Any:
    kind = _FULL if (cell != first and cell != last) or first == last else _START if cell == first else _END
    return 3 * cell + kind


@njit(cache=True, nogil=True)
def _count(cells: Any, offsets: Any, part: Any) -> None:
    """offsets[l + 1] = copies in list l, for the lists of the cells part[0] … part[1]−1."""
    for r in range(len(cells)):
        first, last = cells[r, 0], cells[r, 1]
        for cell in range(max(first, part[0]), min(last + 1, part[1])):
            offsets[_list_of(cell, first, last) + 1] += 1


@njit(cache=True, nogil=True)
def _accumulate(offsets: Any) -> None:
    for cell in range(len(offsets) - 1):
        offsets[cell + 1] += offsets[cell]


@njit(cache=True, nogil=True)
def _fill(cells: Any, views: Any, place: Any, part: Any) -> None:
    """The second half of a counting sort: ranks into the lists of their cells, in rank order.

    Groups may span lists, and then the extreme of a group covers both: it is only ever too generous. Two threads may
    meet in the group at their border; `_lay_out` recomputes those.
    """
    bounds, lists, left, right = views[1], views[5], views[6], views[7]
    for r in range(len(cells)):
        first, last = cells[r, 0], cells[r, 1]
        for cell in range(max(first, part[0]), min(last + 1, part[1])):
            t = place[_list_of(cell, first, last)]
            place[_list_of(cell, first, last)] = t + 1
            lists[t] = r
            left[t >> _GROUP_BITS] = min(left[t >> _GROUP_BITS], bounds[r, 0])
            right[t >> _GROUP_BITS] = max(right[t >> _GROUP_BITS], bounds[r, 1])


@njit(cache=True, nogil=True)
def _forward(views: Any, value: float, t: int, end: int) -> Any:
    """The next entry of a list worth the heap: a hit, or where patience ends. Returns (entry, steps)."""
    bounds, lists, left, right = views[1], views[5], views[6], views[7]
    steps = 0
    while t < end and steps < _SKIP:
        steps += 1
        if t & ((1 << _GROUP_BITS) - 1) == 0:
            group = t >> _GROUP_BITS
            if left[group] > value or right[group] < value:
                t += 1 << _GROUP_BITS
                continue
        r = lists[t]
        if bounds[r, 0] <= value and value <= bounds[r, 1]:
            break
        t += 1
    return min(t, end), steps


@njit(cache=True, nogil=True)
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
                kinds[lane] = _CERTAIN if kind == _FULL and s > 0 else kind
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _single(buffer: Any, value: float, ids: Any, scores: Any) -> int:
    """One event: the best len(ids) ids and scores. Returns how many; work is counted in the header."""
    views = unpack(buffer)
    bits, levels = np.int64(buffer[1]), np.int64(buffer[_USED])
    found, compared, opened = _one(views, bits, levels, value, len(ids), ids)
    buffer[_COMPARED] += compared
    buffer[_OPENED] += opened
    for t in range(found):
        scores[t] = views[2][ids[t]]
        ids[t] = views[3][ids[t]]
    return found


@njit(cache=True, nogil=True)
def _many(buffer: Any, events: Any, unmentioned: Any, answers: Any, work: Any) -> None:
    """All events; `answers` is (ids, scores, counts)."""
    views = unpack(buffer)
    out_ids, out_scores, counts = answers
    k = out_ids.shape[1]
    ranks = np.empty(k, np.int64)
    bits, levels = np.int64(buffer[1]), np.int64(buffer[_USED])
    for e in range(len(events)):
        value = events[e, 0]
        if np.isnan(value):
            found = min(k, len(unmentioned))
            ranks[:found] = unmentioned[:found]
        else:
            found, compared, opened = _one(views, bits, levels, value, k, ranks)
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
        self._size = len(catalogue)
        self._bits = int(np.clip(np.log2(len(order) + 1) - 2, 4, _MAX_BITS))
        self._buffer = self._lay_out(lo, hi, ranked, catalogue.ids[rows], order)

    def _lay_out(self, lo: Floats, hi: Floats, scores: Floats, ids: Ints, order: Ints) -> Floats:
        n, bits = len(order), self._bits
        workers = WORKERS if n > _PARALLEL_BUILD else 1
        buffer = np.empty(_room(n, bits))  # pages that stay untouched are never committed
        buffer[:_HEADER] = n, bits, 0, 0, 0
        views = unpack(buffer)
        table, _, ranked_scores, _, offsets, lists, left, right = views
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
        owned = np.concatenate(([0], cuts, [(2 << bits) - 1])).astype(np.int64)
        ranges = [owned[w : w + 2] for w in range(len(owned) - 1)]
        offsets[:] = 0
        in_threads(lambda part: _count(cells, offsets, part), ranges)
        _accumulate(offsets)
        firsts = [3 * ((2 << bits) - (2 << (bits - s))) for s in range(bits + 1)] + [len(offsets) - 1]
        buffer[_USED] = sum(1 << s for s in range(bits + 1) if offsets[firsts[s]] < offsets[firsts[s + 1]])
        place = offsets.copy()
        left[:], right[:] = np.inf, -np.inf
        in_threads(lambda part: _fill(cells, views, place, part), ranges)
        for border in owned[1:-1]:
            group = int(offsets[3 * border]) >> _GROUP_BITS
            ranks = lists[group << _GROUP_BITS : min((group + 1) << _GROUP_BITS, int(offsets[-1]))]
            left[group], right[group] = views[1][ranks, 0].min(), views[1][ranks, 1].max()
        used = len(buffer) - len(lists) // 2 + (int(offsets[-1]) + 1) // 2
        return buffer[:used]

    @property
    def stats(self) -> Stats:
        """With what single calls have counted in the buffer's header."""
        if hasattr(self, "_buffer"):
            self._stats.entries += int(self._buffer[_COMPARED])
            self._stats.nodes += int(self._buffer[_OPENED])
            self._buffer[_COMPARED] = self._buffer[_OPENED] = 0
        return self._stats

    @stats.setter
    def stats(self, value: Stats) -> None:
        self._stats = value

    def _search(self, event: Floats, k: int) -> Found:
        ids, scores = np.empty(k, np.int64), np.empty(k)
        value = float(event[0])
        found = _single(self._buffer, value, ids, scores) if value == value else self._silent(ids, scores)
        return ids[:found], scores[:found]

    def _silent(self, ids: Ints, scores: Floats) -> int:
        """What matches an event without the attribute, in the form of `_single`."""
        ranks = self._unmentioned[: len(ids)]
        _, _, ranked_scores, ranked_ids, *_ = unpack(self._buffer)
        ids[: len(ranks)], scores[: len(ranks)] = ranked_ids[ranks], ranked_scores[ranks]
        return len(ranks)

    def top(self, event: ArrayLike, k: int | None) -> list[Match]:
        """As in the base class, with fewer steps: they would cost more than the search."""
        if self._residuals or k is None or not 0 < k <= self._size:
            return super().top(event, k)
        if type(event) is not np.ndarray or event.shape != (1,):
            event = self._event(event)
        value = float(event[0])
        ids, scores = np.empty(k, np.int64), np.empty(k)
        found = _single(self._buffer, value, ids, scores) if value == value else self._silent(ids, scores)
        self._stats.queries += 1
        if found < k:
            ids, scores = ids[:found], scores[:found]
        return list(zip(ids.tolist(), scores.tolist(), strict=True))

    def _batch(self, events: Floats, ids: Ints, scores: Floats, counts: Ints, work: Ints) -> None:
        _many(self._buffer, events, self._unmentioned, (ids, scores, counts), work)

    @property
    def nbytes(self) -> int:
        return self._buffer.nbytes + self._unmentioned.nbytes

    def check(self) -> None:
        table, bounds, scores, ids, offsets, lists, left, right = unpack(self._buffer)
        bits, n = self._bits, len(ids)
        lists = lists[: offsets[-1]]
        assert (np.diff(table[:-1, 0]) >= 0).all(), "the position map is monotone"
        keys = list(zip((-scores).tolist(), ids.tolist(), strict=True))
        assert keys == sorted(keys), "ranks are best first, ties by id"
        copies = np.bincount(lists, minlength=n)
        assert (copies <= 3).all(), "an interval has at most three copies"
        assert n == 0 or copies.min() >= 1, "every interval is in a list"
        for t, r in enumerate(lists):
            assert left[t >> _GROUP_BITS] <= bounds[r, 0], "a group's smallest left end"
            assert right[t >> _GROUP_BITS] >= bounds[r, 1], "a group's largest right end"
        cell = 0
        for s in range(bits + 1):
            for c in range(1 << (bits - s)):
                for kind in range(3):
                    part = lists[offsets[3 * cell + kind] : offsets[3 * cell + kind + 1]]
                    assert (np.diff(part) > 0).all(), "a list is in score order"
                    for r in part:
                        first, last = encode(table, bounds[r, 0]) >> s, encode(table, bounds[r, 1]) >> s
                        expected = _list_of(c, first, last) - 3 * c
                        assert first <= c <= last, "an interval touches its cells"
                        assert kind == expected, "an interval is in the list of its kind"
                cell += 1
