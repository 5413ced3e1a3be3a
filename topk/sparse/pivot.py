"""Pivot: our own sparse matcher. Every expression is filed once, under its most selective predicate.

Structure. Each attribute has a small hierarchy of value cells (16-ary, cut at quantiles of the predicates' bounds, up
to two levels below the whole domain); every cell has a list. An expression is filed at one *pivot*: the smallest
cell that contains one of its predicates, for the predicate whose cell is least likely to be visited (frequency of
the attribute × share of the cell). An event visits, per attribute that it has, one cell per level.

1. *Completeness.* cell(v) is monotone, so a predicate that holds for v is filed in a cell on v's path: a
   matching expression has all its predicates hold, the pivot too, so its list is visited.
2. *Masks.* A list entry carries 64 bits that say which attributes the expression needs (the 64 most frequent
   attributes have a bit of their own) and 64 that say which value cells (hashed; only of predicates inside one
   cell). `mask & ~event ≠ 0` discards it after 8 or 16 sequential bytes, which is why an event that matches
   nothing is as fast as one that matches.
3. *Bounds.* Lists are sorted by S = Σ weights; S·max(event weights) bounds the score, so lists are left early and,
   visited best first, the search ends early. A second bound Σ weight·ref(attribute), times the largest
   event weight/ref, is nearly exact when events and expressions take their weights from the attribute's rarity.

4. *Blocks.* What passes is compared with a packed copy of its predicates (attribute, low, high and weight as 32-bit
   codes, rounded outwards) that is one run of memory: one cache miss instead of eight. Codes only ever let too
   much through and only overestimate the score; what is left is verified and scored on the original values.

Cost: O(lists visited + entries of them), about n/(attributes · cells) entries per event attribute. Exact, dynamic:
lists are insertable; cells are recut when the number of expressions has doubled. 28 bytes per expression
and 16 per predicate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from topk.select import push
from topk.sparse.base import Scratch, SparseIndex, columns_of
from topk.sparse.blocks import Codes, Packed, pack_codes, survives
from topk.sparse.catalogue import Floats, Int32s, Ints, SparseCatalogue
from topk.sparse.event import Event
from topk.sparse.postings import Lists, Postings
from topk.sparse.store import SUM, Rows, clear, holds, row_score, spread

_FAN_BITS = 4  # 16 children per cell: three lists to look at for 256 cells
_MAX_LEVELS = 2
_SPLIT_AT = 64  # predicates on an attribute that are worth 16 cells, and times 16 per further level
_REBUILD_FROM = 4096  # below this many expressions every list is short anyway
_UP = np.float32(1.0 + 3e-7)  # rounds a float64 bound up when it is stored as float32


class Grid(NamedTuple):
    """Cells of the attributes."""

    levels: NDArray[np.int8]  # (d,) levels below the whole domain
    base: Int32s  # (d,) first list; level 0 first, then its children, …
    cut: Int32s  # (d,) first cut; an attribute with L levels has 16**L − 1
    cuts: Floats
    frequency: Floats  # (d,) predicates per attribute when the cells were cut
    bit: NDArray[np.uint64]  # (d,) the attribute's bit
    reference: Floats  # (d,) usual weight of a predicate on it


@njit(cache=True)
def cell_at(cuts: Any, first: int, levels: int, value: float) -> int:
    """Number of cuts ≤ value, so equal values get equal cells and the order is kept."""
    low, high = 0, (1 << (_FAN_BITS * levels)) - 1
    while low < high:
        middle = (low + high) >> 1
        if cuts[first + middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, inline="always")
def cell_of(grid: Grid, a: int, value: float) -> Any:
    return cell_at(grid.cuts, grid.cut[a], np.int64(grid.levels[a]), value)


@njit(cache=True, inline="always")
def cell_bit(a: int, cell: int) -> Any:
    """The bit of a value cell among 64; multiplicative hashing spreads neighbours."""
    mixed = np.uint64(a * 4096 + cell + 1) * np.uint64(0x9E3779B97F4A7C15)
    return np.uint64(1) << (mixed >> np.uint64(58))


@njit(cache=True, inline="always")
def list_at(grid: Grid, a: int, level: int, cell: int) -> int:
    """The list of a leaf cell's ancestor at `level`."""
    before = ((1 << (_FAN_BITS * level)) - 1) // ((1 << _FAN_BITS) - 1)
    return grid.base[a] + before + (cell >> (_FAN_BITS * (grid.levels[a] - level)))


