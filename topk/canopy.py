"""Canopy: our own index for top-k stabbing in one dimension. Per cell, what can be among its 32 best, in one list.

1. Values are cut into cells. The list of a cell holds, best first, the intervals that meet it, up to the
   one with which 32 cover the cell from end to end: for a value in the cell no later one is among the 32
   best. So the k ≤ 32 best at a value are the first k of one short list that contain it: the list of
   O(k) candidates that a shallow cutting gives, found with one look-up instead of O(log n).
2. A list that was never cut short holds everything that meets its cell, and answers for any k. Only a
   larger k in a cell that is cut short needs more: it is answered by `strata`, built when first asked for.
3. What is covered by 32 better ones wherever it lies is in no list. Cells are cut so that each has at most
   16 endpoints of the others, hence at most 2m/16 cells and 32 + 16 entries per list on average, for m ≤ n
   intervals that matter: where scores make long intervals rare among the best, m is a few per cent of n.
   Only these have a record here.
4. Where m is so small that the answers to all values take at most 64 bytes per subscription, they are made
   in advance for up to 20 results, and an event is a look-up (`topk/ready.py`).

An event that is an interval takes the union of its cells' lists: an interval that is missing in a cell is
beaten by 32 that meet the event as well. Each counts in the first cell it shares with the event.

O(n) space (32 bytes per interval that matters, at most 6 list entries of 4), O(sort + n) build; two cache
misses, a scan of a few dozen entries and k records per query, at any n.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coverlay import CoverlayError
from topk import canopy_build as build
from topk import canopy_query as query
from topk.base import Batch, Found, Match, Quick, Stats
from topk.canopy_choose import Chooser, Grid
from topk.catalogue import Catalogue, Floats, Ints
from topk.one_attribute import Columns, OneAttribute
from topk.position import encode, position_map
from topk.ranked import ranked_order
from topk.ready import READY_DEPTH, Ready, most_bytes
from topk.strata import Strata
from topk.threads import in_threads, parts

_DEPTH = 32  # results that lists are made for: a screen full, and more than the experiments ask
_ENDS = 16  # endpoints per cell: lists of 48 entries at most on average, 6 entries per interval at most
_READY = 64.0  # bytes per subscription: at most twice the intervals themselves, whatever the data
_MAX_BITS = 22
_COARSE_BITS = 12  # cells in which is decided what matters at all: finer ones find 7 % fewer and take twice as long


class Canopy(OneAttribute):
    """One attribute; both semantics; values and intervals as events."""

    name = "canopy"
    parallel = 4096  # an event takes 0.2 µs, waking a thread 80
    options = {  # noqa: RUF012
        "depth": "results per event that its lists are made for; deeper ones may go to strata",
        "ready": "bytes per subscription that answers made in advance may take at most; 0 for none",
    }

    def __init__(
        self, catalogue: Catalogue, semantics: str = "exact", depth: int = _DEPTH, ready: float = _READY
    ) -> None:
        if depth < 1:
            raise CoverlayError(f"the depth must be at least 1, not {depth}")
        if not ready >= 0:
            raise CoverlayError(f"ready must be 0 bytes per subscription or more, not {ready}")
        self._depth = depth
        self._short = False  # whether a batch met a list that was cut too short
        self._ready: Ready | None = None
        super().__init__(catalogue, semantics)
        if self._residuals or not len(catalogue):
            return
        matter, results = int(self._buffer[query.N]), min(depth, READY_DEPTH)
        if matter and most_bytes(matter, results) <= ready * len(catalogue):
            self._ready = Ready(query.unpack(self._buffer), results, self._searcher())
        self.quick_top = self._searcher() if self._ready is None else self._ready.top

    def _searcher(self) -> Quick:
        """`top` of a value by the lists, without the steps that would cost more than the search."""
        buffer, most, pairs = self._buffer, min(self._depth, len(self)), query.pairs

        def top(event: Any, k: Any) -> list[Match] | None:
            try:
                if isinstance(event, float):
                    value = event
                else:
                    (value,) = event.tolist()
                if 0 < k <= most and isinstance(value, float) and value == value:
                    answer: list[Match] = pairs(buffer, value, k)
                    return answer
            except (AttributeError, TypeError, ValueError):
                pass  # not a number or an array of one, or k not a number
            return None

        return top

    def _lay_out(self, columns: Columns) -> None:
        n = len(columns.ids)
        bits = int(np.clip(np.log2(n + 1) - 1, 4, _MAX_BITS))
        table = position_map(columns.lo, columns.hi, bits)
        # Room for the case that all matter, and two neighbouring cells have more than _ENDS endpoints. Pages that stay
        # untouched are never committed.
        cells = min(1 << bits, 4 * n // _ENDS + 1)
        head = query.HEADER + table.size
        buffer = np.empty(head + 5 * n + (1 << bits) // 2 + (self._depth + 1) * (cells + 1) // 2)
        ends = np.empty((n, 2), np.int32)
        chooser = Chooser(columns, Grid(table, 1 << bits, max(0, bits - _COARSE_BITS)), self._depth)
        m = chooser.choose(buffer[head : head + 4 * n].reshape(n, 4), ends)
        buffer[: query.HEADER] = 0
        buffer[[query.N, query.BITS, query.ROWS, query.DEPTH, query.WHOLE]] = m, bits, len(table), self._depth, m == n
        views = query.unpack(buffer)
        views[0][:] = table
        words = self._fill(ends[:m], chooser, views[2], views[3])
        self._buffer = buffer[: head + 4 * m + (1 << bits) // 2 + (words + 1) // 2]

    def _fill(self, ends: Any, chooser: Chooser, starts: Any, lists: Any) -> int:
        """Make the lists; returns how many words they take."""
        cell_of = np.empty(len(starts), np.int32)
        cells = build.cut(ends, _ENDS, cell_of)
        words, offsets = np.zeros(cells, np.int32), np.empty(cells + 1, np.int32)
        build.mark_closed(chooser.covers, chooser.grid.shift, self._depth, cell_of, words)
        shares = list(enumerate(parts(len(ends), len(ends))))
        tallies = np.zeros((len(shares), cells + 2, 2), np.int32)
        places = np.empty((len(shares), cells), np.int32)
        in_threads(lambda share: build.to_cells(ends, cell_of, cells, share[1], tallies[share[0]]), shares)
        if build.lay_whole(tallies, self._depth, words, offsets, lists, places):
            in_threads(lambda share: build.fill_whole(ends, places[share[0]], lists, share[1]), shares)
        else:
            # Cells have about equal numbers of endpoints, so that equal ranges of them are equal work.
            ranges = parts(cells, len(ends))
            in_threads(lambda part: build.count(ends, self._depth, words, part), ranges)
            build.offsets_of(words, offsets)
            in_threads(lambda part: build.fill(ends, words, offsets, lists, part), ranges)
        build.point_bins(cell_of, offsets, starts)
        return int(offsets[-1])

    # ---- queries ----------------------------------------------------------------------------------------

    @cached_property
    def _deep(self) -> Strata:
        """For more results than the lists have."""
        return Strata(self._given, self.semantics)

    @property
    def stats(self) -> Stats:
        """With what single calls have counted in the buffer's header, and what went to strata."""
        own = self._stats
        if hasattr(self, "_buffer"):
            own.entries += int(self._buffer[query.COMPARED])
            own.nodes += int(self._buffer[query.CALLS])
            own.queries += int(self._buffer[query.CALLS])
            self._buffer[query.COMPARED] = self._buffer[query.CALLS] = 0
        if self._ready is not None:  # one segment looked at, no interval compared
            calls = self._ready.take_calls()
            own.nodes += calls
            own.queries += calls
        if "_deep" in self.__dict__:
            own.entries += self._deep.stats.entries
            own.nodes += self._deep.stats.nodes
            self._deep.stats.reset()
        return own

    @stats.setter
    def stats(self, value: Stats) -> None:
        self._stats = value

    def top(self, event: ArrayLike, k: int | None) -> list[Match]:
        found = None if self.quick_top is None else self.quick_top(event, k)
        return super().top(event, k) if found is None else found

    def _stab(self, value: float, k: int) -> Found:
        ranks = np.empty(k + 1, np.int64)
        views = query.unpack(self._buffer)
        found, compared = query.stab(views, self._depth, value, k, ranks)
        return self._found(ranks, found, compared, 1, lambda: self._deep._stab(value, k))

    def _meet(self, low: float, high: float, k: int) -> Found:
        ranks = np.empty(k, np.int64)
        found, compared, cells = query.meet(self._buffer, low, high, ranks)
        return self._found(ranks, found, compared, cells, lambda: self._deep._meet(low, high, k))

    def _found(self, ranks: Ints, found: int, compared: int, cells: int, deeper: Callable[[], Found]) -> Found:
        self._stats.entries += compared
        self._stats.nodes += cells
        if found < 0:
            return deeper()
        records = query.unpack(self._buffer)[1]
        best = records[ranks[:found]]
        return best.view(np.int64)[:, query.ID], best[:, query.SCORE]

    def top_many(self, events: ArrayLike, k: int | None) -> Batch:
        self._short = False
        answers = super().top_many(events, k)
        return self._deep.top_many(events, k) if self._short else answers

    def _batch(self, events: Floats, ids: Ints, scores: Floats, counts: Ints, work: Ints) -> None:
        if not query.stab_many(self._buffer, events[:, 0], self._silent, (ids, scores, counts), work):
            self._short = True

    # ---- accounts ---------------------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        deep = self._deep.nbytes if "_deep" in self.__dict__ else 0
        ready = self._ready.nbytes if self._ready is not None else 0
        return self._buffer.nbytes + sum(a.nbytes for a in self._silent) + deep + ready

    def check(self) -> None:
        table, records, starts, lists = query.unpack(self._buffer)
        columns, _ = self._columns()
        order = ranked_order(columns.scores, columns.ids)
        keys = list(zip((-columns.scores[order]).tolist(), columns.ids[order].tolist(), strict=True))
        assert keys == sorted(keys), "ranks are best first, ties by id"
        rank_of = {id: r for r, id in enumerate(records.view(np.int64)[:, query.ID].tolist())}
        ranks = [rank_of.get(id, -1) for _, id in keys]  # −1: matters nowhere
        assert [r for r in ranks if r >= 0] == list(range(len(records))), "records are in rank order"
        assert (np.diff(starts) >= 0).all(), "lists are in the order of their cells"
        lo, hi = columns.lo[order].tolist(), columns.hi[order].tolist()
        bins = [(-1 if a == -np.inf else encode(table, a), len(starts) if b == np.inf else encode(table, b))
                for a, b in zip(lo, hi, strict=True)]  # fmt: skip
        for start in np.unique(starts).tolist():
            cell = np.flatnonzero(starts == start)
            word = int(lists[start])
            held = lists[start + 1 : start + 1 + (word >> query.FLAGS)].tolist()
            meeting = [t for t, (a, b) in enumerate(bins) if a <= cell[-1] and b >= cell[0]]
            here = [ranks[t] for t in meeting]
            assert held == [r for r in here if r in set(held)], "a list is in score order, of what meets its cell"
            if not word & query.CUT:
                assert held == here, "a list that is not cut short is complete"
            for b in cell.tolist():
                there = [t for t in meeting if bins[t][0] <= b <= bins[t][1]]
                covers = np.array([bins[t][0] < b < bins[t][1] for t in there], dtype=np.int64)
                better = np.cumsum(covers) - covers
                needed = {ranks[t] for t, c in zip(there, better, strict=True) if c < self._depth}
                assert needed <= set(held), "what is not covered by `depth` better ones is in the list"
        if self._ready is not None:
            counted = replace(self.stats)
            self._ready.check(self._listed)
            assert self.stats == counted, "a check is not a query"

    def _listed(self, value: float, k: int) -> list[Match]:
        """The k ≤ depth best at a value by the lists."""
        ranks = np.empty(k + 1, np.int64)
        views = query.unpack(self._buffer)
        found, _ = query.stab(views, self._depth, value, k, ranks)
        best = views[1][ranks[:found]]
        return list(zip(best.view(np.int64)[:, query.ID].tolist(), best[:, query.SCORE].tolist(), strict=True))
