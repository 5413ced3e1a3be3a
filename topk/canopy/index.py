"""Canopy: our own index for top-k stabbing in one dimension. Each cell lists what can be among the 32 best there.

1. Values are cut into cells. The list of a cell holds the intervals that meet it, best first, until 32 of
   them cover the cell from end to end: no later interval is among the 32 best for a value in the cell. So
   the k ≤ 32 best at a value are the first k of one short list that contain it. These are the O(k)
   candidates of a shallow cutting, found with one look-up instead of O(log n).
2. A list that was not cut short holds everything that meets its cell, and answers for any k. Only a larger
   k in a cell that was cut short needs more: a canopy whose depth is the next power of two, built on first
   use. Cells grow with the depth, so each depth takes O(n) space; one of depth n is a scan by score.
3. An interval that 32 better ones cover wherever it lies is in no list. Only the other m ≤ n intervals
   matter and have a record. Cells are cut so that each has at most 16 of their endpoints, hence at most
   2m/16 cells and 32 + 16 entries per list on average. Where scores make long intervals rare among the
   best, m is a few per cent of n.

An event that is an interval takes the union of its cells' lists: an interval that is missing in a cell is
beaten by 32 that meet the event as well. Each counts in the first cell it shares with the event.

O(n) space (32 bytes per interval that matters, and at most 6 list entries of 4 bytes), O(sort + n) build;
two cache misses, a scan of a few dozen entries and k records per query, at any n.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coverlay import CoverlayError
from topk.answers import Batch, Found, Match
from topk.canopy import query
from topk.canopy.lists import count, cut, fill
from topk.canopy.relevant import Grid, IntervalColumns, choose
from topk.catalogue import Catalogue
from topk.checks import Floats, Ints
from topk.kernels.threads import in_threads, parts
from topk.kernels.value_codes import encode, position_map
from topk.ranked import RankedIndex, ranked_order

_DEPTH = 32  # results that lists are made for: a screenful, and more than the experiments ask for
_MAX_BITS = 22
_COARSE = 1 << 17  # depth × number of the coarse cells that decide which intervals matter.
# With four times as many cells 7 % fewer matter, and choosing them takes twice as long.


class Canopy(RankedIndex):
    """One attribute; both semantics, which here differ only in the score; values and intervals as events.

    >>> import topk
    >>> index = topk.create("canopy", topk.Catalogue.from_boxes([0, 2], [5, 9], scores=[1.0, 4.0]))
    >>> index.top(3, k=2)
    [(1, 4.0), (0, 1.0)]
    """

    name = "canopy"
    most_attributes = 1
    parallel = 4096  # an event takes 0.2 µs, waking a thread 80
    options = {  # noqa: RUF012
        "depth": "results per event that its lists are made for; deeper lists are made when more are asked for"
    }

    def __init__(self, catalogue: Catalogue, semantics: str = "exact", depth: int = _DEPTH) -> None:
        super().__init__(catalogue, semantics)
        if depth < 1:
            raise CoverlayError(f"the depth must be at least 1, not {depth}")
        if catalogue.dimensions != 1:
            raise CoverlayError(f"{self.name} indexes one attribute, not {catalogue.dimensions}; use slices or auto")
        self._depth = int(depth)
        self._ends = max(depth // 2, 1)  # endpoints per cell: lists of 1.5·depth, 6 entries per interval at most
        self._deeper: dict[int, Canopy] = {}  # by depth
        columns, mentioned = self._columns()
        # The matches of an event without the attribute; usually none.
        silent = np.flatnonzero(~mentioned)
        silent = silent[ranked_order(columns.scores[silent], columns.ids[silent])]
        self._silent: Found = (columns.ids[silent], columns.scores[silent])
        self._lay_out(columns)

    def _columns(self) -> tuple[IntervalColumns, Any]:
        """The intervals that are scored, and which of them mention the attribute."""
        given = self.catalogue
        relaxed = self.semantics == "relaxed"
        rows = np.flatnonzero(given.mentioned[:, 0]) if relaxed else slice(None)
        scores = given.weights[rows, 0] if relaxed else given.scores
        return IntervalColumns(given.lo[rows, 0], given.hi[rows, 0], scores, given.ids[rows]), given.mentioned[rows, 0]

    def _lay_out(self, columns: IntervalColumns) -> None:
        n = len(columns.ids)
        bits = int(np.clip(np.log2(n + 1) - 1, 4, _MAX_BITS))
        table = position_map(columns.lo, columns.hi, bits)
        # Room for the case that all matter: any two neighbouring cells together have more than `_ends` endpoints.
        # Pages that stay untouched are never committed.
        cells = min(1 << bits, 4 * n // self._ends + 1)
        head = query.HEADER + table.size
        buffer = np.empty(head + 5 * n + (1 << bits) // 2 + (self._depth + 1) * (cells + 1) // 2)
        ends = np.empty((n, 2), np.int32)
        coarse = max(0, (_COARSE // self._depth).bit_length() - 1)
        grid = Grid(table, 1 << bits, max(0, bits - coarse))
        m, covers = choose(columns, grid, self._depth, buffer[head : head + 4 * n].reshape(n, 4), ends)
        buffer[: query.HEADER] = 0
        buffer[[query.N, query.BITS, query.ROWS, query.DEPTH, query.WHOLE]] = m, bits, len(table), self._depth, m == n
        views = query.unpack(buffer)
        views[0][:] = table
        # Where ranks were left out of a coarse cell, its bins cannot answer for more than `depth` results.
        closed = np.repeat(covers == self._depth, 1 << grid.shift)
        words = self._fill(ends[:m], closed, views[2], views[3])
        self._buffer = buffer[: head + 4 * m + (1 << bits) // 2 + (words + 1) // 2]

    def _fill(self, ends: Any, closed: Any, starts: Any, lists: Any) -> int:
        """Make the lists; returns how many words they take."""
        cell_of = np.empty(len(starts), np.int32)
        cells = cut(ends, self._ends, cell_of)
        words, offsets = np.zeros(cells, np.int32), np.zeros(cells + 1, np.int32)
        words[cell_of[closed]] = query.CUT
        bounded = np.append(cell_of, np.array([cells, -1], np.int32))
        spans = bounded.take(ends, mode="wrap")  # `bins` and −1, for unbounded sides, become `cells` and −1
        # Cells have about equal numbers of endpoints, so equal ranges of them are equal work.
        ranges = parts(cells, len(ends))
        in_threads(lambda part: count(spans, self._depth, words, part), ranges)
        np.cumsum(1 + (words >> query.FLAGS), out=offsets[1:])  # a list: its word, then its ranks
        in_threads(lambda part: fill(spans, words, offsets, lists, part), ranges)
        starts[:] = offsets[cell_of]
        return int(offsets[-1])

    # ---- queries ----------------------------------------------------------------------------------------

    def top(self, event: ArrayLike, k: int | None) -> list[Match]:
        """Where the lists suffice, a single kernel call from value to answer: each further step would cost as much."""
        point, wanted = self._event(event), self._count(k)
        value = float(point[0])
        if not 0 < wanted <= self._depth or value != value or self._residuals:
            return super().top(point, k)
        answer, compared = query.pairs(self._buffer, value, wanted)
        self.stats.queries += 1
        self.stats.nodes += 1
        self.stats.entries += compared
        return answer

    def search(self, low: Floats, high: Floats, k: int) -> Found:
        if np.isnan(low[0]):
            return self._silent[0][:k], self._silent[1][:k]
        views = query.unpack(self._buffer)
        if low is high:
            ranks, cells = np.empty(k + 1, np.int64), 1
            found, compared = query.stab(views, self._depth, float(low[0]), k, ranks)
        else:
            ranks = np.empty(k, np.int64)
            found, compared, cells = query.meet(self._buffer, float(low[0]), float(high[0]), ranks)
        if found < 0:
            return self._deep(k).search(low, high, k)
        self.stats.add(entries=compared, nodes=cells)
        best = views[1][ranks[:found]]
        return best.view(np.int64)[:, query.ID], best[:, query.SCORE]

    def _deep(self, k: int) -> Canopy:
        """The same index with lists for at least k results; its work counts as ours."""
        depth = 1 << (k - 1).bit_length()
        if depth not in self._deeper:
            self._deeper[depth] = Canopy(self.catalogue, self.semantics, depth)
            self._deeper[depth].stats = self.stats
            self.stats.rebuilds += 1
        return self._deeper[depth]

    def _many(self, events: Floats, k: int) -> Batch:
        batch = super()._many(events, k)
        short = np.flatnonzero(batch.counts < 0)
        if len(short):
            rest = self._deep(k)._many(events[short], k)
            batch.ids[short], batch.scores[short], batch.counts[short] = rest.ids, rest.scores, rest.counts
        return batch

    def _batch(self, events: Floats, ids: Ints, scores: Floats, counts: Ints, work: Ints) -> None:
        query.stab_many(self._buffer, events[:, 0], self._silent, (ids, scores, counts), work)

    # ---- accounts ---------------------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        own = self._buffer.nbytes + sum(a.nbytes for a in self._silent)
        return own + sum(deeper.nbytes for deeper in self._deeper.values())

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
        bins = [
            (-1 if a == -np.inf else encode(table, a), len(starts) if b == np.inf else encode(table, b))
            for a, b in zip(lo, hi, strict=True)
        ]
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
