"""TAS: the Threshold Algorithm over scored segment trees and an R-tree (Hu et al., SSTD 2015, §4).

Per attribute a segment tree over value cells; a subscription's interval is stored at the O(log) nodes that cover it,
each node's list sorted by weight · (1 − α). An event merges the lists on the path of its value: a stream of
subscriptions by descending contribution. The R-tree, with α_max per node, gives one by α · ψ_s. TA (Fagin et al.)
takes one from each stream in turn, computes the whole ψ, and ends when the k-th similarity exceeds the sum of
the streams' last contributions.

Ours: cells are cut at quantiles of the bounds (at most 128 per attribute) instead of every end point, so later
subscriptions fit in; an interval that covers a cell only partly is listed all the same: its ψ decides.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coverlay import kernel
from topk.answers import Found
from topk.checks import Floats, Ints
from topk.kernels.heaps import offer, pop, push
from topk.kernels.segments import MOST, cuts_below, maximal_nodes
from topk.places.catalogue import PlacedCatalogue
from topk.places.contract import Ask, Placed, Scratch, Workspace, arrays_of, row_nearness, similarity
from topk.places.rtree import A_HI, LEAF, ROOT, SIZE, PlaceTree, box_nearness
from topk.places.rtree_index import LAYERS, RTreeIndex
from topk.sparse.postings import PLAIN_ENTRY, Postings
from topk.sparse.rows import Rows, clear, spread
from topk.sparse.scores import as_bound, raised
from topk.sparse.upkeep import COMPARISONS, ENTRIES, NODES, QUEUED

_MOST_CELLS = 128
_bounds = as_bound.py_func  # for whole arrays: contributions are float32, ψ is not


class Cells(NamedTuple):
    """Segment trees of the attributes: leaf c of attribute a is node number[a] + c, its parent half of that."""

    number: Ints  # (d,) cells, a power of two
    base: Ints  # (d,) list of node 1
    first: Ints  # (d,) first cut
    cuts: Floats


@kernel(inner=True)
def cell_of(cells: Cells, a: int, value: float) -> int:
    return cuts_below(cells.cuts, cells.first[a], 0, cells.number[a] - 1, value)


@kernel
def cover(cells: Cells, a: int, lo: float, hi: float, nodes: Any) -> int:
    """The lists whose segments make up the interval's cells."""
    number = cells.number[a]
    found = maximal_nodes(cell_of(cells, a, lo) + number, cell_of(cells, a, hi) + number, nodes)
    for i in range(found):
        nodes[i] += cells.base[a]
    return found


@kernel
def count_all(rows: Rows, live: Any, cells: Cells, count: Any) -> None:
    """How many entries each list gets."""
    nodes = np.empty(MOST, np.int64)
    for row in live:
        for p in range(rows.start[row], rows.start[row] + rows.length[row]):
            for i in range(cover(cells, rows.attribute[p], rows.lo[p], rows.hi[p], nodes)):
                count[nodes[i]] += 1


@kernel
def list_all(rows: Rows, order: Any, row_of: Any, gain: Any, cells: Cells, at: Any, bound: Any, block: Any) -> None:
    """Append predicates, by descending gain, to their lists; at[l] is the end of list l."""
    nodes = np.empty(MOST, np.int64)
    for p in order:
        for i in range(cover(cells, rows.attribute[p], rows.lo[p], rows.hi[p], nodes)):
            bound[at[nodes[i]]], block[at[nodes[i]]] = gain[p], row_of[p]
            at[nodes[i]] += 1


@kernel(inner=True)
def open_streams(cells: Cells, lists: Any, columns: Any) -> Any:
    """Cursors (position, end) of all lists on the event's paths, and where each attribute's begin."""
    room = 1
    for i in range(len(columns[0])):
        a = columns[0][i]
        room += 10 + 2 * (cell_of(cells, a, columns[2][i]) - cell_of(cells, a, columns[1][i]))
    at, end = np.empty(room, np.int64), np.empty(room, np.int64)
    begins = np.zeros(len(columns[0]) + 1, np.int64)
    used = 0
    for i in range(len(columns[0])):
        a = columns[0][i]
        left = cell_of(cells, a, columns[1][i]) + cells.number[a]
        right = cell_of(cells, a, columns[2][i]) + cells.number[a]
        while left >= 1:
            for node in range(left, right + 1):
                which = cells.base[a] + node
                if lists[which].count:
                    at[used] = lists[which].start
                    end[used] = at[used] + lists[which].count
                    used += 1
            left >>= 1
            right >>= 1
        begins[i + 1] = used
    return at, end, begins


