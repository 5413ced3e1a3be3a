"""Pivot: our own sparse matcher. Every expression is filed once, under its most selective predicate.

Structure. Each attribute has a small hierarchy of value cells (`cells`); every cell has a list. An expression is filed
at one *pivot*: the smallest cell that contains one of its predicates, for the predicate whose cell is least likely to
be visited (frequency of the attribute × share of the cell). An event visits, per attribute that it has, one cell per
level.

1. *Completeness.* cell(v) is monotone, so a predicate that holds for v is filed in a cell on v's path. All
   predicates of a matching expression hold, the pivot too, so its list is visited.
2. *Masks.* A list entry carries 64 bits for the attributes that the expression needs (the 64 most frequent
   attributes have different bits) and 64 bits each for the fine and the coarse value cells that it needs (hashed;
   only of predicates inside one cell). `mask & ~event ≠ 0` discards it without a look at its predicates, which is
   why an event that matches nothing is as fast as one that matches.
3. *Bounds.* Lists are sorted by the score that the expression would get from an event with the usual weight of each
   attribute. A linear score is at most this times the event's largest ratio of weight to usual weight. The bound is
   nearly exact when events weight attributes by their rarity, as in both papers: lists are left early and, since
   they are visited best first, the search ends early. A second bound, for an event with weight 1 everywhere, does
   the same for events whose weights are all alike. For a score that is not linear the first bound holds for events
   whose weights are at most MARGIN times the usual ones, the second for weights of at most 1; otherwise it is not used.
4. *Blocks.* What passes is compared with a packed copy of its predicates (`blocks`: attribute, low, high and weight as
   32-bit codes, rounded outwards) that is one run of memory: one cache miss instead of eight. Codes can only let too
   much through and overestimate the score; what is left is verified and scored on the original values.

Cost: O(lists visited + their entries), about n/(attributes · cells) entries per event attribute. Exact and dynamic:
lists take insertions; cells are recut when the number of expressions has doubled. 40 bytes per expression
and 16 per predicate.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coverlay import kernel
from topk.answers import Batch
from topk.checks import Floats, Ints
from topk.kernels.heaps import in_order, offer
from topk.kernels.threads import WORKERS, in_parts
from topk.predicates import SparseCatalogue
from topk.sparse.blocks import MAY_MATCH, Codes, Packed, compare, pack_codes
from topk.sparse.cells import FAN_BITS, MAX_LEVELS, Grid, cell_bit, cell_of, cut_cells, list_at, number_of_lists
from topk.sparse.contract import Scratch, SparseIndex, Workspace, columns_of
from topk.sparse.event import Event, Events
from topk.sparse.postings import PostingLists, Postings
from topk.sparse.rows import Rows, clear, holds, row_score, spread, usual_margin
from topk.sparse.scores import Score, Scoring, as_bound, combine, lowered, reach
from topk.sparse.upkeep import COMPARISONS, ENTRIES, NODES, QUEUED

_MOST_AT_ONCE = 1024  # answers per event up to which a batch has room for all of them
_REBUILD_FROM = 4096  # below this many expressions every list is short anyway

ENTRY = np.dtype([
    ("mask", "u8"),  # attributes it needs
    ("coarse", "u8"),  # value cells it needs, one level above the leaves
    ("fine", "u8"),  # leaf cells it needs
    ("bound", "f4"),  # its score from an event with the usual weights; descending within a list
    ("even", "f4"),  # its score from an event whose weights are 1
    ("block", "i4"),
    ("pad", "i4"),  # whole words
])  # fmt: skip


@kernel
def pivots(rows: Rows, grid: Grid, score: Scoring, which: Any, home: Any, entries: Any) -> None:
    """The list and the entry (but for its block) of these rows."""
    # Arrays by name: taking them out of the tuples in the loop would count references at every access.
    attribute, cuts = grid.attribute, grid.cuts
    start, length, named, lo, hi, weight = rows.start, rows.length, rows.attribute, rows.lo, rows.hi, rows.weight
    margin = usual_margin(score)
    for i in range(len(which)):
        row = which[i]
        cheapest, chosen = np.inf, 0  # list 0 is for expressions without predicates
        usual, even = score.start, score.start
        bits, coarse, fine = np.uint64(0), np.uint64(0), np.uint64(0)
        begin = start[row]
        for p in range(begin, begin + length[row]):
            a = named[p]
            bits |= attribute[a].bit
            usual = combine(score, usual, weight[p], margin * attribute[a].reference)
            even = combine(score, even, weight[p], 1.0)
            left = cell_of(attribute, cuts, a, lo[p], 0)
            right = cell_of(attribute, cuts, a, hi[p], left)
            level = np.int64(attribute[a].levels)
            if left == right:
                fine |= cell_bit(a, left)
            if left >> FAN_BITS == right >> FAN_BITS:
                coarse |= cell_bit(a, left >> FAN_BITS)
            while left != right:
                left >>= FAN_BITS
                right >>= FAN_BITS
                level -= 1
            cost = attribute[a].frequency / (1 << (FAN_BITS * level))
            if cost < cheapest:
                cheapest = cost
                chosen = list_at(attribute, a, level, left << (FAN_BITS * (attribute[a].levels - level)))
        home[i] = chosen
        entries[i].mask = bits
        entries[i].coarse = coarse
        entries[i].fine = fine
        entries[i].bound = as_bound(usual)
        entries[i].even = as_bound(even)


@kernel(inner=True)
def gather(grid: Grid, lists: Any, entries: Any, columns: Any) -> Any:
    """The lists that the event visits with the bounds of their first entries, and the cells that it covers."""
    attribute, cuts, attributes, low, high = grid.attribute, grid.cuts, columns[0], columns[1], columns[2]
    cells = np.empty((len(attributes), 2), np.int64)
    room = 1
    for i in range(len(attributes)):
        cells[i, 0] = cell_of(attribute, cuts, attributes[i], low[i], 0)
        cells[i, 1] = cell_of(attribute, cuts, attributes[i], high[i], cells[i, 0])
        room += 2 * (cells[i, 1] - cells[i, 0]) + MAX_LEVELS + 1
    chosen, heads = np.empty(room, np.int64), np.empty(room, np.float64)
    visited, coarse, fine = 0, np.uint64(0), np.uint64(0)
    if lists[0].count:
        chosen[0], heads[0], visited = 0, entries[lists[0].start].bound, 1
    for i in range(len(attributes)):
        a, left, right = attributes[i], cells[i, 0], cells[i, 1]
        for cell in range(left, right + 1):
            fine |= cell_bit(a, cell)
        for cell in range(left >> FAN_BITS, (right >> FAN_BITS) + 1):
            coarse |= cell_bit(a, cell)
        for level in range(attribute[a].levels + 1):
            for at in range(list_at(attribute, a, level, left), list_at(attribute, a, level, right) + 1):
                if lists[at].count:
                    chosen[visited], heads[visited] = at, entries[lists[at].start].bound
                    visited += 1
    return chosen, heads, visited, coarse, fine


@kernel(inner=True)
def reach_even(weights: Any, score: Scoring) -> float:
    """`reach` for scores computed with weight 1 everywhere."""
    top = 0.0
    for weight in weights:
        top = max(top, weight)
    if score.linear:
        return top if top > 0.0 else np.nan
    return 1.0 if top <= 1.0 else np.nan


@kernel
def search(filed: Any, columns: Any, extra: Any, space: Workspace, k: int, score: Scoring) -> int:
    rows, grid, postings, packed = filed
    attributes = columns[0]
    event, codes, best, ids, counts = space
    spread(event, *columns)
    pack_codes(packed, columns, codes)
    present = np.uint64(0)
    for a in attributes:
        present |= grid.attribute[a].bit
    # Arrays by name: taking them out of the tuples in the loop would count references at every access.
    lists, entries = postings.lists, postings.entries
    blocks, step = packed.blocks, packed.step[0]
    chosen, heads, visited, coarse, fine = gather(grid, lists, entries, columns)
    missing, outside, beyond = ~present, ~coarse, ~fine
    usual, even = reach(columns, grid.attribute.reference, score), reach_even(columns[3], score)
    scores, found = best[:k], ids[:k]
    size, seen, compared = np.int64(0), 0, 0
    least, least_bound, least_even = -np.inf, -np.inf, -np.inf  # the k-th score, and what entries need to reach it
    for turn in range(visited):
        # Selection sort, one step per list visited: usually the first few lists end the search.
        pick = turn
        for j in range(turn + 1, visited):
            if heads[j] > heads[pick]:
                pick = j
        counts[QUEUED] += 1
        heads[turn], heads[pick] = heads[pick], heads[turn]
        chosen[turn], chosen[pick] = chosen[pick], chosen[turn]
        if heads[turn] < least_bound:
            break
        begin = lists[chosen[turn]].start
        end = begin + lists[chosen[turn]].count
        for i in range(begin, end):
            entry = entries[i]
            if entry.bound < least_bound:
                end = i + 1
                break
            if (entry.mask & missing) | (entry.coarse & outside) | (entry.fine & beyond) or entry.even < least_even:
                continue
            verdict = compare(blocks, step, entry.block, codes, event, score, least)
            compared += verdict if verdict > 0 else blocks[entry.block, 1]
            if verdict != MAY_MATCH:
                continue
            row = blocks[entry.block, 0]
            if holds(rows, row, event, extra):
                counts[QUEUED] += 1
                size = offer(scores, found, size, row_score(rows, row, event, score), rows.ids[row])
                if size == k:
                    least = scores[0]
                    least_bound, least_even = lowered(least) / usual, lowered(least) / even
        seen += end - begin
    clear(event, attributes)
    counts[ENTRIES] += seen
    counts[NODES] += visited
    counts[COMPARISONS] += seen + compared  # masks and bounds, and predicates
    return in_order(scores, found, size)


@kernel
def search_many(
    filed: Any, offsets: Any, columns: Any, extra: Any, share: Any, space: Workspace, score: Scoring, answers: Any
) -> None:
    """A thread's share of a batch in one call: every step-th event from the first, share = (first, step)."""
    ids, scores, found = answers
    for i in range(share[0], len(found), share[1]):
        begin, end = offsets[i], offsets[i + 1]
        own = (columns[0][begin:end], columns[1][begin:end], columns[2][begin:end], columns[3][begin:end])
        place = Workspace(space.event, space.codes, scores[i], ids[i], space.counts)
        found[i] = search(filed, own, extra, place, ids.shape[1], score)


