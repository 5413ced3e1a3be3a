"""Baseline: interval binary search tree, IBS-tree (Hanson, Chaabouni, Kim & Wang, SIGMOD 1990; IBM 2004, section 6).

A binary search tree over the endpoints. Each node has three lists of *marks*: intervals that hold at its key, and
those that hold everywhere to its left, or to its right, down to the next key above on that side. Property: an interval
has a mark in exactly one list on the path of any value inside it and in none on the path of any other value. So a
search walks one path and takes one list per node, O(log n) nodes before the answer; an interval leaves O(log n) marks.

Laying marks for [lo, hi]: the first node with a key inside is marked, then, on the way from there to lo, every node
with a key inside is marked at its key and to its right, and on the way to hi at its key and to its left.

Hanson et al. keep the tree balanced by rotations that move marks. Ours adds new keys as leaves, which changes no mark,
and builds the tree again when it has become deeper than a balanced one by a constant factor, or when half of its keys
are no longer endpoints of anything.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coverlay import kernel
from topk.checks import Floats, Ints
from topk.kernels.rows import fitted, with_room
from topk.papers.interval.contract import COMPARED, NODES, Entries, array_bytes
from topk.papers.predicate.contract import (
    END,
    Unranked,
    collect,
    list_bytes,
    listed,
    mark,
    new_lists,
    room_for,
    with_cells,
)

NIL = -1
LEFT, HERE, RIGHT = 0, 1, 2  # the lists of a node
_SLACK = 16  # levels beyond 2·log2(n) before the tree is built again
_MOST_DEPTH = 160  # of the stack of an in-order walk: 2·log2(2³¹) + slack, twice


class Tree(NamedTuple):
    """Node 0 is the root; a tree without keys has none."""

    key: Floats
    child: NDArray[np.int32]  # (nodes, 2)
    owners: NDArray[np.int32]  # endpoints that lie on the node
    meta: Ints  # nodes used, nodes without owners


@kernel(inner=True)
def _node_for(t: Any, key: float) -> Any:
    """The node with this key, made as a leaf if there is none, and its depth."""
    node, depth = 0, 1
    if t.meta[0] > 0:
        while t.key[node] != key:
            side = 0 if key < t.key[node] else 1
            if t.child[node, side] == NIL:
                t.child[node, side] = t.meta[0]
                node = t.meta[0]
                break
            node = t.child[node, side]
            depth += 1
    if node == t.meta[0]:
        t.key[node] = key
        t.child[node, 0] = t.child[node, 1] = NIL
        t.owners[node] = 0
        t.meta[0] += 1
        t.meta[1] += 1
    return node, depth


@kernel(inner=True)
def _walk(t: Any, marks: Any, row: int, lo: float, hi: float, lay: bool) -> None:
    """Lay or lift the marks of an interval whose endpoints have nodes."""
    top = 0
    while t.key[top] < lo or t.key[top] > hi:
        top = t.child[top, 1] if t.key[top] < lo else t.child[top, 0]
    mark(marks, 3 * top + HERE, row, lay)
    node = top
    while t.key[node] != lo:
        node = t.child[node, 0] if t.key[node] > lo else t.child[node, 1]
        if t.key[node] >= lo:
            mark(marks, 3 * node + HERE, row, lay)
            mark(marks, 3 * node + RIGHT, row, lay)
    node = top
    while t.key[node] != hi:
        node = t.child[node, 1] if t.key[node] < hi else t.child[node, 0]
        if t.key[node] <= hi:
            mark(marks, 3 * node + HERE, row, lay)
            mark(marks, 3 * node + LEFT, row, lay)


@kernel
def _insert(t: Any, marks: Any, row: int, lo: float, hi: float) -> int:
    """Returns the depth of the deeper endpoint."""
    deepest = 0
    for key in (lo, hi):
        node, depth = _node_for(t, key)
        if t.owners[node] == 0:
            t.meta[1] -= 1
        t.owners[node] += 1
        deepest = max(deepest, depth)
    _walk(t, marks, row, lo, hi, True)
    return deepest


@kernel
def _delete(t: Any, marks: Any, row: int, lo: float, hi: float) -> None:
    _walk(t, marks, row, lo, hi, False)
    for key in (lo, hi):
        node, _ = _node_for(t, key)
        t.owners[node] -= 1
        if t.owners[node] == 0:
            t.meta[1] += 1


@kernel
def _insert_all(t: Any, marks: Any, rows: Any, lo: Any, hi: Any) -> None:
    for i in range(len(rows)):
        _insert(t, marks, rows[i], lo[i], hi[i])


@kernel
def _balance(t: Any, keys: Any) -> None:
    """A balanced tree of sorted keys, all without owners."""
    begins, ends = np.empty(len(keys) + 1, np.int64), np.empty(len(keys) + 1, np.int64)
    begins[0], ends[0], t.meta[0], t.meta[1] = 0, len(keys), min(len(keys), 1), len(keys)
    node = 0
    while node < t.meta[0]:
        middle = (begins[node] + ends[node]) >> 1
        t.key[node], t.owners[node] = keys[middle], 0
        for side in range(2):
            begin, end = (begins[node], middle) if side == 0 else (middle + 1, ends[node])
            t.child[node, side] = NIL
            if begin < end:
                t.child[node, side] = t.meta[0]
                begins[t.meta[0]], ends[t.meta[0]] = begin, end
                t.meta[0] += 1
        node += 1


@kernel
def _search(t: Any, marks: Any, value: float, heads: bool, work: Any) -> Any:
    """The rows that contain the value, or with `heads` only the lists that hold them."""
    found, size = np.empty(64, np.int64), 0
    node = 0 if t.meta[0] > 0 else NIL
    while node != NIL:
        work[NODES] += 1
        side = HERE if value == t.key[node] else LEFT if value < t.key[node] else RIGHT
        which = 3 * node + side
        if not heads:
            found, size = collect(marks, which, found, size)
        elif marks.head[which] != END:
            found = room_for(found, size)
            found[size] = which
            size += 1
        node = NIL if side == HERE else t.child[node, side >> 1]
    work[COMPARED] += 0 if heads else size
    return found[:size]


@kernel
def _starting(t: Any, marks: Any, lows: Any, low: float, high: float, work: Any) -> Any:
    """The rows whose left end lies in (low, high]: they have a mark at its key."""
    found, size = np.empty(64, np.int64), 0
    stack, waiting = np.zeros(_MOST_DEPTH, np.int64), min(t.meta[0], 1)  # the root, if there is one
    while waiting > 0:
        waiting -= 1
        node = stack[waiting]
        work[NODES] += 1
        key = t.key[node]
        if key > low and t.child[node, 0] != NIL:
            stack[waiting] = t.child[node, 0]
            waiting += 1
        if key < high and t.child[node, 1] != NIL:
            stack[waiting] = t.child[node, 1]
            waiting += 1
        if low < key and key <= high:
            cell = marks.head[3 * node + HERE]
            while cell != END:
                work[COMPARED] += 1
                if lows[marks.row[cell]] == key:
                    found = room_for(found, size)
                    found[size] = marks.row[cell]
                    size += 1
                cell = marks.next[cell]
    return found[:size]


class IntervalBinarySearchTree(Unranked):
    name = "ibs-tree"

    def __init__(self, entries: Entries) -> None:
        super().__init__(entries)
        self._build(entries.rows)

    def _build(self, rows: Ints) -> None:
        lo, hi = self._known.lo[rows], self._known.hi[rows]
        keys = np.unique(np.concatenate((lo, hi)))
        room = 2 * len(keys) + 16
        self._tree = Tree(
            np.zeros(room), np.full((room, 2), NIL, np.int32), np.zeros(room, np.int32), np.zeros(2, np.int64)
        )
        self._marks = new_lists(3 * room, 16)
        _balance(self._tree, keys)
        most = 4 * (int(np.log2(len(keys) + 2)) + 2)
        for at in range(0, len(rows), 65_536):  # marks are only known afterwards: the pool grows between parts
            part = slice(at, at + 65_536)
            self._marks = with_cells(self._marks, len(rows[part]) * most)
            _insert_all(self._tree, self._marks, rows[part], lo[part], hi[part])

    def stabbed(self, value: float) -> Ints:
        return _search(self._tree, self._marks, value, False, self.work)

    def locate(self, value: float) -> Ints:
        return _search(self._tree, self._marks, value, True, self.work)

    def meeting(self, low: float, high: float) -> Ints:
        """What contains `low`, and what starts after it, up to `high`."""
        starting = _starting(self._tree, self._marks, self._known.lo, low, high, self.work)
        return np.concatenate((self.stabbed(low), starting))

    def insert(self, row: int, lo: float, hi: float, score: float, id: int) -> None:
        self._learn(row, lo, hi, score, id)
        used = int(self._tree.meta[0])
        if used + 2 > len(self._tree.key):
            self._tree = Tree._make([*(with_room(c, used, used + 2) for c in self._tree[:3]), self._tree.meta])
            self._marks = self._marks._replace(head=fitted(self._marks.head, 3 * len(self._tree.key), END))
        self._marks = with_cells(self._marks, 2 * _MOST_DEPTH)
        if _insert(self._tree, self._marks, row, lo, hi) > 2 * np.log2(used + 2) + _SLACK:
            self._build(np.array(self._live_rows(), dtype=np.int64))

    def _take_out(self, row: int, lo: float, hi: float) -> None:
        _delete(self._tree, self._marks, row, lo, hi)
        used, idle = self._tree.meta.tolist()
        if 2 * idle > used + 16:
            self._build(np.array(self._live_rows(), dtype=np.int64))

    @property
    def nbytes(self) -> int:
        used = int(self._tree.meta[0])
        nodes = sum(column[:used].nbytes for column in self._tree[:3])
        return nodes + list_bytes(self._marks) - self._marks.head[3 * used :].nbytes + self.known_bytes

    @property
    def allocated_bytes(self) -> int:
        return array_bytes(*self._tree, *self._marks) + self.known_bytes

    def check(self) -> None:
        t, expected, rows = self._tree, dict[int, list[int]](), self._live_rows()
        bounds: dict[int, tuple[float | None, float | None]] = {0: (None, None)}  # of the keys below a node
        for node in range(int(t.meta[0])):  # children follow their parents
            low, high = bounds[node]
            key = float(t.key[node])
            assert low is None or low < key, "keys are in order"
            assert high is None or key < high, "keys are in order"
            if t.child[node, 0] != NIL:
                bounds[int(t.child[node, 0])] = (low, key)
            if t.child[node, 1] != NIL:
                bounds[int(t.child[node, 1])] = (key, high)
            for row in rows:
                lo, hi = self._known.lo[row], self._known.hi[row]
                left, right = low is not None and lo <= low, high is not None and high <= hi
                if (left and right) or not lo <= key <= hi:
                    continue  # a mark above holds for everything here, or nothing does
                for which, holds in ((LEFT, left), (HERE, True), (RIGHT, right)):
                    if holds:
                        expected.setdefault(3 * node + which, []).append(row)
        for which in range(3 * int(t.meta[0])):
            assert listed(self._marks, which) == expected.get(which, []), f"marks of list {which}"
        ends = [float(end) for row in rows for end in (self._known.lo[row], self._known.hi[row])]
        keys = t.key[: int(t.meta[0])].tolist()
        assert t.owners[: len(keys)].tolist() == [ends.count(key) for key in keys], "owners are counted"
        assert int(t.meta[1]) == t.owners[: len(keys)].tolist().count(0), "idle keys are counted"