@kernel(inner=True)
def next_near(t: PlaceTree, ask: Ask, keys: Any, items: Any, waiting: int, counts: Any) -> Any:
    """Advance the spatial stream to its next row, which is then on top of the heap. Returns the (grown) heap."""
    node, children, spot, rect = t.node, t.child, t.spot, t.rect
    while waiting and items[0] < 0:
        n = -items[0] - 1
        waiting = pop(keys, items, waiting)
        count, here = node[n, SIZE], spot[n]
        counts[NODES] += 1
        counts[QUEUED] += count + 1
        if waiting + count > len(keys):
            keys = np.concatenate((keys, np.empty(len(keys) + count)))
            items = np.concatenate((items, np.empty(len(items) + count, np.int64)))
        for i in range(count):
            if node[n, LEAF]:
                key = here[i, 2] * row_nearness(here, i, ask)
                waiting = push(keys, items, waiting, -key, children[n, i])
            else:
                c = children[n, i]
                r = rect[c]
                waiting = push(keys, items, waiting, -r[A_HI] * box_nearness(r, ask), -c - 1)
    return keys, items, waiting


@kernel
def threshold(t: PlaceTree, placed: Placed, lists: Any, columns: Any, ask: Ask, k: int, space: Workspace) -> Any:
    """The Threshold Algorithm. The marks say which rows were seen."""
    (cells, postings), (event, seen, counts) = lists, space
    spread(event, *columns)
    ids, scores, size = np.empty(k, np.int64), np.empty(k), np.int64(0)
    at, end, begins = open_streams(cells, postings.lists, columns)
    counts[NODES] += begins[-1]
    listed_bound, listed_row, numbers = postings.entries.bound, postings.entries.block, placed.rows.ids
    odd, attribute, lo, hi, weight, start, length, place = arrays_of(placed)
    keys, items, waiting = np.empty(256), np.empty(256, np.int64), np.int64(1)
    keys[0], items[0] = -np.inf, -t.meta[ROOT] - 1
    touched, number = np.empty(256, np.int64), 0
    while True:
        total, open_ones = 0.0, 0
        for s in range(len(columns[0]) + 1):
            row, gain = -1, 0.0
            if s == len(columns[0]):
                keys, items, waiting = next_near(t, ask, keys, items, waiting, counts)
                if waiting:
                    row, gain = items[0], -keys[0]
                    waiting = pop(keys, items, waiting)
                    counts[QUEUED] += 1
            else:
                best = -1
                counts[QUEUED] += begins[s + 1] - begins[s]  # heads of lists, of which the best is taken
                for c in range(begins[s], begins[s + 1]):
                    if at[c] < end[c] and (best < 0 or listed_bound[at[c]] > listed_bound[at[best]]):
                        best = c
                if best >= 0:
                    row, gain = int(listed_row[at[best]]), float(listed_bound[at[best]])
                    at[best] += 1
            if row < 0:
                continue
            open_ones += 1
            total += gain
            if seen[row] == 0.0:
                seen[row] = 1.0
                if number == len(touched):
                    touched = np.concatenate((touched, np.empty(number, np.int64)))
                touched[number] = row
                number += 1
                counts[COMPARISONS] += length[row]
                score = similarity(placed, odd, attribute, lo, hi, weight, start, length, place, row, event, ask)
                if score >= 0.0:
                    counts[QUEUED] += 1
                    size = offer(scores, ids, size, score, numbers[row])
        counts[NODES] += open_ones
        if open_ones == 0 or (size == k and raised(total) < scores[0]):
            break
    for i in range(number):
        seen[touched[i]] = 0.0
    counts[ENTRIES] += number
    clear(event, columns[0])
    return ids[:size], scores[:size]


