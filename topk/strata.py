"""Strata: our own index for one dimension and any number of results. Intervals by length, cells by position, lists
by score.

1. An interval of length w lives on the level whose cells are between w/2 and w wide, in the two or three
   cells it touches: a constant number of copies, unlike a segment tree's O(log n). A value lies in one
   cell per level.
2. A cell has three lists: intervals that start in it, that end in it, that contain it (on level 0: that do both in
   it). All are in score order because they are filled in score order: a counting sort.
3. All intervals of a start list share the cell's right edge, so the value is inside one iff the smallest
   left end is not beyond it; likewise for end lists. So the smallest left end (largest right end) of 16
   entries says exactly whether one of them is a hit: the IR-tree's "no holes" without a tree.

Positions are made uniform first: a monotone map sends values to integer codes of B bits (`topk/position.py`), so
that cells hold equal shares of a skewed distribution. Level s has 2^(B−s) cells, cell = code >> s.

A query first scans the best ranks and goes on for as long as the hit rate promises k results sooner than
the lists would give them; then it merges at most 3·(B+1) lists, most of them empty, with a heap of ranks.
Where almost everything matches it *is* the score-ordered scan.

O(n) space (about 2.5 list entries of 4 bytes, bounds, score and id), O(sort + n) build.
"""

from __future__ import annotations

import numpy as np

from topk import strata_build as build
from topk import strata_query as query
from topk.base import Found, Stats
from topk.catalogue import Catalogue, Floats, Ints
from topk.one_attribute import Columns, OneAttribute
from topk.position import encode, position_map
from topk.ranked import ranked_order
from topk.strata_query import GROUP_BITS
from topk.threads import in_threads, parts

_MAX_BITS = 20


class Strata(OneAttribute):
    """One dimension; both semantics; values and intervals as events."""

    name = "strata"

    def __init__(self, catalogue: Catalogue, semantics: str = "exact") -> None:
        super().__init__(catalogue, semantics)

    def _lay_out(self, columns: Columns) -> None:
        order = ranked_order(columns.scores, columns.ids)
        n = len(order)
        bits = int(np.clip(np.log2(n + 1) - 2, 4, _MAX_BITS))
        positions = position_map(columns.lo, columns.hi, bits)
        buffer = np.empty(query.room(n, bits, len(positions)))  # pages that stay untouched are never committed
        buffer[: query.HEADER] = n, bits, len(positions), 0, 0, 0
        views = query.unpack(buffer)
        table, bounds, _, _, offsets, lists, left, right = views
        table[:] = positions
        cells = np.empty((n, 2), np.int32)

        def place(part: Ints) -> None:
            build.gather(columns, order, buffer, part)
            build.place(buffer, cells, part)

        shares = parts(n, n)
        in_threads(place, shares)
        # Each thread owns a range of cells with about the same number of copies, by a sample.
        sample = cells[:: max(1, n // 4096), 0] if n else np.zeros(1)
        cuts = np.quantile(sample, np.arange(1, len(shares)) / len(shares))
        owned = np.concatenate(([0], cuts, [(2 << bits) - 1])).astype(np.int64)
        ranges = [owned[w : w + 2] for w in range(len(owned) - 1)]
        offsets[:] = 0
        in_threads(lambda part: build.count(cells, offsets, part), ranges)
        build.accumulate(offsets)
        firsts = [3 * ((2 << bits) - (2 << (bits - s))) for s in range(bits + 1)] + [len(offsets) - 1]
        buffer[query.USED] = sum(1 << s for s in range(bits + 1) if offsets[firsts[s]] < offsets[firsts[s + 1]])
        filled = offsets.copy()
        left[:], right[:] = np.inf, -np.inf
        in_threads(lambda part: build.fill(cells, views, filled, part), ranges)
        for border in owned[1:-1]:
            group = int(offsets[3 * border]) >> GROUP_BITS
            ranks = lists[group << GROUP_BITS : min((group + 1) << GROUP_BITS, int(offsets[-1]))]
            left[group], right[group] = bounds[ranks, 0].min(), bounds[ranks, 1].max()
        self._bits = bits
        self._buffer = buffer[: len(buffer) - len(lists) // 2 + (int(offsets[-1]) + 1) // 2]

    @property
    def stats(self) -> Stats:
        """With what single calls have counted in the buffer's header."""
        if hasattr(self, "_buffer"):
            self._stats.entries += int(self._buffer[query.COMPARED])
            self._stats.nodes += int(self._buffer[query.OPENED])
            self._buffer[query.COMPARED] = self._buffer[query.OPENED] = 0
        return self._stats

    @stats.setter
    def stats(self, value: Stats) -> None:
        self._stats = value

    def _stab(self, value: float, k: int) -> Found:
        ids, scores = np.empty(k, np.int64), np.empty(k)
        found = query.single(self._buffer, value, ids, scores)
        return ids[:found], scores[:found]

    def _meet(self, low: float, high: float, k: int) -> Found:
        ranks = np.empty(k, np.int64)
        found, compared, opened = query.meet(self._buffer, low, high, ranks)
        self._stats.entries += compared
        self._stats.nodes += opened
        _, _, scores, ids, *_ = query.unpack(self._buffer)
        return ids[ranks[:found]], scores[ranks[:found]]

    def _batch(self, events: Floats, ids: Ints, scores: Floats, counts: Ints, work: Ints) -> None:
        query.many(self._buffer, events[:, 0], self._silent, (ids, scores, counts), work)

    @property
    def nbytes(self) -> int:
        return self._buffer.nbytes + sum(a.nbytes for a in self._silent)

    def check(self) -> None:
        table, bounds, scores, ids, offsets, lists, left, right = query.unpack(self._buffer)
        bits, n = self._bits, len(ids)
        codes = [encode(table, value) for value in np.sort(bounds.ravel())]
        lists = lists[: offsets[-1]]
        assert (np.diff(codes) >= 0).all(), "the position map is monotone"
        keys = list(zip((-scores).tolist(), ids.tolist(), strict=True))
        assert keys == sorted(keys), "ranks are best first, ties by id"
        copies = np.bincount(lists, minlength=n)
        assert (copies <= 3).all(), "an interval has at most three copies"
        assert n == 0 or copies.min() >= 1, "every interval is in a list"
        for t, r in enumerate(lists):
            assert left[t >> GROUP_BITS] <= bounds[r, 0], "a group's smallest left end"
            assert right[t >> GROUP_BITS] >= bounds[r, 1], "a group's largest right end"
        cell = 0
        for s in range(bits + 1):
            for c in range(1 << (bits - s)):
                for kind in range(3):
                    part = lists[offsets[3 * cell + kind] : offsets[3 * cell + kind + 1]]
                    assert (np.diff(part) > 0).all(), "a list is in score order"
                    for r in part:
                        first, last = encode(table, bounds[r, 0]) >> s, encode(table, bounds[r, 1]) >> s
                        expected = build.list_of(c, first, last) - 3 * c
                        assert first <= c <= last, "an interval touches its cells"
                        assert kind == expected, "an interval is in the list of its kind"
                cell += 1
