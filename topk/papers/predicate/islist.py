"""Interval skip lists, IS-lists (Hanson & Johnson 1996), the rival in IBM 2004.

A skip list over the distinct endpoints. An interval leaves a *marker* on every edge of its path: from its
left endpoint always the highest edge that does not overshoot its right endpoint; and on every node of the
path. Property: a value is inside an interval iff its search path meets exactly one of the interval's
markers, so a search collects the markers of the edges it passes under, O(log n) edges, and those of the
node it ends on.

Hanson & Johnson repair markers locally when a node comes or goes. Ours takes the intervals whose path used
a broken edge (or the leaving node), removes their markers, changes the list, and lays them again: the same
result, for the same set of intervals, without the case analysis that makes the original hard to implement
reliably.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coverlay import kernel
from topk.catalogue import Floats, Ints
from topk.kernels.rows import fitted
from topk.papers.interval.contract import Entries, array_bytes
from topk.papers.predicate.contract import (
    END,
    Lists,
    Unranked,
    listed,
    new_lists,
    prepend,
    room_for,
    unlink,
    with_cells,
)

TALL = 24  # levels; enough for 2²⁴ endpoints at one half per level
HEADER = 0  # the node before all others
NIL = -1
_USED, _FREE, _DRAWN = 0, 1, 2  # places in meta: nodes used, first free node, heights drawn


class SkipList(NamedTuple):
    key: Floats
    height: NDArray[np.int8]
    owners: NDArray[np.int32]  # endpoints that lie on the node
    link: NDArray[np.int32]  # (nodes, TALL): next node per level
    meta: Ints


@kernel(inner=True)
def _draw_height(meta: Any) -> int:
    """Geometric with one half, from a counter run through a 64-bit mixer: the same list every time."""
    meta[_DRAWN] += 1
    z = np.uint64(meta[_DRAWN]) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = z ^ (z >> np.uint64(27))
    height = 1
    while height < TALL and z & np.uint64(1):
        height += 1
        z >>= np.uint64(1)
    return height


@kernel(inner=True)
def _find(s: Any, key: float, before: Any) -> int:
    """The node with this key or NIL; before[i] is the last node of level i with a smaller key."""
    x = HEADER
    for i in range(TALL - 1, -1, -1):
        while s.link[x, i] != NIL and s.key[s.link[x, i]] < key:
            x = s.link[x, i]
        before[i] = x
    x = s.link[x, 0]
    return x if x != NIL and s.key[x] == key else NIL


@kernel(inner=True)
def _walk(s: Any, marks: Any, row: int, left: int, right: int, lay: bool) -> None:
    """Lay or lift the markers of an interval. List TALL·node+i is edge i, node lists lie behind all edges."""
    nodes = s.key.shape[0]
    x = left
    while True:
        if lay:
            prepend(marks, nodes * TALL + x, row)
        else:
            unlink(marks, nodes * TALL + x, row)
        if x == right:
            return
        i = s.height[x] - 1
        while s.link[x, i] == NIL or s.key[s.link[x, i]] > s.key[right]:
            i -= 1
        if lay:
            prepend(marks, x * TALL + i, row)
        else:
            unlink(marks, x * TALL + i, row)
        x = s.link[x, i]


@kernel(inner=True)
def _collect(marks: Any, which: int, found: Any, size: int) -> Any:
    cell = marks.head[which]
    while cell != END:
        found = room_for(found, size)
        found[size] = marks.row[cell]
        size += 1
        cell = marks.next[cell]
    return found, size


@kernel(inner=True)
def _relay(s: Any, marks: Any, ends: Any, rows: Any, lay: bool) -> None:
    for t in range(len(rows)):
        _walk(s, marks, rows[t], ends[rows[t], 0], ends[rows[t], 1], lay)


@kernel(inner=True)
def _new_node(s: Any, key: float) -> int:
    node = s.meta[_FREE]
    if node != NIL:
        s.meta[_FREE] = s.link[node, 0]
    else:
        node = s.meta[_USED]
        s.meta[_USED] += 1
    s.key[node] = key
    s.height[node] = _draw_height(s.meta)
    s.owners[node] = 0
    return node


@kernel(inner=True)
def _break_edges(s: Any, marks: Any, ends: Any, key: float, before: Any) -> Any:
    """A new node for `key`, linked in; returns it and the intervals whose markers were lifted for it."""
    node = _new_node(s, key)
    lifted = np.empty(64, np.int64)
    size = 0
    for i in range(s.height[node]):
        lifted, size = _collect(marks, before[i] * TALL + i, lifted, size)
    rows = lifted[:size]  # an interval uses at most one edge above any key, so it occurs once
    _relay(s, marks, ends, rows, False)
    for i in range(s.height[node]):
        s.link[node, i] = s.link[before[i], i]
        s.link[before[i], i] = node
    return node, rows


@kernel
def _insert(s: Any, marks: Any, ends: Any, row: int, lo: float, hi: float) -> None:
    before = np.empty(TALL, np.int64)
    for side in range(2):
        key = lo if side == 0 else hi
        node = _find(s, key, before)
        if node == NIL:
            node, rows = _break_edges(s, marks, ends, key, before)
            _relay(s, marks, ends, rows, True)
        s.owners[node] += 1
        ends[row, side] = node
    _walk(s, marks, row, ends[row, 0], ends[row, 1], True)


@kernel
def _delete(s: Any, marks: Any, ends: Any, row: int) -> None:
    before = np.empty(TALL, np.int64)
    _walk(s, marks, row, ends[row, 0], ends[row, 1], False)
    for side in range(2):
        node = ends[row, side]
        s.owners[node] -= 1
        if s.owners[node] > 0 or (side == 1 and ends[row, 0] == node and s.meta[_FREE] == node):
            continue
        lifted, size = _collect(marks, s.key.shape[0] * TALL + node, np.empty(64, np.int64), 0)
        rows = lifted[:size]
        _relay(s, marks, ends, rows, False)
        _find(s, s.key[node], before)
        for i in range(s.height[node]):
            s.link[before[i], i] = s.link[node, i]
        s.link[node, 0] = s.meta[_FREE]
        s.meta[_FREE] = node
        _relay(s, marks, ends, rows, True)


@kernel
def _load(s: Any, marks: Any, ends: Any, keys: Any, rows: Any, first: Any, last: Any) -> None:
    """All endpoints first, then all markers: nothing needs to be lifted."""
    tails = np.zeros(TALL, np.int64)
    for t in range(len(keys)):
        node = _new_node(s, keys[t])
        for i in range(s.height[node]):
            s.link[tails[i], i] = node
            s.link[node, i] = NIL
            tails[i] = node
    for t in range(len(rows)):
        ends[rows[t], 0] = first[t] + 1  # nodes follow the header in key order
        ends[rows[t], 1] = last[t] + 1
        s.owners[first[t] + 1] += 1
        s.owners[last[t] + 1] += 1
        _walk(s, marks, rows[t], first[t] + 1, last[t] + 1, True)


@kernel
def _search(s: Any, marks: Any, value: float, heads: bool, work: Any) -> Any:
    """Rows that hold, or with `heads` only the marker lists that have them."""
    found = np.empty(64, np.int64)
    size = 0
    x = HEADER
    for i in range(TALL - 1, -1, -1):
        while s.link[x, i] != NIL and s.key[s.link[x, i]] < value:
            x = s.link[x, i]
            work[0] += 1
        following = s.link[x, i]
        if following != NIL and s.key[following] == value:
            # Intervals that hold here either pass over this node on a higher edge or have a marker on it.
            which = s.key.shape[0] * TALL + following
        elif x != HEADER and following != NIL:
            which = x * TALL + i
        else:
            continue
        if heads:
            found[size] = which
            size += 1
        else:
            found, size = _collect(marks, which, found, size)
        if s.key[following] == value:
            break
    work[1] += size
    return found[:size]


@kernel
def _starting(s: Any, marks: Any, ends: Any, low: float, high: float, work: Any) -> Any:
    """The rows whose left end lies in (low, high]: they have a marker on its node."""
    found = np.empty(64, np.int64)
    size = 0
    x = HEADER
    for i in range(TALL - 1, -1, -1):
        while s.link[x, i] != NIL and s.key[s.link[x, i]] <= low:
            x = s.link[x, i]
            work[0] += 1
    x = s.link[x, 0]
    while x != NIL and s.key[x] <= high:
        work[0] += 1
        cell = marks.head[s.key.shape[0] * TALL + x]
        while cell != END:
            work[1] += 1
            if ends[marks.row[cell], 0] == x:
                found = room_for(found, size)
                found[size] = marks.row[cell]
                size += 1
            cell = marks.next[cell]
        x = s.link[x, 0]
    return found[:size]


class IntervalSkipList(Unranked):
    name = "is-list"

    def __init__(self, entries: Entries) -> None:
        super().__init__(entries)
        keys = np.unique(np.concatenate((entries.lo, entries.hi)))
        self._ends = np.full((len(self._known.lo), 2), NIL, np.int32)
        self._marks: Lists
        self._allocate(2 * len(keys) + 16)
        expected = 2 * len(entries.rows) * (int(np.log2(len(keys) + 2)) + 2)
        self._marks = with_cells(self._marks, 2 * expected)
        rows = entries.rows
        first, last = (np.searchsorted(keys, x) for x in (entries.lo, entries.hi))
        # Marker cells are only known afterwards; load in slices so that the pool can grow between them.
        _load(self._list, self._marks, self._ends, keys, rows[:0], first[:0], last[:0])
        nothing = keys[:0]
        for at in range(0, len(rows), 65_536):
            part = slice(at, at + 65_536)
            self._marks = with_cells(self._marks, len(rows[part]) * 4 * TALL)
            _load(self._list, self._marks, self._ends, nothing, rows[part], first[part], last[part])

    def _allocate(self, nodes: int) -> None:
        link = np.full((nodes, TALL), NIL, np.int32)
        height = np.ones(nodes, np.int8)
        height[HEADER] = TALL
        meta = np.array([1, NIL, 0], np.int64)
        self._list = SkipList(np.zeros(nodes), height, np.zeros(nodes, np.int32), link, meta)
        self._marks = new_lists(nodes * (TALL + 1), 16)

    def stabbed(self, value: float) -> Ints:
        return _search(self._list, self._marks, value, False, self.work)

    def locate(self, value: float) -> Ints:
        return _search(self._list, self._marks, value, True, self.work)

    def meeting(self, low: float, high: float) -> Ints:
        """What contains `low`, and what starts behind it up to `high`."""
        starting = _starting(self._list, self._marks, self._ends, low, high, self.work)
        return np.concatenate((self.stabbed(low), starting))

    def insert(self, row: int, lo: float, hi: float, score: float, id: int) -> None:
        self._learn(row, lo, hi, score, id)
        if row >= len(self._ends):
            self._ends = fitted(self._ends, len(self._known.lo), NIL)
        if self._list.meta[_USED] + 2 > len(self._list.key):
            self._grow_nodes()
        # Relaying lifted intervals takes cells back before it takes new ones, but paths may get longer.
        self._marks = with_cells(self._marks, 8 * TALL * (self._live_under(lo) + self._live_under(hi) + 1))
        _insert(self._list, self._marks, self._ends, row, lo, hi)

    def _live_under(self, value: float) -> int:
        return len(self.stabbed(value))

    def delete(self, row: int, lo: float, hi: float, score: float, id: int) -> None:
        self._marks = with_cells(self._marks, 8 * TALL * (self._live_under(lo) + self._live_under(hi) + 1))
        _delete(self._list, self._marks, self._ends, row)
        self._ends[row] = NIL
        self._forget(row)

    def _grow_nodes(self) -> None:
        old, marks = self._list, self._marks
        count = len(old.key)
        self._allocate(2 * count)
        for new, column in zip(self._list[:4], old[:4], strict=True):
            np.asarray(new)[:count] = column
        self._list.meta[:] = old.meta
        head = self._marks.head
        head[: count * TALL] = marks.head[: count * TALL]
        head[2 * count * TALL : 2 * count * TALL + count] = marks.head[count * TALL :]
        self._marks = Lists(head, marks.row, marks.next, marks.meta)

    @property
    def nbytes(self) -> int:
        used, cells = self._list.meta[_USED], self._marks.meta[0]
        edges = int(self._list.height[:used].sum()) * 8  # one link and one marker list head per edge
        nodes = int(used) * (8 + 1 + 4 + 4)  # key, height, owners, head of the node's markers
        markers = array_bytes(self._marks.row[:cells], self._marks.next[:cells])
        return nodes + edges + markers + self.known_bytes + array_bytes(self._ends)

    def check(self) -> None:
        s = self._list
        expected: dict[int, list[int]] = {}
        for row in self._live_rows():
            x, right = (int(e) for e in self._ends[row])
            assert s.key[x] == self._known.lo[row], "the left endpoint has its node"
            assert s.key[right] == self._known.hi[row], "the right endpoint has its node"
            while True:
                expected.setdefault(len(s.key) * TALL + x, []).append(row)
                if x == right:
                    break
                level = max(
                    i for i in range(s.height[x]) if s.link[x, i] != NIL and s.key[s.link[x, i]] <= s.key[right]
                )
                expected.setdefault(x * TALL + level, []).append(row)
                x = int(s.link[x, level])
        for which in range(len(self._marks.head)):
            assert listed(self._marks, which) == sorted(expected.get(which, [])), f"markers of list {which}"
