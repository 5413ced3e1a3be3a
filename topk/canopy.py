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

An event that is an interval takes the union of its cells' lists: an interval that is missing in a cell is
beaten by 32 that meet the event as well. Each counts in the first cell it shares with the event.

O(n) space (32 bytes per interval, at most 6 list entries of 4), O(sort + n) build; two cache misses, a scan
of a few dozen entries and k records per query, at any n.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coverlay import CoverlayError
from topk import canopy_build as build
from topk import canopy_query as query
from topk.base import Batch, Found, Match, Stats
from topk.catalogue import Catalogue, Floats, Ints
from topk.one_attribute import Columns, OneAttribute
from topk.position import encode, position_map
from topk.strata import Strata
from topk.threads import in_threads, parts

_DEPTH = 32  # results that lists are made for: a screen full, and more than the experiments ask
_ENDS = 16  # endpoints per cell: lists of 48 entries at most on average, 6 entries per interval at most
_MAX_BITS = 22
_ONE = (1,)
_COARSE_BITS = 14  # cells in which is decided what matters at all: their counters stay in the first-level cache


class Canopy(OneAttribute):
    """One attribute; both semantics; values and intervals as events."""

    name = "canopy"
    parallel = 4096  # an event takes 0.2 µs, waking a thread 80
    options = {"depth": "results per event that its lists are made for; deeper ones may go to strata"}  # noqa: RUF012

    def __init__(self, catalogue: Catalogue, semantics: str = "exact", depth: int = _DEPTH) -> None:
        if depth < 1:
            raise CoverlayError(f"the depth must be at least 1, not {depth}")
        self._depth = depth
        self._short = False  # whether a batch met a list that was cut too short
        super().__init__(catalogue, semantics)
        self._quick = 0 if self._residuals else min(depth, len(catalogue))  # the k that `top` answers in one call

    def _lay_out(self, columns: Columns, order: Ints) -> None:
        n = len(order)
        bits = int(np.clip(np.log2(n + 1) - 1, 4, _MAX_BITS))
        table = position_map(columns.lo, columns.hi, bits)
        codes = np.empty((n, 2), np.int32)
        fixed = query.HEADER + table.size + 4 * n + (1 << bits) // 2
        # Two neighbouring cells have more than _ENDS endpoints. Pages that stay untouched are never committed.
        cells = min(1 << bits, 4 * n // _ENDS + 1)
        buffer = np.empty(fixed + n + (self._depth + 1) * (cells + 1) // 2)
        buffer[: query.HEADER] = 0
        buffer[[query.N, query.BITS, query.ROWS, query.DEPTH]] = n, bits, len(table), self._depth
        views = query.unpack(buffer)
        views[0][:] = table
        records = views[1]

        def place(part: Ints) -> None:
            build.gather(columns, order, records, part)
            build.encode_ends(table, 1 << bits, records, codes, part)

        in_threads(place, parts(n, n))
        words = self._fill(codes, views[2], views[3])
        self._buffer = buffer[: fixed + (words + 1) // 2]

    def _fill(self, codes: Any, starts: Any, lists: Any) -> int:
        """Make the lists; returns how many words they take."""
        bins = len(starts)
        shift = max(0, bins.bit_length() - 1 - _COARSE_BITS)
        covers = np.zeros(bins >> shift, np.int32)
        ranks = np.empty(len(codes), np.int32)
        ranks = ranks[: build.relevant(codes, shift, self._depth, covers, ranks)]
        cell_of = np.empty(bins, np.int32)
        cells = build.cut(codes, ranks, _ENDS, cell_of)
        spans = np.empty((len(ranks), 2), np.int32)
        build.to_cells(codes, ranks, cell_of, cells, spans)
        words, offsets = np.zeros(cells, np.int32), np.empty(cells + 1, np.int32)
        build.mark_closed(covers, shift, self._depth, cell_of, words)
        # Cells have about equal numbers of endpoints, so that equal ranges of them are equal work.
        shares = parts(cells, len(ranks))
        if not build.count_open(spans, self._depth, words):
            in_threads(lambda part: build.count(spans, self._depth, words, part), shares)
        build.offsets_of(words, offsets)
        in_threads(lambda part: build.fill(spans, ranks, words, offsets, lists, part), shares)
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
        if "_deep" in self.__dict__:
            own.entries += self._deep.stats.entries
            own.nodes += self._deep.stats.nodes
            self._deep.stats.reset()
        return own

    @stats.setter
    def stats(self, value: Stats) -> None:
        self._stats = value

    def top(self, event: ArrayLike, k: int | None) -> list[Match]:
        """As in the base class, with fewer steps: they would cost more than the search."""
        if k is None or not 0 < k <= self._quick:
            return super().top(event, k)
        if type(event) is not np.ndarray or event.shape != _ONE:
            event = self._event(event)
        value = float(event.item())
        if value != value:
            return super().top(event, k)
        answer: list[Match] = query.pairs(self._buffer, value, k)
        return answer

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
        return self._buffer.nbytes + sum(a.nbytes for a in self._silent) + deep

    def check(self) -> None:
        table, records, starts, lists = query.unpack(self._buffer)
        scores, ids = records[:, query.SCORE], records.view(np.int64)[:, query.ID]
        keys = list(zip((-scores).tolist(), ids.tolist(), strict=True))
        assert keys == sorted(keys), "ranks are best first, ties by id"
        assert (np.diff(starts) >= 0).all(), "lists are in the order of their cells"
        bins = [(-1 if r[0] == -np.inf else encode(table, r[0]), len(starts) if r[1] == np.inf else encode(table, r[1]))
                for r in records]  # fmt: skip
        for start in np.unique(starts).tolist():
            cell = np.flatnonzero(starts == start)
            word = int(lists[start])
            held = lists[start + 1 : start + 1 + (word >> query.FLAGS)].tolist()
            meeting = [r for r, (a, b) in enumerate(bins) if a <= cell[-1] and b >= cell[0]]
            assert held == [r for r in meeting if r in set(held)], "a list is in score order, of what meets its cell"
            if not word & query.CUT:
                assert held == meeting, "a list that is not cut short is complete"
            for b in cell.tolist():
                here = [r for r in meeting if bins[r][0] <= b <= bins[r][1]]
                covers = np.array([bins[r][0] < b < bins[r][1] for r in here], dtype=np.int64)
                better = np.cumsum(covers) - covers
                needed = {r for r, c in zip(here, better, strict=True) if c < self._depth}
                assert needed <= set(held), "what is not covered by `depth` better ones is in the list"