class Pivot(SparseIndex):
    """Filed once under the most selective predicate; masks and score-ordered lists.

    >>> import topk
    >>> rows = topk.Catalogue.from_predicates([[(0, "<", 5, 0.5)], [(0, ">", 1), (2, "in", [3, 4])]])
    >>> index = topk.create("pivot", rows)
    >>> index.top({0: 2, 2: 4}, k=2)
    [(1, 2.0), (0, 0.5)]
    """

    name = "pivot"
    calibrated = True

    def __init__(self, catalogue: SparseCatalogue, score: str | Score = "sum") -> None:
        super().__init__(catalogue, score)
        self._codes: Codes
        self._build()

    def _build(self) -> None:
        store = self.store
        self._grid = cut_cells(store.rows, store.used, self.dimensions)
        self._built = max(len(self), _REBUILD_FROM)
        live = np.flatnonzero(store.rows.length[: store.used] >= 0)
        home, entries = self._filed(live)
        order = _by_list(home, entries.bound)
        self._codes = Codes(store, live[order])  # blocks lie in the order of the lists
        entries = entries[order]
        entries.block = self._codes.at[live[order]]
        self._postings = Postings(number_of_lists(self._grid), home[order], entries)
        self.stats.rebuilds += 1

    def _filed(self, which: Ints) -> tuple[Ints, Any]:
        """List and entry of each row; the blocks are still to be set."""
        home, entries = np.empty(len(which), np.int64), np.zeros(len(which), ENTRY).view(np.recarray)
        rows, grid, scoring = self.store.rows, self._grid, self._scoring
        in_parts(lambda *own: pivots(rows, grid, scoring, *own), len(which), which, home, entries)
        return home, entries

    def search(self, event: Event, k: int, scratch: Scratch) -> int:
        return search(self._filed_arrays(), columns_of(event), self._extra(event), scratch.workspace, k, self._scoring)

    def _filed_arrays(self) -> tuple[Rows, Grid, PostingLists, Packed]:
        return self.store.rows, self._grid, self._postings.lists, self._codes.packed

    def top_many(self, events: Any, k: int | None) -> Batch:
        """`top` for each event, on all cores: one kernel per thread."""
        wanted, many = self._count(k), Events.of(events, self.dimensions)
        if many.extras or wanted == 0 or wanted > _MOST_AT_ONCE:
            return super().top_many(many, k)
        ids, scores = np.full((len(many), wanted), -1, np.int64), np.full((len(many), wanted), np.nan)
        found = np.zeros(len(many), np.int64)
        columns = (many.attributes, many.lo, many.hi, many.weights)

        def part(which: int, scratch: Scratch) -> None:
            filed, share, space = self._filed_arrays(), (which, WORKERS), scratch.workspace
            answers = (ids, scores, found)
            search_many(filed, many.offsets, columns, self._extra(), share, space, self._scoring, answers)

        self._on_all_cores(len(many), part)
        return Batch(ids, scores, found)

    def insert(self, row: int) -> None:
        if len(self) > 2 * self._built or self._codes.mostly_waste:
            self._build()
            return
        home, entries = self._filed(np.array([row]))
        entries[0].block = self._codes.add(row)
        self._postings.insert(int(home[0]), entries)

    def delete(self, row: int) -> None:
        home, _ = self._filed(np.array([row]))
        self._postings.delete(int(home[0]), int(self._codes.at[row]))
        self._codes.remove(row)

    @property
    def overhead(self) -> int:
        return self._postings.nbytes + self._codes.nbytes + sum(int(column.nbytes) for column in self._grid)

    def check(self) -> None:
        self.store.check()
        self._postings.check()
        self._codes.check()
        lists, entries = self._postings.lists
        filed = 0
        for at in np.flatnonzero(lists.count):
            for entry in entries[int(lists[at].start) : int(lists[at].start + lists[at].count)]:
                home, fresh = self._filed(np.array([self._codes.packed.blocks[entry.block, 0]], dtype=np.int64))
                assert home[0] == at, f"block {entry.block} is filed under its pivot"
                fresh[0].block = entry.block
                assert fresh[0] == entry, "an entry has its row's masks and bounds"
                filed += 1
        assert filed == len(self), "every expression is filed once"


def _by_list(home: Ints, bound: Floats) -> Ints:
    """The order by list, then by descending bound: one sort of one integer key."""
    # Bounds become integers of the same order: the bits of a float, with those of negative ones turned around.
    bits = bound.astype(np.float32).view(np.int32).astype(np.int64)
    rising = np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)
    return np.argsort((home << 32) - rising, kind="stable")
