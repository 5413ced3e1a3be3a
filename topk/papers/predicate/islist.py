"""Interval skip lists, IS-lists (Hanson & Johnson 1996), the rival in IBM 2004.

A skip list over the distinct endpoints. An interval leaves a *marker* on every edge of its path: from its
left endpoint always the highest edge that does not overshoot its right endpoint; and on every node of the
path. Property: a value is inside an interval iff its search path meets exactly one of the interval's
markers, so a search collects the markers of the edges it passes under, O(log n) edges, and those of the
node it ends on.

Hanson & Johnson repair markers locally when a node is added or removed. Ours takes the intervals whose path
used a broken edge (or the removed node), lifts their markers, changes the list, and lays them again: the same
result, for the same set of intervals, without the case analysis that makes the original hard to implement
reliably.
"""

from __future__ import annotations

import numpy as np

from topk.checks import Ints
from topk.kernels.rows import fitted
from topk.papers.interval.contract import Entries, array_bytes
from topk.papers.predicate import skip_list
from topk.papers.predicate.contract import END, Unranked, listed, new_lists, with_cells
from topk.papers.predicate.skip_list import HEADER, LISTS, NIL, TALL, USED


class IntervalSkipList(Unranked):
    name = "is-list"

    def __init__(self, entries: Entries) -> None:
        super().__init__(entries)
        keys = np.unique(np.concatenate((entries.lo, entries.hi)))
        self._ends = np.full((len(self._known.lo), 2), NIL, np.int32)
        nodes = 2 * len(keys) + 16
        height = np.ones(nodes, np.int8)
        height[HEADER] = TALL
        link, meta = np.full((nodes, TALL), NIL, np.int32), np.array([1, NIL, 0], np.int64)
        self._list = skip_list.SkipList(np.zeros(nodes), height, np.zeros(nodes, np.int32), link, meta)
        expected = 2 * len(entries.rows) * (int(np.log2(len(keys) + 2)) + 2)
        self._marks = with_cells(new_lists(LISTS * nodes, 16), 2 * expected)
        rows = entries.rows
        first, last = (np.searchsorted(keys, x) for x in (entries.lo, entries.hi))
        # Marker cells are only known afterwards; load in slices so that the pool can grow between them.
        skip_list.load_keys(self._list, keys)
        for at in range(0, len(rows), 65_536):
            part = slice(at, at + 65_536)
            self._marks = with_cells(self._marks, len(rows[part]) * 4 * TALL)
            skip_list.load_rows(self._list, self._marks, self._ends, rows[part], first[part], last[part])

    def stabbed(self, value: float) -> Ints:
        return skip_list.search(self._list, self._marks, value, False, self.work)

    def locate(self, value: float) -> Ints:
        return skip_list.search(self._list, self._marks, value, True, self.work)

    def meeting(self, low: float, high: float) -> Ints:
        """What contains `low`, and what starts after it, up to `high`."""
        starting = skip_list.starting(self._list, self._marks, self._ends, low, high, self.work)
        return np.concatenate((self.stabbed(low), starting))

    def insert(self, row: int, lo: float, hi: float, score: float, id: int) -> None:
        self._learn(row, lo, hi, score, id)
        if row >= len(self._ends):
            self._ends = fitted(self._ends, len(self._known.lo), NIL)
        if self._list.meta[USED] + 2 > len(self._list.key):
            self._grow_nodes()
        self._make_room([end for end in (lo, hi) if skip_list.node_of(self._list, end) == NIL])
        skip_list.insert(self._list, self._marks, self._ends, row, lo, hi)

    def _make_room(self, ends: list[float]) -> None:
        """Cells for one more path, and for intervals that are lifted and laid again when a node is added or removed.

        These return their cells before they take new ones, but their paths may get longer.
        """
        self._marks = with_cells(self._marks, 8 * TALL * (1 + sum(len(self.stabbed(end)) for end in ends)))

    def _take_out(self, row: int, lo: float, hi: float) -> None:
        both = 2  # ends of one interval may lie on one node
        self._make_room(
            [end for end, node in zip((lo, hi), self._ends[row], strict=True) if self._list.owners[node] <= both]
        )
        skip_list.delete(self._list, self._marks, self._ends, row)
        self._ends[row] = NIL

    def _grow_nodes(self) -> None:
        size, fills = 2 * len(self._list.key), (0, 1, 0, NIL)
        columns = (fitted(column, size, fill) for column, fill in zip(self._list[:4], fills, strict=True))
        self._list = skip_list.SkipList._make([*columns, self._list.meta])
        self._marks = self._marks._replace(head=fitted(self._marks.head, LISTS * size, END))

    @property
    def nbytes(self) -> int:
        used, cells = self._list.meta[USED], self._marks.meta[0]
        edges = int(self._list.height[:used].sum()) * 8  # one link and one marker list head per edge
        nodes = int(used) * (8 + 1 + 4 + 4)  # key, height, owners, head of the node's markers
        markers = array_bytes(self._marks.row[:cells], self._marks.next[:cells])
        return nodes + edges + markers + self.known_bytes + array_bytes(self._ends)

    @property
    def allocated_bytes(self) -> int:
        """Every node has TALL links and marker lists, whatever its height; the original has only those it uses."""
        return array_bytes(*self._list, *self._marks, self._ends) + self.known_bytes

    def check(self) -> None:
        s = self._list
        expected: dict[int, list[int]] = {}
        for row in self._live_rows():
            x, right = (int(e) for e in self._ends[row])
            assert s.key[x] == self._known.lo[row], "the left endpoint has its node"
            assert s.key[right] == self._known.hi[row], "the right endpoint has its node"
            while True:
                expected.setdefault(LISTS * x + TALL, []).append(row)
                if x == right:
                    break
                level = max(
                    i for i in range(s.height[x]) if s.link[x, i] != NIL and s.key[s.link[x, i]] <= s.key[right]
                )
                expected.setdefault(LISTS * x + level, []).append(row)
                x = int(s.link[x, level])
        for which in range(len(self._marks.head)):
            assert listed(self._marks, which) == sorted(expected.get(which, [])), f"markers of list {which}"