@njit(cache=True)
def pivots(rows: Rows, which: Any, grid: Grid, mode: int, home: Any, masks: Any, bounds: Any) -> None:
    """The list, the two masks and the two bounds of these rows."""
    for i in range(len(which)):
        row = which[i]
        cheapest, chosen, plain, scaled = np.inf, -1, 0.0, 0.0
        bits, cells = np.uint64(0), np.uint64(0)
        begin = rows.start[row]
        for p in range(begin, begin + rows.length[row]):
            a = rows.attribute[p]
            bits |= grid.bit[a]
            weight = rows.weight[p]
            if mode == SUM:
                plain += weight
                scaled += weight * grid.reference[a]
            else:
                plain = max(plain, weight)
                scaled = max(scaled, weight * grid.reference[a])
            left, right = cell_of(grid, a, rows.lo[p]), cell_of(grid, a, rows.hi[p])
            level = np.int64(grid.levels[a])
            if left == right:
                cells |= cell_bit(a, left)
            while left != right:
                left >>= _FAN_BITS
                right >>= _FAN_BITS
                level -= 1
            cost = grid.frequency[a] / (1 << (_FAN_BITS * level))
            if cost < cheapest:
                cheapest = cost
                chosen = list_at(grid, a, level, left << (_FAN_BITS * (grid.levels[a] - level)))
        home[i] = chosen if chosen >= 0 else 0  # list 0 is for expressions without predicates
        masks[i, 0] = bits
        masks[i, 1] = cells
        bounds[i, 0] = np.float32(plain) * _UP
        bounds[i, 1] = np.float32(scaled) * _UP


@njit(cache=True, nogil=True)
def search(
    rows: Rows, grid: Grid, lists: Lists, packed: Packed, columns: Any, event: Any, codes: Any, k: int, mode: int,
    best: Any, ids: Any, counts: Any,
) -> int:  # fmt: skip
    attributes = columns[0]
    spread(event, *columns)
    pack_codes(packed, columns, codes)
    present, top, ratio = np.uint64(0), 0.0, 0.0
    for i in range(len(attributes)):
        a = attributes[i]
        present |= grid.bit[a]
        weight = columns[3][i]
        top = max(top, weight)
        if grid.reference[a] > 0.0:
            ratio = max(ratio, weight / grid.reference[a])
        elif weight > 0.0:
            ratio = np.inf
    chosen, heads, visited, covered = gather(grid, lists, columns, top)
    missing, outside = ~present, ~covered
    # Arrays by name: taking them out of the tuples in the loop would count references at every access.
    mask, cells, bound, other, block = lists.mask, lists.cells, lists.bound, lists.other, lists.block
    starts, sizes, blocks, step = lists.start, lists.size, packed.blocks, packed.step[0]
    scores, found = best[:k], ids[:k]
    size, seen = 0, 0
    for turn in range(visited):
        # Selection sort, one step per list visited: usually the first few lists end the search.
        pick = turn
        for j in range(turn + 1, visited):
            if heads[j] > heads[pick]:
                pick = j
        heads[turn], heads[pick] = heads[pick], heads[turn]
        chosen[turn], chosen[pick] = chosen[pick], chosen[turn]
        if size == k and heads[turn] < scores[0]:
            break
        begin = starts[chosen[turn]]
        end = begin + sizes[chosen[turn]]
        for i in range(begin, end):
            if mask[i] & missing or cells[i] & outside:
                continue
            least = scores[0] if size == k else -1.0
            if bound[i] * top < least:
                end = i + 1
                break
            if other[i] * ratio < least or not survives(blocks, step, block[i], codes, event, mode, least):
                continue
            row = blocks[block[i], 0]
            if holds(rows, row, event):
                size = push(scores, found, size, row_score(rows, row, event, mode), rows.ids[row])
        seen += end - begin
    clear(event, attributes)
    counts[0] += seen
    counts[1] += visited
    return size