class ThresholdScored(RTreeIndex):
    """Threshold Algorithm over one scored segment tree per attribute and an R-tree.

    >>> import topk
    >>> near, far = ([(0, "<", 5, 1.0)], (1.0, 1.0), 0.5), ([(0, "<", 9, 1.0)], (1.0, 6.0), 0.5)
    >>> index = topk.create("tas", topk.places.from_located([near, far], max_distance=10.0))
    >>> index.top({0: 2}, place=(1.0, 1.0), k=2)
    [(0, 1.0), (1, 0.75)]
    """

    name = "tas"
    token = False

    def __init__(self, catalogue: PlacedCatalogue, semantics: str = "similar", *, packing: str = LAYERS) -> None:
        super().__init__(catalogue, semantics, packing=packing)
        rows, used = self.store.rows, self.store.used
        self._cells = cut(rows, self.dimensions)
        number = int(self._cells.base[-1] + 2 * self._cells.number[-1]) if self.dimensions else 1
        count = np.zeros(number, np.int64)
        count_all(rows, np.arange(used), self._cells, count)
        row_of = np.repeat(np.arange(used), rows.length[:used])
        gain = _bounds(rows.weight[: len(row_of)] * (1.0 - self._place[row_of, 2]))
        entries = np.zeros(int(count.sum()), PLAIN_ENTRY).view(np.recarray)
        order = np.argsort(-gain, kind="stable")
        list_all(rows, order, row_of, gain, self._cells, np.cumsum(count) - count, entries.bound, entries.block)
        self._lists = Postings(number, np.repeat(np.arange(number), count), entries)

    def _entries(self, row: int) -> list[tuple[int, Any]]:
        rows, nodes = self.store.rows, np.empty(MOST, np.int64)
        found = []
        for p in range(int(rows.start[row]), int(rows.start[row] + rows.length[row])):
            count = cover(self._cells, int(rows.attribute[p]), float(rows.lo[p]), float(rows.hi[p]), nodes)
            gain = _bounds(rows.weight[p] * (1.0 - self._place[row, 2]))
            found += [(int(node), gain) for node in nodes[:count]]
        return found

    def insert(self, row: int) -> None:
        super().insert(row)
        for node, gain in self._entries(row):
            self._lists.insert(node, np.array([(gain, row)], PLAIN_ENTRY).view(np.recarray))

    def delete(self, row: int) -> None:
        for node, _ in self._entries(row):
            self._lists.delete(node, row)
        super().delete(row)

    def search(self, columns: Any, ask: Ask, k: int, scratch: Scratch) -> Found:
        space = scratch.with_marks(len(self.store.rows.ids))
        return threshold(self._tree, self.placed, (self._cells, self._lists.lists), columns, ask, k, space)

    @property
    def overhead(self) -> int:
        return super().overhead + self._lists.nbytes + sum(int(column.nbytes) for column in self._cells)

    def check(self) -> None:
        super().check()
        self._lists.check()
        lists, entries = self._lists.lists
        spans = [slice(start, start + count) for start, count in zip(lists.start, lists.count, strict=True)]
        listed = [(node, row) for node, span in enumerate(spans) for row in entries.block[span].tolist()]
        expected = [(node, row) for row in self.store.row_of.values() for node, _ in self._entries(row)]
        assert sorted(listed) == sorted(expected), "every predicate is listed once at each node that covers it"


def cut(rows: Rows, dimensions: int) -> Cells:
    """Cells per attribute at quantiles of the distinct bounds."""
    count, base, first = (np.ones(max(dimensions, 1), np.int64) for _ in range(3))
    cuts: list[Floats] = []
    order = np.argsort(rows.attribute, kind="stable")
    begins = np.searchsorted(rows.attribute[order], np.arange(dimensions + 1))
    next_list, next_cut = 0, 0
    for a in range(dimensions):
        own = order[begins[a] : begins[a + 1]]
        with np.errstate(over="ignore"):  # the largest float is followed by infinity
            bounds = np.unique(np.concatenate([rows.lo[own], np.nextafter(rows.hi[own], np.inf)]))
        bounds = bounds[np.isfinite(bounds)]
        while count[a] < _MOST_CELLS and count[a] <= len(bounds):
            count[a] *= 2
        base[a], first[a] = next_list, next_cut
        next_list += 2 * int(count[a])
        own_cuts = bounds[np.arange(1, count[a]) * len(bounds) // count[a]] if len(bounds) else np.zeros(count[a] - 1)
        cuts.append(own_cuts)
        next_cut += len(own_cuts)
    return Cells(count, base, first, np.concatenate(cuts) if cuts else np.empty(0))