@njit(cache=True, nogil=True)
def gather(grid: Grid, lists: Lists, columns: Any, top: float) -> Any:
    """The lists that the event visits, with the bound of their first entries."""
    attributes, low, high = columns[0], columns[1], columns[2]
    room = 1
    for i in range(len(attributes)):
        a = attributes[i]
        span = cell_of(grid, a, high[i]) - cell_of(grid, a, low[i])
        room += 2 * span + _MAX_LEVELS + 1
    chosen = np.empty(room, np.int64)
    heads = np.empty(room, np.float64)
    visited, covered = 0, np.uint64(0)
    if lists.size[0]:
        chosen[0] = 0
        heads[0] = lists.bound[lists.start[0]] * top
        visited = 1
    for i in range(len(attributes)):
        a = attributes[i]
        left, right = cell_of(grid, a, low[i]), cell_of(grid, a, high[i])
        for cell in range(left, right + 1):
            covered |= cell_bit(a, cell)
        for level in range(grid.levels[a] + 1):
            for at in range(list_at(grid, a, level, left), list_at(grid, a, level, right) + 1):
                if lists.size[at]:
                    chosen[visited] = at
                    heads[visited] = lists.bound[lists.start[at]] * top
                    visited += 1
    return chosen, heads, visited, covered


class Pivot(SparseIndex):
    """Filed once under the most selective predicate; masks and score-ordered lists."""

    name = "pivot"
    options: ClassVar[Mapping[str, str]] = {"score": "how products of weights combine: sum or max"}

    def __init__(self, catalogue: SparseCatalogue, score: str = "sum") -> None:
        super().__init__(catalogue, score)
        self._codes: Codes
        self._build()

    def _build(self) -> None:
        store = self._store
        self._grid = cut_cells(store.rows, store.used, self.dimensions)
        self._built = max(len(self), _REBUILD_FROM)
        live = np.flatnonzero(store.rows.length[: store.used] >= 0)
        home, masks = np.empty(len(live), np.int64), np.empty((len(live), 2), np.uint64)
        bounds = np.empty((len(live), 2), np.float32)
        pivots(store.rows, live, self._grid, self._mode, home, masks, bounds)
        order = np.lexsort((live, -bounds[:, 0], home))  # blocks lie in the order of the lists
        self._codes = Codes(store, live[order])
        number = int(self._grid.base[-1]) + _lists_of(int(self._grid.levels[-1])) if self.dimensions else 1
        blocks = self._codes.at[live[order]]
        mask, cells = masks[order].T
        bound, other = bounds[order].T
        self._postings = Postings(number, home[order], mask, cells, blocks, bound, other)
        self.stats.rebuilds += 1

    def _search(self, event: Event, k: int, scratch: Scratch) -> int:
        columns = columns_of(event)
        found = search(
            self._store.rows, self._grid, self._postings.lists, self._codes.packed, columns, scratch.event,
            scratch.codes, k, self._mode, scratch.scores, scratch.ids, scratch.counts,
        )  # fmt: skip
        return int(found)

    def _entry(self, row: int) -> tuple[int, Any, Any]:
        home, masks, bounds = np.empty(1, np.int64), np.empty((1, 2), np.uint64), np.empty((1, 2), np.float32)
        pivots(self._store.rows, np.array([row]), self._grid, self._mode, home, masks, bounds)
        return int(home[0]), masks[0], bounds[0]

    def _insert(self, row: int) -> None:
        if len(self) > 2 * self._built or self._codes.mostly_waste:
            self._build()
            return
        home, masks, bounds = self._entry(row)
        self._postings.insert(home, masks[0], masks[1], self._codes.add(row), bounds[0], bounds[1])

    def _delete(self, row: int) -> None:
        self._postings.delete(self._entry(row)[0], int(self._codes.at[row]))
        self._codes.remove(row)

    @property
    def overhead(self) -> int:
        return self._postings.nbytes + self._codes.nbytes + sum(int(column.nbytes) for column in self._grid)

    def check(self) -> None:
        self._store.check()
        self._postings.check()
        self._codes.check()
        lists, filed = self._postings.lists, 0
        for at in np.flatnonzero(lists.size):
            for i in range(int(lists.start[at]), int(lists.start[at] + lists.size[at])):
                home, masks, bounds = self._entry(int(self._codes.packed.blocks[lists.block[i], 0]))
                assert home == at, f"block {lists.block[i]} is filed under its pivot"
                assert (lists.mask[i], lists.cells[i]) == tuple(masks), "an entry knows its row's masks"
                assert (lists.bound[i], lists.other[i]) == tuple(bounds), "an entry knows its bounds"
                filed += 1
        assert filed == len(self), "every expression is filed once"


def _lists_of(levels: int) -> int:
    return (int((1 << (_FAN_BITS * (levels + 1))) - 1)) // ((1 << _FAN_BITS) - 1)


def cut_cells(rows: Rows, used: int, dimensions: int) -> Grid:
    """Cells at quantiles of the bounds; rare attributes get one cell."""
    lengths = np.maximum(rows.length[:used], 0).astype(np.int64)
    live = np.repeat(rows.start[:used] - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths) if used else lengths
    at = live + np.arange(len(live))
    named = rows.attribute[at]
    frequency = np.bincount(named, minlength=dimensions).astype(np.float64)
    weights = np.bincount(named, rows.weight[at], minlength=dimensions)
    reference = np.divide(weights, frequency, out=np.ones(dimensions), where=frequency > 0)
    begins = np.concatenate([[0], np.cumsum(frequency)]).astype(np.int64)
    grouped = by_attribute(named, begins)
    levels = np.zeros(dimensions, np.int8)
    base, cut = np.zeros(dimensions, np.int32), np.zeros(dimensions, np.int32)
    cuts: list[Floats] = []
    next_list, next_cut = 1, 0
    for a in range(dimensions):
        wanted = int(frequency[a]) // _SPLIT_AT
        while levels[a] < _MAX_LEVELS and wanted >= 1 << (_FAN_BITS * int(levels[a])):
            levels[a] += 1
        base[a], cut[a] = next_list, next_cut
        if levels[a]:
            own = _quantiles(rows, at[grouped[begins[a] : begins[a + 1]]], 1 << (_FAN_BITS * int(levels[a])))
            cuts.append(own)
            next_cut += len(own)
        next_list += _lists_of(int(levels[a]))
    rank = np.empty(dimensions, np.int64)
    rank[np.argsort(-frequency, kind="stable")] = np.arange(dimensions)
    bit = np.uint64(1) << (rank % 64).astype(np.uint64)
    joined = np.concatenate(cuts) if cuts else np.empty(0)
    return Grid(levels, base, cut, joined, np.maximum(frequency, 1.0), bit, reference)


@njit(cache=True)
def by_attribute(named: Any, begins: Any) -> Any:
    """Positions of `named`, grouped by attribute: a counting sort."""
    grouped = np.empty(len(named), np.int64)
    following = begins.copy()
    for i in range(len(named)):
        grouped[following[named[i]]] = i
        following[named[i]] += 1
    return grouped


def _quantiles(rows: Rows, at: Ints, cells: int) -> Floats:
    """Cuts between predicates: low bounds at equal ranks, so that a predicate starts its cell."""
    bounds = np.where(np.isfinite(rows.lo[at]), rows.lo[at], rows.hi[at])
    bounds = np.sort(bounds[np.isfinite(bounds)])
    if not len(bounds):
        return np.zeros(cells - 1)
    return bounds[np.arange(1, cells) * len(bounds) // cells]
